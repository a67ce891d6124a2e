//! Mixed traffic for a long time, to see whether anything grows: memory, open files, the spool, the database.
//!
//! Runs come at an even pace. What is kept for a while is kept for a short one here (`runs.idle_minutes`,
//! `runs.max_killed`, `events.max_db_mib`), so that everything has come and gone several times before the end.

mod report;
mod samples;
mod traffic;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use self::report::Report;
use self::samples::Sample;
use self::traffic::{Counts, Traffic};
use crate::mock::{Mock, Shape};
use crate::targets::{self, Seat, Sprag};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The program.
    #[arg(long, default_value = "target/release/sprag")]
    sprag: PathBuf,
    /// How long.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Runs in that time.
    #[arg(long, default_value_t = 300_000)]
    runs: u64,
    /// Leave the choice of cores to the system.
    #[arg(long)]
    no_pin: bool,
    /// Where the report goes.
    #[arg(long, default_value = "bench/results/soak.md")]
    out: PathBuf,
}

const SAMPLES: u32 = 120;
const CONFIG: &str = "[runs]\nidle_minutes = 1\nmax_killed = 1000\n[events]\nmax_db_mib = 64\n";

pub fn run(options: &Options) -> Result<ExitCode> {
    if options.minutes < 1.0 {
        bail!("--minutes {} is too short to see anything grow; at least 1", options.minutes);
    }
    let folder = tempfile::tempdir()?;
    let mock = Mock::start(targets::free_address()?)?;
    mock.set(Shape { latency_ms: 5, chunks: 20, chunk_delay_ms: 2, fail_every: 97, cut_every: 41, ..Shape::default() });
    let seat = Seat { core: (!options.no_pin).then_some(1), is_realtime: false };
    let how =
        Sprag { program: &options.sprag, mock: mock.address, folder: folder.path(), seat, under: &[], config: CONFIG };
    let mut sprag = targets::sprag(&how)?;
    let length = Duration::from_secs_f64(options.minutes * 60.0);
    let counts = Arc::new(Counts::default());
    let traffic = Traffic { address: sprag.address, runs: options.runs, length, counts: counts.clone() };
    let driving = std::thread::spawn(move || traffic.drive());

    let began = Instant::now();
    let mut samples = Vec::new();
    while !driving.is_finished() {
        std::thread::sleep((length / SAMPLES).min(Duration::from_secs(15)));
        if !sprag.is_running() {
            let log = std::fs::read_to_string(folder.path().join("sprag.log")).unwrap_or_default();
            bail!("Sprag ended after {:?}; it says: {log}", began.elapsed());
        }
        let sample = Sample::take(began.elapsed(), sprag.pid(), &sprag.folder.join("data"), &counts);
        eprintln!("{sample}");
        samples.push(sample);
    }
    driving.join().map_err(|_| anyhow::anyhow!("the traffic ended in a panic"))??;
    // What waits for the database is there a moment after the last call.
    let mut last = Sample::take(began.elapsed(), sprag.pid(), &sprag.folder.join("data"), &counts);
    let patience = Instant::now() + Duration::from_secs(30);
    while last.open_files > samples.first().map_or(0, |first| first.open_files) && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(500));
        last = Sample::take(began.elapsed(), sprag.pid(), &sprag.folder.join("data"), &counts);
    }
    eprintln!("{last}");
    let report = Report::new(&samples, &last, &counts, options.minutes);
    std::fs::write(&options.out, report.markdown())
        .with_context(|| format!("{} cannot be written", options.out.display()))?;
    println!("{}\nwritten to {}", report.verdicts(), options.out.display());
    Ok(ExitCode::from(u8::from(!report.is_flat())))
}
