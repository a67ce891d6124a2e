//! A Sprag that holds keys of its providers, under a clock of the test's own; its callers and its admin.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use sprag::acts::{IssuedKey, KeyOrder};
use sprag::clock::Clock;
use sprag::config::{Secret, Settings};
use sprag_core::id::AgentName;
use sprag_core::policy::Budget;
use sprag_core::time::Timestamp;
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{Provider, Script};

use crate::sprag::{Sprag, without_detection};
use crate::wire::{path, request};

pub(crate) const TOKEN: &str = "a-token-that-nobody-will-ever-guess-0123";
pub(crate) const START: i64 = 1_700_000_000_000;

/// The keys that Sprag holds. No ten letters of them occur by chance.
pub(crate) const HELD: [(&str, &str); 3] = [
    ("openai", "sk-proj-Zq7VxKw3TnB9mLr2HdYc5PfJ"),
    ("anthropic", "sk-ant-Wp4GsQz8NvC1kXb6RtMj3LhD"),
    ("gemini", "AIzaSyUe5FyKo9WqP2jZn7VcTi4BxGm"),
];

pub(crate) struct Place {
    pub(crate) provider: Provider,
    pub(crate) sprag: Sprag,
    clock: Arc<AtomicI64>,
}

impl Place {
    pub(crate) async fn start() -> Place {
        Place::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Settings)) -> Place {
        let provider = Provider::start(Script::new()).unwrap();
        let clock = Arc::new(AtomicI64::new(START));
        let sprag = Sprag::start_at(&provider, Clock::Scripted(clock.clone()), |settings| {
            settings.admin.token = Some(Secret::new(TOKEN));
            without_detection(settings);
            for (name, key) in HELD {
                let provider = Arc::make_mut(settings.providers.get_mut(name).unwrap());
                provider.key = Some(Secret::new(key));
            }
            change(settings);
        })
        .await;
        Place { provider, sprag, clock }
    }

    pub(crate) fn pass_seconds(&self, seconds: i64) {
        self.clock.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    /// Makes a key.
    pub(crate) async fn issue(&self, agent: &str, seconds: Option<i64>) -> IssuedKey {
        let order = KeyOrder {
            agent: AgentName::parse(agent).unwrap(),
            name: "night shift".to_owned(),
            expires_at: seconds.map(|seconds| Timestamp(self.clock.load(Ordering::Relaxed) + seconds * 1000)),
            budget: Budget::default(),
            by: "anna".to_owned(),
        };
        self.sprag.app.create_key(order).await.unwrap()
    }

    /// A call that is not sent yet.
    pub(crate) fn call(&self, path: &str, headers: &[(&str, &str)]) -> client::Call {
        let call = client::post_json(self.sprag.url(path), &request(Dialect::OpenaiChat, false, "hello"));
        headers.iter().fold(call, |call, (name, value)| call.header(name, value))
    }

    pub(crate) async fn ask(&self, headers: &[(&str, &str)]) -> Whole {
        self.call("/v1/chat/completions", headers).fetch().await.unwrap()
    }

    pub(crate) async fn ask_in(&self, dialect: Dialect, is_stream: bool, headers: &[(&str, &str)]) -> Whole {
        let call = client::post_json(self.sprag.url(path(dialect, is_stream)), &request(dialect, is_stream, "hello"));
        headers.iter().fold(call, |call, (name, value)| call.header(name, value)).fetch().await.unwrap()
    }

    /// Asks, and gives what an SDK would raise; nothing where it passed.
    pub(crate) async fn refused(&self, headers: &[(&str, &str)]) -> String {
        let answer = self.ask(headers).await;
        if answer.status == 200 { String::new() } else { unauthorized(&answer) }
    }

    /// Asks the admin API; gives the status and what it says.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let call = client::post_json(format!("http://{}/api/v1{path}", self.sprag.admin), body);
        let call = call.method(method.parse().unwrap()).header("authorization", &format!("Bearer {TOKEN}"));
        let answer = call.fetch().await.unwrap();
        (answer.status.as_u16(), answer.json())
    }

    pub(crate) async fn kill(&self, scope: &str) {
        let (status, said) = self.admin("POST", "/kills", &json!({"scope": scope})).await;
        assert_eq!(status, 200, "{said}");
    }
}

pub(crate) fn bearer(issued: &IssuedKey) -> (&'static str, String) {
    ("authorization", format!("Bearer {}", issued.secret.reveal()))
}

/// The message of a 401, and that it is one.
pub(crate) fn unauthorized(answer: &Whole) -> String {
    assert_eq!((answer.status.as_u16(), answer.header("x-sprag-blocked")), (401, "authentication_error"));
    assert_eq!(answer.header("x-should-retry"), "false");
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}
