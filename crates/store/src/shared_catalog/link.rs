//! The link of one node to the others: gives what is changed here, takes what is changed elsewhere, for as long as it runs.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::RedisError;
use sprag_core::limits::{SHARED_BATCH, SHARED_EXCHANGE_SECONDS, SHARED_POLL_MS};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use super::redis_side::{Logged, PATIENCE, Position, RedisSide};
use super::row::{self, Row, RowKind, RowName};
use super::status::{Notes, SharedStatus};
use super::unshared::{Next, Unshared};
use crate::catalog::Catalog;
use crate::error::StoreError;
use crate::outbox::Outbox;
use crate::shared::Address;

/// Between two tries to reach Redis.
pub(super) const RETRY: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(SHARED_POLL_MS);
const EXCHANGE: Duration = Duration::from_secs(SHARED_EXCHANGE_SECONDS);
/// After rows could not be kept here, all are compared again.
const AGAIN: Duration = Duration::from_secs(30);

type Take = Box<dyn Fn(Vec<Row>) -> Result<(), StoreError> + Send + Sync>;

/// The link of a node.
pub struct SharedCatalog {
    pub(super) address: Address,
    pub(super) catalog: Arc<Catalog>,
    pub(super) outbox: Arc<Outbox>,
    take: Take,
    unshared: Arc<Unshared>,
    /// Somebody else has changed something.
    pub(super) woken: Notify,
    pub(super) notes: Notes,
    /// Everything was compared once.
    is_up_to_date: watch::Sender<bool>,
    /// Rows came that could not be kept.
    is_short: AtomicBool,
}

/// Why the link is given up, to be made anew.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error(transparent)]
    Redis(#[from] RedisError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SharedCatalog {
    /// A link to a Redis. Nothing happens before [`SharedCatalog::run`]. `take` gets the rows of others: it hands them to
    /// [`Catalog::apply`] and [`Outbox::apply`] and does whatever else follows from a change.
    #[must_use]
    pub fn new(
        address: Address,
        catalog: Arc<Catalog>,
        outbox: Arc<Outbox>,
        take: impl Fn(Vec<Row>) -> Result<(), StoreError> + Send + Sync + 'static,
    ) -> Arc<SharedCatalog> {
        let unshared = Arc::new(Unshared::default());
        catalog.share(unshared.clone());
        outbox.share(unshared.clone());
        Arc::new(SharedCatalog {
            address,
            catalog,
            outbox,
            take: Box::new(take),
            unshared,
            woken: Notify::new(),
            notes: Notes::new(),
            is_up_to_date: watch::Sender::new(false),
            is_short: AtomicBool::new(false),
        })
    }

    /// How the link does.
    #[must_use]
    pub fn status(&self) -> SharedStatus {
        self.notes.status()
    }

    /// Keeps up with the other nodes, for ever. Redis may come and go.
    pub async fn run(self: Arc<Self>) {
        tokio::join!(self.keep_up_forever(), self.listen_forever());
    }

    /// Waits until this node has all that the others had when it started, but not for longer than this. Says whether it has.
    pub async fn first_exchange(&self, patience: Duration) -> bool {
        let mut is_up_to_date = self.is_up_to_date.subscribe();
        timeout(patience, is_up_to_date.wait_for(|is_it| *is_it)).await.is_ok()
    }

    /// Gives what is changed here and is not out yet, when `run` has ended. Waits for a short time only: what Redis does not get now
    /// it gets with the next start.
    pub async fn give_last(self: &Arc<Self>) {
        let give = async {
            let mut redis = RedisSide::connect(&self.address).await?;
            let position = redis.begin().await?;
            self.give(&mut redis, &position).await
        };
        if !matches!(timeout(PATIENCE, give).await, Ok(Ok(_))) {
            tracing::info!("the last changes could not be given to the other nodes; they go out with the next start");
        }
    }

    async fn keep_up_forever(self: &Arc<Self>) {
        loop {
            let Err(trouble) = self.keep_up().await;
            self.notes.lost(&trouble);
            sleep(RETRY).await;
        }
    }

    async fn keep_up(self: &Arc<Self>) -> Result<Infallible, Trouble> {
        let mut redis = RedisSide::connect(&self.address).await?;
        let mut position = self.exchange(&mut redis).await?;
        self.is_up_to_date.send_replace(true);
        let mut exchange_at = Instant::now() + EXCHANGE;
        loop {
            self.notes.connected();
            let is_lost = self.give(&mut redis, &position).await? || self.catch_up(&mut redis, &mut position).await?;
            if self.is_short.swap(false, Ordering::Relaxed) {
                exchange_at = exchange_at.min(Instant::now() + AGAIN);
            }
            if is_lost || Instant::now() >= exchange_at {
                position = self.exchange(&mut redis).await?;
                exchange_at = Instant::now() + EXCHANGE;
                continue;
            }
            tokio::select! {
                () = self.woken.notified() => {}
                () = self.unshared.told() => {}
                () = sleep(POLL) => {}
            }
        }
    }

    /// Lets out what was changed here. True where everything must be compared.
    async fn give(self: &Arc<Self>, redis: &mut RedisSide, position: &Position) -> Result<bool, Trouble> {
        loop {
            let names = match self.unshared.take(SHARED_BATCH) {
                Next::Everything => return Ok(true),
                Next::Rows(names) if names.is_empty() => return Ok(false),
                Next::Rows(names) => names,
            };
            match self.put(redis, names.clone()).await {
                Ok(after) if after.epoch == position.epoch => {}
                Ok(_) => return Ok(true),
                Err(trouble) => {
                    self.unshared.add(names);
                    return Err(trouble);
                }
            }
        }
    }

    /// Gives rows, as they are now.
    pub(super) async fn put(self: &Arc<Self>, redis: &mut RedisSide, names: Vec<RowName>) -> Result<Position, Trouble> {
        let rows = self
            .blocking(move |link| {
                let rows = names.iter().map(|name| match name.kind {
                    RowKind::Channel | RowKind::Rule => link.outbox.row(name),
                    _ => link.catalog.row(name),
                });
                rows.filter_map(Result::transpose).collect::<Result<Vec<Row>, StoreError>>()
            })
            .await?;
        let after = redis.put(&rows).await?;
        self.notes.counted(rows.len(), 0);
        Ok(after)
    }

    /// Takes what the log has since a position. True where that is not all, and everything must be compared.
    async fn catch_up(self: &Arc<Self>, redis: &mut RedisSide, position: &mut Position) -> Result<bool, Trouble> {
        loop {
            let (after, logged) = redis.pull(position).await?;
            if after.epoch != position.epoch {
                return Ok(true);
            }
            if after.seq == position.seq {
                return Ok(false);
            }
            let is_whole = (position.seq + 1..).zip(&logged).all(|(expected, entry)| expected == entry.seq);
            if logged.is_empty() || !is_whole {
                return Ok(true);
            }
            position.seq += logged.len() as u64;
            let rows = logged.into_iter().filter_map(|entry| self.read(entry)).collect();
            self.take(rows).await;
        }
    }

    fn read(&self, entry: Logged) -> Option<Row> {
        let Logged { kind, name, row, .. } = entry;
        // What the log names may have been forgotten since.
        if row.is_empty() {
            return None;
        }
        let kind_of = RowKind::ALL.into_iter().find(|known| known.as_str().as_bytes() == kind);
        let read = match (kind_of, String::from_utf8(name.clone())) {
            (Some(kind), Ok(name)) => row::read(RowName { kind, name }, &row),
            _ => Err(row::Unreadable::Form),
        };
        read.inspect_err(|why| self.notes.unreadable(&String::from_utf8_lossy(&kind), &name, why)).ok()
    }

    /// Takes rows of others. What cannot be kept is asked for again later.
    pub(super) async fn take(self: &Arc<Self>, rows: Vec<Row>) {
        if rows.is_empty() {
            return;
        }
        self.notes.counted(0, rows.len());
        if let Err(error) = self.blocking(move |link| (link.take)(rows)).await {
            tracing::error!(%error, "changes of other nodes could not be kept; stops among them hold, the rest is tried again");
            self.is_short.store(true, Ordering::Relaxed);
        }
    }

    pub(super) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&SharedCatalog) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let link = self.clone();
        tokio::task::spawn_blocking(move || work(&link)).await.unwrap_or(Err(StoreError::WriterGone))
    }
}
