//! What the catalog of all nodes is in Redis: a hash of rows for each kind, a log of changes, and a state that numbers them.
//!
//! All keys share a hash tag, so a cluster keeps them together. Every change has the next number. The state has a random
//! epoch: another one means that Redis has lost everything. Scripts compare stamps and count; they decide nothing else.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisResult, Script, ScriptInvocation};
use sprag_core::limits::{SHARED_BATCH, SHARED_LOG};

use super::row::{Row, RowKind, RowName, write};
use super::stamps;
use crate::shared::Address;

/// How long Redis may take for anything.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

const STATE: &str = "sprag:1:{catalog}:state";
const LOG: &str = "sprag:1:{catalog}:log";
/// Where nodes tell each other that something was changed.
pub(super) const CHANNEL: &str = "sprag:1:{catalog}:changed";

/// How far a node has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) epoch: String,
    pub(super) seq: u64,
}

/// A change as the log has it, with the row as it is now. Nothing of it is checked.
#[derive(Debug)]
pub(super) struct Logged {
    pub(super) seq: u64,
    pub(super) kind: Vec<u8>,
    pub(super) name: Vec<u8>,
    pub(super) row: Vec<u8>,
}

/// The rows of a kind, some of them.
pub(super) struct Scanned {
    /// Where to go on; 0 at the end.
    pub(super) cursor: u64,
    pub(super) rows: Vec<(Vec<u8>, Vec<u8>)>,
}

/// To one server, or to those of a cluster.
enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// A connection with the scripts.
pub(super) struct RedisSide {
    connection: Connection,
    put: Script,
    pull: Script,
    forget: Script,
}

impl RedisSide {
    pub(super) async fn connect(address: &Address) -> RedisResult<RedisSide> {
        Ok(RedisSide {
            connection: Connection::open(address).await?,
            put: Script::new(include_str!("lua/put.lua")),
            pull: Script::new(include_str!("lua/pull.lua")),
            forget: Script::new(include_str!("lua/forget.lua")),
        })
    }

    /// Makes sure that there is an epoch, and lets all keys live on.
    pub(super) async fn begin(&mut self) -> RedisResult<Position> {
        self.put(&[]).await
    }

    /// Writes rows, as far as they are later than those that are there. Says how far the log is. At most `SHARED_BATCH` rows.
    pub(super) async fn put(&mut self, rows: &[Row]) -> RedisResult<Position> {
        let mut call = self.put.prepare_invoke();
        call.key(STATE).key(LOG);
        for kind in RowKind::ALL {
            call.key(hash_of(kind));
        }
        call.arg(stamps::gone_row_ms() / 1000).arg(SHARED_LOG).arg(stamps::new_node()).arg(CHANNEL);
        for row in rows {
            let Some(text) = write(row) else {
                tracing::error!(row = %row.name, "a row is too long for other nodes; it holds on this one only");
                continue;
            };
            let place = RowKind::ALL.iter().position(|kind| *kind == row.name.kind).unwrap_or_default() + 3;
            call.arg(place).arg(row.name.kind.as_str()).arg(&row.name.name).arg(text);
        }
        let (epoch, seq): (String, u64) = self.connection.call(&call).await?;
        Ok(Position { epoch, seq })
    }

    /// How far the log is, and what it has after a position that is of the same epoch.
    pub(super) async fn pull(&mut self, known: &Position) -> RedisResult<(Position, Vec<Logged>)> {
        let mut call = self.pull.prepare_invoke();
        call.key(STATE).key(LOG);
        for kind in RowKind::ALL {
            call.key(hash_of(kind));
        }
        call.arg(&known.epoch).arg(known.seq).arg(format!("{}-0", known.seq + 1)).arg(SHARED_BATCH);
        for kind in RowKind::ALL {
            call.arg(kind.as_str());
        }
        let answer: Vec<redis::Value> = self.connection.call(&call).await?;
        let mut answer = answer.into_iter();
        let epoch = answer.next().map_or(Ok(String::new()), redis::from_redis_value)?;
        let seq = answer.next().map_or(Ok(0), redis::from_redis_value)?;
        let read = |entry| -> RedisResult<Logged> {
            let (id, kind, name, row): (String, Vec<u8>, Vec<u8>, Vec<u8>) = redis::from_redis_value(entry)?;
            // An id that is no number of ours is a gap, like any other.
            let seq = id.split('-').next().and_then(|seq| seq.parse().ok()).unwrap_or(0);
            Ok(Logged { seq, kind, name, row })
        };
        Ok((Position { epoch, seq }, answer.map(read).collect::<RedisResult<_>>()?))
    }

    /// Some rows of a kind, from a cursor on.
    pub(super) async fn scan(&mut self, kind: RowKind, cursor: u64) -> RedisResult<Scanned> {
        let scan = redis::cmd("HSCAN").arg(hash_of(kind)).arg(cursor).arg("COUNT").arg(SHARED_BATCH).to_owned();
        match self.connection.ask::<(u64, Vec<(Vec<u8>, Vec<u8>)>)>(&scan).await {
            Ok((cursor, rows)) => Ok(Scanned { cursor, rows }),
            // Something else under our name. It gives way when rows of this kind are written.
            Err(error) if error.code() == Some("WRONGTYPE") => Ok(Scanned { cursor: 0, rows: Vec::new() }),
            Err(error) => Err(error),
        }
    }

    /// Deletes a row that nobody has to remember any longer.
    pub(super) async fn forget(&mut self, row: &RowName, text: &[u8]) -> RedisResult<()> {
        let mut call = self.forget.prepare_invoke();
        call.key(hash_of(row.kind)).arg(&row.name).arg(text);
        self.connection.call::<u64>(&call).await.map(drop)
    }
}

impl Connection {
    async fn open(address: &Address) -> RedisResult<Connection> {
        if address.is_cluster() {
            let urls = address.urls.iter().map(String::as_str);
            let client =
                ClusterClientBuilder::new(urls).connection_timeout(PATIENCE).response_timeout(PATIENCE).build()?;
            return Ok(Connection::Cluster(client.get_async_connection().await?));
        }
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(PATIENCE)).set_response_timeout(Some(PATIENCE));
        let client = Client::open(address.urls.first().map_or("", String::as_str))?;
        Ok(Connection::One(client.get_multiplexed_async_connection_with_config(&config).await?))
    }

    async fn call<T: FromRedisValue>(&mut self, call: &ScriptInvocation<'_>) -> RedisResult<T> {
        match self {
            Connection::One(one) => call.invoke_async(one).await,
            Connection::Cluster(cluster) => call.invoke_async(cluster).await,
        }
    }

    async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        match self {
            Connection::One(one) => command.query_async(one).await,
            Connection::Cluster(cluster) => command.query_async(cluster).await,
        }
    }
}

fn hash_of(kind: RowKind) -> String {
    format!("sprag:1:{{catalog}}:{}", kind.as_str())
}
