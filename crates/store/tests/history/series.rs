//! What happened over time, who led, and what was stopped.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use rusqlite::Connection;
use serde_json::json;
use sprag_core::event::{Act, ActKind, Event, EventKind, RunOrigin, RunRecord};
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{Bucket, History, RecentStop, RunFilter, RunStatus, Series, Span, TopBy};

use crate::common::{self, Home, key_of, on_every_history, patient, request, step};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// The beginning of a day, and so of everything else.
const MIDNIGHT: i64 = 19_676 * DAY_MS;
/// Half a minute into an hour.
const NOW: Timestamp = Timestamp(MIDNIGHT + 12 * HOUR_MS + 30_000);

on_every_history!(
    a_series_has_every_step_once_and_each_event_in_its_own,
    acts_are_no_requests_and_a_known_event_counts_once,
    agents_lead_by_money_or_by_stops,
    who_leads_the_hour_is_told_over_the_minutes_of_its_chart,
    absurd_sums_stay_at_the_largest_number,
    each_stop_is_told_once_however_often_it_is_run_into,
    runs_are_narrowed_by_everything_a_listing_offers,
);

fn name(agent: &str) -> AgentName {
    AgentName::parse(agent).unwrap()
}

/// A call that costs as many nano-dollars.
fn call(id: &str, agent: &str, at: i64, cost: i64) -> Event {
    Event { agent: name(agent), at: Timestamp(at), cost: Some(NanoUsd(cost)), ..step(id, &format!("run-{id}"), 1) }
}

fn refused(reason: &str, event: Event) -> Event {
    Event { blocked: true, block_reason: Some(reason.to_owned()), cost: None, ..event }
}

fn record(history: &History, events: &[Event]) {
    for event in events {
        history.record(event);
    }
    history.flush().unwrap();
}

fn filled_home(home: &Home, events: &[Event]) -> History {
    let history = home.open();
    record(&history, events);
    history
}

/// An embedded history, for what only that has.
fn open(events: &[Event]) -> (tempfile::TempDir, History) {
    let dir = tempfile::tempdir().unwrap();
    let history = common::open(dir.path(), patient());
    record(&history, events);
    (dir, history)
}

/// The steps in which something happened: how long ago they began, and what they hold.
fn filled(series: &Series) -> Vec<(i64, u64, u64, i64)> {
    let row =
        |b: &Bucket| (NOW.0.div_euclid(series.bucket_ms) - b.at.0 / series.bucket_ms, b.requests, b.blocked, b.cost.0);
    series.buckets.iter().filter(|bucket| bucket.requests > 0).map(row).collect()
}

fn a_series_has_every_step_once_and_each_event_in_its_own(home: &Home) {
    let hour_edge = NOW.0.div_euclid(MINUTE_MS) * MINUTE_MS - 59 * MINUTE_MS;
    let day_edge = NOW.0.div_euclid(15 * MINUTE_MS) * 15 * MINUTE_MS - 95 * 15 * MINUTE_MS;
    let month_edge = MIDNIGHT - 29 * DAY_MS;
    let history = filled_home(
        home,
        &[
            call("now", "a", NOW.0, 1),
            refused("rate_limited", call("stopped", "b", NOW.0 - 30_000, 0)),
            call("hour", "a", hour_edge, 2),
            call("before the hour", "b", hour_edge - 1, 4),
            call("day", "a", day_edge, 8),
            call("before the day", "a", day_edge - 1, 16),
            call("month", "b", month_edge, 32),
            call("before the month", "b", month_edge - 1, 64),
            call("from a wrong clock", "a", NOW.0 + DAY_MS, 128),
        ],
    );
    let series = |span, agent: Option<&str>| history.series(span, NOW, agent.map(name).as_ref()).unwrap();

    let hour = series(Span::Hour, None);
    assert_eq!((hour.bucket_ms, hour.buckets.len()), (MINUTE_MS, 60));
    assert_eq!(filled(&hour), [(59, 1, 0, 2), (0, 2, 1, 1)]);
    assert!(hour.buckets.windows(2).all(|pair| pair[1].at.0 - pair[0].at.0 == MINUTE_MS), "no gap");
    let day = series(Span::Day, None);
    assert_eq!((day.bucket_ms, day.buckets.len()), (15 * MINUTE_MS, 96));
    assert_eq!(filled(&day), [(95, 1, 0, 8), (4, 2, 0, 6), (0, 2, 1, 1)]);
    let month = series(Span::Month, None);
    assert_eq!((month.bucket_ms, month.buckets.len()), (DAY_MS, 30));
    assert_eq!(filled(&month), [(29, 1, 0, 32), (1, 2, 0, 24), (0, 4, 1, 7)]);

    assert_eq!(filled(&series(Span::Hour, Some("a"))), [(4, 1, 0, 2), (0, 1, 0, 1)], "an agent by the quarter");
    assert_eq!(filled(&series(Span::Month, Some("b"))), [(29, 1, 0, 32), (0, 2, 1, 4)]);
    assert_eq!(filled(&series(Span::Day, Some("nobody"))), []);
}

fn acts_are_no_requests_and_a_known_event_counts_once(home: &Home) {
    let event = call("one", "a", NOW.0, 5);
    let act = Act {
        what: ActKind::Kill,
        by: "anna".into(),
        target: "agent:a".into(),
        reason: String::new(),
        proof: None,
        expires_at: None,
        detail: None,
    };
    let act = Event::of_act("act".into(), NOW, EventKind::Admin, name("a"), None, act);
    let history = filled_home(home, &[event.clone(), act]);
    drop(history);
    // As after a crash: the same line comes again.
    let history = home.open();
    history.record(&event);
    history.flush().unwrap();
    for span in [Span::Hour, Span::Day, Span::Month] {
        assert_eq!(filled(&history.series(span, NOW, None).unwrap()), [(0, 1, 0, 5)], "{span:?}");
        let top = history.top_agents(span, NOW, TopBy::Cost, 5).unwrap();
        assert_eq!((top.len(), top[0].requests, top[0].cost), (1, 1, NanoUsd(5)), "{span:?}");
    }
}

fn agents_lead_by_money_or_by_stops(home: &Home) {
    let history = filled_home(
        home,
        &[
            call("1", "dear", NOW.0, 100),
            call("2", "cheap", NOW.0, 1),
            refused("loop_detected", call("3", "cheap", NOW.0, 0)),
            call("4", "yesterday", NOW.0 - 13 * HOUR_MS, 500),
            call("5", "last-week", NOW.0 - 7 * DAY_MS, 900),
        ],
    );
    let names = |span, by, limit| {
        let top = history.top_agents(span, NOW, by, limit).unwrap();
        top.iter().map(|agent| format!("{} {} {}", agent.name, agent.cost.0, agent.blocked)).collect::<Vec<_>>()
    };
    assert_eq!(names(Span::Hour, TopBy::Cost, 9), ["dear 100 0", "cheap 1 1"]);
    assert_eq!(names(Span::Hour, TopBy::Stops, 1), ["cheap 1 1"]);
    assert_eq!(names(Span::Day, TopBy::Cost, 2), ["yesterday 500 0", "dear 100 0"]);
    assert_eq!(names(Span::Month, TopBy::Cost, 9), ["last-week 900 0", "yesterday 500 0", "dear 100 0", "cheap 1 1"]);
}

fn who_leads_the_hour_is_told_over_the_minutes_of_its_chart(home: &Home) {
    // A call in every minute of three hours, each of another agent, seen from every minute of a quarter of an hour.
    let calls: Vec<Event> =
        (0..180).map(|n| call(&n.to_string(), &format!("a{n}"), MIDNIGHT + n * MINUTE_MS, 1 << n.min(40))).collect();
    let history = filled_home(home, &calls);
    for minute in 150..165 {
        let now = Timestamp(MIDNIGHT + minute * MINUTE_MS + 59_999);
        let chart = history.series(Span::Hour, now, None).unwrap();
        let leading = history.top_agents(Span::Hour, now, TopBy::Cost, 500).unwrap();
        // What lies in the future came from a clock that was wrong, and is in no chart.
        let past = leading.iter().filter(|agent| agent.name.as_str()[1..].parse::<i64>().unwrap() <= minute);
        let (requests, cost) =
            past.fold((0, 0), |(requests, cost), agent| (requests + agent.requests, cost + agent.cost.0));
        assert_eq!(requests, 60, "at minute {minute}");
        let drawn: i64 = chart.buckets.iter().map(|bucket| bucket.cost.0).sum();
        assert_eq!((requests, cost), (chart.buckets.iter().map(|bucket| bucket.requests).sum(), drawn));
    }
}

fn absurd_sums_stay_at_the_largest_number(home: &Home) {
    let events: Vec<Event> = (0..3).map(|n| call(&n.to_string(), "a", NOW.0, i64::MAX)).collect();
    let history = filled_home(home, &events);
    for span in [Span::Hour, Span::Day, Span::Month] {
        assert_eq!(filled(&history.series(span, NOW, None).unwrap()), [(0, 3, 0, i64::MAX)]);
        assert_eq!(history.top_agents(span, NOW, TopBy::Cost, 1).unwrap()[0].cost, NanoUsd(i64::MAX));
    }
}

#[test]
fn what_was_summed_before_there_were_series_is_in_them() {
    let events = [call("1", "a", NOW.0, 5), call("2", "b", NOW.0 - 2 * HOUR_MS, 7), call("3", "a", MIDNIGHT - 1, 11)];
    let (dir, history) = open(&events);
    drop(history);
    let file = Connection::open(dir.path().join("sprag.db")).unwrap();
    // The file as the version before left it.
    file.execute_batch(
        "DROP TABLE forwarding; DROP TABLE agent_minutes; DROP INDEX agents_newest;
         DROP TABLE minute_totals; DROP TABLE slot_totals; DROP TABLE agent_days; DROP INDEX runs_stopped;
         DROP INDEX events_of_kind; DROP INDEX events_of_reason; DROP INDEX events_of_agent_model;",
    )
    .unwrap();
    file.pragma_update(None, "user_version", 8).unwrap();
    drop(file);
    let history = common::open(dir.path(), patient());
    assert_eq!(filled(&history.series(Span::Day, NOW, None).unwrap()), [(49, 1, 0, 11), (8, 1, 0, 7), (0, 1, 0, 5)]);
    assert_eq!(filled(&history.series(Span::Month, NOW, None).unwrap()), [(1, 1, 0, 11), (0, 2, 0, 12)]);
    let top = history.top_agents(Span::Month, NOW, TopBy::Cost, 5).unwrap();
    assert_eq!(top.iter().map(|agent| agent.cost.0).collect::<Vec<_>>(), [16, 7]);
    assert_eq!(filled(&history.series(Span::Hour, NOW, None).unwrap()), [], "these minutes are years old");
}

#[test]
fn minutes_go_after_two_days_and_the_rest_with_the_money() {
    let (dir, history) = open(&[call("old", "a", NOW.0, 1), call("new", "a", NOW.0 + 2 * DAY_MS, 1)]);
    let rows = |table: &str| -> u32 {
        let file = Connection::open(dir.path().join("sprag.db")).unwrap();
        file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    history.prune(Timestamp(NOW.0 + 2 * DAY_MS + MINUTE_MS)).unwrap();
    assert_eq!((rows("minute_totals"), rows("slot_totals"), rows("agent_days")), (1, 2, 2));
    assert_eq!(rows("agent_minutes"), 1);
    history.prune(Timestamp(NOW.0 + 2 * DAY_MS + 120 * MINUTE_MS)).unwrap();
    assert_eq!(rows("agent_minutes"), 1, "at the bound");
    history.prune(Timestamp(NOW.0 + 2 * DAY_MS + 121 * MINUTE_MS)).unwrap();
    assert_eq!((rows("agent_minutes"), rows("minute_totals")), (0, 1), "one past it");
    history.prune(Timestamp(NOW.0 + 403 * DAY_MS)).unwrap();
    assert_eq!((rows("minute_totals"), rows("slot_totals"), rows("agent_days")), (0, 0, 0));
}

fn kill(id: &str, run: &str, at: i64, by: &str, reason: &str) -> Event {
    let act = Act {
        what: ActKind::Kill,
        by: by.into(),
        target: format!("run:a/{run}"),
        reason: reason.into(),
        proof: Some(json!({"summary": "the same call three times"})),
        expires_at: None,
        detail: None,
    };
    let record = RunRecord { id: RunId::parse(run).unwrap(), step: 0, parent: None, origin: RunOrigin::Declared };
    Event::of_act(id.into(), Timestamp(at), EventKind::RunKilled, name("a"), Some(record), act)
}

fn told(stop: &RecentStop) -> String {
    let run = stop.run.as_ref().map_or("-", RunId::as_str);
    let mark = if stop.is_lasting { "!" } else { "" };
    format!("{} {run} {}{mark}", stop.agent, stop.reason)
}

fn each_stop_is_told_once_however_often_it_is_run_into(home: &Home) {
    let mut events = vec![
        refused("loop_detected", call("1", "a", NOW.0, 0)),
        kill("2", "run-1", NOW.0 + 1, "sprag", "loop_detected"),
        refused("budget_exceeded", call("3", "b", NOW.0 + 2, 0)),
        refused("rate_limited", Event { at: Timestamp(NOW.0 + 3), ..request("4") }),
        kill("5", "never-called", NOW.0 + 4, "anna", "manual"),
    ];
    let switch = Act {
        what: ActKind::Deactivate,
        target: "agent:c".into(),
        ..*kill("x", "x", 0, "sprag", "loops").act.unwrap()
    };
    let at = Timestamp(NOW.0 + 5);
    events.push(Event::of_act("6".into(), at, EventKind::KillSwitch, name("c"), None, switch));
    let (looping, dear) = (events[0].run.clone(), events[2].run.clone());
    // A storm of refusals that all follow from the first stop.
    events.extend((0..400).map(|n| {
        let again = call(&format!("again-{n}"), "a", NOW.0 + 10 + n, 0);
        refused("run_killed", Event { run: looping.clone(), ..again })
    }));
    events.extend((0..20).map(|n| {
        let again = call(&format!("more-{n}"), "b", NOW.0 + 900 + n, 0);
        refused("budget_exceeded", Event { run: dear.clone(), ..again })
    }));
    let history = filled_home(home, &events);
    let stops = history.recent_stops(10).unwrap();
    let expected = [
        "b run-3 budget_exceeded",
        "c - loops!",
        "a never-called manual!",
        "tester - rate_limited",
        "a run-1 loop_detected!",
    ];
    assert_eq!(stops.iter().map(told).collect::<Vec<_>>(), expected);
    assert_eq!(stops[4].proof.as_ref().unwrap()["summary"], "the same call three times");
    assert_eq!(history.recent_stops(2).unwrap().len(), 2);
}

fn runs_are_narrowed_by_everything_a_listing_offers(home: &Home) {
    let model = |model: &str, event: Event| Event { model: Some(model.into()), ..event };
    let history = filled_home(
        home,
        &[
            model("small", call("1", "a", NOW.0 + 1, 10)),
            model("large", call("2", "a", NOW.0 + 2, 20)),
            model("small", call("3", "b", NOW.0 + 3, 30)),
            kill("4", "run-2", NOW.0 + 4, "anna", "manual"),
        ],
    );
    let any = RunFilter::default;
    let small = || Some("small".to_owned());
    let cases = [
        (any(), vec!["run-3", "run-2", "run-1"]),
        (RunFilter { model: small(), ..any() }, vec!["run-3", "run-1"]),
        (RunFilter { model: small(), agent: Some(name("a")), ..any() }, vec!["run-1"]),
        (RunFilter { min_cost: Some(NanoUsd(20)), ..any() }, vec!["run-3", "run-2"]),
        (RunFilter { min_cost: Some(NanoUsd(20)), status: Some(RunStatus::Killed), ..any() }, vec!["run-2"]),
        (RunFilter { id_prefix: Some("run-3".into()), ..any() }, vec!["run-3"]),
        (RunFilter { id_prefix: Some("%".into()), ..any() }, vec![]),
        (RunFilter { id_prefix: Some(String::new()), ..any() }, vec!["run-3", "run-2", "run-1"]),
        (RunFilter { id: Some(key_of("a", "run-1").id), ..any() }, vec!["run-1"]),
    ];
    for (filter, expected) in cases {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = history.runs(&filter, cursor.as_deref(), 1).unwrap();
            found.extend(page.items.iter().map(|run| run.id.to_string()));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "{filter:?}");
    }
}
