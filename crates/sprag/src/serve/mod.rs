//! Listening, and stopping in good order.

mod listener;
mod write_timeout;

pub use listener::{Connections, Limits, listen};
