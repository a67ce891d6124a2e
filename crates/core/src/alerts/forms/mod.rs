//! An alert as each kind of channel takes it. Names come from agents: every form escapes them in its own way, and cuts
//! them where its receiver would refuse the message.

mod chat;
mod email;
mod pagerduty;
mod rows;
mod text;
mod webhook;

pub use chat::{discord, slack, teams, telegram};
pub use email::{Email, email};
pub use pagerduty::pagerduty;
pub use webhook::webhook;
