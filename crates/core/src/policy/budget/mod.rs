//! What may be spent: by a run, in a day, in a month; by a key, by an agent, by everybody together.
//!
//! - `ledger`: accounts, reservations and their settlement, all or nothing
//! - `draws`: which accounts a call draws on
//! - `estimate`: what a call is expected to cost, and what it can cost at most
//! - `refusal`: how a shortfall is told
//! - `account_text`: how an account is written

mod account_text;
mod draws;
mod estimate;
mod ledger;
mod refusal;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use account_text::BadAccount;
pub use draws::{ALWAYS, Draws, Spender, draws};
pub use estimate::{Asked, Estimate, Habits, estimate};
pub use ledger::{Account, AccountState, Crossed, Denied, Draw, Epoch, Held, Ledger, Reservation, Seed, Shortfall};
pub use refusal::{denied_refusal, shortfall_refusal, unknown_refusal};

use crate::id::{AgentName, RunId};
use crate::loops::Mode;
use crate::money::NanoUsd;

/// The limits of one level. What is absent is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Whether it is kept.
    #[serde(default)]
    pub mode: Mode,
    /// A run with all that is a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_run_cost: Option<NanoUsd>,
    /// A civil day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily_limit: Option<NanoUsd>,
    /// A civil month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_limit: Option<NanoUsd>,
    /// How much is reserved for a call.
    #[serde(default)]
    pub reserve: Reserve,
    /// What happens before the limit, in ascending order.
    #[serde(default)]
    pub stages: Arc<[Stage]>,
    /// A run that has spent its own limit is killed, rather than only refused.
    #[serde(default = "yes")]
    pub kill_run: bool,
}

/// How much is reserved for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Reserve {
    /// What it is expected to cost, by what earlier calls cost.
    #[default]
    Expected,
    /// What it can cost at most.
    WorstCase,
}

/// What happens once a part of a limit is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Percent of the limit, 1 to 99.
    pub at: u8,
    /// What happens then.
    pub action: StageAction,
}

/// What happens at a stage. Every stage raises an alarm once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageAction {
    /// Answers say so.
    Warn,
    /// Calls wait first.
    Throttle {
        /// How long.
        delay_ms: u64,
    },
}

/// Whose money it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Holder {
    /// A run of an agent, with all that is a part of it.
    Run(AgentName, RunId),
    /// A virtual key, by its id.
    Key(Arc<str>),
    /// An agent.
    Agent(AgentName),
    /// Everybody together.
    Everything,
}

/// What limits a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// The whole run.
    Run,
    /// A civil day.
    Day,
    /// A civil month.
    Month,
}

/// At which level a limit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = BudgetLevel))]
pub enum Level {
    /// For a virtual key.
    Key,
    /// For an agent.
    Agent,
    /// For everybody together.
    Everything,
}

/// What names an account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId {
    /// Whose money.
    pub holder: Holder,
    /// Over which time.
    pub window: Window,
    /// Kept beside those in force, for limits that are only watched.
    pub is_shadow: bool,
}

impl Window {
    /// The word that refusals and listings use: `run`, `daily`, `monthly`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Window::Run => "run",
            Window::Day => "daily",
            Window::Month => "monthly",
        }
    }
}

impl Level {
    /// The word that refusals and listings use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Key => "key",
            Level::Agent => "agent",
            Level::Everything => "everything",
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Run(agent, run) => write!(f, "run:{agent}/{run}"),
            Holder::Key(key) => write!(f, "key:{key}"),
            Holder::Agent(agent) => write!(f, "agent:{agent}"),
            Holder::Everything => f.write_str("everything"),
        }
    }
}

impl Budget {
    /// Whether there is any limit.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.mode != Mode::Off
            && (self.max_run_cost.is_some() || self.daily_limit.is_some() || self.monthly_limit.is_some())
    }
}

fn yes() -> bool {
    true
}
