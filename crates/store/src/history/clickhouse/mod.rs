//! A history that many nodes share, in ClickHouse.

mod address;
mod link;
mod query;

pub use address::ClickHouseAddress;
