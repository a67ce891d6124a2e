//! Names that travel: runs, agents, requests.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits::{AGENT_NAME_BYTES, RUN_ID_CHARS};

/// The id of a run, as the caller declared it or as Sprag made it. Unique only together with its agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(Arc<str>);

/// The name of an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentName(Arc<str>);

/// A name that cannot be used, with what is wrong about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Empty, too long, or with characters outside the printable ones.
    #[error("a run id has 1 to {RUN_ID_CHARS} printable characters; this one {0}")]
    Run(&'static str),
    /// Empty, too long, or with characters that do not belong into a path or a header.
    #[error("an agent name has 1 to {AGENT_NAME_BYTES} letters, digits, '.', '_', '-', ':' or '@'; this one {0}")]
    Agent(&'static str),
}

impl RunId {
    /// Takes a run id as declared by a caller.
    ///
    /// # Errors
    /// Says what is wrong when it is empty, longer than 128 characters or not printable.
    pub fn parse(text: &str) -> Result<RunId, BadName> {
        if text.is_empty() {
            return Err(BadName::Run("is empty"));
        }
        let is_printable = |c: char| !c.is_control() && (c == ' ' || !c.is_whitespace());
        if !text.chars().all(is_printable) {
            return Err(BadName::Run("has a character that is not printable"));
        }
        if text.chars().count() > RUN_ID_CHARS {
            return Err(BadName::Run("is longer"));
        }
        Ok(RunId(text.into()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AgentName {
    /// Takes an agent's name from a header, a path or a body.
    ///
    /// # Errors
    /// Says what is wrong when it is empty, too long or has characters that a path could not carry.
    pub fn parse(text: &str) -> Result<AgentName, BadName> {
        if text.is_empty() {
            return Err(BadName::Agent("is empty"));
        }
        if text.len() > AGENT_NAME_BYTES {
            return Err(BadName::Agent("is longer"));
        }
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':' | b'@');
        if !text.bytes().all(is_allowed) {
            return Err(BadName::Agent("has another character"));
        }
        Ok(AgentName(text.into()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for AgentName {
    /// The agent of requests that name none.
    fn default() -> AgentName {
        AgentName("default".into())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_is_bounded_and_printable() {
        assert!(RunId::parse(&"x".repeat(RUN_ID_CHARS)).is_ok());
        assert!(RunId::parse(&"é".repeat(RUN_ID_CHARS)).is_ok());
        assert!(RunId::parse(&"x".repeat(RUN_ID_CHARS + 1)).is_err());
        for bad in ["", "a\nb", "a\u{0}", "tab\there"] {
            assert!(RunId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_agent_name_fits_a_path() {
        assert!(AgentName::parse(&"a".repeat(AGENT_NAME_BYTES)).is_ok());
        assert!(AgentName::parse(&"a".repeat(AGENT_NAME_BYTES + 1)).is_err());
        assert!(AgentName::parse("team:bot@1.2-x_y").is_ok());
        for bad in ["", "a/b", "a b", "ü"] {
            assert!(AgentName::parse(bad).is_err(), "{bad:?}");
        }
    }
}
