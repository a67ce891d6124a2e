//! What the catalog must do: lose nothing, stay within its bounds, and show every change as one new snapshot.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use sprag_core::id::AgentName;
use sprag_core::limits::{ADJUSTMENTS, AGENT_STANDINGS, KILL_CLUES, KILLED_RUNS, RUN_MARKS, WIDE_KILLS};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AgentStanding, DeactivatedBy, Kill, KillKind, KillSwitchChange};
use sprag_core::time::Timestamp;
use sprag_store::catalog::{Bounds, Mark};
use sprag_store::{Catalog, DataDir, StoreError};

use crate::common::{key, key_of};

fn open(path: &Path) -> Catalog {
    open_with(path, Bounds::default(), 0)
}

fn open_with(path: &Path, bounds: Bounds, now: i64) -> Catalog {
    Catalog::open(Arc::new(DataDir::open(path).unwrap()), bounds, Timestamp(now), |_| {}).unwrap()
}

fn kill(scope: &str, at: i64) -> Kill {
    Kill {
        id: format!("kill_{scope}_{at}"),
        scope: scope.parse().unwrap(),
        kind: KillKind::Kill,
        reason: "too much".into(),
        by: "anna".into(),
        at: Timestamp(at),
        expires_at: None,
        proof: Some(json!({"steps": [1, 2]}).into()),
    }
}

fn scopes(catalog: &Catalog) -> Vec<String> {
    let mut scopes: Vec<_> = catalog.snapshot().kills.iter().map(|kill| kill.scope.to_string()).collect();
    scopes.sort_unstable();
    scopes
}

#[test]
fn everything_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    let all = ["agent:bot", "all", "header:x-tool-name=web_search", "key:k1", "run:bot/a/b"];
    for (at, scope) in (1..).zip(all) {
        catalog.kill(kill(scope, at), &[]).unwrap();
    }
    let agent = AgentName::parse("bot").unwrap();
    let proof = Some(json!({"score": 12}));
    let deactivate = |standing: &AgentStanding| {
        standing.deactivated(DeactivatedBy::KillSwitch, "score".into(), proof.clone(), Timestamp(6))
    };
    let standing = catalog.set_agent(&agent, deactivate).unwrap();
    catalog.kill(kill("run:tester/r", 7), &[]).unwrap();
    let mark = Mark { steps: 31, cost: NanoUsd(7), at: Timestamp(8) };
    assert_eq!(catalog.resume(&key("r"), mark).unwrap().unwrap().at, Timestamp(7));
    drop(catalog);

    let catalog = open(dir.path());
    assert_eq!(scopes(&catalog), all);
    let snapshot = catalog.snapshot();
    let again = snapshot.kills.of_scope(&"run:bot/a/b".parse().unwrap()).unwrap();
    assert_eq!(**again, kill("run:bot/a/b", 5));
    assert_eq!(snapshot.agent(&agent), Some(&standing));
    assert_eq!((snapshot.mark(&key("r")), snapshot.mark(&key("x"))), (Some(mark), None));
    let lifted = catalog.lift(&again.id).unwrap().unwrap();
    assert_eq!(lifted.scope.to_string(), "run:bot/a/b");
    assert!(catalog.lift(&again.id).unwrap().is_none(), "only once");
    drop((catalog, snapshot));
    assert_eq!(scopes(&open(dir.path())), all[..4]);
}

#[test]
fn the_file_is_private_and_belongs_to_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let _catalog = open(dir.path());
    assert!(matches!(DataDir::open(dir.path()), Err(StoreError::InUse { .. })));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(dir.path().join("catalog.db")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn the_stronger_kill_of_a_scope_stays() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    let pause = Kill { kind: KillKind::Pause, ..kill("run:bot/r", 1) };
    assert_eq!(*catalog.kill(pause.clone(), &[]).unwrap(), pause);
    assert_eq!(catalog.kill(kill("run:bot/r", 2), &[]).unwrap().at, Timestamp(2), "a kill replaces a pause");
    assert_eq!(catalog.kill(pause, &[]).unwrap().at, Timestamp(2), "and not the other way round");
    assert_eq!(catalog.kill(kill("run:bot/r", 3), &[]).unwrap().at, Timestamp(2), "the first of equals");
    assert_eq!(scopes(&catalog), ["run:bot/r"]);
    drop(catalog);
    assert_eq!(scopes(&open(dir.path())), ["run:bot/r"]);
}

#[test]
fn what_is_over_leaves_with_the_next_write_or_start() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    let until = |scope: &str, end| Kill { expires_at: Some(Timestamp(end)), ..kill(scope, 1) };
    catalog.kill(until("all", 10), &[]).unwrap();
    catalog.kill(until("agent:bot", 20), &[]).unwrap();
    catalog.kill(kill("run:bot/x", 10), &[]).unwrap();
    assert_eq!(scopes(&catalog), ["agent:bot", "run:bot/x"]);
    drop(catalog);
    assert_eq!(scopes(&open_with(dir.path(), Bounds::default(), 19)), ["agent:bot", "run:bot/x"]);
    assert_eq!(scopes(&open_with(dir.path(), Bounds::default(), 20)), ["run:bot/x"]);
}

#[test]
fn every_change_is_told_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let told = Arc::new(AtomicU64::new(0));
    let teller = told.clone();
    let data = Arc::new(DataDir::open(dir.path()).unwrap());
    let tell = move |generation| teller.store(generation, Ordering::SeqCst);
    let catalog = Catalog::open(data, Bounds::default(), Timestamp(0), tell).unwrap();
    let before = catalog.snapshot();
    catalog.kill(kill("run:bot/r", 1), &[7]).unwrap();
    assert_eq!((told.load(Ordering::SeqCst), catalog.snapshot().generation), (1, 1));
    catalog.kill(kill("run:bot/r", 2), &[]).unwrap();
    catalog.add_clues(&key_of("bot", "r"), &[8]).unwrap();
    assert!(catalog.resume(&key("other"), Mark { steps: 1, cost: NanoUsd(7), at: Timestamp(1) }).unwrap().is_none());
    assert_eq!(told.load(Ordering::SeqCst), 1, "nothing changed");
    catalog.set_agent(&AgentName::default(), AgentStanding::clone).unwrap();
    catalog.resume(&key_of("bot", "r"), Mark { steps: 1, cost: NanoUsd(7), at: Timestamp(1) }).unwrap();
    assert_eq!(told.load(Ordering::SeqCst), 3);
    assert_eq!(before.kills.iter().count(), 0, "an old snapshot stays as it was");
}

#[test]
fn clues_come_back_the_latest_kills_first() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    let (a, b) = (key_of("bot", "a"), key_of("bot", "b"));
    catalog.kill(kill("run:bot/a", 1), &[1, u64::MAX]).unwrap();
    catalog.kill(kill("run:bot/b", 2), &[3]).unwrap();
    catalog.add_clues(&a, &[1, 2]).unwrap();
    catalog.add_clues(&key_of("bot", "free"), &[9]).unwrap();
    drop(catalog);
    let catalog = open(dir.path());
    let mut found = catalog.clues(10).unwrap();
    found.iter_mut().for_each(|(_, clues)| clues.sort_unstable());
    assert_eq!(found, [(b.clone(), vec![3]), (a.clone(), vec![1, 2, u64::MAX])]);
    assert_eq!(catalog.clues(1).unwrap(), [(b.clone(), vec![3])]);
    catalog.kill(Kill { kind: KillKind::Pause, ..kill("run:bot/c", 3) }, &[5]).unwrap();
    catalog.kill(kill("run:bot/c", 4), &[]).unwrap();
    assert_eq!(catalog.clues(1).unwrap(), [(key_of("bot", "c"), vec![5])], "a kill keeps the clues of its pause");
    catalog.resume(&a, Mark { steps: 0, cost: NanoUsd(7), at: Timestamp(0) }).unwrap();
    catalog.lift("kill_run:bot/b_2").unwrap();
    assert_eq!(catalog.clues(10).unwrap().len(), 1);
}

#[test]
fn clues_of_one_kill_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    let many: Vec<u64> = (0..KILL_CLUES as u64 + 1).collect();
    catalog.kill(kill("run:bot/a", 1), &many[..KILL_CLUES - 1]).unwrap();
    catalog.add_clues(&key_of("bot", "a"), &many[KILL_CLUES - 1..]).unwrap();
    assert_eq!(catalog.clues(usize::MAX).unwrap()[0].1.len(), KILL_CLUES);
}

#[test]
fn the_oldest_killed_runs_leave_first() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open_with(dir.path(), Bounds { killed_runs: 3, ..Bounds::default() }, 0);
    catalog.kill(kill("agent:kept", 0), &[]).unwrap();
    for n in 1..=3 {
        catalog.kill(kill(&format!("run:bot/{n}"), n), &[]).unwrap();
    }
    assert_eq!(scopes(&catalog), ["agent:kept", "run:bot/1", "run:bot/2", "run:bot/3"]);
    catalog.kill(kill("run:bot/4", 4), &[]).unwrap();
    assert_eq!(scopes(&catalog), ["agent:kept", "run:bot/2", "run:bot/3", "run:bot/4"]);
    drop(catalog);
    assert_eq!(scopes(&open(dir.path())), ["agent:kept", "run:bot/2", "run:bot/3", "run:bot/4"]);
}

#[test]
fn one_wide_kill_too_many_is_refused_with_words() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open_with(dir.path(), Bounds { wide_kills: 2, ..Bounds::default() }, 0);
    catalog.kill(kill("agent:a", 1), &[]).unwrap();
    catalog.kill(Kill { kind: KillKind::Pause, ..kill("header:x=y", 1) }, &[]).unwrap();
    let refused = catalog.kill(kill("all", 2), &[]).unwrap_err().to_string();
    assert!(refused.contains("there are 2 kills of agents, keys and descriptors already"), "{refused}");
    catalog.kill(kill("header:x=y", 2), &[]).unwrap();
    catalog.kill(kill("run:bot/r", 2), &[]).unwrap();
    assert_eq!(scopes(&catalog), ["agent:a", "header:x=y", "run:bot/r"]);
}

#[test]
fn marks_and_agents_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open_with(dir.path(), Bounds { marks: 2, agents: 2, ..Bounds::default() }, 0);
    for n in 1..=3_i64 {
        catalog.kill(kill(&format!("run:tester/{n}"), n), &[]).unwrap();
        catalog.resume(&key(&n.to_string()), Mark { steps: 1, cost: NanoUsd(7), at: Timestamp(n) }).unwrap();
    }
    let marked = |catalog: &Catalog| [1, 2, 3].map(|n| catalog.snapshot().mark(&key(&n.to_string())).is_some());
    assert_eq!(marked(&catalog), [false, true, true]);
    let set = |name: &str| catalog.set_agent(&AgentName::parse(name).unwrap(), AgentStanding::clone);
    assert!(set("a").is_ok() && set("b").is_ok());
    assert!(matches!(set("c"), Err(StoreError::Full { most: 2, .. })));
    assert!(set("b").is_ok());
    drop(catalog);
    assert_eq!(marked(&open(dir.path())), [false, true, true]);
    let bounds = Bounds::default();
    assert_eq!(
        (bounds.killed_runs, bounds.wide_kills, bounds.marks, bounds.agents, bounds.adjustments),
        (KILLED_RUNS, WIDE_KILLS, RUN_MARKS, AGENT_STANDINGS, ADJUSTMENTS)
    );
}

#[test]
fn what_is_set_for_a_kill_switch_survives_a_deactivation() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    let agent = AgentName::default();
    let kill_switch = KillSwitchChange { threshold: Some(7.5), ..KillSwitchChange::default() };
    catalog.set_agent(&agent, |standing| AgentStanding { kill_switch, ..standing.clone() }).unwrap();
    let off = |standing: &AgentStanding| standing.deactivated(DeactivatedBy::Manual, "m".into(), None, Timestamp(1));
    catalog.set_agent(&agent, off).unwrap();
    drop(catalog);
    let standing = open(dir.path()).snapshot().agent(&agent).unwrap().clone();
    assert_eq!((standing.active, standing.kill_switch), (false, kill_switch));
}

#[test]
fn a_kill_that_the_disk_refuses_holds_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    // Somebody else holds the file for longer than the catalog waits.
    let other = rusqlite::Connection::open(dir.path().join("catalog.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(catalog.kill(kill("run:bot/r", 1), &[]), Err(StoreError::Database { may_pass: true, .. })));
    assert_eq!(scopes(&catalog), ["run:bot/r"]);
    assert!(catalog.lift("kill_run:bot/r_1").is_err());
    assert_eq!(scopes(&catalog), ["run:bot/r"], "and what cannot be taken back on disk stays");
}
