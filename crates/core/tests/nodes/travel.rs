//! A watch that is packed and unpacked before everything that happens sees exactly what one that stays in memory sees.

use sprag_core::loops::{AgentWatch, Arrival, Mode, Preset, Rules, RunWatch, decide, read_turn};

use crate::recorded::{Run, SAMPLE, beside, fixtures};

#[test]
fn recorded_runs_are_judged_the_same_when_their_watches_travel() {
    let runs = fixtures();
    assert!(runs.iter().map(follow).filter(|is_stopped| *is_stopped).count() > 0, "nothing to compare");
}

#[test]
fn real_runs_are_judged_the_same_when_their_watches_travel() {
    let Some(runs) = beside(SAMPLE) else {
        eprintln!("SKIPPED: no recorded runs beside the repository");
        return;
    };
    assert!(runs.iter().map(follow).filter(|is_stopped| *is_stopped).count() > 5, "too little to compare");
}

#[test]
#[ignore = "all real runs: for a release build"]
fn all_real_runs_are_judged_the_same_when_their_watches_travel() {
    beside(1).iter().flatten().for_each(|run| {
        follow(run);
    });
}

/// Follows a run twice, to its end, under all detectors; whether it would have been stopped.
fn follow(run: &Run) -> bool {
    let mut rules = Rules::preset(Preset::Strict);
    rules.similar.needs_second_signal = true;
    rules.velocity.max_tokens_per_minute = 20_000;
    assert!(
        [&rules.progress.common, &rules.score.common, &rules.velocity.common].iter().all(|c| c.mode == Mode::Enforce)
    );
    let (mut stays, mut travels) = (RunWatch::default(), RunWatch::default());
    let (mut agent_stays, mut agent_travels) = (AgentWatch::default(), AgentWatch::default());
    let mut is_stopped = false;
    for (step, exchange) in (1..).zip(run.exchanges()) {
        let name = format!("{} {step}", run.run_id);
        travels = RunWatch::unpack(&travels.pack()).expect(&name);
        agent_travels = AgentWatch::unpack(&agent_travels.pack()).expect(&name);
        exchange.with_call(|call, end| {
            let turn = read_turn(call, false);
            let arrival = Arrival { step, now: exchange.now, end, turn: &turn, is_declared: true };
            let look = stays.arrive(&arrival, &rules);
            assert_eq!(travels.arrive(&arrival, &rules), look, "{name}");
            let found = agent_stays.arrive(7, stays.is_retry(), &arrival, &rules);
            assert_eq!(agent_travels.arrive(7, travels.is_retry(), &arrival, &rules), found, "{name}");
            assert_eq!(agent_travels.tally(), agent_stays.tally(), "{name}");
            let findings = [look.findings, found].concat();
            let decision = decide(findings.clone(), &rules, stays.strikes(), step);
            assert_eq!(decide(findings, &rules, travels.strikes(), step), decision, "{name}");
            assert_eq!(travels.strikes(), stays.strikes(), "{name}");
            is_stopped |= decision.stops();
        });
        travels = RunWatch::unpack(&travels.pack()).expect(&name);
        agent_travels = AgentWatch::unpack(&agent_travels.pack()).expect(&name);
        exchange.depart(&mut stays, step);
        exchange.depart(&mut travels, step);
        agent_stays.depart(7, &exchange.departure(step), &rules);
        agent_travels.depart(7, &exchange.departure(step), &rules);
    }
    keep_for_fuzzing(&run.run_id, &travels.pack());
    is_stopped
}

/// What travels, for fuzzing to begin with: into the folder that `SPRAG_FUZZ_CORPUS` names.
fn keep_for_fuzzing(name: &str, bytes: &[u8]) {
    if let Some(folder) = std::env::var_os("SPRAG_FUZZ_CORPUS") {
        std::fs::write(std::path::Path::new(&folder).join(name.replace('/', "-")), bytes).unwrap();
    }
}
