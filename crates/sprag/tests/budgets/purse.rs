//! A Sprag with a budget before a provider of which every token of an answer costs a cent.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use sprag::acts::{IssuedKey, KeyOrder};
use sprag::clock::Clock;
use sprag::config::{Secret, Settings};
use sprag_core::event::Event;
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Account, Budget, RunLimits, Window};
use sprag_core::wire::Dialect;
use sprag_store::RunKey;
use sprag_store::history::EventFilter;
use sprag_testkit::client::{self, Call, Whole};
use sprag_testkit::{Provider, Script};

use crate::sprag::{Sprag, without_detection};
use crate::wire::{path, request};

pub(crate) const START: i64 = 1_700_000_000_000;

const TOKEN: &str = "a-token-that-nobody-will-ever-guess-0123";
/// The models that `wire::request` asks for.
const MODELS: [&str; 4] = ["gpt-4o", "gpt-3.5-turbo-instruct", "claude-sonnet-4-5", "gemini-2.5-flash"];

pub(crate) struct Purse {
    pub(crate) provider: Provider,
    pub(crate) sprag: Sprag,
    pub(crate) clock: Arc<AtomicI64>,
}

impl Purse {
    pub(crate) async fn start(change: impl FnOnce(&mut Settings)) -> Purse {
        Purse::start_with(Script::new(), change).await
    }

    /// At a moment that moves only when told.
    pub(crate) async fn start_with(script: Script, change: impl FnOnce(&mut Settings)) -> Purse {
        let provider = Provider::start(script).unwrap();
        let clock = Arc::new(AtomicI64::new(START));
        let change = |settings: &mut Settings| {
            prepare(settings);
            change(settings);
        };
        let sprag = Sprag::start_at(&provider, Clock::Scripted(clock.clone()), change).await;
        Purse { provider, sprag, clock }
    }

    /// Stopped in good order and started again on the same data.
    pub(crate) async fn restarted(self, change: impl FnOnce(&mut Settings)) -> (Purse, tempfile::TempDir) {
        let Purse { provider, sprag, clock } = self;
        let data = sprag.stop().await;
        let sprag = Sprag::start_at(&provider, Clock::Scripted(clock.clone()), |settings| {
            prepare(settings);
            settings.data_dir = data.path().to_owned();
            change(settings);
        });
        let sprag = sprag.await;
        (Purse { provider, sprag, clock }, data)
    }

    /// Makes a key of an agent.
    pub(crate) async fn issue(&self, agent: &str, budget: Budget) -> IssuedKey {
        let agent = AgentName::parse(agent).unwrap();
        let (name, by) = ("night shift".to_owned(), "anna".to_owned());
        self.sprag.app.create_key(KeyOrder { agent, name, expires_at: None, budget, by }).await.unwrap()
    }

    /// Sends something to the admin API.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: &Value) -> Value {
        let url = format!("http://{}/api/v1{path}", self.sprag.admin);
        let call = client::post_json(url, body).method(method.parse().unwrap());
        let answer = call.header("authorization", &format!("Bearer {TOKEN}")).fetch().await.unwrap();
        assert!(answer.status.is_success(), "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    /// Other settings, as after a change of the file.
    pub(crate) fn change_settings(&self, change: impl FnOnce(&mut Settings)) {
        let mut settings = Settings::clone(&self.sprag.app.settings.load());
        change(&mut settings);
        self.sprag.app.replace_settings(settings).unwrap();
    }

    /// Waits until nothing is in flight and nothing is being settled.
    pub(crate) async fn quiet(&self) {
        let app = &self.sprag.app;
        crate::binary::wait_until(
            || app.state.counts().in_flight == 0 && app.settling.is_empty(),
            || format!("{:?}", app.state.counts()),
        )
        .await;
    }

    /// Every event there is, the oldest first.
    pub(crate) fn all_events(&self) -> Vec<Event> {
        let history = &self.sprag.app.history;
        history.flush().unwrap();
        let (mut events, mut cursor) = (Vec::new(), None);
        loop {
            let page = history.events(&EventFilter::default(), cursor.as_deref(), 500).unwrap();
            events.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                events.reverse();
                return events;
            }
        }
    }

    pub(crate) fn pass_seconds(&self, seconds: i64) {
        self.clock.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    /// A call that will cost so many cents, and says nothing about it.
    pub(crate) fn call(&self, run: &str, cents: u64) -> Call {
        self.send(run, cents, &chat("hello"))
    }

    pub(crate) fn send(&self, run: &str, cents: u64, body: &Value) -> Call {
        let call = client::post_json(self.sprag.url("/v1/chat/completions"), body).header("x-sprag-run-id", run);
        call.header("x-mock-usage", &format!("input=0 output={cents}"))
    }

    pub(crate) async fn ask(&self, run: &str, cents: u64) -> Whole {
        self.call(run, cents).fetch().await.unwrap()
    }

    /// Requests that reached the provider.
    pub(crate) fn forwarded(&self) -> usize {
        self.provider.log().view().total as usize
    }

    /// The open account whose text this is, such as `agent:default daily`.
    pub(crate) fn account(&self, text: &str) -> Account {
        let accounts = self.sprag.app.state.accounts();
        let found = accounts.iter().find(|state| !state.id.is_shadow && state.id.to_string() == text);
        found.unwrap_or_else(|| panic!("no {text} in {accounts:?}")).account
    }

    /// Nothing is set aside any more, wherever it was.
    pub(crate) fn nothing_is_reserved(&self) {
        let accounts = self.sprag.app.state.accounts();
        assert!(accounts.iter().all(|state| state.account.reserved == NanoUsd::ZERO), "{accounts:?}");
    }
}

fn prepare(settings: &mut Settings) {
    without_detection(settings);
    settings.policies.defaults.run_limits = RunLimits::NONE;
    settings.admin.token = Some(Secret::new(TOKEN));
    for provider in settings.providers.values_mut() {
        Arc::make_mut(provider).key = Some(Secret::new("sk-a-key-of-the-provider-0123456789"));
    }
    a_cent_a_token(settings);
}

/// One token of an answer costs a cent, and prompts cost nothing.
pub(crate) fn a_cent_a_token(settings: &mut Settings) {
    let price = |model: &&str| json!({"model": model, "input": "0", "output": "10000"});
    settings.prices.overrides = MODELS.iter().map(|model| serde_json::from_value(price(model)).unwrap()).collect();
}

/// A run of the agent that nobody names.
pub(crate) fn run_key(agent: &str, run: &str) -> RunKey {
    RunKey { agent: AgentName::parse(agent).unwrap(), id: RunId::parse(run).unwrap() }
}

/// A call in any dialect whose answer is so many words, each a token; `limit` is what the caller accepts.
pub(crate) fn wordy(purse: &Purse, dialect: Dialect, is_stream: bool, words: u64, limit: Option<u64>) -> Call {
    wordy_at(&purse.sprag.url(""), dialect, is_stream, words, limit)
}

/// The same to any Sprag.
pub(crate) fn wordy_at(base: &str, dialect: Dialect, is_stream: bool, words: u64, limit: Option<u64>) -> Call {
    let mut body = request(dialect, is_stream, "hello");
    if let Some(limit) = limit {
        match dialect {
            Dialect::OpenaiResponses => body["max_output_tokens"] = json!(limit),
            Dialect::Gemini => body["generationConfig"] = json!({"maxOutputTokens": limit}),
            _ => body["max_tokens"] = json!(limit),
        }
    } else if dialect == Dialect::Anthropic {
        body["max_tokens"] = json!(100_000);
    }
    client::post_json(format!("{base}{}", path(dialect, is_stream)), &body)
        .header("x-mock-text", "word ".repeat(words as usize).trim_end())
        .header("x-mock-delta", "5")
        .header("x-mock-usage", &format!("input=0 output={words}"))
}

pub(crate) fn chat(text: &str) -> Value {
    json!({"model": "gpt-4o", "messages": [{"role": "user", "content": text}]})
}

pub(crate) fn cents(cents: i64) -> NanoUsd {
    NanoUsd(cents * 10_000_000)
}

/// A budget of one limit.
pub(crate) fn budget(window: Window, limit: i64) -> Budget {
    let mut budget = Budget { mode: Mode::Enforce, kill_run: true, ..Budget::default() };
    let slot = match window {
        Window::Run => &mut budget.max_run_cost,
        Window::Day => &mut budget.daily_limit,
        Window::Month => &mut budget.monthly_limit,
    };
    *slot = Some(cents(limit));
    budget
}

/// The reason of a stop; an empty one where the call passed.
pub(crate) fn reason(answer: &Whole) -> String {
    answer.headers.get("x-sprag-blocked").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}
