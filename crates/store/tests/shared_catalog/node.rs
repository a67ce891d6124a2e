//! A node: a catalog and an outbox in a directory of their own, and their link.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, AdminToken, Budget, Kill, KillKind, KillScope, Role, Span, VirtualKey};
use sprag_core::time::Timestamp;
use sprag_store::catalog::{Bounds, KeyEntry, Mark, TokenEntry};
use sprag_store::shared::Address;
use sprag_store::shared_catalog::{Row, SharedCatalog};
use sprag_store::{Catalog, DataDir, Outbox, RunKey, StoreError};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long anything may take on a busy machine. Tests that measure have bounds of their own.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Node {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) link: Option<Arc<SharedCatalog>>,
    /// Moves with every change of the catalog.
    changes: watch::Receiver<u64>,
    running: Option<JoinHandle<()>>,
    pub(crate) dir: Arc<TempDir>,
}

impl Node {
    /// A node that knows nothing, linked to a Redis.
    pub(crate) fn start(url: &str) -> Node {
        let mut node = Node::alone();
        node.link(url);
        node
    }

    /// A node that is not linked yet.
    pub(crate) fn alone() -> Node {
        Node::open(Arc::new(tempfile::tempdir().unwrap()))
    }

    pub(crate) fn open(dir: Arc<TempDir>) -> Node {
        // What a stopped node was just doing holds the directory for a moment longer.
        let begun = Instant::now();
        let data = loop {
            match DataDir::open(dir.path()) {
                Err(StoreError::InUse { .. }) if begun.elapsed() < PATIENCE => std::thread::yield_now(),
                opened => break Arc::new(opened.unwrap()),
            }
        };
        let (told, changes) = watch::channel(0);
        let tell = move |generation| {
            told.send_replace(generation);
        };
        let catalog = Catalog::open(data.clone(), Bounds::default(), Timestamp(0), tell).unwrap();
        let outbox = Arc::new(Outbox::open(data).unwrap());
        Node { catalog: Arc::new(catalog), outbox, link: None, changes, running: None, dir }
    }

    pub(crate) fn link(&mut self, url: &str) {
        let (catalog, outbox) = (self.catalog.clone(), self.outbox.clone());
        let take = move |rows: Vec<Row>| -> Result<(), StoreError> {
            for row in &rows {
                outbox.apply(row)?;
            }
            catalog.apply(&rows, |_| None).map(drop)
        };
        let address = Address::parse(url).unwrap();
        let link = SharedCatalog::new(address, self.catalog.clone(), self.outbox.clone(), take);
        self.running = Some(tokio::spawn(link.clone().run()));
        self.link = Some(link);
    }

    /// Ends it, and keeps its directory.
    pub(crate) async fn stop(mut self) -> Arc<TempDir> {
        self.halt().await;
        self.dir.clone()
    }

    /// Ends the link.
    pub(crate) async fn halt(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
            let _ = running.await;
        }
    }

    /// Waits until the link is, or is not, connected and listening.
    pub(crate) async fn is_linked(&self, expected: bool) {
        let link = self.link.as_ref().unwrap();
        let is_it = || {
            let status = link.status();
            status.is_connected == expected && (!expected || status.is_listening)
        };
        look(is_it, || format!("linked: {expected}; {:?}", link.status())).await;
    }

    /// Waits until something holds of the catalog, and says how long that took.
    pub(crate) async fn sees(&self, what: &str, holds: impl Fn(&Node) -> bool) -> Duration {
        let begun = Instant::now();
        let mut changes = self.changes.clone();
        while !holds(self) {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            assert!(!left.is_zero(), "never saw: {what}");
            // The outbox tells nobody, so it is looked at, too.
            let _ = tokio::time::timeout(left.min(Duration::from_millis(5)), changes.changed()).await;
        }
        begun.elapsed()
    }

    pub(crate) fn is_killed(&self, scope: &str) -> bool {
        self.kill_of(scope).is_some()
    }

    pub(crate) fn kill_of(&self, scope: &str) -> Option<Arc<Kill>> {
        self.catalog.snapshot().kills.of_scope(&scope.parse().unwrap()).cloned()
    }

    pub(crate) fn kill(&self, scope: &str) -> Arc<Kill> {
        self.catalog.kill(kill(scope, KillKind::Kill, "anna"), &[]).unwrap()
    }

    pub(crate) fn resume(&self, run: &str) {
        let mark = Mark { steps: 3, cost: NanoUsd(7), at: Timestamp(9) };
        self.catalog.resume(&run_key(run), mark).unwrap().unwrap();
    }

    pub(crate) fn adjusted(&self, account: &str) -> i64 {
        let span = Span { start: Timestamp(0), end: Timestamp(i64::MAX) };
        self.catalog.snapshot().adjustment(&account.parse::<AccountId>().unwrap(), span).0
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

/// Looks again until something holds.
pub(crate) async fn look(holds: impl Fn() -> bool, else_say: impl Fn() -> String) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{}", else_say());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn run_key(run: &str) -> RunKey {
    RunKey { agent: AgentName::parse("bot").unwrap(), id: RunId::parse(run).unwrap() }
}

pub(crate) fn kill(scope: &str, kind: KillKind, by: &str) -> Kill {
    let scope: KillScope = scope.parse().unwrap();
    let (reason, by) = ("too expensive".to_owned(), by.to_owned());
    Kill { id: format!("kill {scope} {by}"), scope, kind, reason, by, at: Timestamp(5), expires_at: None, proof: None }
}

/// Stamps count milliseconds, and of two of the same one the name of the node decides.
pub(crate) fn a_millisecond_passes() {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let began = clock();
    while clock() <= began {
        std::thread::yield_now();
    }
}

/// The key of a number; its secret has the hash `[number; 32]`.
pub(crate) fn key(number: u8) -> KeyEntry {
    let key = VirtualKey {
        id: format!("key-{number:08}"),
        agent: AgentName::parse("bot").unwrap(),
        name: String::new(),
        hint: "wxyz".into(),
        created_at: Timestamp(1),
        expires_at: None,
        revoked_at: None,
        previous: None,
        budget: Budget::default(),
    };
    KeyEntry { key, hash: [number; 32], previous_hash: None }
}

pub(crate) fn token(number: u8, name: &str) -> TokenEntry {
    let token = AdminToken {
        id: format!("tok-{number:08}"),
        name: name.into(),
        role: Role::Viewer,
        prefix: "sprag-tok-abcd".into(),
        created_at: Timestamp(1),
        expires_at: None,
        revoked_at: None,
    };
    TokenEntry { token, hash: [number; 32] }
}
