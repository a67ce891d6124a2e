//! A node follows what is known elsewhere, so that it is near the truth should that be lost.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use sprag_core::event::{Ending, RunOrigin};
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_core::policy::Habits;
use sprag_core::time::Timestamp;
use sprag_store::RunKey;
use sprag_store::state::{OpenRequest, Opened, RunPlace, RunTotals, Settlement, State};

fn key(id: &str) -> RunKey {
    RunKey { agent: AgentName::default(), id: RunId::parse(id).unwrap() }
}

fn request(id: &str) -> OpenRequest {
    let (seed, lineage) = (None, Vec::new());
    OpenRequest { key: key(id), parent: None, origin: RunOrigin::Declared, now: Timestamp(100), seed, lineage }
}

fn place(id: &str, steps: u32, cost: i64) -> RunPlace {
    let (id, origin) = (RunId::parse(id).unwrap(), RunOrigin::Declared);
    RunPlace { id, origin, steps, first_at: Timestamp(10), tree_cost: NanoUsd(cost) }
}

/// The seventh step of a run that is a part of another.
fn counted() -> Opened {
    let totals = RunTotals {
        steps: 6,
        cost: NanoUsd(60),
        tree_steps: 6,
        tree_cost: NanoUsd(60),
        first_at: Timestamp(10),
        last_at: Timestamp(90),
        ..RunTotals::default()
    };
    Opened {
        step: 7,
        totals,
        is_new: false,
        in_flight: 2,
        agent_in_flight: 5,
        habits: Habits::default(),
        tree: vec![place("task", 7, 60), place("above", 30, 300)],
    }
}

fn settled(cost: i64) -> Settlement {
    Settlement { cost: Some(NanoUsd(cost)), usage: None, ending: Ending::Complete, now: Timestamp(200) }
}

#[test]
fn a_run_goes_on_from_what_others_counted() {
    let state = State::memory();
    state.open_counted(&request("task"), &counted()).unwrap();
    let totals = state.settle(&key("task"), settled(4));
    assert_eq!((totals.steps, totals.cost, totals.tree_cost), (7, NanoUsd(64), NanoUsd(64)));
    assert_eq!((totals.first_at, totals.last_at), (Timestamp(10), Timestamp(200)));
    let above = state.totals(&key("above")).unwrap();
    assert_eq!((above.tree_steps, above.tree_cost), (30, NanoUsd(304)), "the run above has it too");
    let alone = state.open(&request("task")).unwrap();
    assert_eq!(alone.step, 8, "without the others it goes on from there");
    assert_eq!(alone.tree.len(), 2, "and is still a part of the other");
    state.settle(&key("task"), settled(0));
    assert_eq!(state.counts().in_flight, 0);
}

#[test]
fn numbers_of_others_never_make_a_run_smaller() {
    let state = State::memory();
    for _ in 0..10 {
        state.open(&request("task")).unwrap();
        state.settle(&key("task"), settled(50));
    }
    state.open_counted(&request("task"), &counted()).unwrap();
    let totals = state.settle(&key("task"), settled(0));
    assert_eq!((totals.steps, totals.cost), (11, NanoUsd(500)));
}

#[test]
fn what_a_node_knows_of_the_runs_above_can_be_told() {
    let state = State::memory();
    state.open_counted(&request("task"), &counted()).unwrap();
    let lineage = state.lineage(&key("task"));
    assert_eq!(lineage.len(), 1);
    assert_eq!((lineage[0].id.as_str(), lineage[0].totals.unwrap().tree_steps), ("above", 30));
    state.settle(&key("task"), settled(0));
}

#[test]
fn habits_of_others_count_where_they_saw_more() {
    let state = State::memory();
    let (agent, mut few, mut many) = (AgentName::default(), Habits::default(), Habits::default());
    few.learn(100, 25.0, 10);
    (0..5).for_each(|_| many.learn(100, 50.0, 20));
    state.follow_habits(None, Some((&agent, "m")), many);
    state.follow_habits(None, Some((&agent, "m")), few);
    assert_eq!(state.habits(&agent, "m").unwrap().calls, 5);
}

#[test]
fn a_watch_is_handed_out_under_a_new_version() {
    let state = State::memory();
    assert!(state.hand_out_watch(&key("task"), 9).is_none(), "nobody knows the run");
    state.open(&request("task")).unwrap();
    assert_eq!(state.watch_version(&key("task")), 0);
    let (bytes, based_on) = state.hand_out_watch(&key("task"), 9).unwrap();
    assert_eq!((based_on, state.watch_version(&key("task"))), (0, 9));
    let watch = sprag_core::loops::RunWatch::unpack(&bytes).unwrap();
    state.follow_watch(&key("task"), watch, 11, true);
    assert_eq!(state.hand_out_watch(&key("task"), 12).unwrap().1, 11);
    state.settle(&key("task"), settled(0));
}
