//! Simulated agents as a program: a load over one or several nodes, for `bench/cluster`.
//!
//! Every agent is a thread with one connection to each node. It goes through runs one after the other; each step goes to the next
//! node, as behind a load balancer that knows nothing, carries the whole conversation so far, and waits for its answer. Runs that it does
//! not name are for Sprag to recognise. What came of it is printed as one line of JSON. It
//! neither retries nor streams.

mod conversation;
mod drive;

use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;

use drive::{Load, Outcome};
use serde_json::json;

const HELP: &str = "sprag-agents --node ADDR [--node ADDR …] [--runs N] [--steps N] [--connections N] [--long-percent N] [--named-percent N] [--agents N] [--rate N] [--name TEXT]

  --node ADDR         a node, or the provider itself; steps go round all of them
  --runs N            runs in all (100)
  --steps N           steps of a run (20)
  --connections N     agents at once, each with one call under way at most (8)
  --long-percent N    of a hundred runs, how many begin with a long history (20)
  --named-percent N   of a hundred runs, how many their agent names (50)
  --agents N          names that the agents have between them (32)
  --rate N            calls a second of all agents together; 0 is as fast as answers come (0)
  --name TEXT         what the names of runs begin with; another one for each load on the same nodes (load)";

fn main() -> ExitCode {
    let outcome = parse(std::env::args().skip(1)).and_then(|load| match load {
        Some(load) => say(&report(&drive::all(&load)?)),
        None => say(HELP),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "sprag-agents: {problem}");
            ExitCode::from(2)
        }
    }
}

fn report(outcome: &Outcome) -> String {
    let report = json!({
        "requests": outcome.latencies_us.len(),
        "seconds": outcome.seconds,
        "runs": outcome.runs,
        "sent_bytes": outcome.sent_bytes,
        "received_bytes": outcome.received_bytes,
        "failures": outcome.failures,
        "wrong_steps": outcome.wrong_steps,
        "latencies_us": outcome.latencies_us,
    });
    report.to_string()
}

fn say(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

/// Nothing when help was asked for.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Load>, String> {
    let mut load = Load {
        nodes: Vec::new(),
        runs: 100,
        steps: 20,
        connections: 8,
        long_percent: 20,
        named_percent: 50,
        agents: 32,
        rate: 0,
        name: "load".into(),
    };
    while let Some(flag) = arguments.next() {
        if flag == "--help" || flag == "-h" {
            return Ok(None);
        }
        let text = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
        let number = || text.parse::<u64>().map_err(|_| format!("{flag}: {text:?} is not a number"));
        match flag.as_str() {
            "--node" => {
                let bad = |_| format!("{flag}: {text:?} is not an address such as 127.0.0.1:7070");
                load.nodes.push(text.parse::<SocketAddr>().map_err(bad)?);
            }
            "--runs" => load.runs = number()?,
            "--steps" => load.steps = number()?,
            "--connections" => load.connections = number()?.max(1),
            "--long-percent" => load.long_percent = number()?,
            "--named-percent" => load.named_percent = number()?,
            "--agents" => load.agents = number()?.max(1),
            "--rate" => load.rate = number()?,
            "--name" => load.name = text,
            _ => return Err(format!("unknown flag {flag}\n{HELP}")),
        }
    }
    match load.nodes.is_empty() {
        true => Err(format!("no --node is given\n{HELP}")),
        false => Ok(Some(load)),
    }
}
