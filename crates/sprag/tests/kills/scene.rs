//! A Sprag, the provider behind it, and what a caller and a person in charge do.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::Value;
use sprag::acts::KillOrder;
use sprag::clock::Clock;
use sprag::config::Settings;
use sprag_core::id::{AgentName, RunId};
use sprag_core::policy::{Kill, KillKind};
use sprag_core::time::Timestamp;
use sprag_core::wire::Dialect;
use sprag_store::RunKey;
use sprag_store::history::RunRow;
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{Provider, Script};

use crate::sprag::{Sprag, without_detection};
use crate::wire::{path, request};

pub(crate) const START: i64 = 1_700_000_000_000;

pub(crate) struct Scene {
    pub(crate) provider: Provider,
    pub(crate) sprag: Sprag,
    clock: Arc<AtomicI64>,
}

impl Scene {
    pub(crate) async fn start() -> Scene {
        Scene::start_with(Script::new(), |_| {}).await
    }

    /// At a moment that moves only when told.
    pub(crate) async fn start_with(script: Script, change: impl FnOnce(&mut Settings)) -> Scene {
        let provider = Provider::start(script).unwrap();
        let clock = Arc::new(AtomicI64::new(START));
        let change = |settings: &mut Settings| {
            without_detection(settings);
            change(settings);
        };
        let sprag = Sprag::start_at(&provider, Clock::Scripted(clock.clone()), change).await;
        Scene { provider, sprag, clock }
    }

    pub(crate) fn pass_seconds(&self, seconds: i64) {
        self.clock.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.clock.load(Ordering::Relaxed))
    }

    /// A chat call that is not sent yet.
    pub(crate) fn call(&self, headers: &[(&str, &str)]) -> client::Call {
        self.call_in(Dialect::OpenaiChat, false, headers)
    }

    pub(crate) fn call_in(&self, dialect: Dialect, is_stream: bool, headers: &[(&str, &str)]) -> client::Call {
        let call = client::post_json(self.sprag.url(path(dialect, is_stream)), &request(dialect, is_stream, "hello"));
        headers.iter().fold(call, |call, (name, value)| call.header(name, value))
    }

    pub(crate) async fn ask(&self, headers: &[(&str, &str)]) -> Whole {
        self.call(headers).fetch().await.unwrap()
    }

    /// Asks, and gives status and reason; an empty one where it passed.
    pub(crate) async fn reason(&self, headers: &[(&str, &str)]) -> (u16, String) {
        let answer = self.ask(headers).await;
        let blocked = answer.headers.get("x-sprag-blocked").map(|value| value.to_str().unwrap().to_owned());
        (answer.status.as_u16(), blocked.unwrap_or_default())
    }

    pub(crate) async fn passes(&self, headers: &[(&str, &str)]) {
        assert_eq!(self.reason(headers).await, (200, String::new()), "{headers:?}");
    }

    pub(crate) async fn is_killed(&self, headers: &[(&str, &str)]) {
        assert_eq!(self.reason(headers).await, (403, "run_killed".to_owned()), "{headers:?}");
    }

    pub(crate) async fn kill(&self, scope: &str) -> Arc<Kill> {
        self.order(scope, KillKind::Kill, None).await
    }

    pub(crate) async fn order(&self, scope: &str, kind: KillKind, expires_at: Option<Timestamp>) -> Arc<Kill> {
        let (reason, by) = ("too expensive".to_owned(), "anna".to_owned());
        let order = KillOrder { scope: scope.parse().unwrap(), kind, reason, by, expires_at, proof: None };
        self.sprag.app.kill(order).await.unwrap()
    }

    pub(crate) async fn resume(&self, run: &str) -> Option<Arc<Kill>> {
        self.sprag.app.resume(key(run), "anna".to_owned()).await.unwrap()
    }

    /// The run as it is on record.
    pub(crate) fn run(&self, run: &str) -> RunRow {
        self.sprag.app.history.flush().unwrap();
        self.sprag.app.history.run(&key(run)).unwrap().unwrap()
    }
}

/// A run of the agent that nobody names.
pub(crate) fn key(run: &str) -> RunKey {
    RunKey { agent: AgentName::default(), id: RunId::parse(run).unwrap() }
}

pub(crate) fn error(answer: &Whole) -> Value {
    answer.json()["error"].clone()
}
