//! The table of cases, and that no reason is missing from it.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};
use sprag_core::wire::{Dialect, Form, Reason};

const CASES: &str = include_str!("../../../../tests/clients/reasons/cases.json");
pub(crate) const CONFIG: &str = include_str!("../../../../tests/clients/reasons/sprag.toml");

/// One way to be stopped.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// Its name, and that of the agent whose policy provokes it.
    pub(crate) case: String,
    pub(crate) reason: Reason,
    /// For a client without habits of its own.
    pub(crate) status: u16,
    pub(crate) code: String,
    /// What its prompt ends with.
    #[serde(default)]
    pub(crate) says: String,
    /// What must pass first.
    #[serde(default)]
    pub(crate) before: Before,
    /// What somebody in charge does then.
    pub(crate) act: Option<Act>,
    /// The virtual key that it comes with.
    pub(crate) key: Option<String>,
    /// Everybody needs a virtual key.
    #[serde(default)]
    pub(crate) require_keys: bool,
    /// Dialects in which it does not happen.
    #[serde(default)]
    not_for: Vec<Dialect>,
    /// The caller is let in, so that there is an agent and a run.
    #[serde(default = "yes")]
    pub(crate) has_run: bool,
    /// Waiting helps.
    #[serde(default)]
    pub(crate) waits: bool,
    /// What the error says besides; `*` for anything.
    pub(crate) fields: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Before {
    #[default]
    #[serde(rename = "nothing")]
    Nothing,
    /// The same call in the same run.
    #[serde(rename = "call")]
    Call,
    /// Any call of the agent, once.
    #[serde(rename = "call of the agent")]
    AgentCall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    Kill,
    Pause,
    Deactivate,
}

impl Case {
    pub(crate) fn happens_in(&self, dialect: Dialect) -> bool {
        !self.not_for.contains(&dialect)
    }

    /// The form in a dialect: where nobody speaks it is the error.
    pub(crate) fn form(&self, dialect: Dialect) -> Form {
        if dialect.has_assistant() { self.reason.form() } else { Form::Error }
    }
}

pub(crate) fn cases() -> Vec<Case> {
    serde_json::from_str(CASES).unwrap()
}

fn yes() -> bool {
    true
}

#[test]
fn no_reason_is_missing() {
    let stops: BTreeSet<Reason> = Reason::ALL.into_iter().filter(|reason| reason.is_policy()).collect();
    let shown: BTreeSet<Reason> = cases().iter().map(|case| case.reason).collect();
    assert_eq!(shown, stops);
    for case in cases() {
        assert_eq!((case.status, case.code.as_str()), (case.reason.status(), case.reason.code()), "{}", case.case);
    }
}

#[test]
fn every_reason_is_shown_in_every_dialect() {
    use Dialect::{Anthropic, Gemini, OpenaiChat, OpenaiCompletions, OpenaiEmbeddings, OpenaiResponses};
    for reason in cases().iter().map(|case| case.reason) {
        for dialect in [OpenaiChat, OpenaiCompletions, OpenaiResponses, OpenaiEmbeddings, Anthropic, Gemini] {
            let is_shown = cases().iter().any(|case| case.reason == reason && case.happens_in(dialect));
            assert!(is_shown, "{reason:?} in {dialect:?}");
        }
    }
}
