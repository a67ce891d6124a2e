//! Words near a number, which say what it is.

use crate::dlp::view::View;

/// Whether one of `words` (lower case) stands in the `within` bytes before `at`, by itself or as a part of a name:
/// `customer_phone`, `phoneNumber`.
pub(super) fn is_before(view: &View<'_>, at: usize, within: usize, words: &[&str]) -> bool {
    any(&view.text[at.saturating_sub(within)..at], words)
}

/// Whether one of `words` stands in this text.
pub(super) fn any(text: &[u8], words: &[&str]) -> bool {
    let mut rest = text;
    while let Some(begin) = rest.iter().position(u8::is_ascii_alphabetic) {
        let is_escaped = begin > 0 && rest[begin - 1] == b'\\' && matches!(rest[begin], b'n' | b'r' | b't');
        let begin = begin + usize::from(is_escaped);
        let end = begin + word_length(&rest[begin..]);
        let word = &rest[begin..end];
        if words.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes())) {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

/// The name that a value is given: the last word before `:`, `=` and quotes at `at`, as in `"order_id": "`.
pub(super) fn key_before<'t>(view: &View<'t>, at: usize) -> &'t [u8] {
    let text = &view.text[at.saturating_sub(KEY_WITHIN)..at];
    let is_between = |byte: &u8| b" \t\"'`:=#([\\".contains(byte);
    let end = text.len() - text.iter().rev().take_while(|byte| is_between(byte)).count();
    let length = text[..end].iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let word = &text[end - length..end];
    let camel = word.iter().rposition(u8::is_ascii_uppercase).filter(|at| *at > 0 && word[at - 1].is_ascii_lowercase());
    &word[camel.unwrap_or(0)..]
}

/// How far back the name of a value is looked for.
const KEY_WITHIN: usize = 40;

/// Letters up to the next word; a capital behind a small letter begins one.
fn word_length(text: &[u8]) -> usize {
    let mut length = text.len().min(1);
    while let Some(byte) = text.get(length).filter(|byte| byte.is_ascii_alphabetic()) {
        if byte.is_ascii_uppercase() && text[length - 1].is_ascii_lowercase() {
            break;
        }
        length += 1;
    }
    if text.first().is_some_and(u8::is_ascii_alphabetic) { length } else { 0 }
}
