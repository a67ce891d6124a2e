//! What is told, about whom, to which channels, and how often.

use serde::{Deserialize, Serialize};

use super::observation::Signal;
use crate::policy::Hours;
use crate::time::Timestamp;

/// What an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum AlertKind {
    /// An agent was set inactive by its kill switch.
    KillSwitch,
    /// A detector found a loop.
    LoopDetected,
    /// A run was killed or paused.
    RunKilled,
    /// A stage of a budget, or all of it, was used up.
    Budget,
    /// Many calls of an agent fail.
    ErrorRate,
    /// An agent that used to call is silent.
    AgentDown,
    /// Secrets or personal data were found.
    Dlp,
    /// An agent spends far faster than usual.
    Velocity,
    /// A model without a price was used.
    UnpricedModel,
    /// Somebody tries a channel.
    Test,
}

impl AlertKind {
    /// Those that rules can be about.
    pub const ALL: [AlertKind; 9] = [
        AlertKind::KillSwitch,
        AlertKind::LoopDetected,
        AlertKind::RunKilled,
        AlertKind::Budget,
        AlertKind::ErrorRate,
        AlertKind::AgentDown,
        AlertKind::Dlp,
        AlertKind::Velocity,
        AlertKind::UnpricedModel,
    ];

    /// The name in configuration and payloads.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            AlertKind::KillSwitch => "kill_switch",
            AlertKind::LoopDetected => "loop_detected",
            AlertKind::RunKilled => "run_killed",
            AlertKind::Budget => "budget",
            AlertKind::ErrorRate => "error_rate",
            AlertKind::AgentDown => "agent_down",
            AlertKind::Dlp => "dlp",
            AlertKind::Velocity => "velocity",
            AlertKind::UnpricedModel => "unpriced_model",
            AlertKind::Test => "test",
        }
    }

    /// Whether it goes on until something ends it, so that it can be told again meanwhile.
    #[must_use]
    pub fn lasts(self) -> bool {
        matches!(self, AlertKind::KillSwitch | AlertKind::ErrorRate | AlertKind::AgentDown)
    }

    /// Whether its end can be told: what lasts ends, and loops are over when none came for a cooldown.
    #[must_use]
    pub fn recovers(self) -> bool {
        self.lasts() || matches!(self, AlertKind::LoopDetected | AlertKind::Velocity)
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertRule {
    /// What alerts call it.
    pub name: String,
    /// What it is about.
    pub kind: AlertKind,
    /// Names of agents in which `*` stands for anything.
    pub agents: Vec<String>,
    /// Who is told, by the names of channels.
    pub channels: Vec<String>,
    /// Nothing more about the same for so long; what comes is counted.
    pub cooldown_ms: u64,
    /// While it lasts, it is told again after so long.
    pub repeat_ms: Option<u64>,
    /// Its end is told too.
    pub tells_recovery: bool,
    /// It waits for the end of the quiet hours.
    pub keeps_quiet: bool,
    /// When calls fail too often; for `error_rate`.
    pub error_rate: ErrorRate,
    /// After how long without calls an agent is down; for `agent_down`.
    pub silent_ms: u64,
    /// Percent of a budget at which it is told, for `budget`; none for [`BUDGET_THRESHOLDS`] and every stage.
    pub thresholds: Vec<u8>,
    /// Every channel is told, whichever there are; `channels` are those at the moment.
    pub is_for_all: bool,
}

/// Percent of a budget at which it is told unless a rule says otherwise.
pub const BUDGET_THRESHOLDS: [u8; 3] = [50, 80, 100];

/// When calls fail too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorRate {
    /// Failed calls in a hundred.
    pub percent: u8,
    /// Fewer calls than these in the window say nothing.
    pub min_requests: u32,
    /// The time that is looked at.
    pub window_ms: u64,
}

/// All rules, and when it is quiet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlertRules {
    /// The rules, in their order.
    pub rules: Vec<AlertRule>,
    /// Windows in which alerts wait. None: never.
    pub quiet: Hours,
}

impl AlertRule {
    /// Whether it is about this agent.
    #[must_use]
    pub fn covers(&self, agent: &str) -> bool {
        self.agents.iter().any(|pattern| agent_matches(pattern, agent))
    }

    /// Whether it is about this.
    pub(super) fn is_about(&self, signal: &Signal) -> bool {
        let percent = signal.score.map(|percent| percent as u8);
        let is_told_at = || self.thresholds.is_empty() || percent.is_some_and(|at| self.thresholds.contains(&at));
        self.kind == signal.kind && (self.kind != AlertKind::Budget || is_told_at())
    }
}

impl AlertRules {
    /// Percent of budgets that somebody wants to hear of, in ascending order.
    #[must_use]
    pub fn budget_thresholds(&self) -> Vec<u8> {
        let budgets = self.rules.iter().filter(|rule| rule.kind == AlertKind::Budget);
        let wanted = budgets.flat_map(|rule| match rule.thresholds.is_empty() {
            true => &BUDGET_THRESHOLDS[..],
            false => &rule.thresholds,
        });
        let sorted: std::collections::BTreeSet<u8> = wanted.copied().collect();
        sorted.into_iter().collect()
    }

    /// Whether the rule has to wait now.
    #[must_use]
    pub fn is_quiet(&self, rule: &AlertRule, now: Timestamp) -> bool {
        rule.keeps_quiet && !self.quiet.windows.is_empty() && self.quiet.allows(now)
    }
}

/// Whether a name fits a pattern in which `*` stands for anything. The leftmost place of each part is the best one.
#[must_use]
pub fn agent_matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let (first, last) = (parts.next().unwrap_or_default(), parts.next_back());
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = last else { return rest.is_empty() };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}
