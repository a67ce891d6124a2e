//! What is measured, and how: a scenario gives for one target a row of numbers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::{Rig, Row, Target, start, steps};
use crate::load::{self, Plan, Seen};
use crate::mock::Shape;
use crate::prompt::Prompt;
use crate::{cpu_clock, process};

#[derive(Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub title: &'static str,
    kind: Kind,
    /// Times in a round.
    pub repeats: usize,
    /// In the first round only.
    pub is_once: bool,
    /// At Sprag with a Redis, too.
    pub with_redis: bool,
}

#[derive(Debug)]
enum Kind {
    Rest,
    Start,
    Steps,
    Whole { bytes: usize, new_bytes: usize, connections: usize, requests: u64, seconds: f64 },
    Stream { connections: usize, chunks: usize, delay_ms: u64, requests: u64, seconds: f64 },
    SlowStreams,
}

const fn whole(bytes: usize, new_bytes: usize, connections: usize, requests: u64, seconds: f64) -> Kind {
    Kind::Whole { bytes, new_bytes, connections, requests, seconds }
}

const fn stream(connections: usize, chunks: usize, delay_ms: u64, requests: u64, seconds: f64) -> Kind {
    Kind::Stream { connections, chunks, delay_ms, requests, seconds }
}

const fn scenario(name: &'static str, title: &'static str, repeats: usize, kind: Kind) -> Scenario {
    Scenario { name, title, kind, repeats, is_once: false, with_redis: false }
}

/// In the order of measuring: memory first, before anything was held and given back.
pub static SCENARIOS: [Scenario; 13] = [
    Scenario { is_once: true, ..scenario("rest", "Memory at rest, before the first load", 1, Kind::Rest) },
    // Once: what the first thousand took is kept for the next, and would be a part of where they begin.
    Scenario {
        is_once: true,
        ..scenario("streams1k", "1,000 streams at once, one chunk a second each", 1, Kind::SlowStreams)
    },
    Scenario {
        with_redis: true,
        ..scenario("latency", "1 KB prompt, 1 connection", 3, whole(1024, 400, 1, 4000, 2.5))
    },
    scenario("throughput", "1 KB prompt, 64 connections", 1, whole(1024, 400, 64, 300_000, 5.0)),
    scenario("ttfc", "Streams of 5 chunks, one every 2 ms, 1 connection", 3, stream(1, 5, 2, 2000, 2.0)),
    scenario("chunks", "Streams of 200 chunks without pause, 16 connections", 1, stream(16, 200, 0, 20_000, 5.0)),
    scenario("paced", "Streams of 50 chunks, one every 10 ms, 32 connections", 1, stream(32, 50, 10, 4000, 5.0)),
    scenario("body100k_c1", "100 KB prompt, 2 KB of it new, 1 connection", 2, whole(102_400, 2048, 1, 1500, 2.5)),
    scenario("body100k_c8", "100 KB prompt, 2 KB of it new, 8 connections", 1, whole(102_400, 2048, 8, 40_000, 4.0)),
    scenario("body1m_c1", "1 MB prompt, 2 KB of it new, 1 connection", 2, whole(1_048_576, 2048, 1, 400, 3.0)),
    scenario("body1m_c8", "1 MB prompt, 2 KB of it new, 8 connections", 1, whole(1_048_576, 2048, 8, 8000, 4.0)),
    scenario("steps1k", "A run of 1,000 steps, with its whole history in each", 1, Kind::Steps),
    scenario("start", "From the start of the program to its first answer", 3, Kind::Start),
];

pub fn choose(names: &[String]) -> Result<Vec<&'static Scenario>> {
    if let Some(unknown) = names.iter().find(|name| super::scenario(name).is_none()) {
        let known: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        bail!("there is no scenario {unknown:?}; there are {}", known.join(", "));
    }
    let is_chosen = |scenario: &&Scenario| names.is_empty() || names.iter().any(|name| name == scenario.name);
    Ok(SCENARIOS.iter().filter(is_chosen).collect())
}

impl Scenario {
    /// None where there is nothing to measure at this target.
    pub fn run(&'static self, rig: &Rig<'_>, target: &Target) -> Result<Option<Row>> {
        let is_direct = target.pids.is_empty();
        match self.kind {
            Kind::Rest if is_direct => Ok(None),
            Kind::Rest => rest(rig, target).map(Some),
            Kind::Steps if is_direct => Ok(None),
            Kind::Steps => steps::measure(rig, target).map(Some),
            Kind::Start if target.name == "sprag" => start::measure(rig).map(Some),
            Kind::Start => Ok(None),
            Kind::Whole { bytes, new_bytes, connections, requests, seconds } => {
                rig.mock.set(Shape::default());
                let mut plan = Plan::new(target.address, Prompt::chat(bytes, new_bytes, false, 7));
                (plan.connections, plan.requests, plan.seconds) = (connections, requests, seconds * rig.pace);
                plan.warm_up = (connections as u64 * 3).max(20);
                let (seen, mut row) = run(rig, target, &plan)?;
                row.insert("rps", seen.requests_per_second());
                Ok(Some(row))
            }
            Kind::Stream { connections, chunks, delay_ms, requests, seconds } => {
                rig.mock.set(Shape { chunks, chunk_delay_ms: delay_ms, ..Shape::default() });
                let mut plan = Plan::new(target.address, Prompt::chat(1024, 400, true, 7));
                (plan.connections, plan.requests, plan.seconds) = (connections, requests, seconds * rig.pace);
                plan.warm_up = connections.max(5) as u64;
                let (seen, mut row) = run(rig, target, &plan)?;
                row.insert("first_p50_us", seen.first_us(0.5));
                row.insert("first_p99_us", seen.first_us(0.99));
                Ok(Some(row))
            }
            Kind::SlowStreams => slow_streams(rig, target).map(Some),
        }
    }
}

/// One run of load, with what it cost the target.
fn run(rig: &Rig<'_>, target: &Target, plan: &Plan) -> Result<(Seen, Row)> {
    let counters = rig.mock.counters();
    let (requests, chunks) = (counters.requests.load(Ordering::Relaxed), counters.chunks.load(Ordering::Relaxed));
    let before = cpu_clock::spent(&target.pids);
    let seen = load::run(plan)?;
    let spent_us = cpu_clock::spent(&target.pids).saturating_sub(before).as_secs_f64() * 1e6;
    // Those of the warm-up cost too.
    let requests = counters.requests.load(Ordering::Relaxed) - requests;
    let chunks = counters.chunks.load(Ordering::Relaxed) - chunks;
    let mut row = Row::new();
    row.insert("ok", seen.ok as f64);
    row.insert("failed", seen.failed as f64);
    row.insert("p50_us", seen.total_us(0.5));
    row.insert("p99_us", seen.total_us(0.99));
    if !target.pids.is_empty() {
        row.insert("cpu_us_per_request", spent_us / requests.max(1) as f64);
        if chunks > 0 {
            row.insert("cpu_us_per_chunk", spent_us / chunks as f64);
        }
        row.insert("rss_mib", process::memory(&target.pids).rss_kib as f64 / 1024.0);
    }
    if let Some(complaint) = &seen.complaint {
        eprintln!("{}: {} of {} failed, such as: {complaint}", target.name, seen.failed, seen.failed + seen.ok);
    }
    Ok((seen, row))
}

fn rest(rig: &Rig<'_>, target: &Target) -> Result<Row> {
    rig.mock.set(Shape::default());
    let mut plan = Plan::new(target.address, Prompt::chat(1024, 400, false, 7));
    plan.requests = 3;
    let seen = load::run(&plan)?;
    if seen.failed > 0 {
        bail!("{} does not answer: {}", target.name, seen.complaint.unwrap_or_default());
    }
    let memory = process::memory(&target.pids);
    Ok(Row::from([("rss_mib", memory.rss_kib as f64 / 1024.0), ("pss_mib", memory.pss_kib as f64 / 1024.0)]))
}

const STREAMS: usize = 1000;

/// How long memory may take to settle, and what does not count as growth.
const SETTLES_WITHIN: Duration = Duration::from_secs(30);
const STEADY_KIB: u64 = 256;

/// Memory once it has hardly grown for a second: the first stream makes Sprag load a tokenizer on the side, 40 MB that are
/// no stream's.
fn settled_memory(target: &Target) -> process::Memory {
    let (end, mut last) = (Instant::now() + SETTLES_WITHIN, process::memory(&target.pids));
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = process::memory(&target.pids);
        if now.pss_kib <= last.pss_kib + STEADY_KIB || Instant::now() >= end {
            return now;
        }
        last = now;
    }
}

fn slow_streams(rig: &Rig<'_>, target: &Target) -> Result<Row> {
    let (chunks, ramp) = (15, Duration::from_secs(6));
    // What the first stream brings into memory for good does not belong to the thousand.
    rig.mock.set(Shape::default());
    let mut first = Plan::new(target.address, Prompt::chat(1024, 400, true, 7));
    first.requests = 5;
    load::run(&first)?;
    let before = settled_memory(target);
    rig.mock.set(Shape { chunks, chunk_delay_ms: 1000, ..Shape::default() });
    let mut plan = Plan::new(target.address, Prompt::chat(1024, 400, true, 7));
    (plan.connections, plan.requests, plan.ramp) = (STREAMS, STREAMS as u64, ramp);
    (plan.seconds, plan.timeout) = (5.0, Duration::from_secs(90));
    let is_over = AtomicBool::new(false);
    let (result, samples) = std::thread::scope(|scope| {
        let sampling = scope.spawn(|| {
            let mut samples = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let in_flight = rig.mock.counters().in_flight.load(Ordering::Relaxed);
                samples.push((in_flight, process::memory(&target.pids)));
                std::thread::sleep(Duration::from_millis(250));
            }
            samples
        });
        let result = run(rig, target, &plan);
        is_over.store(true, Ordering::Relaxed);
        (result, sampling.join().unwrap_or_default())
    });
    let (seen, mut row) = result?;
    let top = samples.iter().map(|(in_flight, _)| *in_flight).max().unwrap_or(0);
    let full = samples.iter().filter(|(in_flight, _)| *in_flight * 100 >= top * 98);
    let pss_kib = full.map(|(_, memory)| memory.pss_kib).max().unwrap_or(0);
    row.insert("in_flight", top as f64);
    row.insert("events_per_stream", seen.events as f64 / seen.ok.max(1) as f64);
    if !target.pids.is_empty() {
        row.insert("kib_per_stream", pss_kib.saturating_sub(before.pss_kib) as f64 / top.max(1) as f64);
    }
    Ok(row)
}
