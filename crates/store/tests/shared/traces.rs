//! What calls of every kind leave behind in Redis goes by itself.

use sprag_core::loops::{Mode, Preset, Rules};
use sprag_core::policy::{RateMeasure, RateRule};
use sprag_core::run::Remember;
use sprag_store::shared::{
    Change, Correction, End, Missed, MissedAccount, MissedRun, NewHabits, NewWatch, RatesEnd, RepeatAsk,
};
use sprag_store::state::{RateAsk, RunTotals};

use super::*;

/// Keys that stay for ever. None: a Redis that nobody uses any more is empty in the end.
const STAYING: [&str; 0] = [];

fn rule(id: u64, measure: RateMeasure, mode: Mode) -> RateRule {
    RateRule { name: "r".into(), mode, limit_keys: Vec::new(), measure, id }
}

/// A call that draws on everything that there is.
fn rich_call(state: &RedisState, run: &RunKey, number: u64, end: Option<EndHow>) {
    let slow = RateMeasure::Bucket { rps: 1e-300, burst: 1e9 };
    let long = RateMeasure::Requests { limit: 1_000, window_ms: u64::MAX / 4 };
    let rules = [
        rule(1, RateMeasure::Tokens { limit: 1_000_000, window_ms: 60_000 }, Mode::Enforce),
        rule(2, slow, Mode::Enforce),
        rule(3, long, Mode::Shadow),
    ];
    let rates: Vec<RateAsk<'_>> = rules.iter().map(|rule| RateAsk { rule, bucket: rule.id, amount: 7 }).collect();
    let mut draws = vec![everything(1_000_000), of_day(Holder::Agent(run.agent.clone()), 1_000_000)];
    draws[1].id.window = Window::Month;
    let shadow: Vec<Draw> = draws
        .iter()
        .map(|draw| Draw { id: AccountId { is_shadow: true, ..draw.id.clone() }, ..draw.clone() })
        .collect();
    let of_runs = of_runs(&run.agent, 1_000_000);
    let amount = NanoUsd(10);
    let asked = MoneyAsk {
        enforced: AskedPurse { of_runs: Some(&of_runs), draws: &draws },
        shadow: AskedPurse { of_runs: None, draws: &shadow },
        amount,
        least: amount,
        run_corrections: &[],
    };
    let mut repeat = Rules::preset(Preset::Strict).repeat;
    repeat.common.mode = Mode::Enforce;
    repeat.common.window.requests = if number.is_multiple_of(2) { 0 } else { 50 };
    let left = Remember { clues: vec![number], unless_taken: vec![1], offers: vec![2, number], withdrawn: vec![3] };
    let call = call_id();
    let parent = key("top").id;
    let named = NamedRun { id: &run.id, parent: Some(&parent), origin: RunOrigin::Declared, seed: None, lineage: &[] };
    let begun = state.begin(&Begin {
        run: AskedRun::Named(named),
        remember: &left,
        rates: &rates,
        money: Some(asked),
        repeat: Some(RepeatAsk { fingerprint: number % 3, rule: &repeat }),
        ..outside(&call, &run.agent, &NOTHING)
    });
    let Some(how) = end else { return };
    let watch = Some(NewWatch { based_on: None, version: number + 1, bytes: b"w" });
    let habits = Some(NewHabits { run: Some(&[1; 24]), of_model: Some(("m", &[1; 24])) });
    let rates = RatesEnd::Used { tokens: 3 };
    let late = [AccountId { window: Window::Day, ..draws[1].id.clone() }];
    state.end(&begun.call, &End { watch, agent_watch: watch, habits, rates, late: &late, ..ending(how, &left) });
}

fn correct(state: &RedisState, draw: &Draw, change: Change) {
    state.shared.correct(Correction { name: call_id(), account: draw.id.clone(), span: draw.span, change });
    state.runtime.block_on(state.shared.tell_corrections()).unwrap();
}

#[test]
fn every_key_of_a_busy_scene_has_a_time_to_live() {
    let Some(one) = node() else { return };
    let (two, dies) = (one.neighbour(), one.neighbour());
    for number in 0..12 {
        let state = if number % 2 == 0 { &one } else { &two };
        let run = key(&format!("r{}", number % 3));
        let how = match number % 4 {
            0 => contract::refused(at(0)),
            1 => EndHow::Withdrawn,
            _ => cost(5, at(0)),
        };
        rich_call(state, &run, number, Some(how));
    }
    // Some are under way; of these some belong to a node that dies.
    rich_call(&one, &key("r1"), 20, None);
    rich_call(&dies, &key("r2"), 21, None);
    drop(dies);
    one.at(at(61_000));
    one.runtime.block_on(one.shared.catch_up());
    rich_call(&two, &key("r2"), 22, Some(cost(5, at(0))));
    correct(&one, &everything(0), Change::By(NanoUsd(4)));
    correct(&one, &everything(0), Change::Reset { spent: NanoUsd(0) });
    let added = RunTotals { steps: 1, tree_steps: 1, cost: NanoUsd(3), last_at: at(5), ..RunTotals::default() };
    let missed_run = |id: &str| MissedRun {
        agent: key(id).agent,
        id: key(id).id,
        parent: None,
        origin: RunOrigin::Declared,
        added,
        known: added,
    };
    let spent = MissedAccount { id: everything(0).id, span: DAY, spent: NanoUsd(3), before: NanoUsd(9) };
    let missed = |name: &str| Missed {
        id: name.into(),
        runs: vec![missed_run("r1"), missed_run("alone")],
        accounts: vec![spent.clone()],
    };
    one.runtime.block_on(one.shared.reconcile(&missed("absence"))).unwrap();
    all_have_a_time_to_live(&one, 40);
    // What a Redis that lost everything is told leaves marks of its own.
    let open = begin_paid(&one, &key("r1"), money(&[everything(1_000)], 5));
    one.server.flush();
    settle(&one, &open.call, 5);
    correct(&one, &everything(0), Change::By(NanoUsd(4)));
    one.runtime.block_on(one.shared.reconcile(&missed("another"))).unwrap();
    let put = NewWatch { based_on: Some(1), version: 2, bytes: b"w" };
    one.runtime.block_on(one.shared.put_watch(&key("r1").agent, Some(&key("r1").id), &put)).unwrap();
    all_have_a_time_to_live(&one, 5);
}

fn all_have_a_time_to_live(state: &RedisState, least: usize) {
    let keys = state.keys("*");
    assert!(keys.len() >= least, "{keys:?}");
    for key in &keys {
        let left_ms = state.server.ask(&["PTTL", key]).number();
        let stays = STAYING.contains(&key.as_str());
        assert!(stays || left_ms > 0, "{key} has no time to live: {left_ms}");
        assert!(key.starts_with("sprag:2:{"), "{key}");
    }
}
