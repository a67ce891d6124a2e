//! Two nodes with one shared history: each of them tells what both did, and nothing twice.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::thread;
use std::time::{Duration, Instant};

use sprag_core::event::{Act, ActKind, Event, EventKind};
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::SHARED_SHADOW_EVENTS;
use sprag_core::loops::{Action, Detector, Finding, Mode, Proof, Verdict};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{EventFilter, History, RunFilter, RunStatus, Span, Spender, TopBy};
use sprag_testkit::ClickHouseServer;
use tempfile::TempDir;

use crate::common::{all_events, clickhouse_settings, key, lasting, new_database, open, patient, step};

const START: i64 = 1_700_000_100_000;

struct Nodes {
    one: History,
    other: History,
    _dirs: [TempDir; 2],
}

impl Nodes {
    /// None where there is no ClickHouse; testkit says so.
    fn start() -> Option<Nodes> {
        let url = ClickHouseServer::shared()?.url(&new_database());
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let node = |dir: &TempDir| open(dir.path(), lasting(patient(), Some(clickhouse_settings(&url))));
        Some(Nodes { one: node(&dirs[0]), other: node(&dirs[1]), _dirs: dirs })
    }

    /// Records events on one node and on the other in turn.
    fn record(&self, events: &[Event]) {
        for (n, event) in events.iter().enumerate() {
            let node = if n % 2 == 0 { &self.one } else { &self.other };
            node.record(event);
        }
        self.flush();
    }

    fn flush(&self) {
        self.one.flush().unwrap();
        self.other.flush().unwrap();
    }

    /// What both tell, which is the same.
    fn tell<T: PartialEq + std::fmt::Debug>(&self, ask: impl Fn(&History) -> T) -> T {
        let (one, other) = (ask(&self.one), ask(&self.other));
        assert_eq!(one, other);
        one
    }
}

fn at(event: Event, ms: i64) -> Event {
    Event { at: Timestamp(START + ms), ..event }
}

fn kill(id: &str, of: &Event, ms: i64) -> Event {
    let act = Act {
        what: ActKind::Kill,
        by: "anna".into(),
        target: "run".into(),
        reason: "too long".into(),
        proof: None,
        expires_at: None,
        detail: None,
    };
    let at = Timestamp(START + ms);
    Event::of_act(id.into(), at, EventKind::RunKilled, of.agent.clone(), of.run.clone(), act)
}

#[test]
fn a_run_that_is_spread_over_nodes_is_one_run() {
    let Some(nodes) = Nodes::start() else { return };
    let model = |model: &str, event: Event| Event { model: Some(model.into()), ..event };
    let steps: Vec<Event> = (1..=4)
        .map(|n| at(model(if n == 4 { "late" } else { "early" }, step(&format!("e{n}"), "r", n)), i64::from(n) * 1000))
        .collect();
    nodes.record(&steps);
    let run = nodes.tell(|history| history.run(&key("r")).unwrap().unwrap());
    assert_eq!((run.steps, run.cost, run.input_tokens, run.output_tokens), (4, NanoUsd(4000), 480, 40));
    assert_eq!((run.first_at, run.last_at), (Timestamp(START + 1000), Timestamp(START + 4007)));
    assert_eq!(run.model.as_deref(), Some("late"));
    let totals = nodes.tell(|history| history.run_totals(&key("r")).unwrap().unwrap());
    assert_eq!((totals.steps, totals.tree_cost), (4, NanoUsd(4000)));
    let listed = nodes.tell(|history| history.runs(&RunFilter::default(), None, 10).unwrap().items);
    assert_eq!(listed, [run]);
    let late = RunFilter { model: Some("late".into()), min_cost: Some(NanoUsd(4000)), ..RunFilter::default() };
    assert_eq!(nodes.tell(|history| history.runs(&late, None, 10).unwrap().items.len()), 1);
    let early = RunFilter { model: Some("early".into()), ..RunFilter::default() };
    assert_eq!(nodes.tell(|history| history.runs(&early, None, 10).unwrap().items.len()), 0);
    let dear = RunFilter { min_cost: Some(NanoUsd(4001)), ..RunFilter::default() };
    assert_eq!(nodes.tell(|history| history.runs(&dear, None, 10).unwrap().items.len()), 0);

    let of_run = EventFilter { run: Some(key("r")), is_oldest_first: true, ..EventFilter::default() };
    assert_eq!(nodes.tell(|history| all_events(history, &of_run)), steps);
    assert_eq!(
        nodes.tell(|history| history.evidence(&[history.run(&key("r")).unwrap().unwrap()]).unwrap()[0].len()),
        4
    );
}

#[test]
fn sums_of_time_and_agents_are_those_of_all_nodes() {
    let Some(nodes) = Nodes::start() else { return };
    let agent = AgentName::parse("tester").unwrap();
    let events: Vec<Event> = (0..6)
        .map(|n| {
            let event = step(&format!("e{n}"), if n < 4 { "r" } else { "s" }, 1);
            Event { key: Some("key-1".into()), blocked: n == 5, ..at(event, i64::from(n)) }
        })
        .collect();
    nodes.record(&events);
    let row = nodes.tell(|history| history.agent(&agent).unwrap().unwrap());
    assert_eq!((row.runs, row.steps, row.cost, row.blocked), (2, 6, NanoUsd(6000), 1));
    assert_eq!(nodes.tell(|history| history.agents("", None, 10).unwrap().items), [row]);
    let now = Timestamp(START + 10_000);
    for span in [Span::Hour, Span::Day, Span::Month] {
        let series = nodes.tell(|history| history.series(span, now, None).unwrap());
        let sum = series.buckets.iter().fold((0, 0), |sum, one| (sum.0 + one.requests, sum.1 + one.cost.0));
        assert_eq!(sum, (6, 6000), "{span:?}");
        let top = nodes.tell(|history| history.top_agents(span, now, TopBy::Cost, 5).unwrap());
        assert_eq!((top.len(), top[0].requests, top[0].cost), (1, 6, NanoUsd(6000)), "{span:?}");
    }
    let totals = nodes.tell(|history| history.totals(Timestamp(START), Some(&agent)).unwrap());
    assert_eq!((totals.requests, totals.input_tokens, totals.cost), (6, 720, NanoUsd(6000)));
    assert_eq!(nodes.tell(|history| history.totals(Timestamp(START), None).unwrap()), totals);
    for of in [Spender::Everything, Spender::Agent(&agent), Spender::Key("key-1")] {
        assert_eq!(nodes.tell(|history| history.spent(of, Timestamp(START)).unwrap()), NanoUsd(6000), "{of:?}");
    }
}

#[test]
fn a_run_that_another_node_has_stopped_is_stopped() {
    let Some(nodes) = Nodes::start() else { return };
    let call = at(step("e1", "r", 1), 0);
    nodes.one.record(&call);
    nodes.other.record(&kill("e2", &call, 5000));
    nodes.flush();
    let run = nodes.tell(|history| history.run(&key("r")).unwrap().unwrap());
    assert_eq!((run.status, run.steps, run.provider.as_str()), (RunStatus::Killed, 1, "openai"));
    assert_eq!(run.last_at, Timestamp(START + 7), "a stop is no activity");
    assert_eq!(run.stopped.unwrap().by, "anna");
    let killed = RunFilter { status: Some(RunStatus::Killed), ..RunFilter::default() };
    assert_eq!(nodes.tell(|history| history.runs(&killed, None, 9).unwrap().items.len()), 1);
    let running = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
    assert_eq!(nodes.tell(|history| history.runs(&running, None, 9).unwrap().items.len()), 0);
    let stops = nodes.tell(|history| history.recent_stops(5).unwrap());
    assert_eq!((stops.len(), stops[0].reason.as_str(), stops[0].is_lasting), (1, "too long", true));
}

#[test]
fn parts_of_a_run_are_found_wherever_they_ran() {
    let Some(nodes) = Nodes::start() else { return };
    let below = |id: &str, run: &str, parent: &str, ms: i64| {
        let mut event = at(step(id, run, 1), ms);
        event.run.as_mut().unwrap().parent = Some(RunId::parse(parent).unwrap());
        event
    };
    nodes.record(&[
        at(step("e1", "top", 1), 0),
        below("e2", "mid", "top", 1),
        below("e3", "low", "mid", 2),
        below("e4", "mid", "top", 3),
        below("e5", "beside", "top", 4),
    ]);
    let names = |history: &History| -> Vec<String> {
        history.children(&key("top")).unwrap().iter().map(|run| run.id.to_string()).collect()
    };
    assert_eq!(nodes.tell(names), ["mid", "beside"]);
    let totals = nodes.tell(|history| history.run_totals(&key("top")).unwrap().unwrap());
    assert_eq!((totals.steps, totals.tree_steps, totals.tree_cost), (1, 5, NanoUsd(5000)));
    // A server that is busy is not waited for: then a node tells what it has itself, and is asked again.
    let recalls = |history: &History, steps: u32, tree_cost: i64| {
        let start = Instant::now();
        loop {
            let mid = history.recall(&key("mid")).unwrap();
            let told = mid.map(|mid| (mid.totals.steps, mid.totals.tree_cost, mid.parent));
            if told == Some((steps, NanoUsd(tree_cost), Some(key("top").id))) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{told:?}");
            thread::yield_now();
        }
    };
    recalls(&nodes.one, 2, 3000);
    recalls(&nodes.other, 2, 3000);
    // What is not sent yet is known here alone.
    nodes.one.record(&below("e6", "mid", "top", 5));
    nodes.one.record(&below("e7", "mid", "top", 6));
    nodes.one.record(&below("e8", "mid", "top", 7));
    nodes.one.settle().unwrap();
    assert_eq!(nodes.one.recall(&key("mid")).unwrap().unwrap().totals.steps, 3);
    recalls(&nodes.other, 2, 3000);
}

#[test]
fn a_report_of_shadow_looks_at_a_bounded_number_of_runs() {
    let Some(nodes) = Nodes::start() else { return };
    let flagged = |n: u32| {
        let (loop_type, proof, detector) = (String::new(), Proof::default(), Detector::Progress);
        let finding = Finding { detector, mode: Mode::Shadow, loop_type, confidence: 1.0, score: 4.0, count: 4, proof };
        let shadow = Some(Verdict { finding, action: Action::KillRun, strike: 1, retry_seconds: None });
        Event { shadow, ..at(step(&format!("e{n}"), &format!("r{n}"), 1), i64::from(n)) }
    };
    let report = || {
        let report = nodes.one.shadow_report(Timestamp(START), Timestamp(START + 100_000)).unwrap();
        (report.detectors[0].runs, report.detectors[0].saved, report.is_partial)
    };
    let bound = i64::from(SHARED_SHADOW_EVENTS);
    nodes.record(&(0..SHARED_SHADOW_EVENTS).map(flagged).collect::<Vec<_>>());
    assert_eq!(report(), (bound as u64, NanoUsd(bound * 1000), false), "at the bound");
    nodes.record(&[flagged(SHARED_SHADOW_EVENTS)]);
    assert_eq!(report(), (bound as u64, NanoUsd(bound * 1000), true), "one past it");
}

#[test]
fn a_server_that_is_away_is_told_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    // Nothing listens on the port of discard.
    let settings = lasting(patient(), Some(clickhouse_settings("http://reader:secret@127.0.0.1:9/sprag")));
    let history = open(dir.path(), settings);
    history.record(&step("e1", "r", 1));
    let error = history.events(&EventFilter::default(), None, 10).unwrap_err().to_string();
    assert!(error.contains("ClickHouse at") && error.contains("`[events] clickhouse`"), "{error}");
    assert!(!error.contains("secret"), "{error}");
    history.settle().unwrap();
    let own = history.recall(&key("r")).unwrap().unwrap();
    assert_eq!((own.totals.steps, own.totals.cost), (1, NanoUsd(1000)), "calls go by what this node knows");
    assert_eq!(history.recall(&key("nobody")).unwrap(), None);
}
