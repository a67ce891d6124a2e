//! Arguments in one spelling: keys sorted, no white space between tokens. Digits and strings stay as they are.
//!
//! Nearly all arguments are plain enough to be copied piece by piece. What is not (other escapes, fractions, a key
//! twice) is read as a value and written again, which gives the same for the plain ones.

use std::borrow::Cow;

use serde_json::Value;

/// Objects inside one another that are copied.
const DEPTH: usize = 16;
/// Digits of a number that is copied.
const DIGITS: usize = 18;

/// The arguments in their canonical spelling; what is no JSON (malformed, truncated) as it is.
pub(super) fn canonical(arguments: &str) -> Cow<'_, str> {
    let mut copy = Copy { text: arguments, at: 0, out: String::with_capacity(arguments.len()) };
    copy.skip_space();
    if copy.value(0).is_some() {
        copy.skip_space();
        if copy.at == arguments.len() {
            return Cow::Owned(copy.out);
        }
    }
    serde_json::from_str::<Value>(arguments).map_or(Cow::Borrowed(arguments), |value| Cow::Owned(value.to_string()))
}

/// Copies values; None wherever one is not plain.
struct Copy<'a> {
    text: &'a str,
    at: usize,
    out: String,
}

impl<'a> Copy<'a> {
    fn value(&mut self, depth: usize) -> Option<()> {
        match self.next()? {
            b'"' => self.string().map(|_| ()),
            b'{' if depth < DEPTH => self.object(depth + 1),
            b'[' if depth < DEPTH => self.array(depth + 1),
            b'-' | b'0'..=b'9' => self.number(),
            _ => ["true", "false", "null"]
                .into_iter()
                .find_map(|word| self.text[self.at..].starts_with(word).then(|| self.take(self.at + word.len()))),
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        // Where each member lies in `out`, with its key.
        let mut members: Vec<(&'a str, usize, usize)> = Vec::with_capacity(8);
        self.open()?;
        if self.next()? == b'}' {
            return self.sign(b'}');
        }
        loop {
            let start = self.out.len();
            let key = self.string()?;
            // The order is that of the characters, not of their escapes.
            if memchr::memchr(b'\\', key.as_bytes()).is_some() {
                return None;
            }
            self.skip_space();
            self.sign(b':')?;
            self.skip_space();
            self.value(depth)?;
            members.push((key, start, self.out.len()));
            self.skip_space();
            if self.next()? == b'}' {
                break;
            }
            self.sign(b',')?;
            self.skip_space();
        }
        if !members.is_sorted_by(|a, b| a.0 < b.0) {
            self.sort(members)?;
        }
        self.sign(b'}')
    }

    fn sort(&mut self, mut members: Vec<(&'a str, usize, usize)>) -> Option<()> {
        let start = members.first()?.1;
        members.sort_unstable_by_key(|member| member.0);
        if members.windows(2).any(|two| two[0].0 == two[1].0) {
            return None;
        }
        let pieces: Vec<&str> = members.iter().map(|(_, from, to)| &self.out[*from..*to]).collect();
        let sorted = pieces.join(",");
        self.out.truncate(start);
        self.out.push_str(&sorted);
        Some(())
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.open()?;
        if self.next()? == b']' {
            return self.sign(b']');
        }
        loop {
            self.value(depth)?;
            self.skip_space();
            if self.next()? == b']' {
                return self.sign(b']');
            }
            self.sign(b',')?;
            self.skip_space();
        }
    }

    /// A string whose escapes are those that would be written again. Gives what is between the quotes.
    fn string(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        if self.next()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let mut at = start;
        loop {
            at += memchr::memchr2(b'"', b'\\', &bytes[at..])?;
            if bytes[at] == b'"' {
                break;
            }
            if !matches!(bytes.get(at + 1)?, b'"' | b'\\' | b'n' | b't' | b'r' | b'b' | b'f') {
                return None;
            }
            at += 2;
        }
        let inner = &self.text[start..at];
        if inner.bytes().fold(false, |has, byte| has | (byte < 0x20)) {
            return None;
        }
        self.take(at + 1);
        Some(inner)
    }

    fn number(&mut self) -> Option<()> {
        let bytes = &self.text.as_bytes()[self.at..];
        let sign = usize::from(bytes[0] == b'-');
        let digits = bytes[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_plain = match bytes.get(sign) {
            Some(b'0') => sign == 0 && digits == 1,
            _ => (1..=DIGITS).contains(&digits),
        };
        let has_more = matches!(bytes.get(sign + digits), Some(b'.' | b'e' | b'E'));
        (is_plain && !has_more).then(|| self.take(self.at + sign + digits))
    }

    /// The brace or bracket that begins a list, and the white space behind it.
    fn open(&mut self) -> Option<()> {
        self.sign(self.next()?)?;
        self.skip_space();
        Some(())
    }

    fn sign(&mut self, sign: u8) -> Option<()> {
        (self.next()? == sign).then(|| self.take(self.at + 1))
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, end: usize) {
        self.out.push_str(&self.text[self.at..end]);
        self.at = end;
    }

    fn skip_space(&mut self) {
        while matches!(self.next(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slowly(text: &str) -> String {
        serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| value.to_string())
    }

    #[test]
    fn what_is_not_plain_is_read_as_a_value() {
        let table = [
            r#"{"b": 1, "a": [ true , null, {"z":"x","y":{ }} ], "c":"\u00e9\/\"\n"}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":-0,"b":01}"#,
            r#"{"a":-0}"#,
            r#"{"a":1.50,"b":1e5,"c":12345678901234567890123}"#,
            r#"{"a":-17 , "\n":0}"#,
            "{\"a\":\"\u{1}\"}",
            r#"{"a":1}{"#,
            r#"{"a":"#,
            r#"{"a":1,}"#,
            r#" "text" "#,
            "",
            "truest",
        ];
        for text in table {
            assert_eq!(canonical(text), slowly(text), "{text}");
        }
        for depth in [DEPTH, DEPTH + 1, 200] {
            let nested = format!("{}1 {}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(canonical(&nested), slowly(&nested));
        }
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "-?[0-9]{1,20}(\\.[0-9])?",
            "\"([a-zé ]|\\\\[ntrbf\"/\\\\]|\\\\u00e9){0,6}\"",
            Just("true".to_owned()),
            Just("null".to_owned()),
        ];
        leaf.prop_recursive(4, 24, 5, |inner| {
            let member = ("[a-c]{1,2}", inner.clone()).prop_map(|(key, value)| format!("\"{key}\" : {value}"));
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(|values| format!("[{}]", values.join(" ,\n"))),
                proptest::collection::vec(member, 0..5).prop_map(|members| format!("{{ {}}}", members.join(", "))),
            ]
        })
    }

    proptest! {
        #[test]
        fn both_ways_agree(text in json(), cut in 0_usize..60) {
            prop_assert_eq!(canonical(&text), slowly(&text));
            let cut = &text[..text.floor_char_boundary(cut)];
            prop_assert_eq!(canonical(cut), slowly(cut));
        }
    }
}
