//! Random schedules over the proxy where nothing may be overspent: calls that are cut, left, killed and refused, in
//! trees of runs, by several agents and keys.
//!
//! What counts is the provider's bill: what an answer reports, what was said before a stream broke off, and the whole
//! answer where it was not streamed, for it was made whether or not anybody waited for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sprag::acts::KillOrder;
use sprag_core::event::{Ending, Event};
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Budget, Holder, KillKind, Reserve, Window};
use sprag_core::wire::Dialect;
use sprag_testkit::{Script, client::Call};

use crate::purse::{Purse, budget, cents, reason, wordy};
use crate::wire::STREAMING;

const WORKERS: usize = 24;
const CALLS: usize = 350;
const RUN: i64 = 260;
const KEY_DAY: i64 = 420;
const AGENT_DAY: i64 = 900;
const AGENT_MONTH: i64 = 800;
const ALL_DAY: i64 = 1500;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Whole,
    /// The client leaves when so many pieces have come.
    Leave(u64),
    /// The client leaves before there is an answer.
    LeaveAtOnce,
    /// The provider ends the connection after so many pieces.
    Cut(u64),
    CutHead,
    CutInside,
    /// The provider falls silent for good.
    Silent,
    Error,
    Garbage,
    Killed(u64),
}

#[derive(Clone, Debug)]
struct Plan {
    number: usize,
    dialect: Dialect,
    is_stream: bool,
    words: u64,
    limit: u64,
    fate: Fate,
    agent: &'static str,
    key: Option<usize>,
    run: String,
    parent: Option<String>,
}

/// What the provider charges for a call, and to whom.
struct Bill {
    cents: i64,
    plan: Plan,
}

fn draw(dice: &mut StdRng, number: usize) -> Plan {
    let is_stream = dice.random_bool(0.6);
    let limit = dice.random_range(1..60);
    let words = dice.random_range(1..=limit);
    let pieces = dice.random_range(0..words);
    let fate = match (dice.random_range(0..100), is_stream) {
        (0..40, _) => Fate::Whole,
        (40..55, true) => Fate::Leave(pieces),
        (40..55, false) => Fate::LeaveAtOnce,
        (55..65, true) => Fate::Cut(pieces),
        (55..65, false) => Fate::CutInside,
        (65..70, _) => Fate::CutHead,
        (70..73, _) => Fate::Silent,
        (73..83, _) => Fate::Error,
        (83..88, _) => Fate::Garbage,
        (88..95, true) => Fate::Killed(pieces),
        _ => Fate::LeaveAtOnce,
    };
    let key = [None, Some(0), Some(1), Some(2)][dice.random_range(0..4)];
    let agent = match key {
        Some(key) => KEYS[key],
        None => ["red", "blue"][dice.random_range(0..2)],
    };
    // A run that is killed is one of its own, below one that is not.
    let (run, parent) = match (fate, dice.random_range(0..3)) {
        (Fate::Killed(_), above) => (format!("doomed-{number}"), Some(format!("top-{above}"))),
        (_, 0) => (format!("top-{}", number % 3), None),
        (_, _) => (format!("part-{}", number % 6), Some(format!("top-{}", number % 3))),
    };
    let dialect = STREAMING[dice.random_range(0..5)];
    Plan { number, dialect, is_stream, words, limit, fate, agent, key, run, parent }
}

/// The agents of the keys.
const KEYS: [&str; 3] = ["red", "red", "blue"];

impl Plan {
    fn call(&self, purse: &Purse, secrets: &[String]) -> Call {
        let mut call = wordy(purse, self.dialect, self.is_stream, self.words, Some(self.limit));
        // Pieces come behind the events with which a dialect opens an answer.
        let opening = match self.dialect {
            Dialect::OpenaiChat => 1,
            Dialect::OpenaiResponses => 4,
            Dialect::Anthropic => 3,
            _ => 0,
        };
        let after = |pieces: u64| (pieces + opening).to_string();
        call = match self.fate {
            Fate::Whole | Fate::Garbage => call,
            Fate::Leave(pieces) | Fate::Killed(pieces) => call.header("x-mock-stall", &after(pieces)),
            Fate::LeaveAtOnce => call.header("x-mock-hold", ""),
            Fate::Cut(pieces) => call.header("x-mock-cut", &format!("events={}", after(pieces))),
            Fate::CutHead => call.header("x-mock-cut", "head"),
            Fate::CutInside => call.header("x-mock-cut", "bytes=40"),
            Fate::Silent if self.is_stream => call.header("x-mock-stall", "0"),
            Fate::Silent => call.header("x-mock-hold", ""),
            Fate::Error => call.header("x-mock-status", "500"),
        };
        call = match self.key {
            Some(key) => call.header("authorization", &format!("Bearer {}", secrets[key])),
            None => call.header("x-sprag-agent", self.agent),
        };
        call = call.header("x-sprag-run-id", &self.run);
        match &self.parent {
            Some(parent) => call.header("x-sprag-parent-run-id", parent),
            None => call,
        }
    }

    /// Makes the call; gives what the provider charges for it, once it has got the request.
    async fn make(&self, purse: &Purse, secrets: &[String], ids: &[String]) -> u64 {
        let call = self.call(purse, secrets);
        match self.fate {
            Fate::Leave(pieces) | Fate::Killed(pieces) => {
                let mut answer = call.send().await.unwrap();
                if answer.headers.contains_key("x-sprag-blocked") {
                    return 0;
                }
                let mut seen = Vec::new();
                // What stands here was said, and Sprag has heard it.
                while (String::from_utf8_lossy(&seen).matches("word").count() as u64) < pieces {
                    let Ok(Some(piece)) = answer.next().await else { break };
                    seen.extend_from_slice(&piece);
                }
                if matches!(self.fate, Fate::Killed(_)) {
                    // Runs of a key are its own.
                    let of_key = self.key.map(|at| format!("#{}", ids[at])).unwrap_or_default();
                    let scope = format!("run:{}/{}{of_key}", self.agent, self.run).parse().unwrap();
                    let (reason, by) = ("enough".to_owned(), "anna".to_owned());
                    let order = KillOrder { scope, kind: KillKind::Kill, reason, by, expires_at: None, proof: None };
                    purse.sprag.app.kill(order).await.unwrap();
                    drop(answer.whole().await);
                } else {
                    answer.abort();
                }
                pieces
            }
            Fate::LeaveAtOnce => {
                let number = self.number.to_string();
                let sending = tokio::spawn(call.header("x-number", &number).send());
                // Left once the provider has it; where it was refused there is an answer.
                let has_it =
                    |view: &sprag_testkit::LogView| view.requests.iter().any(|r| r.header("x-number") == number);
                let log = purse.provider.log().clone();
                tokio::select! {
                    _ = log.wait_until(has_it) => {}
                    () = finished(&sending) => {}
                }
                sending.abort();
                let was_sent = has_it(&purse.provider.log().view());
                if was_sent && !self.is_stream { self.words } else { 0 }
            }
            Fate::Garbage => {
                let answer = sprag_testkit::client::post(purse.sprag.url("/v1/chat/completions"), "{\"model\":")
                    .fetch()
                    .await
                    .unwrap();
                assert_eq!(answer.status, 400);
                0
            }
            Fate::Whole | Fate::Cut(_) | Fate::CutHead | Fate::CutInside | Fate::Silent | Fate::Error => {
                let answer = call.fetch().await.unwrap();
                if !reason(&answer).is_empty() {
                    assert!(["budget_exceeded", "run_killed"].contains(&reason(&answer).as_str()), "{answer:?}");
                    return 0;
                }
                match self.fate {
                    Fate::Whole => self.words,
                    Fate::Cut(pieces) => pieces,
                    Fate::CutInside => self.words,
                    Fate::Silent if !self.is_stream => self.words,
                    _ => 0,
                }
            }
        }
    }
}

async fn finished<T>(task: &tokio::task::JoinHandle<T>) {
    while !task.is_finished() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn strict(budget: Budget) -> Budget {
    Budget { reserve: Reserve::WorstCase, kill_run: false, ..budget }
}

async fn purse() -> (Purse, Vec<String>, Vec<String>) {
    let purse = Purse::start_with(Script::new(), |settings| {
        let mut agent = strict(budget(Window::Run, RUN));
        (agent.daily_limit, agent.monthly_limit) = (Some(cents(AGENT_DAY)), Some(cents(AGENT_MONTH)));
        settings.policies.defaults.budget = agent;
        settings.budget.budget = strict(budget(Window::Day, ALL_DAY));
        for provider in settings.providers.values_mut() {
            let provider = Arc::make_mut(provider);
            (provider.timeouts.idle, provider.timeouts.first_byte) =
                (Duration::from_millis(1500), Duration::from_millis(1500));
        }
    })
    .await;
    let (mut secrets, mut ids) = (Vec::new(), Vec::new());
    for agent in KEYS {
        let issued = purse.issue(agent, strict(budget(Window::Day, KEY_DAY))).await;
        secrets.push(issued.secret.reveal().to_owned());
        ids.push(issued.entry.key.id.clone());
    }
    (purse, secrets, ids)
}

/// Whether a call of this event is paid by a holder.
fn pays(holder: &Holder, event: &Event) -> bool {
    match holder {
        Holder::Everything => true,
        Holder::Agent(agent) => event.agent == *agent,
        Holder::Key(key) => event.key.as_deref() == Some(&**key),
        Holder::Run(agent, run) => {
            let Some(of) = &event.run else { return false };
            event.agent == *agent && (of.id == *run || of.parent.as_ref() == Some(run))
        }
    }
}

async fn schedule(seed: u64) -> HashMap<&'static str, usize> {
    let (purse, secrets, ids) = purse().await;
    let mut dice = StdRng::seed_from_u64(seed);
    let plans: Vec<Plan> = (0..CALLS).map(|number| draw(&mut dice, number)).collect();
    let (purse, secrets, ids) = (Arc::new(purse), Arc::new(secrets), Arc::new(ids));
    let queue = Arc::new(Mutex::new(plans));
    let bills: Arc<Mutex<Vec<Bill>>> = Arc::default();
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (purse, secrets, ids) = (purse.clone(), secrets.clone(), ids.clone());
            let (queue, bills) = (queue.clone(), bills.clone());
            tokio::spawn(async move {
                loop {
                    let Some(plan) = queue.lock().unwrap().pop() else { return };
                    let cents = plan.make(&purse, &secrets, &ids).await as i64;
                    bills.lock().unwrap().push(Bill { cents, plan });
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    purse.quiet().await;
    purse.nothing_is_reserved();
    let bills = std::mem::take(&mut *bills.lock().unwrap());
    let billed = |pays: &dyn Fn(&Plan) -> bool| cents(bills.iter().filter(|b| pays(&b.plan)).map(|b| b.cents).sum());
    let events = purse.all_events();
    let accounts = purse.sprag.app.state.accounts();
    assert!(accounts.iter().any(|state| state.id.window == Window::Run), "{accounts:?}");
    for state in &accounts {
        let limit = match (&state.id.holder, state.id.window) {
            (Holder::Run(..), _) => RUN,
            (Holder::Key(_), _) => KEY_DAY,
            (Holder::Agent(_), Window::Month) => AGENT_MONTH,
            (Holder::Agent(_), _) => AGENT_DAY,
            (Holder::Everything, _) => ALL_DAY,
        };
        let settled = state.account.settled;
        let recorded: NanoUsd = events.iter().filter(|e| pays(&state.id.holder, e)).filter_map(|e| e.cost).sum();
        let bill = match &state.id.holder {
            Holder::Everything => billed(&|_| true),
            Holder::Agent(agent) => billed(&|plan| plan.agent == agent.as_str()),
            Holder::Key(key) => billed(&|plan| plan.key.is_some_and(|at| ids[at] == **key)),
            Holder::Run(agent, run) => billed(&|plan| {
                let is_its_key = plan.key.map(|at| ids[at].as_str()) == run.key();
                let name = run.for_caller();
                plan.agent == agent.as_str() && is_its_key && (plan.run == name || plan.parent.as_deref() == Some(name))
            }),
        };
        let told = format!("seed {seed}, {}: billed {bill}, settled {settled}, recorded {recorded}", state.id);
        assert_eq!(settled, recorded, "{told}");
        assert!(bill <= settled && settled <= cents(limit), "{told} of {limit}");
    }

    // What is left can be spent, and not a cent more.
    for agent in ["red", "blue"] {
        let left = |text: &str, limit: i64| cents(limit) - purse.account(text).settled;
        let left = left(&format!("agent:{agent} daily"), AGENT_DAY)
            .min(left(&format!("agent:{agent} monthly"), AGENT_MONTH))
            .min(left("everything daily", ALL_DAY))
            .min(cents(RUN));
        let left = (left.0 / cents(1).0) as u64;
        for (limit, status) in [(left + 1, 402), (left, 200), (1, 402)] {
            if (limit, status) == (0, 200) || left == RUN as u64 {
                continue;
            }
            let call = wordy(&purse, Dialect::Anthropic, false, limit, Some(limit));
            let answer = call.header("x-sprag-agent", agent).header("x-sprag-run-id", "last").fetch().await.unwrap();
            assert_eq!(answer.status, status, "seed {seed}, {agent}: {limit} of {left}");
        }
    }
    let mut endings: HashMap<&'static str, usize> = HashMap::new();
    for event in &events {
        let ending = match event.ending {
            Ending::Complete => "complete",
            Ending::ClientGone => "left",
            Ending::UpstreamGone => "cut",
            Ending::Killed => "killed",
            Ending::TimedOut => "silent",
            Ending::Refused if event.block_reason.as_deref() == Some("budget_exceeded") => "refused",
            _ => "other",
        };
        *endings.entry(ending).or_default() += 1;
    }
    endings
}

#[tokio::test(flavor = "multi_thread")]
async fn the_providers_bill_never_passes_a_limit() {
    assert_eq!(Mode::Enforce, budget(Window::Run, 1).mode);
    let mut all: HashMap<&'static str, usize> = HashMap::new();
    for seed in 0..4 {
        for (ending, count) in schedule(seed).await {
            *all.entry(ending).or_default() += count;
        }
    }
    // A schedule in which nothing happens shows nothing.
    for ending in ["complete", "left", "cut", "killed", "silent", "refused"] {
        assert!(all.get(ending).is_some_and(|count| *count >= 4), "{ending}: {all:?}");
    }
}
