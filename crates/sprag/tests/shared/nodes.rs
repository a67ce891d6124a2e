//! Sprags that share a Redis, before one provider of which every token of an answer costs a cent.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sprag::clock::Clock;
use sprag::config::{Secret, Settings};
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Budget, Reserve, RunLimits};
use sprag_testkit::client::{self, Call, Whole};
use sprag_testkit::{Provider, Script};

use crate::sprag::{Sprag, without_detection};

/// Longer than any working test needs.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Nodes {
    pub(crate) provider: Provider,
    pub(crate) sprags: Vec<Sprag>,
}

impl Nodes {
    /// Starts so many, without detection of loops and with other settings.
    pub(crate) async fn start(count: usize, redis: &str, change: impl Fn(&mut Settings)) -> Nodes {
        Nodes::start_at(count, redis, Clock::Real, change).await
    }

    /// The same with a clock of the test's own.
    pub(crate) async fn start_at(count: usize, redis: &str, clock: Clock, change: impl Fn(&mut Settings)) -> Nodes {
        Nodes::start_by(vec![clock; count], redis, change).await
    }

    /// One for each of these clocks.
    pub(crate) async fn start_by(clocks: Vec<Clock>, redis: &str, change: impl Fn(&mut Settings)) -> Nodes {
        let provider = Provider::start(Script::new()).unwrap();
        let mut sprags = Vec::new();
        for clock in clocks {
            sprags.push(Nodes::node(&provider, redis, clock, &change).await);
        }
        let nodes = Nodes { provider, sprags };
        nodes.connected().await;
        nodes
    }

    async fn node(provider: &Provider, redis: &str, clock: Clock, change: &impl Fn(&mut Settings)) -> Sprag {
        Sprag::start_at(provider, clock, |settings| {
            without_detection(settings);
            settings.policies.defaults.run_limits = RunLimits::NONE;
            let price = json!({"model": "gpt-4o", "input": "0", "output": "10000"});
            settings.prices.overrides = vec![serde_json::from_value(price).unwrap()];
            share(settings, redis);
            change(settings);
        })
        .await
    }

    /// Waits until every node has its Redis.
    pub(crate) async fn connected(&self) {
        for sprag in &self.sprags {
            wait_until("a node has its Redis", || is_connected(sprag)).await;
        }
    }

    /// Waits until no node has its Redis.
    pub(crate) async fn lost(&self) {
        for sprag in &self.sprags {
            wait_until("a node notices that Redis is away", || !is_connected(sprag)).await;
        }
    }

    /// A call that will cost so many cents, by one of the nodes in turn.
    pub(crate) fn call(&self, number: usize, run: &str, cents: u64) -> Call {
        let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": cents.max(1)});
        self.send(number, run, cents, &body)
    }

    pub(crate) fn send(&self, number: usize, run: &str, cents: u64, body: &Value) -> Call {
        let sprag = &self.sprags[number % self.sprags.len()];
        let call = client::post_json(sprag.url("/v1/chat/completions"), body).header("x-sprag-run-id", run);
        call.header("x-mock-usage", &format!("input=0 output={cents}"))
    }

    /// Requests that reached the provider.
    pub(crate) fn forwarded(&self) -> usize {
        self.provider.log().view().total as usize
    }

    /// Waits until nothing is under way on any node, and Redis has been told everything.
    pub(crate) async fn quiet(&self) {
        for sprag in &self.sprags {
            let app = &sprag.app;
            let link = app.link.as_ref().unwrap();
            let is_told = || link.untold_runs().0 == 0 && link.status().untold == 0;
            let is_quiet = || app.state.counts().in_flight == 0 && app.settling.is_empty() && is_told();
            wait_until("nothing is under way", is_quiet).await;
        }
    }

    /// What a run has cost, as a call on one of the nodes tells it afterwards.
    pub(crate) async fn told_cost(&self, number: usize, run: &str) -> String {
        let answer = self.call(number, run, 0).fetch().await.unwrap();
        assert_eq!(answer.status, 200, "{}", text(&answer));
        answer.header("x-sprag-run-cost-usd").to_owned()
    }
}

/// Lets settings share a Redis. A machine with other things to do must not look like a Redis that is away.
pub(crate) fn share(settings: &mut Settings, redis: &str) {
    settings.state.redis = Some(Secret::new(redis));
    settings.state.timeout = PATIENCE;
}

pub(crate) fn is_connected(sprag: &Sprag) -> bool {
    sprag.app.link.as_ref().is_some_and(|link| link.is_connected())
}

/// A budget of everybody, of so many cents a day.
pub(crate) fn daily(settings: &mut Settings, cents: i64, reserve: Reserve) {
    let limit = Some(NanoUsd(cents * 10_000_000));
    let budget = Budget { mode: Mode::Enforce, daily_limit: limit, reserve, kill_run: true, ..Budget::default() };
    settings.policies.defaults.budget = budget;
}

/// Why Sprag stopped a call; empty where it did not.
pub(crate) fn stopped(answer: &Whole) -> &str {
    answer.header("x-sprag-blocked")
}

pub(crate) fn text(answer: &Whole) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

pub(crate) async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::task::yield_now().await;
    }
}

/// All of these at once; gives their answers.
pub(crate) async fn at_once(calls: impl Iterator<Item = Call>) -> Vec<Whole> {
    let calls: Vec<_> = calls.map(|call| tokio::spawn(call.fetch())).collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap().unwrap());
    }
    answers
}
