//! Who is told what happens, and how often.
//!
//! - [`Observation`]: what an event means for alerts
//! - [`AlertRule`]: which of it is told to which channels
//! - [`Engine`]: cooldown, repetition, recovery, quiet hours; what is held back is counted and told later
//! - [`forms`]: an alert as each kind of channel takes it
//!
//! Nothing here sends anything.

mod alert;
mod engine;
mod error_rate;
pub mod forms;
mod observation;
mod rule;
#[cfg(test)]
mod tests;

pub use alert::{Alert, AlertState, Occurrence};
pub use engine::Engine;
pub use observation::{Observation, Signal};
pub use rule::{AlertKind, AlertRule, AlertRules, ErrorRate, agent_matches};
