//! The catalog of all nodes: each keeps its own on disk, and Redis carries changes between them.
//!
//! - `row`: a row as nodes give it to each other, and whose change of it counts
//! - `stamps`: who changed what last, on disk
//! - `unshared`: what was changed here and has to go out
//! - `link`: keeps up with the others; `exchange`: compares everything; `listen`: hears of changes at once
//! - `redis_side`: what Redis has; `status`: how the link does
//!
//! A change is on the node's own disk before anybody else hears of it, so losing Redis loses nothing: a node that starts or
//! comes back compares everything, gives what it has and takes what it has not. The later change of a row wins; a row that was
//! taken away is remembered for a month, so that nobody brings it back. No request ever waits for any of this.

mod exchange;
mod link;
mod listen;
mod redis_side;
pub mod row;
pub(crate) mod stamps;
mod status;
mod unshared;

pub use link::SharedCatalog;
pub use row::{Content, Row, RowKind, RowName, Stamp};
pub use status::SharedStatus;
pub use unshared::Unshared;
