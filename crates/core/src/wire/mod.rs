//! What clients and providers say to each other.
//!
//! Everything here reads borrowed bytes and never re-serialises: a body that must change is changed by splicing.
//! Only the fields that Sprag acts on are given a type; whatever else there is passes untouched.

mod dialect;
mod reply;

pub use dialect::{Dialect, Family};
pub use reply::{Reply, ToolCall};
