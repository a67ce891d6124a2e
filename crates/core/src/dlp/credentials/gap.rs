//! What stands between a name and its value: quotes, an operator, a type, a wrapper.

use super::name::Name;
use crate::dlp::view::View;

/// Blanks in a row that are crossed.
const BLANKS: usize = 64;
/// Longest tag or type that is crossed.
const CROSSED: usize = 64;

/// What joins a name to its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// `=`, `:`, `:=`, `=>`.
    Assign,
    /// `==`, `!==`.
    Compare,
    /// `"name", "value"`.
    Comma,
    /// `name("value")`.
    Call,
    /// `<name>value`.
    Tag,
    /// `--name value`.
    Flag,
    /// `NAME value`.
    Space,
    /// `the name is value`.
    Says,
    /// `name-value`.
    Glued,
}

/// Calls that hold their value as it is.
const WRAPPERS: &[&[u8]] = &[
    b"Some(",
    b"[]byte(",
    b"String(",
    b"str(",
    b"new String(",
    b"from(",
    b"of(",
    b"Buffer.from(",
    b"bytes(",
    b"b64decode(",
    b"base64.b64decode(",
    b"ConvertTo-SecureString ",
    b"ConvertTo-SecureString -String ",
    b"SecretStr(",
    b"to_string(",
    b"password(",
    b"b",
    b"r",
    b"u",
    b"f",
    b"L",
    b"@",
    b"(",
    b"new SecureString(",
    b"String.valueOf(",
];

/// How a name is joined to what begins at the place also returned (with its quote, if it has one).
pub(super) fn cross(view: &View<'_>, name: &Name<'_>) -> Option<(Operator, usize)> {
    let text = view.text;
    let byte = |at: usize| text.get(at).copied();
    let mut at = name.end;
    if name.start > 0 && byte(name.start - 1) == Some(b'<') {
        if !matches!(byte(at)?, b'>' | b' ') {
            return None;
        }
        let tag = text.get(at..)?.iter().take(CROSSED).position(|byte| *byte == b'>' || *byte == b'\n')?;
        return if byte(at + tag)? == b'>' { inside(view, at + tag + 1) } else { None };
    }
    let mut is_quoted = false;
    for _ in 0..5 {
        match byte(at)? {
            b'"' | b'\'' | b'`' => is_quoted = true,
            b'\\' if matches!(byte(at + 1)?, b'"' | b'\'') => {}
            b']' | b'*' | b'[' => {}
            _ => break,
        }
        at += 1;
    }
    let closed = at;
    at = blanks(view, at)?;
    if is_quoted && byte(at)? == b'>' {
        return inside(view, at + 1);
    }
    let marks = text.get(at..)?.iter().take(5).take_while(|byte| b"=:>!?|<~+.".contains(byte)).count();
    let operator = &text[at..at + marks];
    if is_operator(operator) {
        let is_compare = operator.len() >= 2 && (operator.starts_with(b"==") || operator.starts_with(b"!="));
        let value = wrapped(view, line(view, at + marks)?)?;
        return Some((if is_compare { Operator::Compare } else { Operator::Assign }, value));
    }
    match byte(at)? {
        b',' if is_quoted => {
            let next = line(view, at + 1)?;
            if let Some(behind) = value_word(view, next) {
                return Some((Operator::Assign, behind));
            }
            Some((Operator::Comma, wrapped(view, next)?))
        }
        b'(' if at == name.end => Some((Operator::Call, wrapped(view, line(view, at + 1)?)?)),
        b'\n' if at == name.end => Some((Operator::Assign, value_word(view, blanks(view, at + 1)?)?)),
        b'v' | b'V' if is_quoted && at > closed && value_word(view, at).is_some() => {
            Some((Operator::Assign, value_word(view, at)?))
        }
        b'i' if at > closed && text[at..].starts_with(b"is ") => Some((Operator::Says, blanks(view, at + 3)?)),
        b'i' if at > closed && text[at..].starts_with(b"is: ") => Some((Operator::Says, blanks(view, at + 4)?)),
        _ if at == closed + 1 && is_flag(view, name) => Some((Operator::Flag, at)),
        b'-' if at > closed && text[at..].starts_with(b"-p ") && text[..name.end].ends_with(b"sshpass") => {
            Some((Operator::Flag, at + 3))
        }
        _ if at > closed => Some((Operator::Space, at)),
        _ => None,
    }
}

/// `=`, `:`, `:=`, `=>`, `==`, `||=`, `.=`, `::=` and such; not `::` of a path, nor what only closes.
fn is_operator(marks: &[u8]) -> bool {
    let is_joint = marks.iter().any(|byte| b"=:>".contains(byte));
    let is_path = marks.starts_with(b"::") && !marks.ends_with(b"=");
    is_joint && marks.len() <= 4 && !is_path && !marks.starts_with(b">") && !marks.ends_with(b".")
}

/// A type may stand before the value: `password: String = "x"`, `password string = "x"`. Where the value begins then.
pub(super) fn behind_type(view: &View<'_>, at: usize, operator: Operator) -> Option<usize> {
    let is_type = |byte: &u8| byte.is_ascii_alphanumeric() || b"_<>&'[]?.| *:".contains(byte);
    if view.text.get(at)? == &b'<' {
        return None;
    }
    let length = view.text.get(at..)?.iter().take(CROSSED).take_while(|byte| is_type(byte)).count();
    let words = view.text[at..at + length].trim_ascii_end();
    if operator == Operator::Space && words.contains(&b' ') {
        return None;
    }
    let equals = at + length;
    if view.text.get(equals)? != &b'=' || length == 0 || view.text.get(equals + 1)? == &b'=' {
        return None;
    }
    wrapped(view, line(view, equals + 1)?)
}

/// Over blanks on one line.
fn blanks(view: &View<'_>, at: usize) -> Option<usize> {
    let count = view.text.get(at..)?.iter().take(BLANKS + 1).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    (count <= BLANKS).then_some(at + count)
}

/// Over blanks, and to the next line if the value stands there in quotes or as the first of a list.
fn line(view: &View<'_>, at: usize) -> Option<usize> {
    let at = blanks(view, at)?;
    let mut next = at;
    if view.text.get(next) == Some(&b'\r') {
        next += 1;
    }
    if view.text.get(next) != Some(&b'\n') {
        return Some(at);
    }
    let next = blanks(view, next + 1)?;
    match view.text.get(next..)? {
        [b'-', b' ', ..] => blanks(view, next + 2),
        [b'"' | b'\'' | b'`', ..] => Some(next),
        [] => Some(next),
        _ => None,
    }
}

/// What a tag holds, on its line or alone on the next.
fn inside(view: &View<'_>, at: usize) -> Option<(Operator, usize)> {
    if view.text.get(at)? == &b'\n' {
        Some((Operator::Space, blanks(view, at + 1)?))
    } else {
        Some((Operator::Tag, at))
    }
}

/// Over what wraps a value.
fn wrapped(view: &View<'_>, at: usize) -> Option<usize> {
    let text = view.text.get(at..)?;
    let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'"' | b'\'' | b'`'));
    if is_quote(text.first()) || text.first().is_some_and(u8::is_ascii_digit) {
        return Some(at);
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| {
        wrapper.first() == text.first() && text.starts_with(wrapper) && is_quote(text.get(wrapper.len()))
    });
    Some(at + wrapper.map_or(0, |wrapper| wrapper.len()))
}

/// `value: `, `"Value": `, `value=`: the word for it stands between.
fn value_word(view: &View<'_>, at: usize) -> Option<usize> {
    let text = view.text.get(at..)?;
    let quote = usize::from(matches!(text.first()?, b'"' | b'\''));
    let is_word = text.get(quote..quote + 5)?.eq_ignore_ascii_case(b"value");
    let mut behind = at + quote + 5 + quote;
    if !is_word {
        return None;
    }
    behind = blanks(view, behind)?;
    matches!(view.text.get(behind)?, b':' | b'=').then_some(())?;
    blanks(view, behind + 1)
}

/// `--token`.
fn is_flag(view: &View<'_>, name: &Name<'_>) -> bool {
    view.text[name.start] == b'-'
}
