//! Sprag beside nginx and a direct connection, in one run on one machine, held against the goals.
//!
//! On a shared machine only ratios within one run mean anything, so every scenario goes over all targets before the next
//! one, in several rounds. `added` is what a target takes beyond a direct connection. The mock and the load are on one
//! core, the proxy that is measured on another.

mod goals;
mod report;
mod scenarios;
mod start;
mod steps;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use self::scenarios::{SCENARIOS, Scenario};
use crate::mock::Mock;
use crate::process;
use crate::targets::{self, Proxy, Redis, Seat, Sprag};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The program to measure.
    #[arg(long, default_value = "target/release/sprag")]
    sprag: PathBuf,
    /// How often everything is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Shorter runs.
    #[arg(long)]
    quick: bool,
    /// Only these, by name.
    #[arg(long, value_delimiter = ',')]
    scenarios: Vec<String>,
    /// End with status 1 where a goal is not met, or could not be measured.
    #[arg(long)]
    check: bool,
    /// Leave the choice of cores to the system.
    #[arg(long)]
    no_pin: bool,
    /// Real-time priority for all that is measured: for a machine that others use. Needs root.
    #[arg(long)]
    realtime: bool,
    /// Where the report goes.
    #[arg(long, default_value = "bench/results")]
    out: PathBuf,
    /// Its name.
    #[arg(long, default_value = "compare")]
    label: String,
}

/// Sprag that shares its state through a Redis on loopback.
const WITH_REDIS: &str = "sprag+redis";

/// One way to the mock.
pub struct Target {
    pub name: &'static str,
    pub address: SocketAddr,
    /// Whose CPU time and memory count; none for the direct way.
    pub pids: Vec<i32>,
}

/// What a scenario measured at one target, by name.
pub type Row = BTreeMap<&'static str, f64>;

/// All rows, by scenario and target, in the order of measuring.
pub type Rows = BTreeMap<(&'static str, &'static str), Vec<Row>>;

/// What a scenario may use.
pub struct Rig<'a> {
    pub mock: &'a Mock,
    pub program: &'a Path,
    pub seat: Seat,
    /// The share of the usual time.
    pub pace: f64,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let chosen = scenarios::choose(&options.scenarios)?;
    let folder = tempfile::tempdir()?;
    let mock = Mock::start(targets::free_address()?)?;
    let seat = Seat { core: (!options.no_pin).then_some(1), is_realtime: options.realtime };
    if options.realtime {
        targets::go_realtime()?;
    }
    let (at_nginx, at_sprag) = (folder.path().join("nginx"), folder.path().join("sprag"));
    std::fs::create_dir_all(&at_nginx)?;
    std::fs::create_dir_all(&at_sprag)?;
    let nginx = targets::nginx(mock.address, &at_nginx, seat)?;
    let how = Sprag { program: &options.sprag, mock: mock.address, folder: &at_sprag, seat, under: &[], config: "" };
    let sprag = targets::sprag(&how)?;
    let is_asked_of_redis = chosen.iter().any(|scenario| scenario.with_redis);
    let shared = if is_asked_of_redis { with_redis(&options.sprag, &mock, folder.path(), seat)? } else { None };
    let direct = Target { name: "direct", address: mock.address, pids: Vec::new() };
    let mut targets = vec![direct, target(&nginx), target(&sprag)];
    targets.extend(shared.as_ref().map(|(sprag, _)| Target { name: WITH_REDIS, ..target(sprag) }));
    let rig = Rig { mock: &mock, program: &options.sprag, seat, pace: if options.quick { 0.4 } else { 1.0 } };

    let mut rows = Rows::new();
    for round in 1..=options.rounds {
        for scenario in &chosen {
            if scenario.is_once && round > 1 {
                continue;
            }
            for _ in 0..scenario.repeats {
                for target in targets.iter().filter(|target| target.name != WITH_REDIS || scenario.with_redis) {
                    measure(&rig, scenario, target, round, &mut rows)?;
                }
            }
        }
    }
    if let Some((_, redis)) = &shared
        && redis.keys()? == 0
    {
        bail!("Sprag has put nothing into the Redis that it was to share");
    }
    let report = report::Report::new(&rows, &chosen, options.rounds, &options.sprag);
    std::fs::create_dir_all(&options.out)?;
    let file = options.out.join(options.label.clone() + ".md");
    std::fs::write(&file, report.markdown()).with_context(|| format!("{} cannot be written", file.display()))?;
    std::fs::write(options.out.join(options.label.clone() + ".json"), report.json()?)?;
    println!("{}\nwritten to {}", report.goals_table(), file.display());
    Ok(ExitCode::from(u8::from(options.check && !report.is_met())))
}

/// A second Sprag, and the Redis that it shares its state through, which ends after it. None where there is no Redis.
fn with_redis(program: &Path, mock: &Mock, folder: &Path, seat: Seat) -> Result<Option<(Proxy, Redis)>> {
    let (at_redis, at_sprag) = (folder.join("redis"), folder.join("sprag-redis"));
    std::fs::create_dir_all(&at_redis)?;
    std::fs::create_dir_all(&at_sprag)?;
    let Some(redis) = targets::redis(&at_redis)? else {
        eprintln!("SKIPPED: Sprag with a Redis: redis-server is missing; on Debian: apt-get install redis-server");
        return Ok(None);
    };
    let config = format!("[state]\nredis = \"redis://{}\"\n", redis.address);
    let how = Sprag { program, mock: mock.address, folder: &at_sprag, seat, under: &[], config: &config };
    Ok(Some((targets::sprag(&how)?, redis)))
}

fn target(proxy: &Proxy) -> Target {
    Target { name: proxy.name, address: proxy.address, pids: proxy.pids() }
}

fn measure(rig: &Rig<'_>, scenario: &'static Scenario, target: &Target, round: usize, rows: &mut Rows) -> Result<()> {
    let (busy, own, spent, began) =
        (process::machine_busy_seconds(), own_cpu(), crate::cpu_clock::spent(&target.pids), std::time::Instant::now());
    let Some(mut row) = scenario.run(rig, target).with_context(|| format!("{} of {}", scenario.name, target.name))?
    else {
        return Ok(());
    };
    let ours = (own_cpu() - own) + (crate::cpu_clock::spent(&target.pids).saturating_sub(spent)).as_secs_f64();
    let wall = began.elapsed().as_secs_f64();
    row.insert("other_cores", ((process::machine_busy_seconds() - busy - ours) / wall).max(0.0));
    let line: Vec<String> = row.iter().map(|(name, value)| format!("{name} {value:.2}")).collect();
    eprintln!("round {round}  {:<12} {:<7} {}", scenario.name, target.name, line.join("  "));
    rows.entry((scenario.name, target.name)).or_default().push(row);
    Ok(())
}

fn own_cpu() -> f64 {
    crate::cpu_clock::spent(&[i32::try_from(std::process::id()).unwrap_or(0)]).as_secs_f64()
}

/// The middle of the values of one metric.
pub fn median(rows: &Rows, scenario: &'static str, target: &'static str, metric: &str) -> Option<f64> {
    let of = rows.get(&(scenario, target))?;
    let mut values: Vec<f64> = of.iter().filter_map(|row| row.get(metric).copied()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let (below, above) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some((below + above) / 2.0)
}

/// The middle of what a target takes beyond the direct way, measured right before it.
pub fn added(rows: &Rows, scenario: &'static str, target: &'static str, metric: &str) -> Option<f64> {
    let (of, direct) = (rows.get(&(scenario, target))?, rows.get(&(scenario, "direct"))?);
    let mut values: Vec<f64> =
        of.iter().zip(direct).filter_map(|(row, base)| Some(row.get(metric)? - base.get(metric)?)).collect();
    values.sort_unstable_by(f64::total_cmp);
    let (below, above) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some((below + above) / 2.0)
}

pub fn scenario(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}
