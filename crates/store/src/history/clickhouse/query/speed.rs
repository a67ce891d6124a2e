//! How long the readings of pages take over a month of ten million events of a million runs, 500 agents and three nodes.
//!
//! Not a part of every test run: it takes minutes to fill the engine. `SPRAG_HISTORY_DIR` keeps what was filled for the next time.

use std::cell::OnceCell;
use std::fs;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sprag_core::event::EventKind;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::{FINDING_CALLS, SHADOW_EVENTS, SPENDERS};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_testkit::ClickHouseServer;
use sprag_testkit::month::{self, Month};

use super::*;
use crate::history::HistorySettings;
use crate::history::clickhouse::ClickHouseAddress;
use crate::history::clickhouse::schema::prepare;
use crate::history::query::{EventFilter, RunFilter, RunStatus, Span, Spender, TopBy};
use crate::run_key::RunKey;

const DAY_MS: i64 = 86_400_000;
const ROUNDS: usize = 21;
const BAR: Duration = Duration::from_millis(200);

/// A reading of a page.
type Reading<'a> = (&'static str, Box<dyn Fn(&Reader) -> usize + 'a>);

#[test]
#[ignore = "fills ten million events, which takes minutes"]
fn every_page_is_read_in_a_fifth_of_a_second() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = month::folder().unwrap_or(temporary.path().to_owned());
    let Some(server) = ClickHouseServer::start(&dir) else { return };
    let link = Arc::new(Link::new(ClickHouseAddress::parse(&server.url("sprag")).unwrap()));
    let month = month(&link);
    let reader = Reader::new(link);
    println!("{:<44}{:>8}{:>10}{:>10}{:>12}", "", "rows", "p50 ms", "p95 ms", "engine ms");
    let mut slow = Vec::new();
    for (name, read) in readings(month) {
        // The first one warms what is warm on a page that is looked at.
        let rows = read(&reader);
        let before = engine_time();
        let mut times: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                let _ = read(&reader);
                start.elapsed()
            })
            .collect();
        let engine = (engine_time() - before) / ROUNDS as u32;
        times.sort();
        let (middle, late) = (times[ROUNDS / 2], times[ROUNDS * 95 / 100]);
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        println!("{name:<44}{rows:>8}{:>10.1}{:>10.1}{:>12.1}", ms(middle), ms(late), ms(engine));
        if late > BAR {
            slow.push(name);
        }
    }
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    assert!(slow.is_empty(), "slower than {BAR:?} at a load of {}: {slow:?}", load.trim());
}

/// Everything that a page or the admin API reads, as they read it.
fn readings(month: Month) -> Vec<Reading<'static>> {
    let now = month.end();
    let agent = |name: &str| AgentName::parse(name).unwrap();
    let (of_many, of_some) = (agent("default"), agent("agent-77"));
    let day = Timestamp(now.0 - DAY_MS);
    let past_month = Timestamp(now.0 - 30 * DAY_MS);
    let until = Timestamp(now.0 + 1);
    let any = EventFilter::default;
    let runs = RunFilter::default;
    let events = |filter: EventFilter| -> Box<dyn Fn(&Reader) -> usize> {
        Box::new(move |reader| reader.events(&filter, None, 100).unwrap().items.len())
    };
    let listed = |filter: RunFilter| -> Box<dyn Fn(&Reader) -> usize> {
        Box::new(move |reader| reader.runs(&filter, None, 50).unwrap().items.len())
    };
    // A run of the first page, found once.
    let known: Rc<OnceCell<RunKey>> = Rc::default();
    let key = move |reader: &Reader| {
        let find = || {
            let run = &reader.runs(&RunFilter::default(), None, 50).unwrap().items[30];
            RunKey { agent: run.agent.clone(), id: run.id.clone() }
        };
        known.get_or_init(find).clone()
    };
    let of_run = |read: fn(&Reader, &RunKey) -> usize| -> Box<dyn Fn(&Reader) -> usize> {
        let key = key.clone();
        Box::new(move |reader| read(reader, &key(reader)))
    };
    let mut all: Vec<Reading<'static>> = vec![
        ("totals of a day", Box::new(move |r| r.totals(day, None).unwrap().requests as usize)),
        ("totals of a month", Box::new(move |r| r.totals(past_month, None).unwrap().requests as usize)),
        ("series of an hour", Box::new(move |r| r.series(Span::Hour, now, None).unwrap().buckets.len())),
        ("series of a day", Box::new(move |r| r.series(Span::Day, now, None).unwrap().buckets.len())),
        ("series of a month", Box::new(move |r| r.series(Span::Month, now, None).unwrap().buckets.len())),
        ("leading agents of an hour", Box::new(move |r| r.top_agents(Span::Hour, now, TopBy::Cost, 8).unwrap().len())),
        ("leading agents of a day", Box::new(move |r| r.top_agents(Span::Day, now, TopBy::Stops, 8).unwrap().len())),
        ("leading agents of a month", Box::new(move |r| r.top_agents(Span::Month, now, TopBy::Cost, 8).unwrap().len())),
        ("latest stops", Box::new(|r| r.recent_stops(8).unwrap().len())),
        ("runs", listed(runs())),
        ("runs, running", listed(RunFilter { status: Some(RunStatus::Running), ..runs() })),
        ("runs, killed", listed(RunFilter { status: Some(RunStatus::Killed), ..runs() })),
        ("runs, paused (none)", listed(RunFilter { status: Some(RunStatus::Paused), ..runs() })),
        ("runs of the largest agent", listed(RunFilter { agent: Some(of_many.clone()), ..runs() })),
        ("runs of an agent", listed(RunFilter { agent: Some(of_some.clone()), ..runs() })),
        ("runs of a model", listed(RunFilter { model: Some("o3".into()), ..runs() })),
        ("runs of a model (none)", listed(RunFilter { model: Some("none".into()), ..runs() })),
        ("runs by cost", listed(RunFilter { min_cost: Some(NanoUsd(35_000_000)), ..runs() })),
        ("runs by cost (none)", listed(RunFilter { min_cost: Some(NanoUsd(90_000_000)), ..runs() })),
        ("runs by beginning of the id", listed(RunFilter { id_prefix: Some("run-ff0".into()), ..runs() })),
        ("runs by id (none)", listed(RunFilter { id: Some(RunId::parse("run-none").unwrap()), ..runs() })),
        (
            "runs of a day a week ago",
            listed(RunFilter { since: Some(month.at_of(7_000_000)), until: Some(month.at_of(7_300_000)), ..runs() }),
        ),
        ("run", of_run(|r, key| usize::from(r.run(key).unwrap().is_some()))),
        ("run and its parts", of_run(|r, key| r.children(key).unwrap().len())),
        ("run totals", of_run(|r, key| r.run_totals(key).unwrap().unwrap().steps as usize)),
        ("where a run would have stopped", of_run(|r, key| usize::from(r.would_stop(key).unwrap().is_some()))),
        ("evidence of a run", of_run(|r, key| r.evidence(&[r.run(key).unwrap().unwrap()]).unwrap()[0].len())),
        (
            "events of a run",
            of_run(|r, key| {
                let filter = EventFilter { run: Some(key.clone()), is_oldest_first: true, ..EventFilter::default() };
                r.events(&filter, None, 100).unwrap().items.len()
            }),
        ),
        ("events", events(any())),
        ("events, oldest first", events(EventFilter { is_oldest_first: true, ..any() })),
        ("events of the largest agent", events(EventFilter { agent: Some(of_many), ..any() })),
        ("events of an agent", events(EventFilter { agent: Some(of_some.clone()), ..any() })),
        ("events of an agent (none)", events(EventFilter { agent: Some(agent("nobody")), ..any() })),
        ("events of a key", events(EventFilter { key: Some("key-3".into()), ..any() })),
        (
            "events of a model and a key (none)",
            events(EventFilter {
                model: Some("o3".into()),
                key: Some("key-3".into()),
                agent: Some(of_some.clone()),
                ..any()
            }),
        ),
        ("events, refused", events(EventFilter { blocked: Some(true), ..any() })),
        ("events by reason (none)", events(EventFilter { block_reason: Some("dlp_blocked".into()), ..any() })),
        ("events, acts (none)", events(EventFilter { kind: Some(EventKind::Admin), ..any() })),
        ("events with findings", events(EventFilter { has_findings: Some(true), ..any() })),
        (
            "events of a day a week ago",
            events(EventFilter { since: Some(month.at_of(7_000_000)), until: Some(month.at_of(7_300_000)), ..any() }),
        ),
        ("agents", Box::new(|r| r.agents("", None, 100).unwrap().items.len())),
        ("agents by a part of the name", Box::new(|r| r.agents("77", None, 100).unwrap().items.len())),
        ("agent", {
            let name = of_some.clone();
            Box::new(move |r| usize::from(r.agent(&name).unwrap().is_some()))
        }),
        ("names of agents", Box::new(|r| r.agent_names(200).unwrap().len())),
        ("totals of an agent over a month", {
            let name = of_some.clone();
            Box::new(move |r| r.totals(past_month, Some(&name)).unwrap().requests as usize)
        }),
        ("series of an agent", {
            let name = of_some.clone();
            Box::new(move |r| r.series(Span::Month, now, Some(&name)).unwrap().buckets.len())
        }),
        ("chart of an agent", {
            let name = of_some;
            Box::new(move |r| r.agent_series(&name, (past_month, now), 96).unwrap().len())
        }),
    ];
    let some: Vec<AgentName> = (0..100).map(|n| agent(&format!("agent-{n}"))).collect();
    all.extend::<Vec<Reading<'static>>>(vec![
        ("what a page of agents spent today", {
            let some = some.clone();
            Box::new(move |r| r.spent_by(&some, day).unwrap().len())
        }),
        ("which of some agents are known", Box::new(move |r| r.seen_of(&some).unwrap().len())),
        (
            "what everything spent in a month",
            Box::new(move |r| usize::from(r.spent(Spender::Everything, past_month).unwrap().0 > 0)),
        ),
        (
            "what a key spent in a month",
            Box::new(move |r| usize::from(r.spent(Spender::Key("key-3"), past_month).unwrap().0 > 0)),
        ),
        (
            "what everybody spent in a month",
            Box::new(move |r| r.spent_by_all(past_month, SPENDERS).unwrap().agents.len()),
        ),
        ("findings of a day", Box::new(move |r| r.findings(day, FINDING_CALLS).unwrap().calls as usize)),
        ("findings of a month", Box::new(move |r| r.findings(past_month, FINDING_CALLS).unwrap().calls as usize)),
        ("calls with findings", Box::new(|r| r.calls_with_findings(None, 30).unwrap().items.len())),
        (
            "report of shadow, a day",
            Box::new(move |r| r.shadow_report(day, until, SHADOW_EVENTS).unwrap().detectors.len()),
        ),
        (
            "report of shadow, a month",
            Box::new(move |r| r.shadow_report(past_month, until, SHADOW_EVENTS).unwrap().detectors.len()),
        ),
        (
            "runs in shadow, a month",
            Box::new(move |r| r.shadow_runs((past_month, until), 25, SHADOW_EVENTS).unwrap().len()),
        ),
    ]);
    all
}

/// The month that is kept, or else a new one. What a node would keep for long enough stays in any case.
fn month(link: &Link) -> Month {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let now = Timestamp(i64::try_from(now).unwrap());
    let tell = |refused| link.error("be filled", &refused).to_string();
    let kept = link.text(month::FIND).ok().and_then(|told| Month::found(&told, now));
    let forever = 36_500;
    let settings =
        HistorySettings { retention_days: forever, run_retention_days: forever, ..HistorySettings::default() };
    if let Some(kept) = kept {
        prepare(link, &settings).map_err(tell).unwrap();
        return kept;
    }
    let start = Instant::now();
    let month = Month::until(now);
    link.command_outside(&format!("DROP DATABASE IF EXISTS {}", link.address().database)).map_err(tell).unwrap();
    prepare(link, &settings).map_err(tell).unwrap();
    for statement in month.statements() {
        link.command(&statement).map_err(tell).unwrap();
    }
    println!("filled {} events in {:.0?}", month::EVENTS, start.elapsed());
    month
}

/// What the processes that this one has started have worked so far.
fn engine_time() -> Duration {
    let mut ticks = 0;
    for task in fs::read_dir("/proc/self/task").unwrap().flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
            ticks += [11, 12].iter().filter_map(|n| fields.get(*n)?.parse::<u64>().ok()).sum::<u64>();
        }
    }
    Duration::from_millis(ticks * 10)
}
