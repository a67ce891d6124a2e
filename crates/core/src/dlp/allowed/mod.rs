//! Values that stand for a secret and are none: placeholders, documented examples, our own marks.
//!
//! Everything here is about the value alone, and cheap: a rule asks it last, of a value that else would be found.

mod code;

pub(super) use code::is_code;

/// Beginnings of what is put in by someone or something later.
const FILLED_IN_LATER: &[&[u8]] = &[
    b"<",
    b"${",
    b"{{",
    b"$(",
    b"$[",
    b"%(",
    b"%{",
    b"#{",
    b"@{",
    b"{$",
    b"{%",
    b"[[",
    b"[REDACTED",
    b"__",
    b"\\(",
    b"\\u003c",
    b"&lt;",
    b"!vault",
    b"op://",
    b"vault:",
    b"arn:",
    b"secretref:",
    b"ssm:",
];
/// Words that begin an invitation to write one's own value here, in lower case.
const INVITATIONS: &[&[u8]] = &[
    b"your",
    b"insert",
    b"changeme",
    b"change_me",
    b"change-me",
    b"changethis",
    b"change_this",
    b"change-this",
    b"replace",
    b"placeholder",
    b"redacted",
    b"enter_",
    b"enter-",
    b"todo",
    b"dummy",
    b"fill_",
    b"fillme",
    b"put_",
    b"put-",
    b"putyour",
    b"some_",
    b"some-",
    b"example",
    b"fake",
    b"sample",
    b"notreal",
    b"not_a_real",
    b"not-a-real",
    b"my_secret",
    b"my-secret",
    b"mysecret",
    b"my_token",
    b"my-token",
    b"my_api",
    b"my-api",
    b"the_",
    b"foo_",
    b"foobar",
    b"***",
];
/// Parts that no secret has, in any case.
const PARTS: &[&[u8]] = &[
    b"example",
    b"xxxx",
    b"****",
    b"....",
    b"your_",
    b"your-",
    b"_here",
    b"-here",
    b"placeholder",
    b"changeme",
    b"redacted",
];
/// Whole values that say that there is none, in lower case.
const NOTHING: &[&[u8]] = &[
    b"none",
    b"null",
    b"nil",
    b"true",
    b"false",
    b"undefined",
    b"empty",
    b"unset",
    b"n/a",
    b"default",
    b"optional",
    b"required",
];

/// Whether nobody would miss this value: `xxxx`, `<token>`, `${TOKEN}`, `your-key`, `[REDACTED:OPENAI_KEY]`.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let Some(first) = value.first() else { return true };
    value.iter().all(|byte| byte == first)
        || FILLED_IN_LATER.iter().any(|begin| value.starts_with(begin))
        || is_variable(value)
        || is_mark(value)
        || INVITATIONS.iter().any(|begin| begins_with(value, begin))
        || NOTHING.iter().any(|whole| value.eq_ignore_ascii_case(whole))
        || PARTS.iter().any(|part| contains(value, part))
        || value.windows(3).any(|three| three == "…".as_bytes())
}

/// Passwords of every manual, in lower case.
const EVERYBODYS: &[&[u8]] = &[
    b"test",
    b"pass",
    b"password",
    b"passwd",
    b"pwd",
    b"123456",
    b"12345678",
    b"1234",
    b"12345",
    b"string",
    b"postgres",
    b"user",
    b"username",
];

/// Whether this stands for a password wherever one is shown: hidden or not, nothing is lost.
pub(super) fn is_everybodys(value: &[u8]) -> bool {
    EVERYBODYS.iter().any(|whole| value.eq_ignore_ascii_case(whole))
}

/// Whether `part` (lower case) stands in `value`, in any case.
pub(super) fn contains(value: &[u8], part: &[u8]) -> bool {
    let Some(first) = part.first() else { return true };
    let starts = memchr::memchr2_iter(*first, first.to_ascii_uppercase(), value);
    starts.into_iter().any(|start| begins_with(&value[start..], part))
}

fn begins_with(value: &[u8], begin: &[u8]) -> bool {
    value.get(..begin.len()).is_some_and(|here| here.eq_ignore_ascii_case(begin))
}

/// `$TOKEN`, `%TOKEN%`.
fn is_variable(value: &[u8]) -> bool {
    let is_name = |name: &[u8]| {
        name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    match value {
        [b'$' | b'@' | b'%', name @ .., b'%'] | [b'$' | b'%', name @ ..] => is_name(name),
        _ => false,
    }
}

/// What we put in place of what was hidden for a while: `[EMAIL_1]`.
fn is_mark(value: &[u8]) -> bool {
    match value {
        [b'[', inner @ .., b']'] => {
            inner.contains(&b'_')
                && inner.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_no_secrets() {
        for value in [
            "xxxxxxxx",
            "****",
            "<token>",
            "${TOKEN}",
            "{{ token }}",
            "$TOKEN",
            "%TOKEN%",
            "your-key-here",
            "YOUR_API_KEY",
            "changeme",
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "[REDACTED:OPENAI_KEY]",
            "[EMAIL_1]",
            "%(password)s",
            "sk-xxxxxxxxxxxx1",
            "null",
            "None",
            "",
            "#{token}",
            "ab12…",
            "AAAAAAAA",
            "%s",
            "$(cat token)",
        ] {
            assert!(is_placeholder(value.as_bytes()), "{value}");
        }
        for value in
            ["hunter2", "b373398b00849944a45ab3eb93c31de5", "$ecret99!", "Pa$$w0rd", "correcthorse", "[x]", "n0ne"]
        {
            assert!(!is_placeholder(value.as_bytes()), "{value}");
        }
    }
}
