//! Listening, and stopping in good order.

mod aside;
mod awake;
mod closing;
mod listener;
mod one_timer;
mod write_timeout;

pub use aside::Aside;
pub use listener::{Connections, Limits, listen};
