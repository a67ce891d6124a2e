//! What the tests are made with: a scripted LLM provider, the clients that look at answers byte by byte, and servers
//! of others with a [`Cable`] to them.
//!
//! [`Provider`] speaks every dialect on a port of its own and does what a [`Script`] says: which text, which tool
//! calls, which numbers, and which faults on the way. Everything it says derives from a counter, so two runs of one
//! test see the same bytes. It knows nothing of the program under test, and speed is not its concern.

mod cable;
mod clickhouse;
pub mod client;
mod delivery;
mod directive;
pub mod fault;
pub mod log;
pub mod month;
mod port;
pub mod provider;
mod redis_server;
mod reply;
pub mod resp;
mod script;
pub mod sse;

pub use cable::{Cable, CableCut};
pub use clickhouse::ClickHouseServer;
pub use fault::{CutAt, CutHow, Encoding, Fault, Gate};
pub use log::{Ending, Log, LogView, Recorded};
pub use port::{ClosedPort, HeldPort};
pub use provider::Provider;
pub use redis_server::RedisServer;
pub use reply::{Failure, Reply, ToolCall};
pub use script::{Script, When};
