//! `[budget]`, `[defaults.budget]` and `[agents.NAME.budget]`: what may be spent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sprag_core::policy;

use super::decimal::Decimal;
use super::policy::LimitMode;

/// What everybody together may spend, in dollars.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GlobalBudget {
    /// Most that any run may cost, with all that is a part of it. Without one, or with 0, there is no limit.
    #[schemars(example = &"10.00")]
    pub max_run_cost: Option<Decimal>,
    /// Most in a day. Without one, or with 0, there is no limit.
    #[schemars(example = &"100.00")]
    pub daily_limit: Option<Decimal>,
    /// Most in a month. Without one, or with 0, there is no limit.
    #[schemars(example = &"2000.00")]
    pub monthly_limit: Option<Decimal>,
    /// Set aside for a call before it is forwarded: "expected", by what earlier calls cost, or "worst_case", what it can cost at most.
    pub reserve: Reserve,
    /// What happens at so many percent of a limit: "warn", or "throttle", where calls wait `delay_ms` first.
    pub stages: Vec<Stage>,
    /// Kill a run that has spent its own limit, rather than only refuse its calls.
    pub kill_run: bool,
    /// "enforce", "shadow" (only report what would have been stopped) or "off".
    pub mode: LimitMode,
    /// Where days and months begin, for budgets of every level, by IANA name, such as "Europe/Berlin".
    pub time_zone: String,
}

/// What each agent may spend, in dollars.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Most that a run may cost, with all that is a part of it. Without one, or with 0, there is no limit.
    #[schemars(example = &"1.00")]
    pub max_run_cost: Option<Decimal>,
    /// Most in a day. Without one, or with 0, there is no limit.
    #[schemars(example = &"5.00")]
    pub daily_limit: Option<Decimal>,
    /// Most in a month. Without one, or with 0, there is no limit.
    #[schemars(example = &"100.00")]
    pub monthly_limit: Option<Decimal>,
    /// Set aside for a call before it is forwarded: "expected", by what earlier calls cost, or "worst_case", what it can cost at most.
    pub reserve: Reserve,
    /// What happens at so many percent of a limit: "warn", or "throttle", where calls wait `delay_ms` first.
    pub stages: Vec<Stage>,
    /// Kill a run that has spent its own limit, rather than only refuse its calls.
    pub kill_run: bool,
    /// "enforce", "shadow" (only report what would have been stopped) or "off".
    pub mode: LimitMode,
}

/// What one agent may spend, in dollars. What it leaves out is as in the defaults.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentBudget {
    /// Most that a run may cost; 0 is no limit.
    #[schemars(example = &"2.50")]
    pub max_run_cost: Option<Decimal>,
    /// Most in a day; 0 is no limit.
    #[schemars(example = &"20.00")]
    pub daily_limit: Option<Decimal>,
    /// Most in a month; 0 is no limit.
    #[schemars(example = &"400.00")]
    pub monthly_limit: Option<Decimal>,
    /// Set aside for a call: "expected" or "worst_case".
    #[schemars(example = Reserve::WorstCase)]
    pub reserve: Option<Reserve>,
    /// What happens at so many percent of a limit.
    #[schemars(example = [Stage::warn(80), Stage::throttle(95, 200)])]
    pub stages: Option<Vec<Stage>>,
    /// Kill a run that has spent its own limit.
    #[schemars(example = true)]
    pub kill_run: Option<bool>,
    /// "enforce", "shadow" or "off".
    #[schemars(example = LimitMode::Shadow)]
    pub mode: Option<LimitMode>,
}

/// How much is set aside for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reserve {
    /// What it is expected to cost.
    #[default]
    Expected,
    /// What it can cost at most.
    WorstCase,
}

/// What happens at a part of a limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Stage {
    /// Percent of the limit.
    #[schemars(range(min = 1, max = 99))]
    pub at: Option<u8>,
    /// "warn": answers say so; "throttle": calls wait first.
    pub action: Option<StageAction>,
    /// How long a throttled call waits.
    #[schemars(range(min = 1, max = 30_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

/// What happens at a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StageAction {
    /// Answers say so.
    Warn,
    /// Calls wait first.
    Throttle,
}

impl Stage {
    fn warn(at: u8) -> Stage {
        Stage { at: Some(at), action: Some(StageAction::Warn), delay_ms: None }
    }

    fn throttle(at: u8, delay_ms: u64) -> Stage {
        Stage { at: Some(at), action: Some(StageAction::Throttle), delay_ms: Some(delay_ms) }
    }
}

impl From<Reserve> for policy::Reserve {
    fn from(reserve: Reserve) -> policy::Reserve {
        match reserve {
            Reserve::Expected => policy::Reserve::Expected,
            Reserve::WorstCase => policy::Reserve::WorstCase,
        }
    }
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            max_run_cost: None,
            daily_limit: None,
            monthly_limit: None,
            reserve: Reserve::Expected,
            stages: vec![Stage::warn(80)],
            kill_run: true,
            mode: LimitMode::Enforce,
        }
    }
}

impl Default for GlobalBudget {
    fn default() -> GlobalBudget {
        let Budget { max_run_cost, daily_limit, monthly_limit, reserve, stages, kill_run, mode } = Budget::default();
        let time_zone = "UTC".to_owned();
        GlobalBudget { max_run_cost, daily_limit, monthly_limit, reserve, stages, kill_run, mode, time_zone }
    }
}

impl From<&Budget> for AgentBudget {
    /// The same with every key set that has a default.
    fn from(budget: &Budget) -> AgentBudget {
        let Budget { max_run_cost, daily_limit, monthly_limit, reserve, stages, kill_run, mode } = budget.clone();
        AgentBudget {
            max_run_cost,
            daily_limit,
            monthly_limit,
            reserve: Some(reserve),
            stages: Some(stages),
            kill_run: Some(kill_run),
            mode: Some(mode),
        }
    }
}

impl From<&GlobalBudget> for AgentBudget {
    /// The same with every key set that has a default. The time zone is everybody's.
    fn from(budget: &GlobalBudget) -> AgentBudget {
        let GlobalBudget { max_run_cost, daily_limit, monthly_limit, reserve, stages, kill_run, mode, time_zone: _ } =
            budget.clone();
        AgentBudget::from(&Budget { max_run_cost, daily_limit, monthly_limit, reserve, stages, kill_run, mode })
    }
}
