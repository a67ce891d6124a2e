//! A judgement against a call: how it is refused, and what else follows.

use serde_json::Value;

use crate::id::RunId;
use crate::wire::Refusal;

/// Why a call does not pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// What the caller is told.
    pub refusal: Refusal,
    /// What is to be put on record before the caller is told.
    pub consequence: Option<Box<Consequence>>,
}

/// What follows from a stop beyond the call itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Consequence {
    /// A run of the caller's agent is killed, and with it the runs that are a part of it.
    KillRun {
        /// The run: the call's own, or one above it.
        run: RunId,
        /// Why, in a word: `step_limit`, `timeout`, `loop_detected`.
        reason: String,
        /// What that rests on.
        proof: Option<Value>,
    },
    /// The same until a person approves.
    PauseRun {
        /// The run.
        run: RunId,
        /// Why.
        reason: String,
        /// What that rests on.
        proof: Option<Value>,
    },
    /// The caller's agent is set inactive by its kill switch.
    DeactivateAgent {
        /// Why.
        reason: String,
        /// What that rests on.
        proof: Option<Value>,
    },
}

impl Stop {
    /// A stop with a consequence.
    #[must_use]
    pub fn with(refusal: Refusal, consequence: Consequence) -> Stop {
        Stop { refusal, consequence: Some(Box::new(consequence)) }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop { refusal, consequence: None }
    }
}
