//! Every decision that Sprag takes, as pure functions over values.
//!
//! Nothing here does I/O, reads a clock or is async: `now` is an argument. The proxy, `sprag replay` and the
//! dashboard call the same functions over different inputs, so a verdict can be repeated offline.
//!
//! - [`wire`]: what clients and providers say to each other, read without rewriting it
//! - [`run`]: which run a request belongs to
//! - [`usage`], [`price`], [`money`]: what a call cost
//! - [`policy`]: what may pass
//! - [`dlp`]: secrets and personal data in what passes, and how they are hidden
//! - [`event`]: what is recorded of a call
//! - [`alerts`]: who is told what happens, and how often

pub mod alerts;
mod blocks;
pub mod dlp;
pub mod event;
pub mod id;
pub mod json;
pub mod limits;
pub mod loops;
pub mod money;
pub mod policy;
pub mod price;
pub mod run;
pub mod time;
pub mod usage;
pub mod wire;
