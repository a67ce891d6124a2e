//! What pages read beside listings of events and runs: the same answers from every kind of history.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use sprag_core::dlp::{Direction, Outcome, Sighting, Sightings};
use sprag_core::event::{Act, ActKind, Event, EventKind, RunOrigin, RunRecord, WouldBlock};
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::{Action, Detector, Finding, Mode, Proof, StepEvidence, Verdict};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::StoreError;
use sprag_store::history::{
    AgentBucket, EventFilter, History, Page, RunFilter, RunRow, ShadowDetector, ShadowLimit, Spender,
};

use crate::common::{Home, all_events, key, key_of, on_every_history, step};

const QUARTER_MS: i64 = 15 * 60 * 1000;
const START: i64 = 1_700_000_100_000;

on_every_history!(
    agents_are_listed_in_pages_whatever_came_at_the_same_moment,
    what_some_spent_is_summed_by_agent,
    everybody_that_spent_is_listed_over_the_edges_of_days,
    buckets_of_an_agent_follow_one_another,
    steps_come_back_with_what_was_seen_of_them,
    findings_are_counted_by_kind,
    runs_in_shadow_are_told_with_how_they_ended,
    limits_in_shadow_count_a_request_once,
    names_that_mean_something_to_a_database_are_only_names,
    runs_are_found_in_their_order_however_far_apart_they_are,
    an_act_is_no_activity_of_a_run_that_has_some,
    events_are_found_however_far_apart_they_are,
);

fn name(agent: &str) -> AgentName {
    AgentName::parse(agent).unwrap()
}

fn at(event: Event, at: i64) -> Event {
    Event { at: Timestamp(at), ..event }
}

fn of(event: Event, agent: &str) -> Event {
    Event { agent: name(agent), ..event }
}

fn filled(home: &Home, events: &[Event]) -> History {
    let history = home.open();
    record(&history, events);
    history
}

fn record(history: &History, events: &[Event]) {
    for event in events {
        history.record(event);
    }
    history.flush().unwrap();
}

fn ids(page: &Page<RunRow>) -> Vec<String> {
    page.items.iter().map(|run| run.id.to_string()).collect()
}

/// A listing of runs by pages of so many.
fn paged(history: &History, filter: &RunFilter, rows: u32) -> Vec<String> {
    let (mut listed, mut cursor) = (Vec::new(), None);
    loop {
        let page = history.runs(filter, cursor.as_deref(), rows).unwrap();
        listed.extend(ids(&page));
        cursor = page.next;
        if cursor.is_none() {
            return listed;
        }
    }
}

fn agents_are_listed_in_pages_whatever_came_at_the_same_moment(home: &Home) {
    let events: Vec<Event> = [("b.1", 7), ("a", 7), ("c", 7), ("late", 9), ("Early", 1)]
        .map(|(agent, ms)| of(at(step(agent, "r", 1), START + ms), agent))
        .to_vec();
    let history = filled(home, &events);
    let (mut listed, mut cursor) = (Vec::new(), None);
    loop {
        let page = history.agents("", cursor.as_deref(), 2).unwrap();
        listed.extend(page.items.iter().map(|row| row.name.to_string()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, ["late", "c", "b.1", "a", "Early"]);
    let found: Vec<_> = history.agents("EA", None, 9).unwrap().items.into_iter().map(|row| row.name).collect();
    assert_eq!(found, [name("Early")]);
    assert_eq!(history.agents("_", None, 9).unwrap().items, [], "a part is no pattern");
    for bad in ["", "x", "1", "1.", "1.a b", ".a"] {
        assert!(matches!(history.agents("", Some(bad), 9), Err(StoreError::BadCursor(_))), "{bad}");
    }
    assert_eq!(history.agent_names(2).unwrap(), [name("late"), name("c")]);
    assert_eq!(history.seen_of(&[name("x"), name("a")]).unwrap(), [name("a")]);
    assert_eq!(history.seen_of(&[]).unwrap(), []);
    assert_eq!(history.agent(&name("a")).unwrap().unwrap().runs, 1);
    assert_eq!(history.agent(&name("x")).unwrap(), None);
}

fn what_some_spent_is_summed_by_agent(home: &Home) {
    let slots = [("a", 0), ("a", 1), ("a", 2), ("b", 1), ("c", 1)];
    let event = |(n, (agent, slot)): (usize, &(&str, i64))| Event {
        cost: Some(NanoUsd(5)),
        ..of(at(step(&n.to_string(), "r", 1), START + slot * QUARTER_MS), agent)
    };
    let history = filled(home, &slots.iter().enumerate().map(event).collect::<Vec<_>>());
    let mut spent = history.spent_by(&[name("a"), name("b"), name("x")], Timestamp(START + QUARTER_MS + 1)).unwrap();
    spent.sort();
    assert_eq!(spent, [(name("a"), NanoUsd(10)), (name("b"), NanoUsd(5))]);
}

fn everybody_that_spent_is_listed_over_the_edges_of_days(home: &Home) {
    let midnight = 19_676 * 24 * 60 * 60 * 1000;
    // The last moment of a day, the first one of the next, and a day after that.
    let times = [midnight - QUARTER_MS - 1, midnight - 1, midnight, midnight + 24 * 60 * 60 * 1000];
    let events: Vec<Event> = (0..)
        .zip(times)
        .map(|(n, time)| {
            let (key, cost) = (Some(format!("key-{n}")), Some(NanoUsd(1 << n)));
            Event { key, cost, ..of(at(step(&n.to_string(), "r", 1), time), if n % 2 == 0 { "even" } else { "odd" }) }
        })
        .collect();
    let history = filled(home, &events);
    let spent = |since: i64| {
        let all = history.spent_by_all(Timestamp(since)).unwrap();
        let agents: Vec<String> = all.agents.iter().map(|(agent, cost)| format!("{agent} {}", cost.0)).collect();
        let keys: Vec<i64> = all.keys.iter().map(|(_, cost)| cost.0).collect();
        assert!(!all.is_partial);
        assert_eq!(history.spent(Spender::Everything, Timestamp(since)).unwrap(), all.everything);
        (agents.join(", "), keys, all.everything.0)
    };
    assert_eq!(spent(0), ("odd 10, even 5".to_owned(), vec![8, 4, 2, 1], 15));
    assert_eq!(spent(midnight - 1), ("odd 10, even 4".to_owned(), vec![8, 4, 2], 14));
    assert_eq!(spent(midnight), ("odd 8, even 4".to_owned(), vec![8, 4], 12));
    assert_eq!(spent(midnight + QUARTER_MS), ("odd 8".to_owned(), vec![8], 8));
    let (odd, key) = (name("odd"), "key-3");
    assert_eq!(history.spent(Spender::Agent(&odd), Timestamp(midnight)).unwrap(), NanoUsd(8));
    assert_eq!(history.spent(Spender::Key(key), Timestamp(0)).unwrap(), NanoUsd(8));
}

fn buckets_of_an_agent_follow_one_another(home: &Home) {
    let event = |(id, quarter, agent, blocked): (&str, i64, &str, bool)| {
        let event = of(at(step(id, "r", 1), quarter * QUARTER_MS + 1), agent);
        Event { blocked, cost: Some(NanoUsd(10)), ..event }
    };
    let base = 1_888_888 / 4 * 4;
    let events = [(4, "bot", false), (7, "bot", true), (12, "bot", false), (4, "other", false)];
    let events: Vec<Event> = (1..)
        .zip(events)
        .map(|(n, (quarter, agent, blocked)): (i32, _)| event((&n.to_string(), base + quarter, agent, blocked)))
        .collect();
    let history = filled(home, &events);
    let span = (Timestamp((base + 4) * QUARTER_MS), Timestamp((base + 12) * QUARTER_MS + 5));
    let series = history.agent_series(&name("bot"), span, 4).unwrap();
    let told = |b: &AgentBucket| (b.at.0 / QUARTER_MS - base, b.requests, b.blocked, b.cost.0);
    assert_eq!(series.iter().map(told).collect::<Vec<_>>(), [(4, 2, 1, 20), (8, 0, 0, 0), (12, 1, 0, 10)]);
}

fn steps_come_back_with_what_was_seen_of_them(home: &Home) {
    let evidence = StepEvidence::from_bytes(&[0x10, 0, 0]);
    let seen = Event { level: Some(0.6), evidence: evidence.clone(), ..at(step("2", "r", 2), START + 2) };
    let others = [at(step("1", "r", 1), START + 1), at(step("3", "other", 1), START + 3)];
    let history = filled(home, &[vec![seen.clone()], others.to_vec()].concat());
    let [run, other] = ["r", "other"].map(|id| history.run(&key(id)).unwrap().unwrap());
    let found = history.evidence(std::slice::from_ref(&run)).unwrap().remove(0);
    let shown: Vec<_> = found.iter().map(|row| (row.step, row.level, row.evidence.clone())).collect();
    assert_eq!(shown, [(1, None, None), (2, Some(0.6), evidence)]);
    assert!(all_events(&history, &EventFilter::default()).contains(&seen), "bytes and fractions come back whole");
    let of_both = history.evidence(&[other.clone(), run.clone()]).unwrap();
    assert_eq!(of_both.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2], "in the order of the runs");
    assert_eq!(of_both[1], found, "several runs at once are those runs one by one");
    let gone = RunRow { id: key("nobody").id, ..other };
    assert_eq!(history.evidence(&[gone, run]).unwrap(), [vec![], found]);
    assert_eq!(history.evidence(&[]).unwrap(), Vec::<Vec<_>>::new());
}

fn findings_are_counted_by_kind(home: &Home) {
    let found = |id: &str, ms: i64, kinds: &[&str]| {
        let mut sightings = Sightings::default();
        for kind in kinds {
            sightings.note(Sighting {
                entity: (*kind).to_owned(),
                direction: Direction::Request,
                outcome: if *kind == "EMAIL" { Outcome::Covered } else { Outcome::Redacted },
                path: "messages[0].content".to_owned(),
                start: 0,
                length: 4,
                hint: "a***".to_owned(),
            });
        }
        Event { dlp: (!kinds.is_empty()).then_some(sightings), ..at(step(id, "r", 1), START + ms) }
    };
    let events = [
        found("1", 1, &["SSN"]),
        found("2", 2, &["EMAIL", "EMAIL", "SSN"]),
        found("3", 3, &[]),
        found("4", 4, &["EMAIL"]),
    ];
    let history = filled(home, &events);
    let report = history.findings(Timestamp(START + 2)).unwrap();
    let told: Vec<String> =
        report.kinds.iter().map(|kind| format!("{} {:?} {}", kind.entity, kind.outcome, kind.count)).collect();
    assert_eq!(told, ["EMAIL Covered 3", "SSN Redacted 1"]);
    assert_eq!((report.calls, report.is_partial), (2, false));
    let first = history.calls_with_findings(None, 2).unwrap();
    let ids = |page: &Page<Event>| page.items.iter().map(|event| event.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&first), ["4", "2"]);
    assert_eq!(first.items[1], events[1]);
    assert_eq!(ids(&history.calls_with_findings(first.next.as_deref(), 2).unwrap()), ["1"]);
}

fn flagged(event: Event, detector: Detector) -> Event {
    let (loop_type, proof) = (String::new(), Proof::default());
    let finding = Finding { detector, mode: Mode::Shadow, loop_type, confidence: 1.0, score: 4.0, count: 4, proof };
    let shadow = Verdict { finding, action: Action::KillRun, strike: 1, retry_seconds: None };
    Event { shadow: Some(shadow), ..event }
}

fn runs_in_shadow_are_told_with_how_they_ended(home: &Home) {
    let ended = |finish: &str, event: Event| Event { finish: Some(finish.into()), tools: Vec::new(), ..event };
    let events = [
        at(step("1", "a", 1), START + 1),
        at(flagged(step("2", "a", 2), Detector::Progress), START + 2),
        at(flagged(step("3", "a", 3), Detector::Exact), START + 3),
        at(ended("stop", step("4", "a", 4)), START + 4),
        at(ended("tool_calls", flagged(step("5", "b", 1), Detector::Exact)), START + 5),
        at(step("6", "healthy", 1), START + 6),
    ];
    let history = filled(home, &events);
    let report = |since: i64, until: i64| {
        let report = history.shadow_report(Timestamp(START + since), Timestamp(START + until)).unwrap();
        let row = |of: &ShadowDetector| (of.detector.clone(), of.runs, of.saved_steps, of.saved.0);
        assert!(!report.is_partial);
        report.detectors.iter().map(row).collect::<Vec<_>>()
    };
    let (exact, progress) = (("exact".to_owned(), 1, 1, 1000), ("progress".to_owned(), 1, 3, 3000));
    assert_eq!(report(0, 10), [exact, progress]);
    assert_eq!(report(3, 5), [("progress".to_owned(), 1, 2, 2000)], "only the money of the stretch of time");
    assert_eq!(report(6, 10), []);

    let would = history.would_stop(&key("a")).unwrap().unwrap();
    assert_eq!((would.step, would.saved_steps, would.saved), (2, 3, NanoUsd(3000)));
    assert_eq!(would.verdict, *events[1].shadow.as_ref().unwrap());
    assert_eq!(history.would_stop(&key("healthy")).unwrap(), None);

    let runs = history.shadow_runs((Timestamp(START), Timestamp(START + 10)), 10).unwrap();
    let told: Vec<_> = runs.iter().map(|one| (one.run.clone(), one.would.step, one.ended_well)).collect();
    assert_eq!(told, [(key("b"), 1, false), (key("a"), 2, true)]);
    assert_eq!(runs[1].finish.as_deref(), Some("stop"));
    assert_eq!(runs[1].would, would);
    assert_eq!(history.shadow_runs((Timestamp(START), Timestamp(START + 10)), 1).unwrap().len(), 1);
    assert!(history.shadow_runs((Timestamp(START + 6), Timestamp(START + 10)), 10).unwrap().is_empty());
}

fn limits_in_shadow_count_a_request_once(home: &Home) {
    let refused = |event: Event, limits: &[(&str, Option<&str>)]| {
        let would = |&(reason, limit): &(&str, Option<&str>)| WouldBlock {
            reason: reason.into(),
            exceeded_limit: limit.map(str::to_owned),
            message: "too much".into(),
        };
        Event { would_block: limits.iter().map(would).collect(), ..event }
    };
    let (daily, hours) = (("budget_exceeded", Some("daily")), ("outside_allowed_hours", None));
    let outside = Event { run: None, cost: None, ..step("4", "x", 1) };
    let history = filled(
        home,
        &[
            at(refused(step("1", "a", 1), &[daily, daily]), START + 1),
            at(refused(step("2", "a", 2), &[hours, daily]), START + 2),
            at(refused(step("3", "b", 1), &[daily, ("budget_exceeded", Some("monthly"))]), START + 3),
            at(refused(outside, &[hours]), START + 4),
            at(step("5", "healthy", 1), START + 5),
        ],
    );
    let report = |since, until| {
        let report = history.shadow_report(Timestamp(START + since), Timestamp(START + until)).unwrap();
        let row = |of: &ShadowLimit| {
            let name = of.exceeded_limit.as_ref().unwrap_or(&of.reason);
            format!("{name}: {} in {} runs for {}", of.requests, of.runs, of.cost.0)
        };
        report.limits.iter().map(row).collect::<Vec<_>>().join(", ")
    };
    let all = "daily: 3 in 2 runs for 3000, monthly: 1 in 1 runs for 1000, outside_allowed_hours: 2 in 1 runs for 1000";
    assert_eq!(report(0, 10), all);
    assert_eq!(report(1, 2), "daily: 1 in 1 runs for 1000");
    assert_eq!(report(5, 10), "");
}

fn names_that_mean_something_to_a_database_are_only_names(home: &Home) {
    let hostile =
        ["' OR '1'='1", "\\", "\\'; DROP TABLE events --", "%", "{run:String}", "naïve – ☃", "a\"b", "\\N", "#"];
    let mut events = Vec::new();
    for (n, run) in (0..).zip(hostile) {
        let mut event = at(step(&format!("e{n}"), "r", 1), START + n);
        event.model = Some(run.to_owned());
        event.key = Some(run.to_owned());
        event.run = Some(RunRecord { id: RunId::parse(run).unwrap(), ..event.run.unwrap() });
        events.push(event);
    }
    let history = filled(home, &events);
    for (event, run) in events.iter().zip(hostile) {
        let id = RunId::parse(run).unwrap();
        let filters = [
            EventFilter { run: Some(key_of("tester", run)), ..EventFilter::default() },
            EventFilter { model: Some(run.to_owned()), ..EventFilter::default() },
            EventFilter { key: Some(run.to_owned()), ..EventFilter::default() },
        ];
        for filter in filters {
            assert_eq!(all_events(&history, &filter), std::slice::from_ref(event), "{filter:?}");
        }
        assert_eq!(history.run(&key_of("tester", run)).unwrap().unwrap().id, id);
        assert_eq!(history.run_totals(&key_of("tester", run)).unwrap().unwrap().steps, 1);
        let begins = RunFilter { id_prefix: Some(run.to_owned()), ..RunFilter::default() };
        assert!(ids(&history.runs(&begins, None, 50).unwrap()).contains(&run.to_owned()), "{run}");
        assert_eq!(history.spent(Spender::Key(run), Timestamp(0)).unwrap(), NanoUsd(1000));
    }
    assert_eq!(paged(&history, &RunFilter::default(), 2).len(), hostile.len(), "cursors carry any name");
}

fn runs_are_found_in_their_order_however_far_apart_they_are(home: &Home) {
    let hour = 4 * QUARTER_MS;
    // Minutes, hours, days and months between them.
    let gaps = [0, 1, 60_000, hour, 2 * hour, 30 * hour, 40 * hour, 24 * 40 * hour, 24 * 80 * hour];
    let events: Vec<Event> = (0..)
        .zip(gaps)
        .map(|(n, gap): (u32, i64)| at(step(&format!("e{n}"), &format!("r{n}"), 1), START - gap))
        .collect();
    let history = filled(home, &events);
    let all: Vec<String> = (0..gaps.len()).map(|n| format!("r{n}")).collect();
    for rows in [1, 2, 4, 50] {
        assert_eq!(paged(&history, &RunFilter::default(), rows), all, "by {rows}");
        let cost = RunFilter { min_cost: Some(NanoUsd(1000)), ..RunFilter::default() };
        assert_eq!(paged(&history, &cost, rows), all, "by {rows}, narrowed");
    }
    let since = |gap: i64| RunFilter { since: Some(Timestamp(START - gap)), ..RunFilter::default() };
    assert_eq!(paged(&history, &since(2 * hour), 2), all[..5]);
    let until = RunFilter { until: Some(Timestamp(START - 30 * hour + 8)), ..RunFilter::default() };
    assert_eq!(paged(&history, &until, 2), all[5..]);
}

fn an_act_is_no_activity_of_a_run_that_has_some(home: &Home) {
    let kill = |id: &str, run: &str, time: i64| {
        let act = Act {
            what: ActKind::Kill,
            by: "anna".into(),
            target: format!("run:tester/{run}"),
            reason: "too long".into(),
            proof: None,
            expires_at: Some(Timestamp(time + 1)),
            detail: None,
        };
        let id_of_run = RunId::parse(run).unwrap();
        let record = RunRecord { id: id_of_run, step: 0, parent: None, origin: RunOrigin::Declared };
        Event::of_act(id.into(), Timestamp(time), EventKind::RunKilled, name("tester"), Some(record), act)
    };
    let hour = 4 * QUARTER_MS;
    let history = filled(
        home,
        &[
            at(step("1", "old", 1), START),
            at(step("2", "new", 1), START + hour),
            kill("3", "old", START + 50 * hour),
            kill("4", "never called", START + 49 * hour),
        ],
    );
    assert_eq!(paged(&history, &RunFilter::default(), 1), ["never called", "new", "old"]);
    assert_eq!(paged(&history, &RunFilter::default(), 50), ["never called", "new", "old"]);
    let old = history.run(&key("old")).unwrap().unwrap();
    assert_eq!((old.first_at, old.last_at), (Timestamp(START), Timestamp(START + 7)));
    assert_eq!(old.stopped.unwrap().expires_at, Some(Timestamp(START + 50 * hour + 1)));
    let never = history.run(&key("never called")).unwrap().unwrap();
    assert_eq!((never.steps, never.last_at), (0, Timestamp(START + 49 * hour)));
}

fn events_are_found_however_far_apart_they_are(home: &Home) {
    let hour = 4 * QUARTER_MS;
    let gaps = [0, 1, 60_000, hour, 2 * hour, 30 * hour, 40 * hour, 24 * 40 * hour];
    let events: Vec<Event> =
        (0..).zip(gaps).map(|(n, gap): (u32, i64)| at(step(&format!("e{n}"), "r", n + 1), START - gap)).collect();
    let history = filled(home, &events);
    for is_oldest_first in [false, true] {
        for rows in [1, 3, 50] {
            let (mut listed, mut cursor) = (Vec::new(), None);
            loop {
                let filter = EventFilter { is_oldest_first, ..EventFilter::default() };
                let page = history.events(&filter, cursor.as_deref(), rows).unwrap();
                listed.extend(page.items);
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            if is_oldest_first {
                listed.reverse();
            }
            assert_eq!(listed, events, "by {rows}, oldest first: {is_oldest_first}");
        }
    }
}
