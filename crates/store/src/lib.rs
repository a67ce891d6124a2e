//! What Sprag remembers, and nothing that it decides.
//!
//! - [`state`]: the runs that are going on, in memory
//! - [`shared`]: what several nodes know together, in Redis
//! - [`history`]: every event, and the totals of runs, agents and money
//! - [`catalog`]: kills and where agents stand: what must never be lost
//! - [`shared_catalog`]: the same on all nodes, through Redis
//! - [`outbox`]: alerts on their way
//! - [`UsedLinks`]: links in alerts that were used
//! - [`data_dir`]: the directory that belongs to one process
//!
//! Everything here blocks and is made for plain threads; async callers bridge to it. Only [`history::History::record`]
//! and the calls of [`state::State`] are meant for the path of a request: they take microseconds.

pub mod catalog;
pub mod data_dir;
mod error;
pub mod history;
pub mod outbox;
mod run_key;
mod shards;
pub mod shared;
pub mod shared_catalog;
mod sqlite;
pub mod state;
mod used_links;

pub use catalog::Catalog;
pub use data_dir::DataDir;
pub use error::StoreError;
pub use outbox::Outbox;
pub use run_key::RunKey;
pub use used_links::UsedLinks;
