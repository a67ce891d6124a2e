//! Who is told what happens, and how often.
//!
//! - [`Observation`]: what an event means for alerts
//! - [`AlertRule`]: which of it is told to which channels
//! - [`Engine`]: cooldown, repetition, recovery, quiet hours; what is held back is counted and told later
//! - [`Standing`]: what it knows about one subject, which is kept on disk
//! - [`ActLink`]: links in messages that do something
//! - [`forms`]: an alert as each kind of channel takes it
//!
//! Nothing here sends anything.

mod act_link;
mod agents;
mod alert;
mod engine;
#[cfg(test)]
mod engine_tests;
mod error_rate;
pub mod forms;
#[cfg(test)]
mod hostile_tests;
mod now;
mod observation;
mod rule;
mod standing;
#[cfg(test)]
mod tests;

pub use act_link::{ActLink, LinkAct, Moot, RunStanding, fits, offered};
pub use alert::{Alert, AlertState, Occurrence};
pub use engine::{Engine, EngineCounts, StandingChange};
pub use now::Now;
pub use observation::{Observation, Signal, UrgentKey};
pub use rule::{AlertKind, AlertRule, AlertRules, BUDGET_THRESHOLDS, ErrorRate, agent_matches};
pub use standing::Standing;
