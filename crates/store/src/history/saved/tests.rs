use rusqlite::TransactionBehavior;
use sprag_core::event::{Act, EventKind};
use sprag_core::loops::{Detector, Finding, Mode, Proof, ProofStep};
use sprag_core::time::Timestamp;

use super::*;
use crate::history::rows;
use crate::history::samples::step;
use crate::sqlite::{HISTORY, open_writer};

/// A run as it goes on record, one event after the other.
struct Record {
    _dir: tempfile::TempDir,
    connection: rusqlite::Connection,
    number: u32,
}

impl Record {
    fn new() -> Record {
        let dir = tempfile::tempdir().unwrap();
        let connection = open_writer(&dir.path().join("x.db"), HISTORY).unwrap();
        Record { _dir: dir, connection, number: 0 }
    }

    fn add(&mut self, change: impl FnOnce(&mut Event)) -> Option<i64> {
        self.number += 1;
        let mut event = step(&self.number.to_string(), "r", self.number);
        event.at = Timestamp(i64::from(self.number));
        change(&mut event);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        assert!(rows::insert(&transaction, &event).unwrap());
        count(&transaction, &mut event).unwrap();
        let on_record: Option<i64> = transaction
            .query_row("SELECT saved_nano FROM events WHERE id = ?1", [&event.id], |row| row.get(0))
            .unwrap();
        transaction.commit().unwrap();
        assert_eq!(on_record, event.saved.map(|saved| saved.0));
        on_record
    }

    fn call(&mut self, cost: i64) {
        assert_eq!(self.add(|event| event.cost = Some(NanoUsd(cost))), None);
    }

    fn stopped(&mut self, action: Action, alike: &str, steps: &[u32]) -> Option<i64> {
        let verdict = verdict(Detector::Progress, action, alike, steps);
        self.add(|event| refuse(event, "loop_detected", Some(verdict)))
    }

    fn refused(&mut self, reason: &str) -> Option<i64> {
        self.add(|event| refuse(event, reason, None))
    }

    fn act(&mut self, what: ActKind) {
        let act = Act {
            what,
            by: "admin".into(),
            target: "run:tester/r".into(),
            reason: String::new(),
            proof: None,
            expires_at: None,
            detail: None,
        };
        self.add(|event| {
            event.act = Some(Box::new(act));
            event.kind = EventKind::Admin;
        });
    }
}

fn verdict(detector: Detector, action: Action, alike: &str, steps: &[u32]) -> Verdict {
    let proof = Proof { steps: ProofStep::all_alike(steps, alike), ..Proof::default() };
    let finding =
        Finding { detector, mode: Mode::Enforce, loop_type: "x".into(), confidence: 1.0, score: 5.0, count: 5, proof };
    Verdict { finding, action, strike: 1, retry_seconds: None }
}

fn refuse(event: &mut Event, reason: &str, verdict: Option<Verdict>) {
    (event.cost, event.usage) = (None, None);
    (event.blocked, event.ending) = (true, Ending::Refused);
    event.block_reason = Some(reason.to_owned());
    event.verdict = verdict;
}

#[test]
fn each_refused_call_saves_what_a_repetition_cost() {
    let mut record = Record::new();
    [7_000_000, 100, 200, 330].into_iter().for_each(|cost| record.call(cost));
    assert_eq!(record.stopped(Action::KillRun, "exact", &[2, 3, 4, 5]), Some(210), "the mean, and not of the first");
    assert_eq!(record.refused("run_killed"), Some(210));
    assert_eq!(record.refused("run_paused"), Some(210));
    assert_eq!(record.refused("budget_exceeded"), None, "another reason");
}

#[test]
fn no_more_than_so_many_calls_count() {
    let mut record = Record::new();
    [100, 100].into_iter().for_each(|cost| record.call(cost));
    assert_eq!(record.stopped(Action::KillRun, "exact", &[1, 2]), Some(100));
    let counted = (1..SAVED_CALLS).filter(|_| record.refused("run_killed") == Some(100)).count();
    assert_eq!(counted as u32, SAVED_CALLS - 1, "at the bound");
    assert_eq!(record.refused("run_killed"), None, "past it");
}

#[test]
fn what_is_not_proven_saves_nothing() {
    for alike in ["near", "small_talk", "stale", "same_error", "new", "waiting"] {
        let mut record = Record::new();
        [100, 100].into_iter().for_each(|cost| record.call(cost));
        assert_eq!(record.stopped(Action::KillRun, alike, &[1, 2]), None, "{alike}");
        assert_eq!(record.refused("run_killed"), None, "{alike}");
    }
    let mut record = Record::new();
    record.call(100);
    assert_eq!(record.stopped(Action::KillRun, "exact", &[1, 2]), None, "one call is no repetition");
    assert_eq!(record.refused("run_killed"), None);
    let score = verdict(Detector::Score, Action::DeactivateAgent, "exact", &[1, 1]);
    record.call(100);
    assert_eq!(record.add(|event| refuse(event, "loop_detected", Some(score))), None, "steps of other runs");
}

#[test]
fn a_kill_by_hand_saves_nothing() {
    let mut record = Record::new();
    [100, 100].into_iter().for_each(|cost| record.call(cost));
    record.act(ActKind::Kill);
    assert_eq!(record.refused("run_killed"), None);
}

#[test]
fn a_run_that_goes_on_is_no_longer_held() {
    for what in [ActKind::Resume, ActKind::Approve, ActKind::Lift, ActKind::Kill, ActKind::Pause] {
        let mut record = Record::new();
        [100, 100].into_iter().for_each(|cost| record.call(cost));
        assert_eq!(record.stopped(Action::Pause, "masked", &[1, 2]), Some(100));
        record.act(what);
        assert_eq!(record.refused("run_killed"), None, "{what:?}: killed by hand later");
    }
    let mut record = Record::new();
    [100, 100].into_iter().for_each(|cost| record.call(cost));
    assert_eq!(record.stopped(Action::Reject, "same_result", &[1, 2]), Some(100), "one request was refused");
    assert_eq!(record.refused("run_killed"), None, "which holds no run");
}

#[test]
fn a_call_that_was_cut_or_only_warned_about_saves_nothing() {
    let mut record = Record::new();
    [100, 100].into_iter().for_each(|cost| record.call(cost));
    let warned = verdict(Detector::Progress, Action::Warn, "exact", &[1, 2]);
    assert_eq!(record.add(|event| event.verdict = Some(warned)), None);
    let cut = verdict(Detector::Progress, Action::KillRun, "exact", &[1, 2]);
    let was_cut = |event: &mut Event| {
        refuse(event, "run_killed", Some(cut));
        event.ending = Ending::Killed;
    };
    assert_eq!(record.add(was_cut), None, "it was answered in part, and cost something");
}
