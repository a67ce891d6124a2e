use sprag_core::event::{Ending, RunOrigin};
use sprag_core::id::RunId;

use super::*;

fn key(id: &str) -> RunKey {
    RunKey { agent: AgentName::default(), id: RunId::parse(id).unwrap() }
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
