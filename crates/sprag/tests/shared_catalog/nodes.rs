//! Nodes that share a catalog, and the provider behind all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sprag::acts::KillOrder;
use sprag::config::{Secret, Settings};
use sprag_core::id::{AgentName, RunId};
use sprag_core::policy::{Kill, KillKind};
use sprag_core::wire::Dialect;
use sprag_store::RunKey;
use sprag_store::shared_catalog::SharedCatalog;
use sprag_testkit::client;
use sprag_testkit::{Provider, Script};

use crate::sprag::{Sprag, without_detection};
use crate::wire::{path, request};

pub(crate) const TOKEN: &str = "a-token-that-nobody-will-ever-guess-0123";
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Node {
    pub(crate) sprag: Sprag,
    pub(crate) link: Arc<SharedCatalog>,
}

impl Node {
    pub(crate) async fn start(provider: &Provider, redis: &str) -> Node {
        Node::start_with(provider, redis, |_| {}).await
    }

    pub(crate) async fn start_with(provider: &Provider, redis: &str, change: impl FnOnce(&mut Settings)) -> Node {
        let sprag = Sprag::start_with(provider, |settings| {
            settings.admin.token = Some(Secret::new(TOKEN));
            settings.state.redis = Some(Secret::new(redis));
            without_detection(settings);
            change(settings);
        })
        .await;
        until("it shares", || sprag.app.shared_catalog.get().is_some()).await;
        let link = sprag.app.shared_catalog.get().unwrap().clone();
        Node { sprag, link }
    }

    /// Waits until the link is, or is not, there.
    pub(crate) async fn is_linked(&self, expected: bool) {
        until("the link", || self.link.status().is_connected == expected).await;
    }

    pub(crate) async fn listens(&self) {
        self.is_linked(true).await;
        until("it listens", || self.link.status().is_listening).await;
    }

    pub(crate) async fn kill(&self, scope: &str) -> Arc<Kill> {
        let (reason, by) = ("too expensive".to_owned(), "anna".to_owned());
        let scope = scope.parse().unwrap();
        let order = KillOrder { scope, kind: KillKind::Kill, reason, by, expires_at: None, proof: None };
        self.sprag.app.kill(order).await.unwrap()
    }

    pub(crate) fn call(&self, is_stream: bool, headers: &[(&str, &str)]) -> client::Call {
        let dialect = Dialect::OpenaiChat;
        let call = client::post_json(self.sprag.url(path(dialect, is_stream)), &request(dialect, is_stream, "hello"));
        headers.iter().fold(call, |call, (name, value)| call.header(name, value))
    }

    /// Asks, and gives status and reason; an empty one where it passed.
    pub(crate) async fn ask(&self, headers: &[(&str, &str)]) -> (u16, String) {
        let answer = self.call(false, headers).fetch().await.unwrap();
        let blocked = answer.headers.get("x-sprag-blocked").map(|value| value.to_str().unwrap().to_owned());
        (answer.status.as_u16(), blocked.unwrap_or_default())
    }

    /// Asks again and again until the answer is this.
    pub(crate) async fn comes_to(&self, headers: &[(&str, &str)], expected: (u16, &str)) {
        let begun = Instant::now();
        loop {
            let (status, reason) = self.ask(headers).await;
            if (status, reason.as_str()) == expected {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{status} {reason}, not {expected:?}");
        }
    }
}

/// Two nodes that hear of each other.
pub(crate) async fn two(provider: &Provider, redis: &str) -> (Node, Node) {
    let (a, b) = (Node::start(provider, redis).await, Node::start(provider, redis).await);
    a.listens().await;
    b.listens().await;
    (a, b)
}

pub(crate) fn provider() -> Provider {
    Provider::start(Script::new()).unwrap()
}

/// Waits until something holds, and says how long that took.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    begun.elapsed()
}

pub(crate) fn agent(name: &str) -> AgentName {
    AgentName::parse(name).unwrap()
}

pub(crate) fn run(id: &str) -> RunKey {
    RunKey { agent: AgentName::default(), id: RunId::parse(id).unwrap() }
}
