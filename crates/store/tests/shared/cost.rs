//! What it costs: round trips, memory, and nothing that stays for ever.

use std::thread;
use std::time::Instant;

use sprag_core::loops::{Mode, Preset, Rules};
use sprag_core::policy::{RateMeasure, RateRule};
use sprag_core::run::Remember;
use sprag_store::shared::{Begin, End, NewHabits, NewWatch, RepeatAsk};
use sprag_store::state::RateAsk;

use super::*;

/// Calls at once where the speed of Redis is measured.
const WORKERS: u64 = 16;

/// Runs that are measured.
const RUNS: u64 = 1_000;

/// Commands inside of scripts for a call that asks for everything: two that read, one for each thing that is written.
const MOST_COMMANDS: u64 = 34;
/// And of the first call of a run: whether there is really nothing, of the run and of its account.
const OF_A_NEW_RUN: u64 = 2;

/// Hashes, as clues are.
fn clue(number: u64, kind: u64) -> u64 {
    (number * 10 + kind + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A call that asks for everything that there is, and leaves everything behind.
fn whole_call(state: &RedisState, run: &RunKey, number: u64, watch: &[u8]) {
    let measures = [
        RateMeasure::Requests { limit: 1_000_000, window_ms: 60_000 },
        RateMeasure::Tokens { limit: 1_000_000_000, window_ms: 60_000 },
        RateMeasure::Bucket { rps: 1e6, burst: 1e6 },
    ];
    let rules = [0, 1, 2].map(|id| RateRule {
        name: "r".into(),
        mode: Mode::Enforce,
        limit_keys: Vec::new(),
        measure: measures[id],
        id: id as u64,
    });
    let asks = [0, 1, 2].map(|id| RateAsk { rule: &rules[id], bucket: id as u64, amount: 1 });
    let draws = [of_day(Holder::Agent(run.agent.clone()), i64::MAX), everything(i64::MAX)];
    let runs = of_runs(&run.agent, i64::MAX);
    let enforced = AskedPurse { of_runs: Some(&runs), draws: &draws };
    let mut repeat = Rules::preset(Preset::Fairvisor).repeat;
    repeat.common.window.requests = 5;
    let call = call_id();
    let named = NamedRun { id: &run.id, parent: None, origin: RunOrigin::Declared, seed: None, lineage: &[] };
    let left = Remember { clues: vec![clue(number, 0)], offers: vec![clue(number, 1)], ..Remember::default() };
    let begun = state.begin(&Begin {
        run: AskedRun::Named(named),
        rates: &asks,
        money: Some(MoneyAsk { enforced, ..money(&draws, 10) }),
        repeat: Some(RepeatAsk { fingerprint: number, rule: &repeat }),
        agent_watch: Some(0),
        model: Some("m"),
        ..outside(&call, &run.agent, &left)
    });
    // What waits for the next step is claimed by it.
    let left = Remember {
        clues: vec![clue(number, 2), clue(number, 3)],
        unless_taken: vec![clue(number, 4), clue(number, 5)],
        offers: vec![clue(number, 6)],
        withdrawn: vec![clue(number, 1), clue(number.saturating_sub(RUNS), 6)],
    };
    let watch = Some(NewWatch { based_on: None, version: number + 1, bytes: watch });
    let habits = Some(NewHabits { run: Some(&[1; 24]), of_model: Some(("m", &[1; 24])) });
    state.end(&begun.call, &End { watch, agent_watch: watch, habits, ..ending(cost(5, at(0)), &left) });
}

/// Commands that were called so far, inside of scripts and beside.
fn commands(state: &RedisState) -> u64 {
    let stats = state.server.info("commandstats");
    let calls = |line: &str| line.split("calls=").nth(1).and_then(|rest| rest.split(',').next()?.parse::<u64>().ok());
    // Those that only look do not count.
    stats.lines().filter(|line| !line.contains("cmdstat_info") && !line.contains("resetstat")).filter_map(calls).sum()
}

#[test]
fn one_round_trip_to_begin_and_one_to_end() {
    let Some(one) = node() else { return };
    whole_call(&one, &key("warm"), 0, b"w");
    one.server.reset_calls();
    for number in 1..=20 {
        whole_call(&one, &key("r"), number, b"w");
    }
    assert_eq!((one.server.calls_of("evalsha"), one.server.calls_of("eval")), (40, 0));
    let inside = commands(&one) - 40;
    let most = 20 * MOST_COMMANDS + OF_A_NEW_RUN;
    assert!(inside <= most, "{inside} commands for 20 calls:\n{}", one.server.info("commandstats"));
    let status = one.shared.status();
    assert_eq!((status.calls, status.failures), (42, 0));
}

#[test]
fn every_key_goes_by_itself() {
    let Some(one) = node() else { return };
    for number in 0..10 {
        whole_call(&one, &key(&format!("r{}", number % 3)), number, b"w");
    }
    let child = one.begin_run(&request(&key("child"), Some("top"), 0));
    one.runtime.block_on(one.shared.catch_up());
    let keys = one.keys("*");
    assert!(keys.len() > 30, "{keys:?}");
    for key in &keys {
        let left_ms = one.server.ask(&["PTTL", key]).number();
        assert!(left_ms > 0, "{key} has no time to live: {left_ms}");
        assert!(key.starts_with("sprag:2:{"), "{key}");
    }
    settle(&one, &child.call, 1);
    assert!(one.keys("*:call:*").is_empty(), "a call that is over leaves nothing of its own");
}

/// Prints what `docs/scaling.md` counts with. Run it with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "measures, and decides nothing"]
fn bytes_and_operations_of_runs_and_steps() {
    let Some(one) = node() else { return };
    let used = || {
        let info = one.server.info("memory");
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap().to_owned();
        line.trim().parse::<i64>().unwrap()
    };
    let watch = [7_u8; 700];
    for number in 0..200 {
        whole_call(&one, &key("warm"), number, &watch);
    }
    let (runs, steps) = (RUNS, 10_u64);
    let before = used();
    for number in 0..runs {
        whole_call(&one, &key(&format!("run-{number:06}")), number, &watch);
    }
    let after_runs = used();
    println!("bytes of a run with one step: {}", (after_runs - before) / runs as i64);
    let cpu_us = || {
        let info = one.server.info("cpu");
        let part = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        1e6 * (part("used_cpu_user:").unwrap() + part("used_cpu_sys:").unwrap())
    };
    one.server.reset_calls();
    let (started, cpu_before) = (Instant::now(), cpu_us());
    // Many at once, so that Redis is never idle: alone it would wait for its turn more than it works.
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (one, watch) = (&one, &watch);
            scope.spawn(move || {
                for number in (worker..runs * steps).step_by(WORKERS as usize) {
                    whole_call(one, &key(&format!("run-{:06}", number % runs)), RUNS + number, watch);
                }
            });
        }
    });
    let (took, cpu) = (started.elapsed(), cpu_us() - cpu_before);
    println!("processor time of Redis for each call: {:.0} us", cpu / (runs * steps) as f64);
    println!("bytes of a further step: {}", (used() - after_runs) / (runs * steps) as i64);
    let (stats, all) = (one.server.info("commandstats"), commands(&one));
    let per = |count: u64| count as f64 / (runs * steps) as f64;
    println!("commands inside scripts for each call: {:.1}", per(all - one.server.calls_of("evalsha")));
    println!("script calls for each call: {}", per(one.server.calls_of("evalsha")));
    println!("{WORKERS} at once: {:.0} calls a second", (runs * steps) as f64 / took.as_secs_f64());
    for line in stats.lines().filter(|line| line.contains("evalsha")) {
        println!("{line}");
    }
    let before = cpu_us();
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let one = &one;
            scope.spawn(move || {
                for number in 0..runs {
                    let begun = one.begin_run(&request(&key(&format!("plain-{worker}-{}", number % 100)), None, 0));
                    settle(one, &begun.call, 1);
                }
            });
        }
    });
    let cpu = (cpu_us() - before) / (runs * WORKERS) as f64;
    println!("processor time for a call that only counts in its run: {cpu:.0} us");
}
