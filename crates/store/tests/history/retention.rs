//! What is old goes, what is summed stays, and a bound on the file is kept.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use rusqlite::Connection;
use sprag_core::event::Event;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{EventFilter, History, HistorySettings, Pruned};

use crate::common::{self, all_events, key, patient, step};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const NOW: i64 = 1_800_000_000_000;

fn record_at(history: &History, id: &str, run: &str, at: i64) {
    history.record(&Event { at: Timestamp(at), total_ms: 0, ..step(id, run, 1) });
}

#[test]
fn age_is_measured_to_the_millisecond() {
    let dir = tempfile::tempdir().unwrap();
    let history = common::open(dir.path(), patient());
    record_at(&history, "gone", "long", NOW - 30 * DAY_MS - 1);
    record_at(&history, "kept", "long", NOW - 30 * DAY_MS);
    record_at(&history, "gone too", "old", NOW - 90 * DAY_MS - 1);
    record_at(&history, "gone as well", "kept", NOW - 90 * DAY_MS);
    history.flush().unwrap();

    assert_eq!(history.prune(Timestamp(NOW)).unwrap(), Pruned { events: 3, runs: 1 });
    let left = all_events(&history, &EventFilter::default());
    assert_eq!(left.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["kept"]);
    assert_eq!(history.run(&key("long")).unwrap().unwrap().cost, NanoUsd(2000), "sums outlive their events");
    assert!(history.run(&key("old")).unwrap().is_none());
    assert!(history.run(&key("kept")).unwrap().is_some());
    assert_eq!(history.totals(Timestamp(0), None).unwrap().cost, NanoUsd(4000));

    assert_eq!(history.prune(Timestamp(NOW)).unwrap(), Pruned::default());
    history.prune(Timestamp(NOW + 401 * DAY_MS)).unwrap();
    assert_eq!(history.totals(Timestamp(0), None).unwrap().cost, NanoUsd(0));
    assert!(history.agents("", None, 500).unwrap().items.is_empty());
}

#[test]
fn a_file_that_is_too_large_loses_its_oldest_events() {
    let dir = tempfile::tempdir().unwrap();
    let max_bytes = 512 << 10;
    let settings = HistorySettings { max_db_bytes: Some(max_bytes), ..patient() };
    let history = common::open(dir.path(), settings);
    for n in 0..5000 {
        record_at(&history, &format!("e{n:05}"), "r", NOW + n);
    }
    history.flush().unwrap();
    assert!(file_bytes(&dir) > 2 * max_bytes);

    let pruned = history.prune(Timestamp(NOW)).unwrap();
    assert!(pruned.events > 1000 && pruned.runs == 0, "{pruned:?}");
    assert!(file_bytes(&dir) < max_bytes * 5 / 4, "{} bytes", file_bytes(&dir));
    let left = all_events(&history, &EventFilter::default());
    assert_eq!(left.len() as u64, 5000 - pruned.events);
    assert_eq!((left[0].id.as_str(), left[left.len() - 1].id.clone()), ("e04999", format!("e{:05}", pruned.events)));
    assert_eq!(history.run(&key("r")).unwrap().unwrap().steps, 5000);
}

#[test]
fn a_bound_that_nothing_fits_under_ends_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let history = common::open(dir.path(), HistorySettings { max_db_bytes: Some(1), ..patient() });
    record_at(&history, "e", "r", NOW);
    history.flush().unwrap();
    assert_eq!(history.prune(Timestamp(NOW)).unwrap(), Pruned { events: 1, runs: 1 });
}

fn file_bytes(dir: &tempfile::TempDir) -> u64 {
    let connection = Connection::open(dir.path().join("sprag.db")).unwrap();
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).unwrap();
    u64::from(number("page_count")) * u64::from(number("page_size"))
}
