//! Events that are like one before them, but for one text.
//!
//! A stream sends the same event hundreds of times, each time with another piece of its answer in it. To read one of them
//! takes thousands of instructions, to see that another differs from it only inside that text takes a few dozen: what
//! was learnt of the one then holds of the other.

use std::ops::Range;

/// An event with a hole in the place of one text.
#[derive(Debug, Default)]
pub(crate) struct Mold {
    /// What stands before the text and behind it.
    around: Vec<u8>,
    /// How much of it stands before.
    hole: usize,
}

impl Mold {
    /// Made of an event in which the inside of a JSON string stands at `text`.
    pub(crate) fn of(event: &[u8], text: Range<usize>) -> Mold {
        Mold { around: [&event[..text.start], &event[text.end..]].concat(), hole: text.start }
    }

    /// The inside of the text, if `event` is like the one before but for that.
    pub(crate) fn text<'e>(&self, event: &'e [u8]) -> Option<&'e [u8]> {
        let (before, behind) = self.around();
        let inside = event.strip_prefix(before)?.strip_suffix(behind)?;
        is_one_text(inside).then_some(inside)
    }

    /// What stands before the text, and behind it.
    pub(crate) fn around(&self) -> (&[u8], &[u8]) {
        self.around.split_at(self.hole)
    }
}

/// Whether the quotes around these bytes are those of one string, which stands in one line.
fn is_one_text(inside: &[u8]) -> bool {
    let mut is_escaped = false;
    for byte in inside {
        match byte {
            0..b' ' => return false,
            _ if is_escaped => is_escaped = false,
            b'"' => return false,
            _ => is_escaped = *byte == b'\\',
        }
    }
    !is_escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mold() -> Mold {
        let event = r#"data: {"a":1,"text":"one","b":2}"#;
        let start = event.find("one").unwrap();
        Mold::of(event.as_bytes(), start..start + 3)
    }

    #[test]
    fn only_the_text_may_differ() {
        let text = |event: &str| mold().text(event.as_bytes()).map(|text| String::from_utf8(text.to_vec()).unwrap());
        assert_eq!(text(r#"data: {"a":1,"text":"two and more","b":2}"#).as_deref(), Some("two and more"));
        assert_eq!(text(r#"data: {"a":1,"text":"","b":2}"#).as_deref(), Some(""));
        for other in [
            r#"data: {"a":3,"text":"one","b":2}"#,
            r#"data: {"a":1,"text":"one","b":3}"#,
            r#"data: {"a":1,"text":"one","b":2} "#,
            r#"data: {"a":1,"text":""#,
            r#"data: {"a":1,"text":null,"b":2}"#,
        ] {
            assert_eq!(text(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_more_than_one_text_is_none() {
        let is_text =
            |inside: &str| mold().text(format!(r#"data: {{"a":1,"text":"{inside}","b":2}}"#).as_bytes()).is_some();
        for inside in [r#"a \"word\""#, r"a line\n", r"C:\\", "grüße"] {
            assert!(is_text(inside), "{inside}");
        }
        for inside in [r#"a","c":"d"#, r"a\", r#"a\\","c":"d"#, "a\nb", "a\rb", "\t"] {
            assert!(!is_text(inside), "{inside}");
        }
    }
}
