//! Rows between two catalogs without a Redis: what is taken, what is not, and what a full disk changes about it.

use sprag_core::id::AgentName;
use sprag_core::policy::{AgentStanding, DeactivatedBy, KillKind};
use sprag_core::time::Timestamp;
use sprag_store::catalog::{Applied, KeyEntry};
use sprag_store::shared_catalog::{Row, RowKind, RowName};
use sprag_store::state::RunTotals;
use sprag_store::{RunKey, StoreError};

use crate::node::{Node, key, kill, run_key};

fn row(node: &Node, kind: RowKind, name: &str) -> Row {
    node.catalog.row(&RowName { kind, name: name.to_owned() }).unwrap().unwrap()
}

#[test]
fn a_row_is_taken_once_and_an_older_one_never() {
    let (a, b) = (Node::alone(), Node::alone());
    let lifted = a.kill("agent:bot");
    let killed = row(&a, RowKind::Kill, "agent:bot");
    a.catalog.lift(&lifted.id).unwrap();
    let gone = row(&a, RowKind::Kill, "agent:bot");
    assert!(gone.content.is_none() && gone.stamp.beats(Some(&killed.stamp)));
    let generation = b.catalog.snapshot().generation;
    assert!(matches!(b.catalog.apply(std::slice::from_ref(&killed), |_| None).unwrap()[..], [Applied::Killed(..)]));
    assert_eq!(b.catalog.apply(std::slice::from_ref(&killed), |_| None).unwrap(), []);
    assert_eq!(b.catalog.snapshot().generation, generation + 1, "nobody is told twice");
    assert!(matches!(b.catalog.apply(std::slice::from_ref(&gone), |_| None).unwrap()[..], [Applied::Lifted(..)]));
    assert_eq!(b.catalog.apply(std::slice::from_ref(&killed), |_| None).unwrap(), []);
    assert!(!b.is_killed("agent:bot"));
    // A node that never had it does not take it either, once it knows that it left.
    let c = Node::alone();
    assert_eq!(c.catalog.apply(&[gone, killed], |_| None).unwrap(), []);
    assert_eq!(
        row(&b, RowKind::Kill, "agent:bot"),
        row(&c, RowKind::Kill, "agent:bot"),
        "with the stamp of its author"
    );
}

#[test]
fn of_one_resume_the_furthest_place_holds_and_it_is_added_to_once() {
    let nodes = [Node::alone(), Node::alone(), Node::alone()];
    let [a, b, c] = &nodes;
    a.kill("run:bot/task");
    a.resume("task");
    let name = "run:bot/task";
    let done = |steps: u32| move |_: &RunKey| Some(RunTotals { tree_steps: steps, ..RunTotals::default() });
    let steps = |node: &Node| node.catalog.snapshot().mark(&run_key("task")).unwrap().steps;
    let first = row(a, RowKind::Mark, name);
    assert!(matches!(b.catalog.apply(std::slice::from_ref(&first), done(9)).unwrap()[..], [Applied::Marked(_)]));
    assert!(matches!(c.catalog.apply(&[first], done(5)).unwrap()[..], [Applied::Marked(_)]));
    assert_eq!((steps(a), steps(b), steps(c)), (3, 9, 5));
    // What they know goes to all; what the run does meanwhile is not forgiven.
    for _ in 0..2 {
        for from in &nodes {
            for to in &nodes {
                assert_eq!(to.catalog.apply(&[row(from, RowKind::Mark, name)], done(50)).unwrap(), []);
            }
        }
    }
    assert_eq!((steps(a), steps(b), steps(c)), (9, 9, 9));
}

#[test]
fn a_kill_that_is_over_takes_no_newer_one_with_it() {
    let a = Node::alone();
    let mut short = kill("agent:bot", KillKind::Kill, "anna");
    short.expires_at = Some(Timestamp(6));
    a.catalog.kill(short, &[]).unwrap();
    let before = row(&a, RowKind::Kill, "agent:bot");
    let mut later = kill("agent:other", KillKind::Kill, "anna");
    later.at = Timestamp(100);
    a.catalog.kill(later, &[]).unwrap();
    let after = row(&a, RowKind::Kill, "agent:bot");
    assert!(after.content.is_none(), "it is over, and left");
    assert_eq!((after.stamp.at, &after.stamp.node), (before.stamp.at, &before.stamp.node));
    assert!(after.stamp.beats(Some(&before.stamp)));
}

#[test]
fn what_the_disk_refuses_is_not_taken_but_stops_hold() {
    let (a, b) = (Node::alone(), Node::alone());
    let bot = AgentName::parse("bot").unwrap();
    a.catalog.add_key(key(1)).unwrap();
    b.catalog.apply(&[row(&a, RowKind::Key, "key-00000001")], |_| None).unwrap();
    let revoke = |old: &KeyEntry| Some(KeyEntry { key: old.key.revoked(Timestamp(7)), ..old.clone() });
    a.catalog.change_key("key-00000001", revoke).unwrap();
    a.catalog.add_key(key(2)).unwrap();
    a.kill("all");
    let stop = |known: &AgentStanding| known.deactivated(DeactivatedBy::Manual, "why".into(), None, Timestamp(3));
    a.catalog.set_agent(&bot, stop).unwrap();
    let rows = [
        row(&a, RowKind::Key, "key-00000001"),
        row(&a, RowKind::Key, "key-00000002"),
        row(&a, RowKind::Kill, "all"),
        row(&a, RowKind::Standing, "bot"),
    ];
    let disk = rusqlite::Connection::open(b.dir.path().join("catalog.db")).unwrap();
    let no = "CREATE TRIGGER no BEFORE INSERT ON stamps BEGIN SELECT RAISE(ABORT, 'no room'); END";
    disk.execute_batch(no).unwrap();
    assert!(matches!(b.catalog.apply(&rows, |_| None), Err(StoreError::Database { .. })));
    let holds = |b: &Node| {
        let snapshot = b.catalog.snapshot();
        let is_revoked = snapshot.key("key-00000001").unwrap().key.revoked_at.is_some();
        (is_revoked, b.is_killed("all"), snapshot.agent(&bot).is_some_and(|agent| !agent.active))
    };
    assert_eq!(holds(&b), (true, true, true));
    assert!(b.catalog.snapshot().key("key-00000002").is_none());
    // An order of this node's own that the disk refuses is there for others, too.
    assert!(b.catalog.kill(kill("agent:own", KillKind::Kill, "bert"), &[]).is_err());
    assert!(row(&b, RowKind::Kill, "agent:own").content.is_some());
    assert!(b.catalog.stamps(RowKind::Kill).unwrap().iter().any(|(name, _)| name == "agent:own"));

    disk.execute_batch("DROP TRIGGER no").unwrap();
    assert_eq!(b.catalog.apply(&rows, |_| None).unwrap().len(), 4, "they come again, and are written");
    let dir = b.dir.clone();
    drop(b);
    let b = Node::open(dir);
    assert_eq!(holds(&b), (true, true, true));
}
