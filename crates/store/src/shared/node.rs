//! One node: what all clones of its link share, and what it does in the background.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use redis::Value;
use sprag_core::time::Timestamp;
use tokio::sync::Notify;

use super::calls::{Calls, Untold};
use super::corrections::Corrections;
use super::heard::HeardAccounts;
use super::link::Link;
use super::packed::{AliveTable, Head, pack};
use super::scripts::{ALIVE, END};
use super::{Address, Away, Clock, Options, Phase};

/// How often the link is looked after.
const TICK: Duration = Duration::from_secs(1);
/// How often a node gives a sign of life for what it holds. A minute without one, and it counts as lost.
const SIGN: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Node {
    pub(super) link: Link,
    pub(super) calls: Calls,
    pub(super) corrections: Corrections,
    pub(super) heard: HeardAccounts,
    clock: Clock,
    /// Another one whenever the process starts: what an earlier one held is not its own.
    name: String,
    generations: AtomicU64,
    wake: Arc<Notify>,
}

impl Node {
    pub(super) fn start(address: &Address, options: Options) -> Arc<Node> {
        let wake = Arc::new(Notify::new());
        let name = RandomState::new().hash_one((SystemTime::now(), std::process::id()));
        let node = Arc::new(Node {
            link: Link::new(address.clone(), Duration::from_millis(options.timeout_ms), wake.clone()),
            calls: Calls::default(),
            corrections: Corrections::default(),
            heard: HeardAccounts::default(),
            clock: options.clock,
            // Twelve digits: records have room for as many.
            name: format!("{:012x}", name & 0xffff_ffff_ffff),
            generations: AtomicU64::new(0),
            wake: wake.clone(),
        });
        tokio::spawn(look_after(Arc::downgrade(&node), wake));
        node
    }

    /// What every script needs, for keys that begin like this.
    pub(super) fn head(&self, prefix: &str, call: &str) -> Head {
        let number = self.generations.fetch_add(1, Ordering::Relaxed);
        let now = match &self.clock {
            Clock::Redis => None,
            Clock::Told(now) => Some(now.load(Ordering::SeqCst)),
        };
        let (p, call) = (prefix.to_owned(), call.to_owned());
        Head { p, call, node: self.name.clone(), fresh: format!("{}{number:x}", self.name), now }
    }

    /// What time it is by the clock that counts; none before the first connection.
    pub(super) fn time(&self) -> Option<Timestamp> {
        match &self.clock {
            Clock::Redis => self.link.time(),
            Clock::Told(now) => Some(Timestamp(now.load(Ordering::SeqCst))),
        }
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.link.address.is_cluster()
    }

    /// Tells Redis what it was not told so far, in its order.
    pub(super) async fn tell_untold(&self) {
        while let Some(message) = self.calls.next() {
            let Untold { place, arguments } = &message;
            match self.link.call(&END, place, arguments).await {
                Ok(_) => self.calls.told(),
                Err(Away::Failed(error)) if self.link.phase() == Phase::Connected => {
                    // It will be refused however often it is told.
                    tracing::error!(%error, "the end of a call is refused by the shared state, and lost to it");
                    self.calls.lose();
                }
                Err(_) => {
                    self.calls.put_back(message);
                    return;
                }
            }
        }
    }

    /// Gives a sign of life for everything that is held.
    pub(super) async fn give_sign(&self) {
        for keys in self.calls.held(self.is_cluster()) {
            let Some(place) = keys.first().cloned() else { continue };
            let table = AliveTable { head: self.head(&place, ""), keys };
            let sign: Result<Value, Away> = self.link.call(&ALIVE, &place, &[pack(&table)]).await;
            if sign.is_err() {
                return;
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

async fn look_after(node: Weak<Node>, wake: Arc<Notify>) {
    let mut signed_at = Instant::now();
    let mut was_connected = false;
    loop {
        let Some(node) = node.upgrade() else { return };
        node.link.look_after().await;
        let is_connected = node.link.phase() == Phase::Connected;
        if is_connected {
            // Who comes back gives a sign at once: others may be about to take it for lost.
            if !was_connected || signed_at.elapsed() >= SIGN {
                signed_at = Instant::now();
                node.give_sign().await;
            }
            // Before other nodes can have heard of them.
            if let Err(away) = node.tell_corrections().await {
                tracing::debug!(%away, "corrections cannot be told yet");
            }
            node.tell_untold().await;
        }
        was_connected = is_connected;
        drop(node);
        let _ = tokio::time::timeout(TICK, wake.notified()).await;
    }
}
