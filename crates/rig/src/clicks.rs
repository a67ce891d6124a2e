//! Whether calls notice that somebody clicks through the dashboard: the same load, alone and with a page every fifth of a second, in turn.
//!
//! The proxy and the dashboard have the second core to themselves; the provider and the load are on the first. So whatever a
//! page takes from a call is Sprag's own doing.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::load::{self, Plan};
use crate::mock::Mock;
use crate::process;
use crate::prompt::Prompt;
use crate::targets::{self, Seat, Sprag};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The program to measure.
    #[arg(long, default_value = "target/release/sprag")]
    sprag: PathBuf,
    /// How often each is measured.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Seconds of each.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// End with status 1 where the slowest of a hundred calls moves by more than a tenth.
    #[arg(long)]
    check: bool,
}

const PAGES: [&str; 7] = ["/", "/runs", "/events", "/agents", "/budgets", "/dlp", "/detectors"];
const BETWEEN_CLICKS: Duration = Duration::from_millis(200);
/// Share of itself by which the slowest of a hundred calls may move: what one round differs from another by.
const MOVES_AT_MOST: f64 = 0.1;
const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

/// Microseconds at [`SHARES`], of each round.
type Rounds = Vec<[f64; 3]>;

pub fn run(options: &Options) -> Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let mock = Mock::start(targets::free_address()?)?;
    let seat = Seat { core: Some(1), is_realtime: false };
    let how =
        Sprag { program: &options.sprag, mock: mock.address, folder: folder.path(), seat, under: &[], config: "" };
    let sprag = targets::sprag(&how)?;
    let dashboard = Dashboard::sign_in(&folder.path().join("sprag.log"))?;
    let mut plan = Plan::new(sprag.address, Prompt::chat(1024, 400, false, 7));
    (plan.requests, plan.seconds) = (u64::MAX, options.seconds);
    load::run(&Plan { seconds: 3.0, ..plan.clone() })?;

    let (mut alone, mut clicked, mut pages) = (Rounds::new(), Rounds::new(), Vec::new());
    for _ in 0..options.rounds {
        alone.push(carry(&plan)?);
        let is_over = Arc::new(AtomicBool::new(false));
        let (person, over) = (dashboard.clone(), is_over.clone());
        let person = thread::spawn(move || person.click_until(&over));
        clicked.push(carry(&plan)?);
        is_over.store(true, Ordering::Relaxed);
        pages.extend(person.join().map_err(|_| anyhow::anyhow!("whoever clicked gave up"))??);
    }
    pages.sort_unstable();
    println!("{}; {} rounds of {} s each\n", process::machine(), options.rounds, options.seconds);
    println!("| calls, ms | p50 | p90 | p99 | p99 of the rounds |\n|---|---:|---:|---:|---|");
    println!("{}\n{}\n", row("alone", &alone), row("while somebody clicks", &clicked));
    let slowest = pages.last().copied().unwrap_or_default();
    println!("{} pages, the median in {:.1?}, the slowest in {slowest:.1?}", pages.len(), pages[pages.len() / 2]);
    let moved = median(&clicked, 2) / median(&alone, 2) - 1.0;
    println!("p99 moves by {:.0} %", 100.0 * moved);
    Ok(ExitCode::from(u8::from(options.check && moved > MOVES_AT_MOST)))
}

fn carry(plan: &Plan) -> Result<[f64; 3]> {
    let seen = load::run(plan)?;
    match seen.complaint {
        Some(complaint) => bail!("{} calls failed, such as: {complaint}", seen.failed),
        None => Ok(SHARES.map(|share| seen.total_us(share))),
    }
}

fn row(name: &str, rounds: &Rounds) -> String {
    let (least, most) = range(rounds);
    let [p50, p90, p99] = [0, 1, 2].map(|at| median(rounds, at) / 1e3);
    format!("| {name} | {p50:.2} | {p90:.2} | {p99:.2} | {:.2} to {:.2} |", least / 1e3, most / 1e3)
}

fn median(rounds: &Rounds, at: usize) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(|round| round[at]).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The least and the most of what the slowest of a hundred took.
fn range(rounds: &Rounds) -> (f64, f64) {
    let slow = rounds.iter().map(|round| round[2]);
    (slow.clone().fold(f64::INFINITY, f64::min), slow.fold(0.0, f64::max))
}

/// The dashboard, and the pass of who looks at it.
#[derive(Clone)]
struct Dashboard {
    address: String,
    cookie: String,
}

impl Dashboard {
    /// Follows the link that Sprag prints a moment after it listens.
    fn sign_in(log: &Path) -> Result<Dashboard> {
        let end = Instant::now() + Duration::from_secs(10);
        let mut printed = String::new();
        while !printed.contains("/login?token=") && Instant::now() < end {
            printed = fs::read_to_string(log)?;
        }
        let link =
            printed.split_whitespace().find_map(|word| word.strip_prefix("http://")?.split_once("/login?token="));
        let (address, token) = link.context("Sprag printed no link to its dashboard")?;
        let nobody = Dashboard { address: address.to_owned(), cookie: String::new() };
        let (answer, _) = nobody.get(&format!("/login?token={token}"))?;
        let cookie = answer.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("set-cookie").then(|| value.split(';').next().unwrap_or_default().to_owned())
        });
        Ok(Dashboard { cookie: cookie.context("the link did not sign in")?, ..nobody })
    }

    /// Opens one page after the other; gives what each took.
    fn click_until(&self, is_over: &AtomicBool) -> Result<Vec<Duration>> {
        let mut took = Vec::new();
        for page in PAGES.iter().cycle() {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let (answer, time) = self.get(page)?;
            if !answer.starts_with("HTTP/1.1 200") {
                bail!("{page}: {}", answer.lines().next().unwrap_or_default());
            }
            took.push(time);
            thread::sleep(BETWEEN_CLICKS.saturating_sub(time));
        }
        Ok(took)
    }

    fn get(&self, path: &str) -> Result<(String, Duration)> {
        let began = Instant::now();
        let mut stream = TcpStream::connect(&self.address)?;
        let Dashboard { address, cookie } = self;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {address}\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok((String::from_utf8_lossy(&answer).into_owned(), began.elapsed()))
    }
}
