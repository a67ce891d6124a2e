//! `[responses]`: what Sprag adds to answers, and how it refuses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sprag_core::wire::Form;

/// What Sprag adds to answers, and how it refuses.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Responses {
    /// Add the `sprag` object (run, step, cost) to answers.
    pub metadata: bool,
    /// Also answer in the form of other gateways: "agentwall", "fairvisor".
    pub compat: Vec<Compat>,
    /// Choose the status of a stop for the calling client: the one at which it sends no second request and shows the reason.
    pub adapt: bool,
    /// How a stop for one reason is put, by the reason's name.
    pub reasons: BTreeMap<String, Stop>,
}

/// Another gateway whose answers Sprag can imitate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compat {
    /// The metadata also under `agentwall` and in its headers; its codes, words and statuses of refusals.
    Agentwall,
    /// `X-Fairvisor-Reason` and `X-Fairvisor-Loop-Delay`; `Retry-After` is the whole window.
    Fairvisor,
}

/// How a stop for one reason is put.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// As an error, or as an answer of the assistant with status 200 that ends the agent's loop in good order.
    #[schemars(example = &"assistant")]
    pub form: Option<StopForm>,
    /// Status of the error, for every client.
    #[schemars(range(min = 400, max = 599), example = &429)]
    pub status: Option<u16>,
    /// Text of the error or answer; {message} in it is what Sprag would have said.
    #[schemars(example = &"This run was stopped. {message}")]
    pub text: Option<String>,
}

/// The form of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StopForm {
    /// An error in the dialect's own shape.
    Error,
    /// An answer of the assistant.
    Assistant,
}

impl From<StopForm> for Form {
    fn from(form: StopForm) -> Form {
        match form {
            StopForm::Error => Form::Error,
            StopForm::Assistant => Form::Assistant,
        }
    }
}

impl Default for Responses {
    fn default() -> Responses {
        Responses { metadata: true, compat: Vec::new(), adapt: true, reasons: BTreeMap::new() }
    }
}
