//! What the catalog does when the disk refuses, when kills of one scope follow each other, and at the bounds then.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::path::Path;
use std::sync::Arc;

use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AgentStanding, DeactivatedBy, Kill, KillKind};
use sprag_core::time::Timestamp;
use sprag_store::catalog::{Bounds, Mark};
use sprag_store::{Catalog, DataDir, StoreError};

use crate::common::key_of;

fn open_with(path: &Path, bounds: Bounds, now: i64) -> Catalog {
    Catalog::open(Arc::new(DataDir::open(path).unwrap()), bounds, Timestamp(now), |_| {}).unwrap()
}

fn open(path: &Path) -> Catalog {
    open_with(path, Bounds::default(), 0)
}

fn kill(scope: &str, at: i64, end: Option<i64>) -> Kill {
    Kill {
        id: format!("kill_{scope}_{at}"),
        scope: scope.parse().unwrap(),
        kind: KillKind::Kill,
        reason: "too much".into(),
        by: "anna".into(),
        at: Timestamp(at),
        expires_at: end.map(Timestamp),
        proof: None,
    }
}

/// Every kill: its scope, when it was made, its kind and its end.
fn held(catalog: &Catalog) -> Vec<(String, i64, KillKind, Option<i64>)> {
    let tell = |kill: &Arc<Kill>| (kill.scope.to_string(), kill.at.0, kill.kind, kill.expires_at.map(|end| end.0));
    let mut held: Vec<_> = catalog.snapshot().kills.iter().map(tell).collect();
    held.sort_unstable();
    held
}

fn final_(scope: &str, at: i64) -> (String, i64, KillKind, Option<i64>) {
    (scope.to_owned(), at, KillKind::Kill, None)
}

/// Makes the disk refuse new rows at once, or no longer.
fn refuse(path: &Path, is_refusing: bool) {
    let other = rusqlite::Connection::open(path.join("catalog.db")).unwrap();
    for table in ["kills", "agents"] {
        let sql = if is_refusing {
            format!("CREATE TRIGGER no_{table} BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no room'); END")
        } else {
            format!("DROP TRIGGER no_{table}")
        };
        other.execute_batch(&sql).unwrap();
    }
}

#[test]
fn what_was_killed_for_a_while_can_be_killed_again() {
    for scope in ["agent:bot", "run:bot/r"] {
        let dir = tempfile::tempdir().unwrap();
        let catalog = open(dir.path());
        catalog.kill(kill(scope, 1, Some(10)), &[]).unwrap();
        catalog.kill(kill(scope, 20, None), &[7]).unwrap();
        assert_eq!(held(&catalog), [final_(scope, 20)]);
        drop(catalog);
        assert_eq!(held(&open_with(dir.path(), Bounds::default(), 30)), [final_(scope, 20)]);
    }
}

#[test]
fn of_two_kills_neither_lets_go_early() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    let pause = |scope, at| Kill { kind: KillKind::Pause, ..kill(scope, at, None) };
    catalog.kill(pause("run:bot/a", 1), &[]).unwrap();
    assert_eq!(catalog.kill(kill("run:bot/a", 2, Some(10)), &[]).unwrap().expires_at, None);
    catalog.kill(kill("run:bot/b", 1, Some(10)), &[]).unwrap();
    assert_eq!(catalog.kill(pause("run:bot/b", 2), &[]).unwrap().kind, KillKind::Kill);
    let both = [final_("run:bot/a", 2), final_("run:bot/b", 2)];
    assert_eq!(held(&catalog), both);
    drop(catalog);
    assert_eq!(held(&open_with(dir.path(), Bounds::default(), 10)), both);
}

#[test]
fn what_the_disk_refused_is_written_when_it_is_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    refuse(dir.path(), true);
    assert!(catalog.kill(kill("run:bot/r", 1, None), &[5]).is_err());
    assert!(catalog.kill(kill("run:bot/r", 2, None), &[6]).is_err(), "it is not on record yet");
    assert_eq!(held(&catalog), [final_("run:bot/r", 1)]);
    refuse(dir.path(), false);
    assert_eq!(catalog.kill(kill("run:bot/r", 3, None), &[7]).unwrap().at, Timestamp(1), "the first one holds");
    let generation = catalog.snapshot().generation;
    catalog.kill(kill("run:bot/r", 4, None), &[]).unwrap();
    assert_eq!(catalog.snapshot().generation, generation, "once is enough");
    drop(catalog);
    let catalog = open(dir.path());
    assert_eq!(held(&catalog), [final_("run:bot/r", 1)]);
    let mut clues = catalog.clues(10).unwrap().remove(0).1;
    clues.sort_unstable();
    assert_eq!(clues, [5, 6, 7]);
}

#[test]
fn what_the_disk_refused_is_written_with_the_next_kill_unless_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    refuse(dir.path(), true);
    for (at, scope) in (1..).zip(["agent:bot", "run:bot/a", "run:bot/b", "run:bot/c"]) {
        assert!(catalog.kill(kill(scope, at, None), &[]).is_err());
    }
    assert!(catalog.kill(kill("key:k", 5, Some(9)), &[]).is_err());
    refuse(dir.path(), false);
    catalog.resume(&key_of("bot", "b"), Mark { steps: 1, cost: NanoUsd(7), at: Timestamp(6) }).unwrap().unwrap();
    catalog.lift("kill_run:bot/c_4").unwrap().unwrap();
    catalog.kill(kill("run:bot/d", 9, None), &[]).unwrap();
    let expected = [final_("agent:bot", 1), final_("run:bot/a", 2), final_("run:bot/d", 9)];
    assert_eq!(held(&catalog), expected);
    drop(catalog);
    assert_eq!(held(&open(dir.path())), expected);
}

#[test]
fn killed_runs_are_bounded_also_while_the_disk_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { killed_runs: 2, ..Bounds::default() };
    let catalog = open_with(dir.path(), bounds, 0);
    catalog.kill(kill("run:bot/1", 1, None), &[]).unwrap();
    refuse(dir.path(), true);
    assert!(catalog.kill(kill("run:bot/2", 2, None), &[]).is_err());
    assert_eq!(held(&catalog), [final_("run:bot/1", 1), final_("run:bot/2", 2)]);
    for at in 3..=4 {
        assert!(catalog.kill(kill(&format!("run:bot/{at}"), at, None), &[]).is_err());
    }
    assert_eq!(held(&catalog), [final_("run:bot/3", 3), final_("run:bot/4", 4)], "the oldest leave first");
    refuse(dir.path(), false);
    catalog.kill(kill("run:bot/5", 5, None), &[]).unwrap();
    let last = [final_("run:bot/4", 4), final_("run:bot/5", 5)];
    assert_eq!(held(&catalog), last);
    drop(catalog);
    assert_eq!(held(&open_with(dir.path(), bounds, 0)), last, "and no more of them are on disk");
}

#[test]
fn a_deactivation_holds_whatever_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { agents: 1, ..Bounds::default() };
    let catalog = open_with(dir.path(), bounds, 0);
    let name = |name| AgentName::parse(name).unwrap();
    let off = |standing: &AgentStanding| standing.deactivated(DeactivatedBy::Manual, "m".into(), None, Timestamp(1));
    catalog.set_agent(&name("a"), AgentStanding::clone).unwrap();
    assert!(matches!(catalog.set_agent(&name("b"), AgentStanding::clone), Err(StoreError::Full { most: 1, .. })));
    catalog.set_agent(&name("b"), off).unwrap();
    refuse(dir.path(), true);
    assert!(catalog.set_agent(&name("c"), off).is_err());
    let is_off = |catalog: &Catalog, agent| catalog.snapshot().agent(&name(agent)).is_some_and(|known| !known.active);
    assert!(is_off(&catalog, "b") && is_off(&catalog, "c"));
    drop(catalog);
    refuse(dir.path(), false);
    let catalog = open_with(dir.path(), bounds, 0);
    assert!(is_off(&catalog, "b") && !is_off(&catalog, "c"));
}
