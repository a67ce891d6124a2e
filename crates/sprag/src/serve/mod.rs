//! Listening, and stopping in good order.

mod listener;

pub use listener::{Limits, listen};
