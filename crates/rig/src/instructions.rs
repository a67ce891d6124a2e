//! Instructions that each stage of the line takes, and a whole request, counted by valgrind and held against limits.
//!
//! Counts do not depend on how busy the machine is, so they can be checked where times cannot. Stages are measured in a
//! program of their own (`crates/core/examples/stages`), which collects only inside the function that is measured.
//! Whole requests go through a Sprag that runs under valgrind, whose counters are read before and after.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::load::{self, Plan};
use crate::mock::{Mock, Shape};
use crate::process;
use crate::prompt::Prompt;
use crate::targets::{self, Proxy, Seat, Sprag};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The program with the stages.
    #[arg(long)]
    stages: PathBuf,
    /// Sprag, for whole requests; without one only stages are counted.
    #[arg(long)]
    sprag: Option<PathBuf>,
    /// Most instructions of each, a `name = number` a line; without it nothing is too much.
    #[arg(long)]
    limits: Option<PathBuf>,
    /// Write what was counted, and a twentieth more, as the new limits.
    #[arg(long, requires = "limits")]
    bless: bool,
    /// Where the table goes.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Calls that are counted of each stage.
const COUNTED: u64 = 20;

pub fn run(options: &Options) -> Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let mut counted: Vec<(String, u64)> = Vec::new();
    for name in stage_names(&options.stages)? {
        let count = stage(&options.stages, &name, folder.path())?;
        counted.push((name, count));
    }
    if let Some(sprag) = &options.sprag {
        counted.extend(whole_requests(sprag, folder.path())?);
    }
    if let (true, Some(limits)) = (options.bless, &options.limits) {
        return bless(limits, &counted).map(|()| ExitCode::SUCCESS);
    }
    let limits = options.limits.as_deref().map(read_limits).transpose()?;
    let (table, broken) = table(&counted, limits.as_ref());
    println!("{table}");
    if let Some(out) = &options.out {
        fs::write(
            out,
            format!(
                "# Instructions\n\nOf one call of each stage of a release, counted by valgrind (`bench/instructions --release`).\n\n{table}"
            ),
        )?;
    }
    for complaint in &broken {
        eprintln!("{complaint}");
    }
    Ok(ExitCode::from(u8::from(!broken.is_empty())))
}

fn stage_names(program: &Path) -> Result<Vec<String>> {
    let listed = Command::new(program).output().with_context(|| format!("{} cannot be run", program.display()))?;
    Ok(String::from_utf8_lossy(&listed.stdout).split_whitespace().map(str::to_owned).collect())
}

fn stage(program: &Path, name: &str, folder: &Path) -> Result<u64> {
    let out = folder.join("stage.out");
    let status = Command::new("valgrind")
        .args(["-q", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*measured_stage*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args([name, &COUNTED.to_string()])
        .stdout(Stdio::null())
        .status()
        .context("valgrind cannot be started; on Debian: apt-get install valgrind")?;
    if !status.success() {
        bail!("the stage {name} ended with {status}");
    }
    match total(&out)? / COUNTED {
        0 => bail!(
            "nothing of the stage {name} was counted: the program has no symbols, or its function has another name"
        ),
        count => Ok(count),
    }
}

/// The sum that callgrind has written.
fn total(file: &Path) -> Result<u64> {
    let text = fs::read_to_string(file).with_context(|| format!("{} is not there", file.display()))?;
    let sum = text.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    let sum = sum.and_then(|sum| sum.trim().parse().ok());
    sum.with_context(|| format!("{} holds no sum", file.display()))
}

/// A load that is counted whole.
#[derive(Clone, Copy)]
struct Load {
    requests: u64,
    bytes: usize,
    chunks: Option<usize>,
}

fn whole_requests(sprag: &Path, folder: &Path) -> Result<Vec<(String, u64)>> {
    let mock = Mock::start(targets::free_address()?)?;
    let mut counted = Counted::start(sprag, folder, &mock)?;
    let of = |requests, bytes, chunks| Load { requests, bytes, chunks };
    let (short, long) = (of(100, 1024, None), of(20, 102_400, None));
    let (few_chunks, many_chunks) = (of(20, 1024, Some(10)), of(20, 1024, Some(110)));
    // Each kind once before it counts: connections, pools and caches are there.
    for load in [short, long, many_chunks] {
        counted.carry(&mock, Load { requests: 20, ..load })?;
    }
    counted.await_tokenizer()?;
    let [short_sum, long_sum, few_sum, many_sum] = {
        let mut sums = [0; 4];
        for (sum, load) in sums.iter_mut().zip([short, long, few_chunks, many_chunks]) {
            // Twice: what happens only once does not belong to the requests.
            *sum = counted.carry(&mock, load)?.min(counted.carry(&mock, load)?);
        }
        sums
    };
    let chunks = many_chunks.requests * 100;
    Ok(vec![
        ("request_1kb".to_owned(), short_sum / short.requests),
        ("request_100kb".to_owned(), long_sum / long.requests),
        ("stream_of_10_chunks".to_owned(), few_sum / few_chunks.requests),
        ("chunk".to_owned(), many_sum.saturating_sub(few_sum) / chunks),
    ])
}

/// A Sprag under valgrind, whose counters are read between loads.
struct Counted {
    sprag: Proxy,
    out: PathBuf,
    dumps: u32,
    /// The thread that moves events to the database, by valgrind's number. How often it does is a matter of time and
    /// not of requests, so it does not count.
    history: String,
}

impl Counted {
    fn start(program: &Path, folder: &Path, mock: &Mock) -> Result<Counted> {
        let out = folder.join("sprag.out");
        // What happens until it listens is not counted, and so takes less time.
        let under =
            ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes"].map(str::to_owned);
        let under = [&under[..], &[format!("--callgrind-out-file={}", out.display())]].concat();
        // One core, so that it has one worker and none looks for work in vain.
        let seat = Seat { core: Some(0), is_realtime: false };
        let how = Sprag { program, mock: mock.address, folder, seat, under: &under, config: "" };
        let sprag = targets::sprag(&how)?;
        let nth = process::thread_names(sprag.pid()).iter().position(|name| name == "history");
        let nth = nth.context("there is no thread named history; whoever renamed it must change this too")?;
        // Valgrind counts threads as they begin, from 1 on.
        let counted = Counted { sprag, out, dumps: 0, history: format!("{:02}", nth + 1) };
        tell(&counted.sprag, "instrumentation on")?;
        Ok(counted)
    }

    /// Waits until the tokenizer is there, which the first stream with a budget has loaded on the side: it would count for what comes next.
    fn await_tokenizer(&self) -> Result<()> {
        let begun = Instant::now();
        while process::thread_names(self.sprag.pid()).iter().any(|name| name == "tokenizer") {
            if begun.elapsed() > Duration::from_secs(300) {
                bail!("the tokenizer is not loaded after five minutes");
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Carries a load; gives the instructions that it took.
    fn carry(&mut self, mock: &Mock, load: Load) -> Result<u64> {
        let counts = self.carry_by_thread(mock, load)?;
        Ok(counts.into_iter().filter(|(thread, _)| *thread != self.history).map(|(_, count)| count).sum())
    }

    fn carry_by_thread(&mut self, mock: &Mock, load: Load) -> Result<BTreeMap<String, u64>> {
        mock.set(Shape { chunks: load.chunks.unwrap_or(10), ..Shape::default() });
        let new_bytes = if load.bytes > 10_240 { 2048 } else { 400 };
        let mut plan = Plan::new(self.sprag.address, Prompt::chat(load.bytes, new_bytes, load.chunks.is_some(), 7));
        (plan.requests, plan.seconds, plan.timeout) = (load.requests, 600.0, Duration::from_secs(300));
        tell(&self.sprag, "zero")?;
        let seen = load::run(&plan)?;
        if let Some(complaint) = seen.complaint {
            bail!("{} of {} requests failed, such as: {complaint}", seen.failed, plan.requests);
        }
        tell(&self.sprag, "dump")?;
        self.dumps += 1;
        // One file for each thread: NAME.DUMP-THREAD.
        let begins = format!("{}.{}-", self.out.display(), self.dumps);
        let mut counts = BTreeMap::new();
        for entry in fs::read_dir(&self.sprag.folder)? {
            let path = entry?.path();
            if let Some(thread) = path.to_string_lossy().strip_prefix(&begins) {
                counts.insert(thread.to_owned(), total(&path)?);
            }
        }
        Ok(counts)
    }
}

/// Has the valgrind that a Sprag runs under do something, and waits until it has.
pub fn tell(sprag: &Proxy, what: &str) -> Result<()> {
    let pid = format!("--pid={}", sprag.pid());
    let told = Command::new("vgdb").arg(pid).args(what.split(' ')).output().context("vgdb is missing")?;
    if !told.status.success() {
        bail!("valgrind does not listen to {what:?}: {}", String::from_utf8_lossy(&told.stderr));
    }
    Ok(())
}

fn read_limits(file: &Path) -> Result<BTreeMap<String, u64>> {
    let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let lines =
        text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, number) = line.split_once('=').with_context(|| format!("{line:?}: expected `name = number`"))?;
            let number = number.trim().replace('_', "");
            Ok((name.trim().to_owned(), number.parse().with_context(|| format!("{line:?}: {number:?} is no number"))?))
        })
        .collect()
}

/// The table, and what is over its limit or has none.
fn table(counted: &[(String, u64)], limits: Option<&BTreeMap<String, u64>>) -> (String, Vec<String>) {
    let mut broken = Vec::new();
    let Some(limits) = limits else {
        let line = |(name, count): &(String, u64)| format!("| {} | {} |\n", name.replace('_', " "), grouped(*count));
        let lines: String = counted.iter().map(line).collect();
        return (format!("| stage | instructions |\n|---|---:|\n{lines}"), broken);
    };
    let mut text = "| stage | instructions | limit |\n|---|---:|---:|\n".to_owned();
    for (name, count) in counted {
        let limit = limits.get(name);
        let shown = limit.map_or("–".to_owned(), |limit| grouped(*limit));
        text.push_str(&format!("| {} | {} | {shown} |\n", name.replace('_', " "), grouped(*count)));
        match limit {
            Some(limit) if count <= limit => {}
            Some(limit) => broken.push(format!(
                "{name} takes {} instructions, at most {} are allowed: make it cheaper, or raise the limit with a reason",
                grouped(*count),
                grouped(*limit)
            )),
            None => broken.push(format!("{name} has no limit; `bench/instructions --bless` writes one")),
        }
    }
    (text, broken)
}

fn bless(file: &Path, counted: &[(String, u64)]) -> Result<()> {
    let mut text = "# Most instructions that a stage of the line may take in the build of the tests; `bench/instructions` counts and checks.\n\
                    # A twentieth above what was counted: room for the compiler, none for another pass over the body.\n"
        .to_owned();
    for (name, count) in counted {
        text.push_str(&format!("{name} = {}\n", count + count / 20));
    }
    fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
}

/// With commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_its_limit_is_named() {
        let limits = BTreeMap::from([("parse".to_owned(), 1000), ("judge".to_owned(), 1000)]);
        let counted = [("parse".to_owned(), 1000), ("judge".to_owned(), 1001), ("other".to_owned(), 1)];
        let (_, broken) = table(&counted, Some(&limits));
        assert_eq!(broken.len(), 2);
        assert!(broken[0].starts_with("judge takes 1,001"), "{broken:?}");
        assert!(broken[1].starts_with("other has no limit"), "{broken:?}");
    }
}
