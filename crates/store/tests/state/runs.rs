//! What every run state must do: one suite over memory and over Redis.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sprag_core::event::{Ending, RunOrigin};
use sprag_core::id::RunId;
use sprag_core::limits::{CLUES_IN_MEMORY, RUN_TREE_DEPTH, RUNS_IN_MEMORY};
use sprag_core::money::NanoUsd;
use sprag_core::run::Remember;
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;
use sprag_store::RunKey;
use sprag_store::state::{Ancestor, MemoryState, OpenRequest, Opened, RunTotals, Settlement, State, StateCounts};

use crate::common::{key, key_of};
use crate::contract::{AnyState, over_every_state};

over_every_state!(
    counts_steps_and_money,
    counts_calls_in_flight_of_an_agent,
    adds_to_the_runs_above,
    survives_circles_and_depth,
    starts_from_what_the_history_knows,
    tells_the_tree_of_a_call,
    counts_refused_calls_against_no_limit,
    resolves_clues,
    gives_each_offer_to_one_claim,
    is_exact_under_concurrency,
    settles_a_call_once,
);

#[test]
fn memory_knows_the_clues_of_a_run() {
    knows_the_clues_of_a_run(&State::memory());
}

#[test]
fn memory_forgets_idle_runs_only() {
    forgets_idle_runs_only(&State::memory());
}

#[test]
fn memory_stays_within_its_bounds() {
    let state = State::Memory(MemoryState::with_bounds(1600, 3200));
    stays_within_bounds(&state, 1600, 3200);
}

#[test]
fn memory_stays_within_its_bounds_by_default() {
    stays_within_bounds(&State::memory(), RUNS_IN_MEMORY, CLUES_IN_MEMORY);
}

fn request(key: &RunKey, now: i64) -> OpenRequest {
    let (parent, origin) = (None, RunOrigin::Declared);
    OpenRequest { key: key.clone(), parent, origin, now: Timestamp(now), seed: None, lineage: vec![] }
}

fn child(key: &RunKey, parent: &str, now: i64) -> OpenRequest {
    OpenRequest { parent: Some(RunId::parse(parent).unwrap()), ..request(key, now) }
}

fn paid(nano: i64, now: i64) -> Settlement {
    Settlement {
        cost: Some(NanoUsd(nano)),
        usage: Some(Usage { input: 10, cache_read: 5, output: 3, ..Usage::default() }),
        ending: Ending::Complete,
        now: Timestamp(now),
    }
}

fn counts_steps_and_money(state: &AnyState) {
    let run = key("r");
    let first = state.open(&request(&run, 100)).unwrap();
    assert_eq!((first.step, first.is_new, first.in_flight, first.agent_in_flight), (1, true, 1, 1));
    assert_eq!(first.totals.steps, 0);
    let second = state.open(&request(&run, 110)).unwrap();
    assert_eq!((second.step, second.is_new, second.in_flight, second.agent_in_flight), (2, false, 2, 2));
    assert_eq!(second.totals.steps, 1);

    assert_eq!(state.settle(&run, paid(7, 120)).cost, NanoUsd(7));
    let totals = state.settle(&run, Settlement { cost: None, ending: Ending::TimedOut, ..paid(0, 130) });
    let expected = RunTotals {
        steps: 2,
        cost: NanoUsd(7),
        tree_steps: 2,
        tree_cost: NanoUsd(7),
        tree_refused: 0,
        input_tokens: 30,
        output_tokens: 6,
        unpriced_steps: 1,
        failed_steps: 1,
        first_at: Timestamp(100),
        last_at: Timestamp(130),
    };
    assert_eq!(totals, expected);
    assert_eq!(state.totals(&run), Some(expected));
    assert_eq!(state.totals(&key_of("other", "r")), None, "ids belong to their agent");

    let third = state.open(&request(&run, 140)).unwrap();
    assert_eq!((third.step, third.totals), (3, expected));
    let refused = Settlement { cost: None, usage: None, ending: Ending::Refused, now: Timestamp(141) };
    let totals = state.settle(&run, refused);
    assert_eq!((totals.cost, totals.unpriced_steps, totals.failed_steps), (NanoUsd(7), 1, 1));
    assert_eq!(state.counts(), StateCounts { runs: 1, in_flight: 0, ..StateCounts::default() });
}

fn counts_calls_in_flight_of_an_agent(state: &AnyState) {
    let in_flight = |run: &RunKey, now| state.open(&request(run, now)).unwrap().agent_in_flight;
    assert_eq!((in_flight(&key("a"), 1), in_flight(&key("b"), 1)), (1, 2));
    assert_eq!(in_flight(&key_of("other", "b"), 2), 1, "agents do not share");
    assert_eq!(state.enter(&key("a").agent), 3, "requests outside runs count too");
    assert_eq!(state.counts().in_flight, 4);

    state.settle(&key("a"), paid(1, 3));
    state.leave(&key("a").agent);
    assert_eq!(in_flight(&key("b"), 4), 2);
    assert_eq!(state.counts().in_flight, 3);
}

fn adds_to_the_runs_above(state: &AnyState) {
    let (top, mid, low) = (key("top"), key("mid"), key("low"));
    state.open(&request(&top, 1)).unwrap();
    state.open(&child(&mid, "top", 2)).unwrap();
    state.open(&child(&low, "mid", 3)).unwrap();
    state.settle(&low, paid(100, 4));
    state.settle(&mid, paid(10, 5));
    state.settle(&top, paid(1, 6));
    let tree = |key: &RunKey| state.totals(key).map(|t| (t.steps, t.cost.0, t.tree_steps, t.tree_cost.0)).unwrap();
    assert_eq!(tree(&low), (1, 100, 1, 100));
    assert_eq!(tree(&mid), (1, 10, 2, 110));
    assert_eq!(tree(&top), (1, 1, 3, 111));

    // The parent needs to be told only once, and a child may come before its parent.
    state.open(&request(&low, 7)).unwrap();
    state.settle(&low, paid(100, 8));
    assert_eq!(tree(&top), (1, 1, 4, 211));
    state.open(&child(&key("early"), "late", 9)).unwrap();
    state.settle(&key("early"), paid(5, 10));
    let late = state.open(&request(&key("late"), 11)).unwrap();
    assert_eq!((late.step, late.is_new, late.totals.tree_cost), (1, true, NanoUsd(5)));
    assert_eq!(late.totals.first_at, Timestamp(9), "a run begins with its first part");
}

fn tells_the_tree_of_a_call(state: &AnyState) {
    state.open(&request(&key("top"), 1)).unwrap();
    state.open(&child(&key("mid"), "top", 2)).unwrap();
    let places = |opened: Opened| -> Vec<(String, u32, i64)> {
        opened.tree.into_iter().map(|place| (place.id.to_string(), place.steps, place.first_at.0)).collect()
    };
    let low = state.open(&OpenRequest { origin: RunOrigin::Session, ..child(&key("low"), "mid", 3) }).unwrap();
    let origins: Vec<RunOrigin> = low.tree.iter().map(|place| place.origin).collect();
    assert_eq!(origins, [RunOrigin::Session, RunOrigin::Declared, RunOrigin::Declared]);
    assert_eq!(places(low), [("low".into(), 1, 3), ("mid".into(), 2, 2), ("top".into(), 3, 1)]);

    // After a restart the runs above are known from the history only.
    let totals = |steps, first_at| RunTotals { tree_steps: steps, first_at: Timestamp(first_at), ..seed_of(steps) };
    let ancestor = |id: &str, totals| Ancestor { id: RunId::parse(id).unwrap(), totals };
    let lineage = vec![ancestor("old-mid", None), ancestor("old-top", Some(totals(40, 1)))];
    let request = OpenRequest { lineage, ..child(&key("old-low"), "old-mid", 50) };
    let expected = [("old-low".to_owned(), 1, 50), ("old-mid".to_owned(), 1, 50), ("old-top".to_owned(), 41, 1)];
    assert_eq!(places(state.open(&request).unwrap()), expected);
    let again = places(state.open(&request).unwrap());
    assert_eq!(again[2], ("old-top".into(), 42, 1), "it is taken from the history once");
}

fn counts_refused_calls_against_no_limit(state: &AnyState) {
    let settled = |ending| Settlement { cost: None, usage: None, ending, now: Timestamp(1) };
    state.open(&request(&key("top"), 1)).unwrap();
    state.settle(&key("top"), settled(Ending::Complete));
    for ending in [Ending::Refused, Ending::Killed, Ending::UpstreamError] {
        state.open(&child(&key("part"), "top", 1)).unwrap();
        state.settle(&key("part"), settled(ending));
    }
    let opened = state.open(&request(&key("top"), 1)).unwrap();
    assert_eq!((opened.step, opened.tree[0].steps), (2, 3), "the first, the failed one and this one");
    let totals = state.totals(&key("top")).unwrap();
    assert_eq!((totals.tree_steps, totals.tree_refused, totals.counted_steps()), (5, 2, 3));
    assert_eq!(state.totals(&key("part")).unwrap().counted_steps(), 1);
}

fn seed_of(steps: u32) -> RunTotals {
    RunTotals { steps, ..RunTotals::default() }
}

fn knows_the_clues_of_a_run(state: &State) {
    state.remember(&[1, 2], &key("a"));
    let unless_taken = |clue| Remember { unless_taken: vec![clue], ..Remember::default() };
    state.keep(&unless_taken(3), &key("a"));
    state.remember(&[4], &key("b"));
    state.keep(&unless_taken(5), &key("a"));
    state.keep(&unless_taken(5), &key("b"));
    let mut clues = state.clues_of(&key("a"), 10);
    clues.sort_unstable();
    assert_eq!(clues, [1, 2, 3], "those that lead to it alone");
    assert_eq!(state.clues_of(&key("a"), 2).len(), 2);
    assert!(state.clues_of(&key("c"), 10).is_empty());
}

fn survives_circles_and_depth(state: &AnyState) {
    for (id, parent) in [("a", "b"), ("b", "a"), ("self", "self")] {
        state.open(&child(&key(id), parent, 1)).unwrap();
        state.settle(&key(id), paid(1, 2));
    }
    assert_eq!(state.totals(&key("a")).unwrap().tree_cost, NanoUsd(2));
    assert_eq!(state.totals(&key("b")).unwrap().tree_cost, NanoUsd(2));
    assert_eq!(state.totals(&key("self")).unwrap().tree_cost, NanoUsd(1));

    let depth = RUN_TREE_DEPTH + 1;
    for n in 1..=depth {
        let run = key(&format!("deep{n}"));
        state.open(&child(&run, &format!("deep{}", n - 1), 3)).unwrap();
        let cost = if n == depth { 1 } else { 0 };
        state.settle(&run, paid(cost, 4));
    }
    assert_eq!(state.totals(&key("deep1")).unwrap().tree_cost, NanoUsd(1), "at the bound");
    assert_eq!(state.totals(&key("deep0")).unwrap().tree_cost, NanoUsd(0), "past it");
    assert_eq!((state.counts().runs, state.counts().in_flight), (depth + 1 + 3, 0));
}

fn starts_from_what_the_history_knows(state: &AnyState) {
    let seed = RunTotals {
        steps: 29,
        cost: NanoUsd(50),
        tree_steps: 40,
        tree_cost: NanoUsd(90),
        first_at: Timestamp(1),
        last_at: Timestamp(5),
        ..RunTotals::default()
    };
    let seeded = OpenRequest { seed: Some(seed), ..request(&key("r"), 100) };
    let opened = state.open(&seeded).unwrap();
    assert_eq!((opened.step, opened.is_new, opened.totals), (30, false, seed));
    let totals = state.settle(&key("r"), paid(1, 101));
    assert_eq!((totals.cost, totals.tree_cost, totals.first_at), (NanoUsd(51), NanoUsd(91), Timestamp(1)));
    assert_eq!(state.open(&seeded).unwrap().step, 31, "memory knows better than the seed");

    state.open(&child(&key("child"), "parent", 1)).unwrap();
    state.settle(&key("child"), paid(100, 2));
    assert!(state.knows(&key("child")) && !state.knows(&key("parent")), "only named by its child");
    let seeded = OpenRequest { seed: Some(seed), ..request(&key("parent"), 3) };
    let opened = state.open(&seeded).unwrap();
    assert!(state.knows(&key("parent")));
    assert_eq!((opened.step, opened.totals.tree_steps, opened.totals.tree_cost), (30, 40, NanoUsd(100)));
}

fn resolves_clues(state: &AnyState) {
    assert_eq!(state.resolve(&[1, 2, 3]), None);
    state.remember(&[2, 3], &key("a"));
    assert_eq!(state.resolve(&[1, 2, 3]), Some((1, key("a"))));
    state.remember(&[1], &key("b"));
    assert_eq!(state.resolve(&[1, 2, 3]), Some((0, key("b"))));
    state.remember(&[2], &key("b"));
    assert_eq!(state.resolve(&[2]), Some((0, key("b"))), "the last to remember has it");

    state.remember_unless_taken(9, &key("a"));
    state.remember_unless_taken(9, &key("a"));
    assert_eq!(state.resolve(&[9]), Some((0, key("a"))));
    state.remember_unless_taken(9, &key("b"));
    assert_eq!(state.resolve(&[9, 3]), Some((1, key("a"))), "a clue of two runs is skipped");
    state.remember_unless_taken(9, &key("a"));
    assert_eq!(state.resolve(&[9]), None, "and stays so");
    assert_eq!(state.counts().clues, 4);
}

fn forgets_idle_runs_only(state: &State) {
    for (id, at) in [("idle", 0), ("fresh", 60), ("busy", 0)] {
        state.open(&request(&key(id), at)).unwrap();
    }
    state.settle(&key("idle"), paid(1, 0));
    state.settle(&key("fresh"), paid(1, 60));
    state.open(&request(&key("above"), 0)).unwrap();
    state.settle(&key("above"), paid(1, 0));
    state.open(&child(&key("below"), "above", 0)).unwrap();

    assert_eq!(state.sweep(Timestamp(99), 100), 0);
    assert_eq!(state.sweep(Timestamp(100), 100), 1);
    assert_eq!(state.totals(&key("idle")), None);
    assert!(state.totals(&key("above")).is_some(), "a call below keeps a run");
    assert_eq!(state.sweep(Timestamp(1_000_000), 100), 1);
    assert_eq!(state.counts(), StateCounts { runs: 3, in_flight: 2, ..StateCounts::default() });
    assert_eq!(state.settle(&key("busy"), paid(1, 1_000_000)).cost, NanoUsd(1));
    state.settle(&key("below"), paid(1, 1_000_000));
    assert_eq!(state.sweep(Timestamp(1_000_100), 100), 3);
}

fn is_exact_under_concurrency(state: &AnyState) {
    let calls = state.storm();
    thread::scope(|scope| {
        for worker in 0..8 {
            scope.spawn(move || {
                for n in 0..calls {
                    let own = key(&format!("own{worker}"));
                    let run = if n % 2 == 0 { key("shared") } else { own };
                    state.open(&child(&run, "top", n)).unwrap();
                    state.settle(&run, paid(n, n));
                }
            });
        }
    });
    let even: i64 = (0..calls).filter(|n| n % 2 == 0).sum();
    let odd: i64 = (0..calls).filter(|n| n % 2 == 1).sum();
    let shared = state.totals(&key("shared")).unwrap();
    let (half, calls) = (u32::try_from(calls / 2).unwrap(), u32::try_from(calls).unwrap());
    assert_eq!((shared.steps, shared.cost), (8 * half, NanoUsd(8 * even)));
    assert_eq!(shared.input_tokens, u64::from(8 * half) * 15);
    for worker in 0..8 {
        let own = state.totals(&key(&format!("own{worker}"))).unwrap();
        assert_eq!((own.steps, own.cost), (half, NanoUsd(odd)));
    }
    let top = state.totals(&key("top")).unwrap();
    assert_eq!((top.steps, top.tree_steps, top.tree_cost), (0, 8 * calls, NanoUsd(8 * (even + odd))));
    assert_eq!(state.counts().in_flight, 0);
    assert_eq!(state.counts().runs, 10);
}

fn gives_each_offer_to_one_claim(state: &AnyState) {
    assert_eq!(state.claim(5), None);
    for run in ["a", "b", "c", "a"] {
        state.offer(5, &key(run));
    }
    state.withdraw(5, &key("c"));
    state.withdraw(6, &key("c"));
    assert_eq!([state.claim(5), state.claim(5), state.claim(5)], [Some(key("a")), Some(key("b")), None]);
    assert_eq!(state.resolve(&[5]), None, "an offer is no clue");
    let claims = AtomicUsize::new(0);
    (0..40).for_each(|n| state.offer(7, &key(&n.to_string())));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while state.claim(7).is_some() {
                    claims.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(claims.into_inner(), 40);
}

fn settles_a_call_once(state: &AnyState) {
    state.open(&request(&key("r"), 1)).unwrap();
    state.open(&request(&key("other"), 1)).unwrap();
    state.settle(&key("r"), paid(5, 2));
    assert_eq!(state.settle(&key("r"), paid(5, 3)).cost, NanoUsd(5));
    assert_eq!(state.settle(&key("never opened"), paid(5, 3)), RunTotals::default());
    assert_eq!(state.counts(), StateCounts { runs: 2, in_flight: 1, ..StateCounts::default() });
}

fn stays_within_bounds(state: &State, runs: usize, clues: usize) {
    let busy = key("busy");
    state.open(&request(&busy, 0)).unwrap();
    let mut most = 0;
    for n in 0..runs as i64 * 2 {
        let run = key(&n.to_string());
        state.open(&request(&run, n)).unwrap();
        state.settle(&run, paid(1, n));
        if n % 101 == 0 || n as usize > runs * 2 - 10 {
            most = most.max(state.counts().runs);
        }
        state.remember(&[n as u64 * 2, n as u64 * 2 + 1], &run);
    }
    for n in 0..clues as u64 * 2 {
        state.remember(&[n], &busy);
    }
    assert!(most <= runs && most > runs / 2, "{most} of {runs}");
    assert!(state.counts().clues <= clues && state.counts().clues >= clues / 4);
    assert!(state.totals(&busy).is_some(), "a busy run stays, however old");
    assert!(state.totals(&key("0")).is_none());
    assert!(state.totals(&key(&(runs * 2 - 1).to_string())).is_some());
}
