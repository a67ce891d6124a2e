//! Names that travel: runs, agents, requests.
//!
//! A run of a caller with a virtual key carries the key's id behind its own, `task-123#key-4k2m9x0a`: two keys that
//! name the same run have two runs. A run inside a command that `sprag run` started carries the command's id in the same
//! way, `task-123#cmd-7h1c0q2z`: a session that two commands go on with is two runs. The caller never sees these parts.

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
    /// The run of a virtual key, named by somebody else.
    #[error("`{0}` ends like the run of a virtual key, and only a caller with that key names such a run")]
    ForeignRun(String),
    /// A key, which would stand wherever the name does.
    #[error("the name of a run or an agent goes on record, and this one looks like a secret; use another")]
    Secret,
    /// Empty, too long, or with characters that do not belong into a path or a header.
    #[error("an agent name has 1 to {AGENT_NAME_BYTES} letters, digits, '.', '_', '-', ':' or '@'; this one {0}")]
    Agent(&'static str),
}

impl RunId {
    /// Takes a run id as it is on record: what a caller declared, and the id of the caller's virtual key.
    ///
    /// # Errors
    /// Says what is wrong when it is empty, longer than 128 characters without the key, or not printable.
    pub fn parse(text: &str) -> Result<RunId, BadName> {
        let own = own_part(text);
        if own.is_empty() {
            return Err(BadName::Run("is empty"));
        }
        let is_printable = |c: char| !c.is_control() && (c == ' ' || !c.is_whitespace());
        if !own.chars().all(is_printable) {
            return Err(BadName::Run("has a character that is not printable"));
        }
        if own.chars().count() > RUN_ID_CHARS {
            return Err(BadName::Run("is longer"));
        }
        Ok(RunId(text.into()))
    }

    /// Takes a run id as declared by a caller, who may have a virtual key of this id.
    ///
    /// # Errors
    /// As [`RunId::parse`], and when it names a run of another key.
    pub fn parse_declared(text: &str, key: Option<&str>) -> Result<RunId, BadName> {
        let id = RunId::parse(text)?;
        match (id.key(), key) {
            (None, None) => Ok(id),
            (None, Some(key)) => Ok(id.of_key(key)),
            (Some(named), Some(key)) if named == key => Ok(id),
            (Some(_), _) => Err(BadName::ForeignRun(text.to_owned())),
        }
    }

    /// The run of this name that belongs to a virtual key.
    #[must_use]
    pub fn of_key(&self, key: &str) -> RunId {
        RunId(format!("{}#{key}", self.for_caller()).into())
    }

    /// The run of this name inside a command, which is named by the id of its own run.
    #[must_use]
    pub fn within(&self, command: &RunId) -> RunId {
        match split_command(&self.0).1 {
            Some(named) if named == command.as_str() => self.clone(),
            _ => RunId(format!("{}#{command}", self.0).into()),
        }
    }

    /// The virtual key that the run belongs to.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        split_key(split_command(&self.0).0).1
    }

    /// The id as its caller knows it.
    #[must_use]
    pub fn for_caller(&self) -> &str {
        own_part(&self.0)
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

/// Whether a text can be the id of a virtual key: `key-` and eight lower-case letters or digits.
#[must_use]
pub fn is_key_id(text: &str) -> bool {
    is_short_id("key-", text)
}

/// Whether a text can be the id of a command's run: `cmd-` and eight lower-case letters or digits.
#[must_use]
pub fn is_command_id(text: &str) -> bool {
    is_short_id("cmd-", text)
}

fn is_short_id(prefix: &str, text: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.strip_prefix(prefix).is_some_and(|rest| rest.len() == 8 && rest.bytes().all(is_letter))
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

/// A run id as its caller knows it.
fn own_part(id: &str) -> &str {
    split_key(split_command(id).0).0
}

/// Most ids have no such sign, and every answer asks.
fn split_last(id: &str) -> Option<(&str, &str)> {
    let at = memchr::memrchr(b'#', id.as_bytes())?;
    Some((&id[..at], &id[at + 1..]))
}

/// A run id in two: without the command that it is in, and that command.
fn split_command(id: &str) -> (&str, Option<&str>) {
    match split_last(id) {
        Some((own, command)) if is_command_id(command) => (own, Some(command)),
        _ => (id, None),
    }
}

/// A run id without a command in two: as its caller knows it, and the key behind it.
fn split_key(id: &str) -> (&str, Option<&str>) {
    match split_last(id) {
        Some((own, key)) if is_key_id(key) => (own, Some(key)),
        _ => (id, None),
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
    fn a_run_belongs_to_its_key() {
        let key = "key-4k2m9x0a";
        let run = RunId::parse_declared("task", Some(key)).unwrap();
        assert_eq!((run.as_str(), run.for_caller(), run.key()), ("task#key-4k2m9x0a", "task", Some(key)));
        assert_eq!(RunId::parse_declared("task#key-4k2m9x0a", Some(key)), Ok(run.clone()), "its own name in full");
        for stranger in [None, Some("key-00000000")] {
            assert!(matches!(RunId::parse_declared("task#key-4k2m9x0a", stranger), Err(BadName::ForeignRun(_))));
        }
        for other in ["task#key-4k2m9x0", "task#key-4K2M9X0A", "#key-4k2m9x0a b", "a#b"] {
            assert_eq!(RunId::parse_declared(other, None).unwrap().for_caller(), other);
        }
        assert!(RunId::parse("#key-4k2m9x0a").is_err(), "nothing is left of it");
        let longest = "x".repeat(RUN_ID_CHARS);
        let long = RunId::parse_declared(&longest, Some(key)).unwrap();
        assert_eq!(RunId::parse(long.as_str()), Ok(long.clone()), "it is read back from the record");
        assert_eq!(RunId::parse_declared(long.as_str(), Some(key)), Ok(long));
        assert!(RunId::parse_declared(&format!("{longest}x"), Some(key)).is_err());
    }

    #[test]
    fn a_run_is_one_of_its_command() {
        let command = RunId::parse("cmd-7h1c0q2z").unwrap();
        let run = RunId::parse_declared("task", Some("key-4k2m9x0a")).unwrap().within(&command);
        assert_eq!(run.as_str(), "task#key-4k2m9x0a#cmd-7h1c0q2z");
        assert_eq!((run.for_caller(), run.key()), ("task", Some("key-4k2m9x0a")));
        assert_eq!(run.within(&command), run, "once is enough");
        assert_eq!(RunId::parse(run.as_str()), Ok(run.clone()));
        let other = RunId::parse("cmd-00000000").unwrap();
        assert_ne!(RunId::parse("task").unwrap().within(&command), RunId::parse("task").unwrap().within(&other));
        assert_eq!(command.for_caller(), "cmd-7h1c0q2z", "the command's own run");
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
