//! What every history must do, as functions over the enum; each variant runs all of them.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use sprag_core::event::{Ending, Event, RunRecord};
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::PAGE_ROWS;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;
use sprag_store::history::{EventFilter, History, Recorded, RunFilter, RunStatus, Totals};
use sprag_store::{RunKey, StoreError};

use crate::common::{Home, all_events, key, key_of, on_every_history, request, step};

const START: i64 = 1_700_000_000_000;

on_every_history!(
    gives_events_back,
    counts_an_id_once,
    counts_ids_once_among_many,
    sums_runs,
    sums_many_runs,
    sums_runs_that_begin_again,
    sums_trees,
    sums_time_and_agents,
    survives_absurd_numbers,
    filters_events,
    pages_are_stable_under_inserts,
    lists_runs_by_activity,
    bounds_pages_and_refuses_foreign_cursors,
);

fn record(history: &History, events: &[Event]) {
    for event in events {
        assert_eq!(history.record(event), Recorded::Whole);
    }
    history.flush().unwrap();
}

fn gives_events_back(home: &Home) {
    let history = &home.open();
    let full = Event {
        run: Some(RunRecord { parent: Some(RunId::parse("above").unwrap()), ..step("", "r", 3).run.unwrap() }),
        usage: Some(Usage {
            input: 1,
            cache_read: 2,
            cache_write: 3,
            cache_write_1h: 4,
            output: 5,
            reasoning: 6,
            audio_input: 7,
            audio_output: 8,
            estimated: true,
        }),
        ending: Ending::UpstreamGone,
        unpriced: true,
        blocked: true,
        block_reason: Some("loop_detected".into()),
        error: Some("connection reset".into()),
        ..step("full", "r", 3)
    };
    let bare = Event { at: Timestamp(START + 1), ..request("bare") };
    record(history, &[full.clone(), bare.clone()]);
    assert_eq!(all_events(history, &EventFilter::default()), [bare, full]);
    assert_eq!(history.status().ingest.ingested, 2);
}

fn counts_an_id_once(home: &Home) {
    let history = &home.open();
    record(history, &[step("same", "r", 1), step("same", "r", 1)]);
    record(history, &[step("same", "r", 1), step("other", "r", 2)]);
    let run = history.run(&key("r")).unwrap().unwrap();
    assert_eq!((run.steps, run.cost), (2, NanoUsd(2000)));
    assert_eq!(history.totals(Timestamp(0), None).unwrap().cost, NanoUsd(2000));
    assert_eq!(all_events(history, &EventFilter::default()).len(), 2);
}

/// So many that several statements take them in, with known ones before, between and after new ones.
fn counts_ids_once_among_many(home: &Home) {
    let history = &home.open();
    let numbered = |range: std::ops::Range<u32>| -> Vec<Event> {
        range.map(|n| Event { at: Timestamp(START + i64::from(n)), ..step(&format!("e{n:04}"), "r", n + 1) }).collect()
    };
    record(history, &numbered(0..100));
    assert_eq!(history.status().ingest.ingested, 100);
    record(history, &[numbered(100..190), numbered(90..95), numbered(190..260), numbered(110..111)].concat());
    assert_eq!(history.status().ingest.ingested, 260);
    record(history, &numbered(0..260));
    assert_eq!(history.status().ingest.ingested, 260);
    let run = history.run(&key("r")).unwrap().unwrap();
    assert_eq!((run.steps, run.cost), (260, NanoUsd(260_000)));
    let oldest_first = EventFilter { is_oldest_first: true, ..EventFilter::default() };
    let ids: Vec<String> = all_events(history, &oldest_first).into_iter().map(|event| event.id).collect();
    assert_eq!(ids, numbered(0..260).into_iter().map(|event| event.id).collect::<Vec<_>>());
}

/// So many that several statements write them, known and new ones mixed.
fn sums_many_runs(home: &Home) {
    let history = &home.open();
    let call = |run: u32, step_number: u32| step(&format!("{run}-{step_number}"), &format!("r{run:03}"), step_number);
    record(history, &(0..50).map(|run| call(run, 1)).collect::<Vec<_>>());
    let more = (40..90).flat_map(|run| [call(run, 2), call(run, 3)]);
    let other = (0..20).map(|run| Event { agent: AgentName::parse("other").unwrap(), ..call(run, 9) });
    record(history, &more.chain(other).collect::<Vec<_>>());
    let agents = history.agents("", None, 500).unwrap().items;
    let runs_of = |name: &str| agents.iter().find(|agent| agent.name.as_str() == name).map(|agent| agent.runs);
    assert_eq!((runs_of("tester"), runs_of("other")), (Some(90), Some(20)));
    let steps_of = |key: RunKey| history.run(&key).unwrap().map(|run| run.steps);
    for run in 0..90 {
        let expected = if run < 40 {
            1
        } else if run < 50 {
            3
        } else {
            2
        };
        assert_eq!(steps_of(key(&format!("r{run:03}"))), Some(expected), "{run}");
    }
    assert_eq!(steps_of(key_of("other", "r019")), Some(1));
}

/// Names that are used again begin with step 1 again; each run keeps what it had, wherever in a batch it stands.
fn sums_runs_that_begin_again(home: &Home) {
    let history = &home.open();
    let first = |time: &str, run: u32| step(&format!("{time}-{run}"), &format!("r{run:03}"), 1);
    record(history, &(0..100).filter(|run| run % 7 == 0).map(|run| first("once", run)).collect::<Vec<_>>());
    record(history, &(0..100).map(|run| first("again", run)).collect::<Vec<_>>());
    for run in 0..100 {
        let sums = history.run(&key(&format!("r{run:03}"))).unwrap().unwrap();
        assert_eq!(sums.steps, if run % 7 == 0 { 2 } else { 1 }, "{run}");
    }
    let agents = history.agents("", None, 500).unwrap().items;
    assert_eq!((agents[0].runs, agents[0].steps), (100, 115));
}

fn sums_runs(home: &Home) {
    let history = &home.open();
    let usage = Usage { estimated: true, ..step("", "r", 1).usage.unwrap() };
    let events = [
        step("1", "r", 1),
        Event {
            at: Timestamp(START + 1000),
            model: Some("other".into()),
            usage: Some(usage),
            cost: None,
            unpriced: true,
            ..step("2", "r", 2)
        },
        Event {
            at: Timestamp(START + 500),
            ending: Ending::Refused,
            blocked: true,
            usage: None,
            cost: None,
            ..step("3", "r", 3)
        },
        Event { at: Timestamp(START + 600), ending: Ending::TimedOut, usage: None, cost: None, ..step("4", "r", 4) },
    ];
    // Two batches, the later events first.
    record(history, &events[1..]);
    record(history, &events[..1]);
    let run = history.run(&key("r")).unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Running);
    assert_eq!((run.steps, run.cost, run.unpriced_steps, run.estimated_steps), (4, NanoUsd(1000), 1, 1));
    assert_eq!((run.input_tokens, run.cached_tokens, run.output_tokens), (240, 40, 20));
    assert_eq!((run.blocked, run.errors), (1, 1));
    assert_eq!((run.first_at, run.last_at), (Timestamp(START), Timestamp(START + 1007)));
    assert_eq!((run.provider.as_str(), run.model.as_deref()), ("openai", Some("other")));
    assert_eq!(history.run(&key("nobody")).unwrap(), None);
    assert_eq!(history.run(&key_of("somebody-else", "r")).unwrap(), None);
}

fn sums_trees(home: &Home) {
    let history = &home.open();
    let child_of = |id: &str, run: &str, parent: &str| {
        let mut event = step(id, run, 1);
        event.run.as_mut().unwrap().parent = Some(RunId::parse(parent).unwrap());
        event
    };
    record(history, &[step("1", "top", 1), child_of("2", "mid", "top"), child_of("3", "low", "mid")]);
    record(history, &[child_of("4", "round", "trip"), child_of("5", "trip", "round"), step("6", "top", 2)]);
    let children = history.children(&key("top")).unwrap();
    assert_eq!(children.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["mid"]);
    let totals = history.run_totals(&key("top")).unwrap().unwrap();
    assert_eq!((totals.steps, totals.cost), (2, NanoUsd(2000)));
    assert_eq!((totals.tree_steps, totals.tree_cost), (4, NanoUsd(4000)));
    let circle = history.run_totals(&key("round")).unwrap().unwrap();
    assert_eq!((circle.tree_steps, circle.tree_cost), (2, NanoUsd(2000)), "each run of a circle once");
    assert_eq!(history.run_totals(&key("nobody")).unwrap(), None);
    // The steps between were cut short, and the next one must not bear a number twice.
    record(history, &[step("7", "gap", 9), step("8", "gap", 1)]);
    let gap = history.run_totals(&key("gap")).unwrap().unwrap();
    assert_eq!((gap.steps, gap.tree_steps, gap.cost), (9, 9, NanoUsd(2000)));
}

fn sums_time_and_agents(home: &Home) {
    let history = &home.open();
    let quarter = 15 * 60 * 1000;
    let late = Event { at: Timestamp(START + quarter), ..step("2", "r", 2) };
    let other = Event { agent: AgentName::parse("other").unwrap(), at: Timestamp(START + 1), ..step("3", "r", 1) };
    record(history, &[step("1", "r", 1), late, other, request("4")]);

    let all = history.totals(Timestamp(START), None).unwrap();
    assert_eq!((all.requests, all.cost), (4, NanoUsd(3000)));
    assert_eq!((all.input_tokens, all.cached_tokens, all.output_tokens), (360, 60, 30));
    let since = history.totals(Timestamp(START + quarter), None).unwrap();
    assert_eq!((since.requests, since.cost), (1, NanoUsd(1000)));
    let of_one = history.totals(Timestamp(0), Some(&AgentName::parse("tester").unwrap())).unwrap();
    assert_eq!((of_one.requests, of_one.cost), (3, NanoUsd(2000)));
    assert_eq!(history.totals(Timestamp(START + 2 * quarter), None).unwrap(), Totals::default());

    record(history, &[Event { at: Timestamp(START + 2), ..step("5", "r2", 1) }]);
    let agents = history.agents("", None, 500).unwrap().items;
    assert_eq!(agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>(), ["tester", "other"]);
    assert_eq!((agents[0].runs, agents[0].steps, agents[0].cost), (2, 4, NanoUsd(3000)));
    assert_eq!((agents[0].first_at, agents[0].last_at), (Timestamp(START), Timestamp(START + quarter + 7)));
    assert_eq!((agents[1].runs, agents[1].steps), (1, 1));
}

/// A provider may claim any number of tokens; the history must neither stop nor wrap round.
fn survives_absurd_numbers(home: &Home) {
    let history = &home.open();
    let absurd = |id: &str, slot: i64| Event {
        at: Timestamp(START + slot * 900_000),
        usage: Some(Usage { input: u64::MAX, cache_read: u64::MAX, output: u64::MAX, ..Usage::default() }),
        cost: Some(NanoUsd(i64::MAX)),
        ..step(id, "r", 1)
    };
    record(history, &[absurd("1", 0), absurd("2", 0)]);
    record(history, &[absurd("3", 0), absurd("4", 1)]);
    let run = history.run(&key("r")).unwrap().unwrap();
    assert_eq!((run.steps, run.input_tokens, run.cost), (4, i64::MAX as u64, NanoUsd(i64::MAX)));
    let totals = history.totals(Timestamp(0), None).unwrap();
    assert_eq!((totals.output_tokens, totals.cost), (i64::MAX as u64, NanoUsd(i64::MAX)));
    assert_eq!(history.run_totals(&key("r")).unwrap().unwrap().tree_cost, NanoUsd(i64::MAX));
}

fn filters_events(home: &Home) {
    let history = &home.open();
    let at = |event: Event, ms: i64| Event { at: Timestamp(START + ms), ..event };
    record(
        history,
        &[
            at(step("a", "r1", 1), 0),
            at(Event { model: Some("m2".into()), ..step("b", "r1", 2) }, 1),
            at(Event { blocked: true, ..step("c", "r2", 1) }, 2),
            at(Event { agent: AgentName::parse("other").unwrap(), ..step("d", "r1", 1) }, 3),
            at(request("e"), 4),
        ],
    );
    let ids = |filter: EventFilter| {
        all_events(history, &filter).iter().map(|event| event.id.as_str()).collect::<Vec<_>>().join("")
    };
    let any = EventFilter::default;
    assert_eq!(ids(any()), "edcba");
    assert_eq!(ids(EventFilter { is_oldest_first: true, ..any() }), "abcde");
    assert_eq!(ids(EventFilter { agent: Some(AgentName::parse("other").unwrap()), ..any() }), "d");
    assert_eq!(ids(EventFilter { run: Some(key("r1")), is_oldest_first: true, ..any() }), "ab");
    assert_eq!(ids(EventFilter { model: Some("m2".into()), ..any() }), "b");
    assert_eq!(ids(EventFilter { blocked: Some(true), ..any() }), "c");
    assert_eq!(ids(EventFilter { blocked: Some(false), ..any() }), "edba");
    let between = EventFilter { since: Some(Timestamp(START + 1)), until: Some(Timestamp(START + 3)), ..any() };
    assert_eq!(ids(between), "cb");
    assert_eq!(ids(EventFilter { run: Some(key("r1")), agent: Some(AgentName::default()), ..any() }), "");
}

fn pages_are_stable_under_inserts(home: &Home) {
    let history = &home.open();
    // Several events share each moment.
    let event = |id: String, ms: i64| Event { at: Timestamp(START + ms), ..step(&id, "r", 1) };
    let first: Vec<Event> = (0..50).map(|n| event(format!("first{n:02}"), n / 4)).collect();
    record(history, &first);
    for is_oldest_first in [false, true] {
        let filter = EventFilter { is_oldest_first, ..EventFilter::default() };
        let mut seen = Vec::new();
        let mut cursor = None;
        for round in 0.. {
            let page = history.events(&filter, cursor.as_deref(), 7).unwrap();
            assert!(page.items.len() <= 7);
            seen.extend(page.items.into_iter().map(|event| event.id));
            let Some(next) = page.next else { break };
            cursor = Some(next);
            let name = |place: &str| format!("{place}{is_oldest_first}{round}");
            record(history, &[event(name("newer"), 100), event(name("older"), -100), event(name("amid"), 5)]);
        }
        let mut of_first: Vec<&String> = seen.iter().filter(|id| id.starts_with("first")).collect();
        if !is_oldest_first {
            of_first.reverse();
        }
        assert_eq!(of_first, first.iter().map(|event| &event.id).collect::<Vec<_>>());
        seen.sort();
        let all = seen.len();
        seen.dedup();
        assert_eq!(seen.len(), all, "nothing twice");
    }
}

fn lists_runs_by_activity(home: &Home) {
    let history = &home.open();
    let in_run = |run: &str, ms: i64| Event { at: Timestamp(START + ms), ..step(&format!("{run}{ms}"), run, 1) };
    record(history, &[in_run("a", 0), in_run("b", 10), in_run("c", 20), in_run("d", 20), in_run("a", 30)]);
    let ids = |page: &sprag_store::history::Page<sprag_store::history::RunRow>| {
        page.items.iter().map(|run| run.id.to_string()).collect::<Vec<_>>().join("")
    };
    let any = RunFilter::default();
    let page = history.runs(&any, None, 2).unwrap();
    assert_eq!(ids(&page), "ad");
    record(history, &[in_run("new", 40), in_run("d", 50)]);
    let page = history.runs(&any, page.next.as_deref(), 2).unwrap();
    assert_eq!((ids(&page).as_str(), page.next), ("cb", None));
    assert_eq!(ids(&history.runs(&any, None, 9).unwrap()), "dnewacb");

    let recent = RunFilter { since: Some(Timestamp(START + 37)), ..RunFilter::default() };
    assert_eq!(ids(&history.runs(&recent, None, 9).unwrap()), "dnewa");
    let until = RunFilter { until: Some(Timestamp(START + 37)), status: Some(RunStatus::Running), ..any.clone() };
    assert_eq!(ids(&history.runs(&until, None, 9).unwrap()), "cb");
    let killed = RunFilter { status: Some(RunStatus::Killed), ..any.clone() };
    assert_eq!(ids(&history.runs(&killed, None, 9).unwrap()), "");
    let nobody = RunFilter { agent: Some(AgentName::default()), ..any };
    assert_eq!(ids(&history.runs(&nobody, None, 9).unwrap()), "");
}

fn bounds_pages_and_refuses_foreign_cursors(home: &Home) {
    let history = &home.open();
    let events: Vec<Event> = (0..=PAGE_ROWS).map(|n| step(&format!("e{n}"), &format!("r{n}"), 1)).collect();
    record(history, &events[..PAGE_ROWS as usize]);
    let page = history.events(&EventFilter::default(), None, u32::MAX).unwrap();
    assert_eq!((page.items.len(), page.next), (PAGE_ROWS as usize, None));
    record(history, &events);
    let page = history.events(&EventFilter::default(), None, u32::MAX).unwrap();
    assert_eq!((page.items.len(), page.next.is_some()), (PAGE_ROWS as usize, true));
    let runs = history.runs(&RunFilter::default(), None, u32::MAX).unwrap();
    assert_eq!((runs.items.len(), runs.next.is_some()), (PAGE_ROWS as usize, true));
    assert_eq!(history.runs(&RunFilter::default(), None, 0).unwrap().items.len(), 1);

    let refused = history.events(&EventFilter::default(), Some("elsewhere"), 1);
    assert!(matches!(refused, Err(StoreError::BadCursor(_))));
    assert!(matches!(history.runs(&RunFilter::default(), Some(""), 1), Err(StoreError::BadCursor(_))));
}
