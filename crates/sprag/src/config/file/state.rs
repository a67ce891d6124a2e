//! Where nodes meet: `[state]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::secret::Secret;

/// What several Sprags share, so that they act as one. Without it each keeps its own runs, budgets and rate limits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// The Redis that all of them share: redis://HOST:PORT/, rediss:// for TLS, with a user and a password before the host if need be.
    #[schemars(example = &"redis://127.0.0.1:6379/")]
    pub redis: Option<Secret>,
    /// Longest wait for one answer of Redis; a later one counts as none.
    #[schemars(range(min = 10, max = 10_000))]
    pub timeout_ms: u64,
    /// What happens to calls while Redis is away, by what it is needed for: "open" lets them pass by what this Sprag knows alone, "closed" refuses them with status 503.
    pub on_state_loss: OnStateLoss,
}

/// What happens to calls while Redis is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OnStateLoss {
    /// Calls of agents whose loops are looked for.
    pub detection: StateLoss,
    /// Calls with a limit on their rate.
    pub rate_limits: StateLoss,
    /// Calls of runs with a limit on their steps or their time.
    pub run_limits: StateLoss,
    /// Calls with a budget in force; also while a shared history is away, those whose budget nobody has drawn on before.
    pub budgets: StateLoss,
    /// Every call, for it may have been killed on another node. Kills that this Sprag knows hold in any case.
    pub kills: StateLoss,
}

/// What happens to a call that depends on what cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StateLoss {
    /// It is judged by what this Sprag knows alone.
    Open,
    /// It is refused.
    Closed,
}

impl Default for State {
    fn default() -> State {
        State { redis: None, timeout_ms: 250, on_state_loss: OnStateLoss::default() }
    }
}

impl Default for OnStateLoss {
    fn default() -> OnStateLoss {
        let (open, closed) = (StateLoss::Open, StateLoss::Closed);
        OnStateLoss { detection: open, rate_limits: open, run_limits: open, budgets: closed, kills: open }
    }
}
