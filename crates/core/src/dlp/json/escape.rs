//! The escapes of JSON strings: taken out with the way back remembered, and put in again.

use std::ops::Range;

/// A text out of a JSON string, behind some context, and how its places lead back to the string.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) text: Vec<u8>,
    pub(super) places: Places,
}

/// How places of a decoded text lead back to where it came from. Between escapes both go on byte for byte.
#[derive(Debug, Default)]
pub(super) struct Places {
    text_start: usize,
    raw_start: usize,
    escapes: Vec<Escape>,
}

#[derive(Clone, Copy, Debug)]
struct Escape {
    text_start: usize,
    raw_start: usize,
    text_length: u8,
    raw_length: u8,
}

impl Decoded {
    /// Takes the escapes out of the string that stands in `range` of `raw`, without its quotes.
    pub(super) fn fill(&mut self, context: &[u8], raw: &[u8], range: Range<usize>) {
        let Decoded { text, places } = self;
        text.clear();
        text.extend_from_slice(context);
        places.escapes.clear();
        (places.text_start, places.raw_start) = (text.len(), range.start);
        let mut at = range.start;
        while let Some(plain) = memchr::memchr(b'\\', &raw[at..range.end]) {
            text.extend_from_slice(&raw[at..at + plain]);
            at += plain;
            let (character, length) = character_of(&raw[at..range.end]);
            let mut bytes = [0; 4];
            let encoded = character.encode_utf8(&mut bytes);
            places.escapes.push(Escape {
                text_start: text.len(),
                raw_start: at,
                text_length: encoded.len() as u8,
                raw_length: length as u8,
            });
            text.extend_from_slice(encoded.as_bytes());
            at += length;
        }
        text.extend_from_slice(&raw[at..range.end]);
    }
}

impl Places {
    /// Where a part of the text stands in the string; an escape is never split.
    pub(super) fn raw(&self, part: Range<usize>) -> Range<usize> {
        let before = self.escapes.partition_point(|escape| escape.text_start <= part.start);
        let start = match before.checked_sub(1).map(|last| self.escapes[last]) {
            Some(last) if part.start < last.text_end() => last.raw_start,
            Some(last) => last.raw_end() + (part.start - last.text_end()),
            None => self.raw_start + part.start.saturating_sub(self.text_start),
        };
        let before = self.escapes.partition_point(|escape| escape.text_start < part.end);
        let end = match before.checked_sub(1).map(|last| self.escapes[last]) {
            Some(last) => last.raw_end() + part.end.saturating_sub(last.text_end()),
            None => self.raw_start + part.end.saturating_sub(self.text_start),
        };
        start..end.max(start)
    }
}

impl Escape {
    fn text_end(&self) -> usize {
        self.text_start + usize::from(self.text_length)
    }

    fn raw_end(&self) -> usize {
        self.raw_start + usize::from(self.raw_length)
    }
}

/// The text of a raw string, with its escapes taken out `times` times.
pub(super) fn unescaped(raw: &[u8], times: u8) -> Vec<u8> {
    let mut text = raw.to_vec();
    let mut decoded = Decoded::default();
    for _ in 0..times {
        if !text.contains(&b'\\') {
            break;
        }
        decoded.fill(b"", &text, 0..text.len());
        std::mem::swap(&mut text, &mut decoded.text);
    }
    text
}

/// The text as it stands in a string inside `times - 1` other strings.
pub(super) fn escaped(text: &str, times: u8) -> String {
    let mut text = text.to_owned();
    for _ in 0..times {
        if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
            break;
        }
        let quoted = serde_json::Value::from(text).to_string();
        text = quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned();
    }
    text
}

/// The character of the escape that `raw` begins with, and its length. What is no escape stands for itself.
fn character_of(raw: &[u8]) -> (char, usize) {
    let character = match raw.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(&byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
        Some(b'u') => return unicode(raw),
        _ => return ('\\', 1),
    };
    (character, 2)
}

fn unicode(raw: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = raw.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()))?;
        u16::from_str_radix(digits, 16).ok()
    };
    let Some(first) = unit(0) else { return ('\\', 1) };
    let second = if (0xd800..0xdc00).contains(&first) { unit(6) } else { None };
    let pair = [first, second.unwrap_or_default()];
    match char::decode_utf16(pair).next() {
        Some(Ok(character)) => (character, if second.is_some() { 12 } else { 6 }),
        // Half of a pair.
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_text_leads_back_to_whole_escapes() {
        let raw = r#"xxa\n\"\/\u0041é\ud83d\ude00\ud800\u00zz\"#.as_bytes();
        let mut decoded = Decoded::default();
        decoded.fill(b"key", raw, 2..raw.len());
        assert_eq!(String::from_utf8_lossy(&decoded.text), "keya\n\"/Aé😀\u{fffd}\\u00zz\\");
        let place = |part: &str| {
            let start = decoded.text.windows(part.len()).position(|w| w == part.as_bytes()).unwrap();
            &raw[decoded.places.raw(start..start + part.len())]
        };
        for (part, expected) in [
            ("a", "a"),
            ("a\n", r"a\n"),
            ("\n", r"\n"),
            ("\"/", r#"\"\/"#),
            ("Aé", r"\u0041é"),
            ("é😀", r"é\ud83d\ude00"),
            ("😀", r"\ud83d\ude00"),
            ("\u{fffd}", r"\ud800"),
            ("zz\\", "zz\\"),
        ] {
            assert_eq!(String::from_utf8_lossy(place(part)), expected);
        }
        // A part of an escaped character is the whole escape.
        let smile = decoded.text.windows(4).position(|w| w == "😀".as_bytes()).unwrap();
        for part in [smile..smile + 1, smile + 1..smile + 2, smile + 3..smile + 4] {
            assert_eq!(&raw[decoded.places.raw(part)], br"\ud83d\ude00");
        }
    }

    #[test]
    fn a_text_comes_back_through_any_number_of_strings() {
        let text = "a \"quoted\" \\ line\nand more";
        for times in 0..4 {
            assert_eq!(unescaped(escaped(text, times).as_bytes(), times), text.as_bytes(), "{times}");
        }
        assert_eq!(escaped("\"", 2), r#"\\\""#);
    }
}
