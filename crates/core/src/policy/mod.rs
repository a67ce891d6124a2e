//! What may pass. The judge is one pure function over facts; it exists once, for the proxy and for replay.

mod judge;

pub use judge::{Facts, Permit, judge};
