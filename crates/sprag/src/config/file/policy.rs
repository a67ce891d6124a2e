//! `[defaults]` and `[agents.NAME]`: what agents may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sprag_core::loops::Mode;

use super::budget::{AgentBudget, Budget};
use super::detection::Detection;
use super::dlp::{AgentDlp, DlpRules};
use super::hours::{AgentHours, Hours};
use super::models::{AgentModels, Models};
use super::rate_limit::RateLimit;

/// The policy of agents that have none of their own.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// How far a run may go.
    pub run_limits: RunLimits,
    /// Sets an agent inactive that repeats itself.
    pub kill_switch: KillSwitch,
    /// When an agent may call.
    pub hours: Hours,
    /// Which models an agent may ask.
    pub models: Models,
    /// How often calls may come; all of the limits hold.
    pub rate_limits: Vec<RateLimit>,
    /// What each agent may spend, in dollars.
    pub budget: Budget,
    /// What is done about secrets and personal data in requests and answers.
    pub dlp: DlpRules,
}

/// How far a run may go. Steps and time of a run cover the runs that are a part of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunLimits {
    /// Most steps of a run; one more kills it. 0 is no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_steps: u32,
    /// Seconds from the first call of a run after which none begins any more: the next one kills it. 0 is no limit.
    #[schemars(range(min = 0, max = 31_536_000))]
    pub timeout_seconds: u32,
    /// Which runs have these limits: "declared", those that the caller names, or "all".
    pub applies_to: LimitedRuns,
    /// "enforce", "shadow" (only report what would have been stopped) or "off".
    pub mode: LimitMode,
}

/// Which runs have limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LimitedRuns {
    /// Those that the caller names.
    #[default]
    Declared,
    /// All of them.
    All,
}

/// Whether a limit is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LimitMode {
    /// Not at all.
    Off,
    /// What it would have stopped is reported, and nothing is stopped.
    Shadow,
    /// It is kept.
    #[default]
    Enforce,
}

impl From<LimitMode> for Mode {
    fn from(mode: LimitMode) -> Mode {
        match mode {
            LimitMode::Off => Mode::Off,
            LimitMode::Shadow => Mode::Shadow,
            LimitMode::Enforce => Mode::Enforce,
        }
    }
}

/// Sets an agent inactive that repeats itself.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KillSwitch {
    /// Whether it is on.
    pub enabled: bool,
    /// How many of the agent's last requests are compared.
    #[schemars(range(min = 5, max = 100))]
    pub window_size: u32,
    /// The score of similar prompts, similar answers and repeated calls above which the agent is set inactive.
    #[schemars(range(min = 1, max = 50))]
    pub threshold: f64,
}

/// The policy of one agent. What it leaves out is as in `defaults`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// How its loops are detected. What it leaves out is as for everybody.
    pub detection: Detection,
    /// How far its runs may go.
    pub run_limits: AgentRunLimits,
    /// Its kill switch.
    pub kill_switch: AgentKillSwitch,
    /// When it may call.
    pub hours: AgentHours,
    /// Which models it may ask.
    pub models: AgentModels,
    /// How often its calls may come, instead of the limits of the defaults; an empty list is no limit.
    #[schemars(example = [json!({"limit_keys": ["agent"], "requests": 60, "window_seconds": 60})])]
    pub rate_limits: Option<Vec<RateLimit>>,
    /// What it may spend, in dollars.
    pub budget: AgentBudget,
    /// What is done about secrets and personal data in its requests and answers.
    pub dlp: AgentDlp,
}

/// How far an agent's runs may go.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentRunLimits {
    /// Most steps of a run; 0 is no limit.
    #[schemars(range(min = 0, max = 1_000_000), example = 200)]
    pub max_steps: Option<u32>,
    /// Seconds from the first call of a run after which none begins any more; 0 is no limit.
    #[schemars(range(min = 0, max = 31_536_000), example = 3600)]
    pub timeout_seconds: Option<u32>,
    /// Which runs have these limits: "declared" or "all".
    #[schemars(example = LimitedRuns::All)]
    pub applies_to: Option<LimitedRuns>,
    /// "enforce", "shadow" or "off".
    #[schemars(example = LimitMode::Shadow)]
    pub mode: Option<LimitMode>,
}

/// An agent's kill switch.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentKillSwitch {
    /// Whether it is on.
    #[schemars(example = true)]
    pub enabled: Option<bool>,
    /// How many of its last requests are compared.
    #[schemars(range(min = 5, max = 100), example = 20)]
    pub window_size: Option<u32>,
    /// The score above which it is set inactive.
    #[schemars(range(min = 1, max = 50), example = 10.0)]
    pub threshold: Option<f64>,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits { max_steps: 30, timeout_seconds: 120, applies_to: LimitedRuns::Declared, mode: LimitMode::Enforce }
    }
}

impl Default for KillSwitch {
    fn default() -> KillSwitch {
        KillSwitch { enabled: false, window_size: 20, threshold: 10.0 }
    }
}
