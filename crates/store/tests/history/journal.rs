//! Calls under way when a process dies are charged what was set aside for them, once.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use sprag_core::event::{Ending, Event};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{EventFilter, History, HistorySettings, Recorded, Spender};

use crate::common::{all_events, key, open, opening, patient, request, step};

/// Ends a process without its consent: nothing is moved, nothing is settled. The directory is that of the next one.
fn crash(history: History, dir: &tempfile::TempDir) -> tempfile::TempDir {
    let next = tempfile::tempdir().unwrap();
    copy(dir.path(), next.path());
    drop(history);
    next
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn with_key(event: Event) -> Event {
    Event { key: Some("k".into()), ..event }
}

/// What the calls of the run `r` cost, told by every sum there is.
fn cost(history: &History) -> i64 {
    let all = history.spent_by_all(Timestamp(0)).unwrap();
    let of_run = history.run(&key("r")).unwrap().map_or(0, |run| run.cost.0);
    let of_agent = history.agents("", None, 500).unwrap().items.first().map_or(0, |agent| agent.cost.0);
    let of_key = history.spent(Spender::Key("k"), Timestamp(0)).unwrap().0;
    let of_events: i64 =
        all_events(history, &EventFilter::default()).iter().filter_map(|event| event.cost).map(|cost| cost.0).sum();
    assert_eq!([of_run, of_agent, of_key, of_events], [all.everything.0; 4]);
    of_run
}

fn rows(dir: &Path) -> u32 {
    let connection = Connection::open(dir.join("sprag.db")).unwrap();
    connection.query_row("SELECT count(*) FROM open_calls", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_call_that_a_crash_cut_short_costs_what_was_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), patient());
    let (cut, done) = (with_key(step("cut", "r", 1)), with_key(step("done", "r", 2)));
    assert!(history.opened(&opening(&cut, 70_000)));
    assert!(history.opened(&opening(&done, 50_000)));
    assert_eq!(history.status().spool.open_calls, 2);
    history.record(&done);
    assert_eq!(history.status().spool.open_calls, 1);

    let dir = crash(history, &dir);
    let history = open(dir.path(), patient());
    assert_eq!((history.lost_calls(), cost(&history)), (1, 71_000));
    let events = all_events(&history, &EventFilter::default());
    let lost = events.iter().find(|event| event.id == "cut").unwrap();
    let expected = Event {
        stream: false,
        status: 0,
        ending: Ending::Lost,
        total_ms: 0,
        first_byte_ms: None,
        overhead_us: 0,
        usage: None,
        cost: Some(NanoUsd(70_000)),
        finish: None,
        tools: vec![],
        error: Some("Sprag ended before the call did".into()),
        ..cut.clone()
    };
    assert_eq!(*lost, expected);
    assert_eq!(history.run(&key("r")).unwrap().unwrap().steps, 2);
    drop(history);
    let history = open(dir.path(), patient());
    assert_eq!((history.lost_calls(), cost(&history)), (0, 71_000), "once is enough");
}

#[test]
fn the_end_of_a_call_is_found_in_any_batch() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), patient());
    let [a, b, c] = ["a", "b", "c"].map(|id| with_key(step(id, "r", 1)));
    // In the same batch: the table is never touched.
    history.opened(&opening(&a, 9000));
    history.record(&a);
    history.flush().unwrap();
    assert_eq!(rows(dir.path()), 0);
    // In a later one, after the amount was raised.
    history.opened(&opening(&b, 9000));
    history.flush().unwrap();
    assert_eq!(rows(dir.path()), 1);
    history.opened(&opening(&b, 12_000));
    history.record(&b);
    history.flush().unwrap();
    assert_eq!(rows(dir.path()), 0);
    // Before its beginning, in the same batch and in an earlier one.
    history.record(&c);
    history.opened(&opening(&c, 9000));
    history.opened(&opening(&a, 9000));
    history.flush().unwrap();
    assert_eq!(rows(dir.path()), 0);
    drop(history);
    let history = open(dir.path(), patient());
    assert_eq!((history.lost_calls(), cost(&history)), (0, 3000));
}

#[test]
fn of_two_amounts_the_larger_counts() {
    for is_flushed in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let history = open(dir.path(), patient());
        let call = with_key(step("a", "r", 1));
        for reserved in [5000, 8000] {
            assert!(history.opened(&opening(&call, reserved)));
            if is_flushed {
                history.flush().unwrap();
            }
        }
        assert_eq!(history.status().spool.open_calls, 1);
        let dir = crash(history, &dir);
        let history = open(dir.path(), patient());
        assert_eq!((history.lost_calls(), cost(&history)), (1, 8000));
    }
}

#[test]
fn a_torn_line_is_a_call_that_never_began() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), patient());
    let [a, b] = ["a", "b"].map(|id| with_key(step(id, "r", 1)));
    history.opened(&opening(&a, 5000));
    history.opened(&opening(&b, 7000));
    let dir = crash(history, &dir);
    let file = fs::read_dir(dir.path().join("spool")).unwrap().next().unwrap().unwrap().path();
    let content = fs::read(&file).unwrap();
    fs::write(&file, &content[..content.len() - 20]).unwrap();
    let history = open(dir.path(), patient());
    assert_eq!((history.lost_calls(), cost(&history)), (1, 5000));
    assert_eq!(history.status().ingest.unreadable, 0);
}

#[test]
fn a_torn_end_costs_what_was_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), patient());
    let call = with_key(step("a", "r", 1));
    history.opened(&opening(&call, 5000));
    history.record(&call);
    let dir = crash(history, &dir);
    let file = fs::read_dir(dir.path().join("spool")).unwrap().next().unwrap().unwrap().path();
    let content = fs::read(&file).unwrap();
    fs::write(&file, &content[..content.len() - 1]).unwrap();
    let history = open(dir.path(), patient());
    assert_eq!((history.lost_calls(), cost(&history)), (1, 5000));
}

#[test]
fn charging_is_all_or_nothing_and_waits_until_it_can_be_done() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), patient());
    let calls: Vec<Event> = (0..10).map(|n| with_key(step(&format!("old{n}"), "r", n))).collect();
    for call in &calls {
        history.opened(&opening(call, 5000));
    }
    history.flush().unwrap();
    let dir = crash(history, &dir);
    let other = Connection::open(dir.path().join("sprag.db")).unwrap();
    // The last of the table cannot go: all that came before must not have happened.
    other
        .execute_batch(
            "CREATE TRIGGER no BEFORE DELETE ON open_calls WHEN old.id = 'old9' BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .unwrap();
    // Every line closes its file, so that those of this process are ready to be read at once.
    let history = open(dir.path(), HistorySettings { segment_bytes: 1, ..patient() });
    assert!(history.status().ingest.problem.is_some());
    assert_eq!((history.lost_calls(), all_events(&history, &EventFilter::default()).len()), (0, 0));
    // Calls of this process wait behind it, and are not taken for lost ones.
    let [open_now, done] = ["now", "done"].map(|id| with_key(step(id, "r", 1)));
    history.opened(&opening(&open_now, 9_000_000));
    history.opened(&opening(&done, 9_000_000));
    history.record(&done);
    assert!(history.flush().is_err());
    other.execute_batch("DROP TRIGGER no").unwrap();
    history.flush().unwrap();
    assert_eq!((history.lost_calls(), cost(&history)), (10, 51_000));
    assert_eq!(rows(dir.path()), 1, "the call under way");
    history.record(&open_now);
    assert_eq!(cost(&history), 52_000);
    drop(history);
    let history = open(dir.path(), patient());
    assert_eq!((history.lost_calls(), cost(&history)), (0, 52_000));
}

#[test]
fn a_file_that_outlived_its_commit_brings_no_call_back() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), patient());
    let call = with_key(step("a", "r", 1));
    history.opened(&opening(&call, 5000));
    let file = fs::read_dir(dir.path().join("spool")).unwrap().next().unwrap().unwrap().path();
    let content = fs::read(&file).unwrap();
    history.flush().unwrap();
    let next = crash(history, &dir);
    let left_over = next.path().join("spool").join(file.file_name().unwrap());
    for round in 0..3 {
        fs::write(&left_over, &content).unwrap();
        let history = open(next.path(), patient());
        assert_eq!((history.lost_calls(), cost(&history)), (u64::from(round == 0), 5000), "round {round}");
    }
}

#[test]
fn a_full_spool_leaves_beginnings_out_and_keeps_ends() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), HistorySettings { spool_bytes: 700, ..patient() });
    // It costs nothing and belongs to no run: without its beginning nobody would miss its end.
    let call = Event { key: Some("k".into()), ..request("a") };
    assert!(history.opened(&opening(&call, 5000)));
    for n in 0..10 {
        history.record(&with_key(step(&format!("filler{n}"), "r", 1)));
    }
    assert!(history.status().spool.money_only > 0, "not full");
    assert!(!history.opened(&opening(&with_key(step("b", "r", 1)), 5000)), "no room");
    assert_eq!(history.status().spool.unopened, 1);
    assert_eq!(history.record(&call), Recorded::MoneyOnly);
    assert_eq!(history.record(&request("c")), Recorded::Dropped);
    let before = cost(&history);
    let dir = crash(history, &dir);
    let history = open(dir.path(), patient());
    assert_eq!((history.lost_calls(), cost(&history)), (0, before));
}
