//! What a listing is narrowed to, and where a page of it begins.

use std::fmt;

use rusqlite::types::Value;
use sprag_core::event::EventKind;
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::RunStatus;
use crate::error::StoreError;
use crate::history::rows::word;
use crate::run_key::RunKey;

/// Which events are listed. The default lists all, newest first.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Of this agent.
    pub agent: Option<AgentName>,
    /// Of this run.
    pub run: Option<RunKey>,
    /// With this virtual key, by its id.
    pub key: Option<String>,
    /// With this model.
    pub model: Option<String>,
    /// Of this kind.
    pub kind: Option<EventKind>,
    /// Refused for this reason, as refusals call it.
    pub block_reason: Option<String>,
    /// Only those in which secrets or personal data were found, or only others.
    pub has_findings: Option<bool>,
    /// Only refused ones, or only others.
    pub blocked: Option<bool>,
    /// Arrived at this time or later.
    pub since: Option<Timestamp>,
    /// Arrived before this time.
    pub until: Option<Timestamp>,
    /// Only requests: not what was done about runs and agents.
    pub requests_only: bool,
    /// In the order in which they arrived, as the steps of a run are read.
    pub is_oldest_first: bool,
}

/// Which runs are listed, always the most recently active first. The default lists all.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Of this agent.
    pub agent: Option<AgentName>,
    /// Of this id; ids belong to their agents, so there may be several.
    pub id: Option<RunId>,
    /// Whose id begins like this.
    pub id_prefix: Option<String>,
    /// In this state.
    pub status: Option<RunStatus>,
    /// Whose last call was of this model.
    pub model: Option<String>,
    /// That cost at least as much, without their parts.
    pub min_cost: Option<NanoUsd>,
    /// Last active at this time or later.
    pub since: Option<Timestamp>,
    /// Last active before this time.
    pub until: Option<Timestamp>,
}

/// The place of a row in a listing: its time, and its number among rows of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) at: i64,
    pub(super) seq: i64,
}

/// A `WHERE` clause in the making.
#[derive(Default)]
pub(super) struct Conditions {
    clauses: Vec<&'static str>,
    pub(super) values: Vec<Value>,
}

impl EventFilter {
    pub(super) fn conditions(&self) -> Conditions {
        let mut conditions = Conditions::default();
        conditions.and_maybe("agent = ?", self.agent.as_ref().map(|agent| agent.as_str().to_owned()));
        if let Some(run) = &self.run {
            conditions.and("agent = ?", run.agent.as_str().to_owned());
            conditions.and("run_id = ?", run.id.as_str().to_owned());
        }
        conditions.and_maybe("key = ?", self.key.clone());
        conditions.and_maybe("model = ?", self.model.clone());
        if let Some(kind) = self.kind {
            // Written out, so that the index of the other kinds applies.
            conditions.clauses.push(if kind == EventKind::LlmCall {
                "kind = 'llm_call'"
            } else {
                "kind <> 'llm_call'"
            });
            if kind != EventKind::LlmCall {
                conditions.and("kind = ?", word(&kind));
            }
        }
        conditions.and_maybe("block_reason = ?", self.block_reason.clone());
        match self.has_findings {
            Some(true) => conditions.clauses.push("dlp IS NOT NULL"),
            Some(false) => conditions.clauses.push("dlp IS NULL"),
            None => {}
        }
        match self.blocked {
            // Written out, so that the index of refused events applies.
            Some(true) => conditions.clauses.push("blocked = 1"),
            Some(false) => conditions.clauses.push("blocked = 0"),
            None => {}
        }
        if self.requests_only {
            conditions.clauses.push("act IS NULL");
        }
        conditions.and_maybe("at >= ?", self.since.map(|time| time.0));
        conditions.and_maybe("at < ?", self.until.map(|time| time.0));
        conditions
    }
}

impl RunFilter {
    pub(super) fn conditions(&self) -> Conditions {
        let mut conditions = Conditions::default();
        conditions.and_maybe("agent = ?", self.agent.as_ref().map(|agent| agent.as_str().to_owned()));
        conditions.and_maybe("run_id = ?", self.id.as_ref().map(|id| id.as_str().to_owned()));
        // Compared by its first characters: a pattern would give some of them a meaning.
        if let Some(prefix) = self.id_prefix.as_ref().filter(|prefix| !prefix.is_empty()) {
            let length = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
            conditions.clauses.push("substr(run_id, 1, ?) = ?");
            conditions.values.extend([Value::from(length), Value::from(prefix.clone())]);
        }
        conditions.and_maybe("status = ?", self.status.as_ref().map(word));
        conditions.and_maybe("model = ?", self.model.clone());
        conditions.and_maybe("cost_nano >= ?", self.min_cost.map(|cost| cost.0));
        conditions.and_maybe("last_at >= ?", self.since.map(|time| time.0));
        conditions.and_maybe("last_at < ?", self.until.map(|time| time.0));
        conditions
    }
}

impl Conditions {
    pub(super) fn and(&mut self, clause: &'static str, value: impl Into<Value>) {
        self.clauses.push(clause);
        self.values.push(value.into());
    }

    /// A clause without a value.
    pub(super) fn only(&mut self, clause: &'static str) {
        self.clauses.push(clause);
    }

    pub(super) fn and_maybe(&mut self, clause: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.and(clause, value);
        }
    }

    /// Narrows a listing to what comes after the cursor; the clause compares a time and a row number.
    pub(super) fn beyond(&mut self, clause: &'static str, cursor: Cursor) {
        self.clauses.push(clause);
        self.values.extend([Value::from(cursor.at), Value::from(cursor.seq)]);
    }

    pub(super) fn sql(&self) -> String {
        if self.clauses.is_empty() { String::new() } else { format!("WHERE {}", self.clauses.join(" AND ")) }
    }
}

impl Cursor {
    pub(super) fn parse(text: &str) -> Result<Cursor, StoreError> {
        let parts = text.split_once('.').and_then(|(at, seq)| Some((at.parse().ok()?, seq.parse().ok()?)));
        let (at, seq) = parts.ok_or_else(|| StoreError::BadCursor(text.chars().take(64).collect()))?;
        Ok(Cursor { at, seq })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        for cursor in [Cursor { at: 0, seq: 1 }, Cursor { at: -5, seq: i64::MAX }] {
            assert_eq!(Cursor::parse(&cursor.to_string()).unwrap(), cursor);
        }
        for bad in ["", ".", "1", "1.", "a.b", "1.2.3"] {
            assert!(Cursor::parse(bad).is_err(), "{bad}");
        }
    }
}
