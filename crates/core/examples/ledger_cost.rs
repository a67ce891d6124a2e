//! What money costs per call: setting it aside on five accounts and settling it.
//!
//!     cargo run --release -p sprag-core --example ledger_cost [RUNS] [CALLS]
//!
//! Each call is of another run of the open ones, so that its account is seldom in the processor's cache; its key's,
//! agent's and everybody's accounts are shared. Building the draws is the caller's work and is measured apart.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for measuring")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{
    AccountId, Draw, Holder, Ledger, Level, Reservation, Seed, Span, Stage, StageAction, Window, estimate,
};
use sprag_core::policy::{Asked, Habits, Reserve};
use sprag_core::price::Prices;
use sprag_core::time::Timestamp;

const AGENTS: usize = 10_000;

fn main() {
    let words: Vec<usize> = std::env::args().skip(1).map(|word| word.parse().unwrap()).collect();
    let runs = words.first().copied().unwrap_or(100_000);
    let calls = words.get(1).copied().unwrap_or(1_000_000);
    let world = World::new(runs);
    let mut ledger = Ledger::default();
    for run in 0..runs {
        let reservation = ledger.reserve(&world.draws(run), NanoUsd(1), NanoUsd(1), Timestamp(0)).unwrap();
        ledger.settle(&reservation, NanoUsd(1));
    }
    println!("{} open accounts", ledger.len());

    let mut times = [const { Vec::new() }; 3];
    // A step that is coprime with any usual number of runs visits them in no order that a cache could foresee.
    let mut run = 0;
    for call in 0..calls {
        run = (run + 7_368_787) % runs;
        let now = Timestamp(i64::try_from(call).unwrap());
        let draws = timed(&mut times[0], || world.draws(run));
        let reservation: Reservation =
            timed(&mut times[1], || ledger.reserve(&draws, NanoUsd(1_000), NanoUsd(1_000), now).unwrap());
        timed(&mut times[2], || {
            black_box(ledger.settle(&reservation, NanoUsd(900)));
            drop(reservation);
        });
    }
    let overhead = clock_overhead();
    for (what, times) in ["build 5 draws", "reserve on 5", "settle on 5"].into_iter().zip(&mut times) {
        println!("{what:15} {:7} ns", median(times).saturating_sub(overhead));
    }
    println!("{:15} {:7.0} ns", "estimate", estimating(calls));
}

struct World {
    agents: Vec<AgentName>,
    runs: Vec<RunId>,
    key: Arc<str>,
    stages: Arc<[Stage]>,
}

impl World {
    fn new(runs: usize) -> World {
        World {
            agents: (0..AGENTS).map(|n| AgentName::parse(&format!("agent-{n}")).unwrap()).collect(),
            runs: (0..runs).map(|n| RunId::parse(&format!("run-0123456789abcdef-{n}")).unwrap()).collect(),
            key: "key-0123456789abcdef".into(),
            stages: [Stage { at: 80, action: StageAction::Warn }].into(),
        }
    }

    fn draws(&self, run: usize) -> [Draw; 5] {
        let agent = &self.agents[run % AGENTS];
        let draw = |holder: Holder, window: Window| Draw {
            id: AccountId { holder, window, is_shadow: false },
            limit: NanoUsd(i64::MAX),
            level: Level::Agent,
            span: Span { start: Timestamp(0), end: Timestamp(i64::MAX) },
            seed: Some(Seed::default()),
            stages: self.stages.clone(),
        };
        [
            draw(Holder::Run(agent.clone(), self.runs[run].clone()), Window::Run),
            draw(Holder::Key(self.key.clone()), Window::Day),
            draw(Holder::Agent(agent.clone()), Window::Day),
            draw(Holder::Agent(agent.clone()), Window::Month),
            draw(Holder::Everything, Window::Day),
        ]
    }
}

fn timed<R>(times: &mut Vec<u64>, work: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = black_box(work());
    times.push(u64::try_from(start.elapsed().as_nanos()).unwrap());
    result
}

/// On a busy machine a few calls wait for others to give way: they say nothing about the ledger.
fn median(times: &mut [u64]) -> u64 {
    let middle = times.len() / 2;
    *times.select_nth_unstable(middle).1
}

/// What reading the clock adds to each measurement, in nanoseconds.
fn clock_overhead() -> u64 {
    let mut times = Vec::new();
    for _ in 0..100_000 {
        timed(&mut times, || ());
    }
    median(&mut times)
}

fn estimating(calls: usize) -> f64 {
    let prices = Prices::embedded();
    let price = prices.rows().next().unwrap();
    let habits = Habits { calls: 3, output_tokens: 400.0, tokens_per_byte: 0.2 };
    let start = Instant::now();
    for call in 0..calls {
        let asked = Asked { prompt_bytes: call as u64, choices: 1, ..Asked::default() };
        black_box(estimate(black_box(&asked), price, Some(&habits), Reserve::Expected));
        black_box(estimate(black_box(&asked), price, Some(&habits), Reserve::WorstCase));
    }
    start.elapsed().as_nanos() as f64 / calls as f64 / 2.0
}
