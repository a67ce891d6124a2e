//! A full disk and a busy database: recording says so, loses no money, and goes on by itself.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may end by a panic and print")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{EventFilter, History, HistorySettings, Recorded};
use sprag_store::{DataDir, StoreError};

use crate::common::{self, Home, all_events, key, on_every_history, opening, patient, request, step};

/// A file system of a few pages, gone with the value.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// `None`, with a word about it, where this process may not mount.
    fn mount(path: &Path) -> Option<SmallDisk> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "none"]).arg(path).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk { path: path.to_owned() });
        }
        println!("skipped: mounting a small file system needs root");
        None
    }

    /// Takes all the room that is left.
    fn fill(&self) -> PathBuf {
        let ballast = self.path.join("ballast");
        let mut file = File::create(&ballast).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.path).status();
        assert!(std::thread::panicking() || unmounted.is_ok_and(|status| status.success()));
    }
}

fn open_on(disk: &SmallDisk, settings: HistorySettings) -> History {
    History::open(Arc::new(DataDir::open(&disk.path.join("data")).unwrap()), settings).unwrap()
}

on_every_history!(a_full_disk_stops_recording_until_there_is_room);

fn a_full_disk_stops_recording_until_there_is_room(home: &Home) {
    let Some(disk) = SmallDisk::mount(home.path()) else { return };
    let history = open_on(&disk, home.settings(patient()));
    history.record(&step("before", "r", 1));
    history.flush().unwrap();
    let ballast = disk.fill();

    // The file's last page still takes some events, and then half of one.
    let mut whole = 1;
    while history.record(&step(&format!("whole{whole}"), "r", 1)) == Recorded::Whole {
        whole += 1;
        assert!(whole < 1000, "the disk never fills");
    }
    let problem = history.status().spool.problem.unwrap();
    assert!(problem.contains("No space left"), "{problem}");
    for n in 0..100 {
        assert_eq!(history.record(&step(&format!("held{n}"), "r", 1)), Recorded::Held);
    }
    assert_eq!(history.record(&request("no money")), Recorded::Dropped);
    assert!(history.flush().is_err());
    assert!(history.status().spool.problem.is_some(), "still full");

    fs::remove_file(ballast).unwrap();
    history.flush().unwrap();
    let status = history.status();
    assert_eq!((status.spool.problem, status.ingest.problem), (None, None));
    assert_eq!((status.spool.held_bytes, status.spool.lost, status.ingest.unreadable), (0, 0, 0));
    assert_eq!(history.record(&step("after", "r", 1)), Recorded::Whole);
    history.flush().unwrap();

    let events = all_events(&history, &EventFilter::default());
    assert_eq!(events.iter().filter(|event| !event.path.is_empty()).count(), whole + 1, "acknowledged whole");
    let steps = whole as i64 + 1 + 101;
    let run = history.run(&key("r")).unwrap().unwrap();
    assert_eq!((run.steps as i64, run.cost), (steps, NanoUsd(steps * 1000)));
    assert_eq!(history.totals(Timestamp(0), None).unwrap().cost, run.cost);
    drop(history);
}

#[test]
fn calls_that_begin_on_a_full_disk_go_on_without_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(dir.path()) else { return };
    let history = open_on(&disk, patient());
    let call = step("before", "r", 1);
    assert!(history.opened(&opening(&call, 5000)));
    history.flush().unwrap();
    let ballast = disk.fill();
    let mut opened = 0;
    while history.opened(&opening(&step(&format!("{opened}"), "r", 1), 5000)) {
        opened += 1;
        assert!(opened < 1000, "the disk never fills");
    }
    assert!(history.status().spool.problem.is_some_and(|problem| problem.contains("No space left")));
    // Every end is held, also of the one whose beginning is in the database already.
    assert_eq!(history.record(&call), Recorded::Held);
    for n in 0..=opened {
        assert_eq!(history.record(&step(&format!("{n}"), "r", 1)), Recorded::Held);
    }
    fs::remove_file(ballast).unwrap();
    history.flush().unwrap();
    drop(history);
    let history = open_on(&disk, patient());
    let run = history.run(&key("r")).unwrap().unwrap();
    assert_eq!((history.lost_calls(), run.cost), (0, NanoUsd((opened + 2) * 1000)));
    drop(history);
}

#[test]
fn half_a_line_on_a_full_disk_does_not_spoil_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(dir.path()) else { return };
    let history = open_on(&disk, patient());
    let ballast = disk.fill();
    // Room for one page of the spool, so that an event is cut off at its end.
    let file = File::options().write(true).open(&ballast).unwrap();
    file.set_len(file.metadata().unwrap().len() - 4096).unwrap();
    drop(file);
    let mut steps = 1;
    while history.record(&step(&steps.to_string(), "r", 1)) == Recorded::Whole {
        steps += 1;
        assert!(steps < 1000, "the disk never fills");
    }
    assert!(steps > 2, "nothing was written");

    fs::remove_file(ballast).unwrap();
    history.flush().unwrap();
    assert_eq!(history.status().ingest.unreadable, 0);
    let run = history.run(&key("r")).unwrap().unwrap();
    assert_eq!((run.steps, run.cost), (steps, NanoUsd(steps as i64 * 1000)));
    drop(history);
}

#[test]
fn recording_resumes_without_being_asked() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(dir.path()) else { return };
    let history = open_on(&disk, HistorySettings { flush_interval: Duration::from_millis(5), ..patient() });
    let ballast = disk.fill();
    wait_for(|| {
        history.record(&step(&format!("{:?}", Instant::now()), "r", 1));
        history.status().spool.problem.is_some()
    });
    fs::remove_file(ballast).unwrap();
    wait_for(|| history.status().spool.problem.is_none());
    assert_eq!(history.record(&step("after", "r", 1)), Recorded::Whole);
    drop(history);
}

#[test]
fn a_full_disk_does_not_keep_the_program_from_starting() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(dir.path()) else { return };
    drop(open_on(&disk, patient()));
    let ballast = disk.fill();
    let history = open_on(&disk, patient());
    assert_eq!(history.record(&step("1", "r", 1)), Recorded::Held);
    assert!(history.flush().is_err());
    fs::remove_file(ballast).unwrap();
    history.flush().unwrap();
    assert_eq!(history.run(&key("r")).unwrap().unwrap().cost, NanoUsd(1000));
    drop(history);
}

#[test]
fn a_busy_database_keeps_events_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let history = common::open(dir.path(), patient());
    let other = Connection::open(dir.path().join("sprag.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    assert_eq!(history.record(&step("1", "r", 1)), Recorded::Whole);
    assert!(matches!(history.flush(), Err(StoreError::Database { .. })));
    let status = history.status();
    assert!(status.ingest.problem.unwrap().contains("locked"));
    assert_eq!(status.spool.problem, None, "recording goes on");
    assert!(status.spool.bytes > 0);
    assert_eq!(history.record(&step("2", "r", 2)), Recorded::Whole);
    assert_eq!(history.run(&key("r")).unwrap(), None, "reading works");

    other.execute_batch("COMMIT").unwrap();
    history.flush().unwrap();
    let status = history.status();
    assert_eq!((status.ingest.problem, status.spool.bytes), (None, 0));
    assert_eq!(history.run(&key("r")).unwrap().unwrap().steps, 2);
}

#[test]
fn events_reach_the_database_by_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let history = common::open(dir.path(), HistorySettings { flush_interval: Duration::from_millis(5), ..patient() });
    history.record(&step("by time", "r", 1));
    wait_for(|| history.run(&key("r")).unwrap().is_some());
    drop(history);

    let history = common::open(dir.path(), HistorySettings { segment_bytes: 100, ..patient() });
    history.record(&step("by size", "r2", 1));
    wait_for(|| history.run(&key("r2")).unwrap().is_some());
    history.record(&step("at the end", "r3", 1));
    drop(history);
    let history = common::open(dir.path(), patient());
    assert_eq!(history.status().ingest.ingested, 0, "nothing was left over");
    assert!(history.run(&key("r3")).unwrap().is_some());
}

fn wait_for(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited too long");
        std::thread::yield_now();
    }
}
