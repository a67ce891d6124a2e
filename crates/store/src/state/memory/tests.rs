use sprag_core::event::{Ending, RunOrigin};
use sprag_core::id::RunId;

use super::*;

fn key(id: &str) -> RunKey {
    RunKey { agent: AgentName::default(), id: RunId::parse(id).unwrap() }
}

fn run_active_at(last_at: i64) -> Box<Run> {
    let mut run = Box::<Run>::default();
    run.totals.last_at = Timestamp(last_at);
    run
}

#[test]
fn the_idlest_go_first_and_no_more_than_an_eighth() {
    let mut runs: HashMap<Arc<RunKey>, Box<Run>, RandomState> =
        (0..16).map(|n| (Arc::new(key(&n.to_string())), run_active_at(n))).collect();
    assert!(evict_idlest(&mut runs));
    assert_eq!(runs.len(), 13);
    assert!(["0", "1", "2"].iter().all(|id| !runs.contains_key(&key(id))));
}

#[test]
fn runs_of_the_same_moment_do_not_all_go() {
    let mut runs: HashMap<Arc<RunKey>, Box<Run>, RandomState> =
        (0..16).map(|n| (Arc::new(key(&n.to_string())), run_active_at(5))).collect();
    assert!(evict_idlest(&mut runs));
    assert_eq!(runs.len(), 13);
}

#[test]
fn a_shard_of_busy_runs_has_no_room() {
    let mut busy = run_active_at(1);
    busy.child_opened(Timestamp(1), RunOrigin::Declared);
    let mut runs: HashMap<_, _, RandomState> = [(Arc::new(key("busy")), busy)].into_iter().collect();
    assert!(!evict_idlest(&mut runs));
    assert_eq!(runs.len(), 1);
    assert!(runs.insert(Arc::new(key("idle")), run_active_at(9)).is_none());
    assert!(evict_idlest(&mut runs));
    assert!(runs.contains_key(&key("busy")));
}

#[test]
fn who_follows_a_watch_hears_of_calls_under_way() {
    let state = MemoryState::with_bounds(SHARDS, 16);
    let key = key("run");
    let follow = |version| state.follow_agent_watch(&key.agent, AgentWatch::default(), version, true);
    assert!(!follow(1));
    let request = OpenRequest {
        key: key.clone(),
        parent: None,
        origin: RunOrigin::Declared,
        now: Timestamp(1),
        seed: None,
        lineage: vec![],
    };
    state.open(&request).unwrap();
    assert!(follow(2), "its end brings along what was merged");
    state.settle(&key, Settlement { cost: None, usage: None, ending: Ending::Complete, now: Timestamp(2) });
    assert!(!follow(3));
}

#[test]
fn a_refused_run_counts_nowhere() {
    let state = MemoryState::with_bounds(SHARDS, 16);
    let mut opened = 0;
    let mut refused = 0;
    for n in 0..200 {
        let request = OpenRequest {
            key: key(&n.to_string()),
            parent: None,
            origin: RunOrigin::Declared,
            now: Timestamp(n),
            seed: None,
            lineage: vec![],
        };
        match state.open(&request) {
            Ok(_) => opened += 1,
            Err(refusal) => {
                assert_eq!(refusal, OpenRefusal::TooManyRuns);
                refused += 1;
            }
        }
    }
    assert_eq!(opened, SHARDS, "one in each shard");
    assert_eq!(refused, 200 - SHARDS);
    assert_eq!((state.counts().runs, state.counts().in_flight), (SHARDS, SHARDS));
}
