//! An alert as each kind of channel takes it. Names come from agents: every form escapes them in its own way.

mod chat;
mod email;
mod pagerduty;
mod rows;

pub use chat::{discord, slack, teams, telegram};
pub use email::{Email, email};
pub use pagerduty::pagerduty;
