//! What tells the counters of a rule apart, and how that is written.

use std::fmt;
use std::str::FromStr;

use crate::limits::LIMIT_KEY_BYTES;
use crate::policy::scope::Descriptor;

/// One part of what tells the counters of a rule apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LimitKey {
    /// The agent.
    Agent,
    /// The virtual key, or else the credential.
    Key,
    /// The model.
    Model,
    /// A header, a parameter, a verified claim, or the address.
    Carried(Descriptor),
}

/// A text that is no limit key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a limit key; expected agent, key, ip, model, header:NAME, query:NAME or jwt:CLAIM")]
pub struct BadLimitKey(String);

impl FromStr for LimitKey {
    type Err = BadLimitKey;

    fn from_str(text: &str) -> Result<LimitKey, BadLimitKey> {
        let bad = || BadLimitKey(text.chars().take(LIMIT_KEY_BYTES).collect());
        let name = |name: &str| {
            let is_fine = (1..=LIMIT_KEY_BYTES).contains(&name.len()) && !name.chars().any(char::is_control);
            if is_fine { Ok(name.to_owned()) } else { Err(bad()) }
        };
        match text.split_once(':') {
            None => match text {
                "agent" => Ok(LimitKey::Agent),
                "key" => Ok(LimitKey::Key),
                "model" => Ok(LimitKey::Model),
                "ip" => Ok(LimitKey::Carried(Descriptor::Ip)),
                _ => Err(bad()),
            },
            Some(("header", header)) if header.bytes().all(is_header_byte) => {
                Ok(LimitKey::Carried(Descriptor::Header(name(header)?.to_ascii_lowercase())))
            }
            Some(("query", parameter)) => Ok(LimitKey::Carried(Descriptor::Query(name(parameter)?))),
            Some(("jwt", claim)) => Ok(LimitKey::Carried(Descriptor::Jwt(name(claim)?))),
            Some(_) => Err(bad()),
        }
    }
}

impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitKey::Agent => f.write_str("agent"),
            LimitKey::Key => f.write_str("key"),
            LimitKey::Model => f.write_str("model"),
            LimitKey::Carried(descriptor) => descriptor.fmt(f),
        }
    }
}

/// A `token` of RFC 9110: a header of another name could never arrive, and its limit would be one for all.
fn is_header_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_text() {
        for text in ["agent", "key", "ip", "model", "header:x-tool-name", "query:tenant", "jwt:https://x.example/org"] {
            assert_eq!(text.parse::<LimitKey>().unwrap().to_string(), text);
        }
        let header: LimitKey = "header:X-API-Key".parse().unwrap();
        assert_eq!(header, LimitKey::Carried(Descriptor::Header("x-api-key".into())));
        // Parameters and claims differ by case.
        assert_eq!("jwt:Org".parse::<LimitKey>().unwrap().to_string(), "jwt:Org");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["", "Agent", "agents", "ip:country", "header:", "header:a b", "query:", "jwt:", "cookie:x", "ua:bot"]
        {
            let error = text.parse::<LimitKey>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is not a limit key; expected agent, key")), "{error}");
        }
    }

    #[test]
    fn names_are_bounded() {
        let key = |bytes: usize| format!("header:{}", "n".repeat(bytes)).parse::<LimitKey>();
        assert!(key(LIMIT_KEY_BYTES).is_ok());
        let error = key(LIMIT_KEY_BYTES + 1).unwrap_err();
        assert!(error.to_string().len() < 2 * LIMIT_KEY_BYTES + 100, "{error}");
    }
}
