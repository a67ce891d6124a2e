//! Runs whose requests go to one of three nodes.

use sprag_core::loops::{Preset, Rules};

use crate::cluster::{Asks, Cluster, Random, Stop};
use crate::recorded::{Exchange, Run, SAMPLE, beside, fixtures};

/// How well nodes hear of each other, in percent.
#[derive(Clone, Copy, Debug)]
struct Hearing {
    /// Requests that arrive at a node that has not asked what the others saw.
    unasked: u64,
    /// What has ended and is not sent yet, at each step.
    unsent: u64,
}

/// From a short delay to nearly nothing.
const HEARING: [Hearing; 4] = [
    Hearing { unasked: 0, unsent: 20 },
    Hearing { unasked: 20, unsent: 50 },
    Hearing { unasked: 50, unsent: 80 },
    Hearing { unasked: 100, unsent: 90 },
];

/// Runs go other ways with each.
const SEEDS: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0x2545_f491_4f6c_dd1d, 0xd1b5_4a32_d192_ed03];

#[test]
fn a_loop_that_goes_round_the_nodes_is_stopped_at_the_same_step() {
    let looping = fixtures();
    assert!(looping.iter().filter_map(goes_round).count() > 0);
    let Some(runs) = beside(SAMPLE) else {
        eprintln!("SKIPPED: no recorded runs beside the repository");
        return;
    };
    assert!(runs.iter().filter_map(goes_round).count() > 5, "too few loops");
}

/// What keeps healthy runs safe must not keep loops safe.
#[test]
fn a_loop_is_stopped_soon_though_nodes_hear_of_each_other_a_little_late() {
    let Some(runs) = beside(SAMPLE) else {
        eprintln!("SKIPPED: no recorded runs beside the repository");
        return;
    };
    let (mut loops, mut caught, mut later) = (0, 0, 0);
    for run in &runs {
        let exchanges = run.exchanges();
        let exchanges: Vec<&Exchange> = exchanges.iter().collect();
        let asks = Asks { rules: &Rules::preset(Preset::Balanced), is_declared: false };
        let Some((step, _)) = asks.alone(&exchanges) else { continue };
        for seed in SEEDS {
            loops += 1;
            let stop = spread(&mut Cluster::default(), &exchanges, &asks, HEARING[0], &mut Random(seed));
            caught += usize::from(stop.is_some());
            later += stop.map_or(0, |(late, _)| late.saturating_sub(step));
        }
    }
    eprintln!("{caught} of {loops} loops caught, {later} steps later in all");
    assert!(loops > 15 && caught * 10 >= loops * 8, "{caught} of {loops}");
}

#[test]
fn healthy_runs_are_not_stopped_however_late_nodes_hear_of_each_other() {
    let Some(runs) = beside(SAMPLE) else {
        eprintln!("SKIPPED: no recorded runs beside the repository");
        return;
    };
    SEEDS.iter().for_each(|seed| spread_alone(&runs, *seed).holds());
}

#[test]
fn healthy_conversations_at_once_in_one_run_are_not_stopped() {
    let Some(runs) = beside(SAMPLE) else {
        eprintln!("SKIPPED: no recorded runs beside the repository");
        return;
    };
    SEEDS.iter().for_each(|seed| spread_at_once(&runs, *seed).holds());
}

#[test]
#[ignore = "all real runs: for a release build"]
fn all_real_runs_hold_to_it() {
    let Some(runs) = beside(1) else {
        eprintln!("SKIPPED: no recorded runs beside the repository");
        return;
    };
    let stopped = runs.iter().filter_map(goes_round).count();
    eprintln!("{} runs, {stopped} stopped at the same step", runs.len());
    for found in SEEDS.iter().flat_map(|seed| [spread_alone(&runs, *seed), spread_at_once(&runs, *seed)]) {
        eprintln!("{} ways, {} merges, stopped:\n{}", found.ways, found.merges, found.stops.join("\n"));
        found.holds();
    }
}

/// What came of runs that are not stopped on one node.
#[derive(Default)]
struct Found {
    /// How often a run was spread.
    ways: usize,
    /// How often two nodes had seen different steps.
    merges: usize,
    /// Runs that were stopped, and why.
    stops: Vec<String>,
}

impl Found {
    fn holds(&self) {
        assert!(self.stops.is_empty(), "{}", self.stops.join("\n"));
        assert!(self.merges > 100, "too few merges to tell");
    }
}

/// Each request goes to the next node, after the answer before it is known to all. Gives where the run is stopped.
fn goes_round(run: &Run) -> Option<Stop> {
    let exchanges = run.exchanges();
    let exchanges: Vec<&Exchange> = exchanges.iter().collect();
    let mut stop = None;
    for (preset, is_declared) in [(Preset::Balanced, false), (Preset::Strict, true)] {
        let asks = Asks { rules: &Rules::preset(preset), is_declared };
        let mut cluster = Cluster::default();
        stop = (1..).zip(&exchanges).find_map(|(step, exchange)| {
            let node = step as usize % 3;
            cluster.fetch(node);
            let why = cluster.arrive(node, exchange, step, &asks);
            cluster.depart(node, exchange, step);
            cluster.send(node);
            why.map(|why| (step, why))
        });
        assert_eq!(stop, asks.alone(&exchanges), "{}", run.run_id);
        assert_eq!(cluster.merges, 0, "there was nothing to merge");
    }
    stop
}

/// Spreads healthy runs at random.
fn spread_alone(runs: &[Run], seed: u64) -> Found {
    let mut random = Random(seed);
    let mut found = Found::default();
    for run in runs.iter().filter(|run| run.is_healthy()) {
        let exchanges = run.exchanges();
        let exchanges: Vec<&Exchange> = exchanges.iter().collect();
        spread_all_ways(&run.run_id, &exchanges, &mut random, &mut found);
    }
    found
}

/// The same with two runs as conversations of one that began at the same time.
fn spread_at_once(runs: &[Run], seed: u64) -> Found {
    let mut random = Random(!seed);
    let mut found = Found::default();
    let healthy: Vec<&Run> = runs.iter().filter(|run| run.is_healthy()).collect();
    for pair in healthy.chunks_exact(2) {
        let (first, second) = (pair[0].exchanges(), pair[1].exchanges());
        let mut both: Vec<&Exchange> = first.iter().chain(&second).collect();
        both.sort_by_key(|exchange| exchange.now);
        spread_all_ways(&format!("{} and {}", pair[0].run_id, pair[1].run_id), &both, &mut random, &mut found);
    }
    found
}

/// Spreads a run that is not stopped on one node, however nodes hear of each other.
fn spread_all_ways(name: &str, exchanges: &[&Exchange], random: &mut Random, found: &mut Found) {
    for is_declared in [false, true] {
        let asks = Asks { rules: &Rules::preset(Preset::Balanced), is_declared };
        if asks.alone(exchanges).is_some() {
            continue;
        }
        for hearing in HEARING {
            let mut cluster = Cluster::default();
            let stop = spread(&mut cluster, exchanges, &asks, hearing, random);
            found.stops.extend(stop.map(|stop| format!("{name}, declared {is_declared}, {hearing:?}: {stop:?}")));
            found.merges += cluster.merges;
            found.ways += 1;
        }
    }
}

fn spread(
    cluster: &mut Cluster,
    exchanges: &[&Exchange],
    asks: &Asks<'_>,
    hearing: Hearing,
    random: &mut Random,
) -> Option<Stop> {
    let mut unsent = Vec::new();
    let mut open: Option<(usize, u32)> = None;
    (1..).zip(exchanges).find_map(|(step, exchange)| {
        let node = random.node();
        if !random.is(hearing.unasked) {
            cluster.fetch(node);
        }
        let why = cluster.arrive(node, exchange, step, asks);
        // The answer before may end after this request has come.
        if let Some((node, step)) = open.take() {
            cluster.depart(node, exchanges[step as usize - 1], step);
            unsent.push(node);
        }
        if random.is(hearing.unsent) {
            open = Some((node, step));
        } else {
            cluster.depart(node, exchange, step);
            unsent.push(node);
        }
        unsent.retain(|node| {
            let stays = random.is(hearing.unsent);
            if !stays {
                cluster.send(*node);
            }
            stays
        });
        why.map(|why| (step, why))
    })
}
