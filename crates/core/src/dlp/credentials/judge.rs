//! Whether what a name promises is there.

use super::gap::Operator;
use super::name::{Name, Worth};
use super::value::Value;
use crate::dlp::allowed::{contains, is_code, is_everybodys, is_placeholder};
use crate::dlp::random::{Makeup, makeup};
use crate::dlp::view::View;

/// A value that its name says is a secret.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'c, 't> {
    pub(super) view: &'c View<'t>,
    pub(super) name: &'c Name<'t>,
    pub(super) worth: Worth,
    pub(super) operator: Operator,
    pub(super) value: &'c Value,
}

/// Fewest bytes of a secret that a name of its own announces.
const SECRET_BYTES: usize = 8;
/// Fewest bytes of one that only a vague name announces, or that nothing but a blank joins to its name.
const VAGUE_BYTES: usize = 16;
/// From here on a value without digits is taken for chance by its letters.
const LETTERS_BYTES: usize = 16;
/// Longest password.
const PASSWORD_BYTES: usize = 128;
/// Signs in a value that make it no word, path or number.
const SIGNS: usize = 5;
/// Hashes of passwords open nothing.
const HASHES: &[&[u8]] = &[
    b"$2a$", b"$2b$", b"$2y$", b"$argon2", b"$1$", b"$5$", b"$6$", b"$pbkdf2", b"{CRYPT}", b"{SSHA}", b"pbkdf2_",
    b"scrypt:",
];

/// Whether there is any use in asking what the name promises: cheap, and said of almost every word in prose.
pub(super) fn may_be_secret(view: &View<'_>, name: &Name<'_>, operator: Operator, value: &Value) -> bool {
    if value.is_open {
        return true;
    }
    let text = &view.text[value.start..value.end];
    let is_short = match operator {
        Operator::Space if value.quote.is_none() => text.len() < VAGUE_BYTES,
        _ => text.len() < 4,
    };
    if is_short || text.iter().any(|byte| matches!(byte, b' ' | b'\t')) {
        return false;
    }
    let made = makeup(text);
    name.is_password() || is_chance(text, &made, SECRET_BYTES) || is_long_digits(&made) || is_signs(text)
}

impl Claim<'_, '_> {
    pub(super) fn text(&self) -> &[u8] {
        &self.view.text[self.value.start..self.value.end]
    }

    /// Whether it takes more text to see what follows the value, where that matters.
    pub(super) fn is_end_open(&self) -> bool {
        matches!(self.operator, Operator::Comma | Operator::Call) && self.view.may_go_on(self.behind())
    }

    pub(super) fn is_secret(&self) -> bool {
        // The dearer question is asked of the few that remain.
        self.is_kept() && !self.is_something_else()
    }

    /// Whether the value keeps what the name promises.
    fn is_kept(&self) -> bool {
        let (value, is_bare) = (self.text(), self.value.quote.is_none());
        let made = makeup(value);
        match (self.worth, self.operator) {
            (Worth::Password, Operator::Call | Operator::Comma | Operator::Says) if self.name.is_pass() => false,
            (Worth::Password, Operator::Space)
                if !is_bare && self.value.quote != Some(b'`') && !self.name.is_pass() =>
            {
                is_password(value) && (made.digits > 0 || self.name.is_upper() || is_signs(value))
            }
            (worth, Operator::Space | Operator::Glued) => {
                is_chance(value, &made, VAGUE_BYTES) || (worth == Worth::Secret && is_long_digits(&made))
            }
            (Worth::Vague, _) => (is_chance(value, &made, VAGUE_BYTES) && !is_uuid(value)) || is_long_digits(&made),
            (Worth::Secret, _) => is_chance(value, &made, SECRET_BYTES) || is_long_digits(&made) || is_signs(value),
            (Worth::Password, Operator::Says) => value.len() >= 8 && made.digits > 0 && made.letters() > 0,
            (Worth::Password, Operator::Comma) => is_password(value) && (made.digits > 0 || is_signs(value)),
            (Worth::Password, Operator::Flag) => {
                value[0] != b'-' && is_password(value) && (!is_bare || self.is_after_pass() || made.lower < made.length)
            }
            (Worth::Password, _) if !is_bare => is_password(value),
            (Worth::Password, _) => is_password(value) && self.is_bare_password(value, &made),
        }
    }

    /// A placeholder, a piece of a program, an address, the hash of a password.
    fn is_something_else(&self) -> bool {
        let value = self.text();
        let is_argument = matches!(self.operator, Operator::Comma | Operator::Call);
        let is_alone = self.view.text.get(self.behind()) == Some(&b')');
        let is_called = self.operator != Operator::Call || self.name.is_last();
        (is_argument && !(is_alone && is_called))
            || self.is_sister()
            || is_address(value)
            || is_number(value)
            || is_pattern(value)
            || HASHES.iter().any(|hash| value.starts_with(hash))
            || (self.value.quote.is_none() && (is_code(value) || is_constant(value)))
            || is_placeholder(value)
    }

    /// `password1 != password2`, `"password1", "password2"`: two names.
    fn is_sister(&self) -> bool {
        let name = &self.view.text[self.name.start..self.name.end];
        let stem = |text: &[u8]| text.split_last().is_some_and(|(last, _)| last.is_ascii_digit());
        let value = self.text();
        name.len() == value.len()
            && stem(name)
            && stem(value)
            && name[..name.len() - 1].eq_ignore_ascii_case(&value[..value.len() - 1])
    }

    /// The first byte behind the value, its quote and blanks.
    fn behind(&self) -> usize {
        let quote = self.value.end + usize::from(self.value.quote.is_some());
        let blanks = self
            .view
            .text
            .get(quote..)
            .unwrap_or_default()
            .iter()
            .take(64)
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        quote + blanks
    }

    /// `-passin pass:…`.
    fn is_after_pass(&self) -> bool {
        self.view.text[self.name.end..self.value.start].ends_with(b"pass:")
    }

    /// Words stand without quotes in the environment and in YAML; in programs they are names.
    fn is_bare_password(&self, value: &[u8], made: &Makeup) -> bool {
        let (text, name) = (self.view.text, self.name);
        let is_last = text.get(self.value.end).is_none_or(|byte| matches!(byte, b'\n' | b'\r' | b'\\'));
        let is_tight = text[name.end] == b'=' && self.value.start == name.end + 1;
        let is_yaml = text[name.end] == b':' && self.value.start > name.end + 1;
        let is_env = name.is_upper() && self.operator == Operator::Assign && (is_last || is_tight);
        let is_mixed = value.len() >= 6 && made.digits > 0 && made.letters() > 0;
        let is_word = made.upper == 0 && !value.iter().any(|byte| b"()[]{}$.".contains(byte));
        let before = text[..name.start].iter().rev().take(64).find(|byte| !b" \t-#_'\"!".contains(byte));
        let is_first = before.is_none_or(|byte| *byte == b'\n');
        // `PASS: localhost:8000 is taken` is what a test says.
        if is_yaml && !is_last && &text[name.start..name.end] == b"PASS" {
            return false;
        }
        is_env
            || is_mixed
            || is_signs(value)
            || self.operator == Operator::Tag
            || (is_word && is_last && is_first && (is_tight || is_yaml))
    }
}

/// Whether a value of at least `least` bytes looks drawn by chance.
fn is_chance(value: &[u8], made: &Makeup, least: usize) -> bool {
    if value.len() < least || made.distinct < 5 {
        return false;
    }
    if made.digits > 0 {
        made.letters() > 0 && made.is_rarer_than(430)
    } else {
        value.len() >= LETTERS_BYTES && made.is_rarer_than(410)
    }
}

fn is_long_digits(made: &Makeup) -> bool {
    made.length >= 20 && made.digits == made.length
}

/// Whether a value behind the name of a password is one, and not a name or a word of a page itself.
fn is_password(value: &[u8]) -> bool {
    let is_lower = value.iter().all(|byte| !byte.is_ascii_uppercase() && *byte != b'.');
    let is_name = !is_lower
        && !value.iter().any(u8::is_ascii_digit)
        && [&b"Password"[..], b"password", b"PASSWORD", b"Secret", b"Token"].iter().any(|end| value.ends_with(end));
    (4..=PASSWORD_BYTES).contains(&value.len()) && !is_everybodys(value) && !is_name && !is_constant(value)
}

/// `PASSWORD_MAX`.
fn is_constant(value: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    value.contains(&b'_') && value.iter().all(is_part) && value.iter().filter(|byte| byte.is_ascii_digit()).count() <= 3
}

/// A pattern, or a form that is filled in.
fn is_pattern(value: &[u8]) -> bool {
    [&b"%s"[..], b"%d", b"(?", b"[^"].iter().any(|part| contains(value, part))
}

/// Whether many signs stand in it that are in no name, path or number.
fn is_signs(value: &[u8]) -> bool {
    value.iter().filter(|byte| byte.is_ascii_punctuation() && !b"_-./:\\=\"'".contains(byte)).count() >= SIGNS
}

/// A path or an address.
fn is_address(value: &[u8]) -> bool {
    let is_path = value.starts_with(b"/") && ![40, 44, 88].contains(&value.len());
    is_path || value.starts_with(b"./") || value.starts_with(b"~/") || contains(value, b"://")
}

/// `0x4f`, `^7.1.2`, `16384i32`, `1979-05-27T07:32:00Z`.
fn is_number(value: &[u8]) -> bool {
    let is_made_of = |extra: &[u8]| value.iter().all(|byte| byte.is_ascii_digit() || extra.contains(byte));
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_typed = digits > 0
        && matches!(
            &value[digits..],
            b"u8" | b"u16" | b"u32" | b"u64" | b"usize" | b"i8" | b"i16" | b"i32" | b"i64" | b"isize"
        );
    let is_date = digits == 4 && value.get(4) == Some(&b'-') && is_made_of(b"-:.+TZ ");
    let is_version = value.contains(&b'.') && is_made_of(b".^~<>=v*xX");
    (value.starts_with(b"0x") && value.len() <= 18) || is_typed || is_date || is_version
}

pub(super) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
