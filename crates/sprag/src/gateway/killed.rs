//! Whether a call is stopped by a kill, asked at its beginning and for as long as it is under way.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::request::Parts;
use percent_encoding::percent_decode_str;
use sprag_core::id::{AgentName, RunId};
use sprag_core::policy::{Descriptor, Kill, Subject};
use sprag_store::catalog::Snapshot;
use tokio::sync::watch;

use super::carried::carried;
use super::identify::key_ids;
use super::packed_head::PackedHead;
use super::route::plain_path;
use crate::app::App;

/// A call, as far as kills care.
pub(crate) struct Watched {
    pub(crate) agent: AgentName,
    /// The virtual key that it came with, by its id.
    pub(crate) key: Option<String>,
    /// Its run and the runs above it, nearest first.
    pub(crate) runs: Vec<RunId>,
    pub(crate) head: WatchedHead,
    /// The path that the provider sees.
    pub(crate) path: String,
}

/// The head of a call.
pub(crate) enum WatchedHead {
    /// As it was read.
    Read(Arc<Parts>),
    /// Of an answer that may take long.
    Packed(PackedHead),
}

/// Ready when a call that is under way is killed.
pub(crate) struct KillWatch {
    waiting: Pin<Box<dyn Future<Output = Arc<Kill>> + Send + Sync>>,
    /// Tells without a lock whether the catalog has changed since `waiting` was asked.
    changes: watch::Receiver<u64>,
    /// Whom `waiting` will wake.
    wakes: Option<Waker>,
}

/// Waits for something, unless the call is killed before.
pub(crate) async fn or_killed<T>(work: impl Future<Output = T>, watch: Option<&mut KillWatch>) -> Result<T, Arc<Kill>> {
    let Some(watch) = watch else { return Ok(work.await) };
    tokio::select! {
        biased;
        kill = watch => Err(kill),
        done = work => Ok(done),
    }
}

impl Watched {
    /// The kill that stops the call.
    pub(crate) fn kill(&self, app: &App, snapshot: &Snapshot) -> Option<Arc<Kill>> {
        // As a rule nothing is, and then nothing of the call needs to be read.
        if snapshot.kills.is_empty() {
            return None;
        }
        let unpacked;
        let head = match &self.head {
            WatchedHead::Read(head) => &**head,
            WatchedHead::Packed(head) => {
                unpacked = head.unpack();
                &unpacked
            }
        };
        // The provider decodes it too, and may not care about slashes.
        let decoded = |path| percent_decode_str(path).decode_utf8_lossy();
        let (sent, routed, plain) = (decoded(head.uri.path()), decoded(&self.path), plain_path(&self.path));
        let values = |descriptor: &Descriptor| carried(head, descriptor);
        let keys = || key_ids(head).into_iter().chain(self.key.clone()).collect();
        let paths: &[&str] = &[&sent, &routed, &plain];
        let subject = Subject { agent: &self.agent, runs: &self.runs, keys: &keys, carried: &values, paths };
        snapshot.kills.find(&subject, app.common_now()).cloned()
    }

    /// The same with a head that takes little room, and holds no buffer.
    pub(crate) fn packed(&self) -> Watched {
        let head = match &self.head {
            WatchedHead::Read(head) => PackedHead::of(head),
            WatchedHead::Packed(head) => PackedHead::of(&head.unpack()),
        };
        let Watched { agent, key, runs, path, .. } = self;
        let (agent, key, runs, path) = (agent.clone(), key.clone(), runs.clone(), path.clone());
        Watched { agent, key, runs, head: WatchedHead::Packed(head), path }
    }

    /// Waits for a kill; a call that has none waits forever.
    pub(crate) fn watch(self: &Arc<Self>, app: &Arc<App>) -> KillWatch {
        let (app, watched) = (app.clone(), self.clone());
        let changes = app.changes.subscribe();
        let waiting = Box::pin(async move {
            let mut changes = app.changes.subscribe();
            loop {
                if let Some(kill) = watched.kill(&app, &app.catalog.snapshot()) {
                    return kill;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        });
        KillWatch { waiting, changes, wakes: None }
    }
}

impl Future for KillWatch {
    type Output = Arc<Kill>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Arc<Kill>> {
        // A stream asks twice for each piece of its answer, and as a rule nothing has changed since.
        let is_waiting = self.wakes.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_waiting && !self.changes.has_changed().unwrap_or(false) {
            return Poll::Pending;
        }
        self.changes.mark_unchanged();
        self.wakes = Some(cx.waker().clone());
        self.waiting.as_mut().poll(cx)
    }
}
