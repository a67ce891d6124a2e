//! Values without quotes that are a piece of a program: a call, a look-up, a type, the name of something.

use crate::dlp::random::makeup;

/// Names of types, and words of languages that stand where a value could, in lower case.
const TYPES: &[&[u8]] = &[
    b"str",
    b"string",
    b"bool",
    b"boolean",
    b"bytes",
    b"int",
    b"integer",
    b"number",
    b"float",
    b"any",
    b"object",
    b"dict",
    b"list",
    b"char",
    b"byte",
    b"varchar",
    b"text",
    b"uuid",
    b"optional",
    b"option",
    b"self",
    b"this",
    b"new",
    b"void",
    b"unknown",
    b"never",
    b"symbol",
    b"buffer",
    b"type",
    b"async",
    b"await",
    b"function",
    b"lambda",
    b"return",
    b"if",
    b"not",
    b"and",
    b"or",
    b"in",
    b"is",
    b"let",
    b"const",
    b"var",
    b"the",
];

/// Whether a value that stands without quotes is a piece of a program.
pub(in crate::dlp) fn is_code(value: &[u8]) -> bool {
    TYPES.iter().any(|name| value.eq_ignore_ascii_case(name)) || (is_call(value) && is_nested(value)) || is_path(value)
}

/// `getpass()`, `env["TOKEN"]`, `Vec<u8>`, `&str`, `*pass`, `List[str]`: a name with a bracket behind it.
fn is_call(value: &[u8]) -> bool {
    let name = value.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_.:$?!&*-> ".contains(byte)).count();
    (name > 0 && value.get(name).is_some_and(|byte| b"([<{".contains(byte)))
        || matches!(value.first(), Some(b'&' | b'*' | b'(' | b'[' | b'{' | b'!' | b'@'))
}

/// Whether every bracket closes the one that was opened last: programs do, passwords do not care.
fn is_nested(value: &[u8]) -> bool {
    let (mut open, mut depth) = ([0; 16], 0);
    for byte in value {
        let opening = match byte {
            b'(' | b'[' | b'{' => {
                if let Some(place) = open.get_mut(depth) {
                    *place = *byte;
                }
                depth += 1;
                continue;
            }
            b')' => b'(',
            b']' => b'[',
            b'}' => b'{',
            _ => continue,
        };
        if depth > 0 {
            depth -= 1;
            if open.get(depth).is_some_and(|last| *last != opening) {
                return false;
            }
        }
    }
    true
}

/// `self.password`, `process.env.TOKEN`, `config::TOKEN`, `user->pass`, `account.secret?`: names joined together, no digits within.
fn is_path(value: &[u8]) -> bool {
    let is_joined = value.windows(2).any(|two| two[0].is_ascii_alphanumeric() && two[1] == b'.')
        || value.windows(2).any(|two| two == b"::" || two == b"->" || two == b"?.");
    let made = makeup(value);
    is_joined
        && !(value.len() >= 16 && made.digits > 0 && made.is_rarer_than(430))
        && value.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"_$@".contains(byte))
        && value.iter().all(|byte| byte.is_ascii_alphabetic() || b"_.:$@?!->".contains(byte) || byte.is_ascii_digit())
        && value
            .split(|byte| b".:>".contains(byte))
            .all(|name| name.iter().filter(|byte| byte.is_ascii_digit()).count() <= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_from_values() {
        for value in [
            "String",
            "str",
            "getpass()",
            "os.environ[\"TOKEN\"]",
            "process.env.TOKEN",
            "self.password",
            "config::TOKEN",
            "Vec<u8>",
            "&str",
            "user->pass",
            "Optional[str]",
            "getenv('X')",
            "lambda",
            "req.body.password1",
        ] {
            assert!(is_code(value.as_bytes()), "{value}");
        }
        for value in ["hunter2", "Tr0ub4dor", "a8f93.kd01999x", "correct-horse", "abc123=="] {
            assert!(!is_code(value.as_bytes()), "{value}");
        }
    }
}
