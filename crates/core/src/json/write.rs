//! Writing JSON by hand, where every call writes some: without looking up names of fields that never change.

use super::string::has_sign;

/// A text, in quotes.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    if has_sign(text.as_bytes()) {
        // Writing to memory cannot fail, and a text can always be written.
        let _ = serde_json::to_writer(out, text);
        return;
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// A whole number.
pub fn put_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A yes or no.
pub(crate) fn put_flag(out: &mut Vec<u8>, flag: bool) {
    out.extend_from_slice(if flag { b"true" } else { b"false" });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_are_written_as_serde_json_writes_them(text in "[ -~\u{0}-\u{20}é世\u{7f}]{0,40}", number in any::<i64>()) {
            let mut out = Vec::new();
            put_text(&mut out, &text);
            prop_assert_eq!(&out, &serde_json::to_vec(&text).unwrap());
            out.clear();
            put_number(&mut out, number);
            put_flag(&mut out, number > 0);
            prop_assert_eq!(String::from_utf8(out).unwrap(), format!("{number}{}", number > 0));
        }
    }
}
