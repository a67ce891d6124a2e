//! `sprag replay`: recorded runs, and where they would have been stopped.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indicatif::{ProgressBar, ProgressStyle};
use sprag_core::limits::REPLAY_COMPLAINTS;
use sprag_core::loops::{Preset, Rules};
use sprag_core::price::Prices;
use sprag_core::time::Timestamp;

use super::keys::seconds;
use super::session_logs::session_logs;
use super::table::{Column, print};
use crate::clock::Clock;
use crate::config::{Environment, Flags, Sources, load};
use crate::replay::lines::{Lines, files};
use crate::replay::read::{Listener, read};
use crate::replay::report::{RunReport, Summary, Verdict};
use crate::replay::{Judged, Replay};
use crate::show;

/// What to judge, by which rules, and where to say it.
#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    /// Recordings, plain or compressed with gzip or zstd; a folder stands for those in it, `-` for standard input
    /// [default: the session logs of Claude Code and Codex on this machine]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The rules to judge by
    #[arg(long, default_value = Preset::default().as_str(), value_parser = presets())]
    preset: Preset,
    /// A configuration whose [detection] to judge by, in place of a preset
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    policy: Option<PathBuf>,
    /// Write one line of JSON per run into this file
    #[arg(long, value_name = "OUT")]
    verdicts: Option<PathBuf>,
    /// Only runs that were still going so long ago, such as 30d or 12h
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    since: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Take runs as named by their callers: rules for declared runs hold for all of them
    #[arg(long)]
    declared: bool,
    /// At most this many rows in the table
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit_rows: usize,
}

pub(super) fn replay(asked: &Asked) -> Result<ExitCode> {
    let replay = Replay::new(rules(asked)?, Prices::embedded(), asked.declared);
    let files =
        if asked.files.is_empty() { files(&session_logs(&Environment::process())?)? } else { files(&asked.files)? };
    let since = asked.since.map(|seconds| Timestamp(Clock::Real.now().0 - i64::from(seconds) * 1000));
    let bar = progress_bar(&files);
    let verdicts = asked.verdicts.as_deref().map(create).transpose()?;
    let json = asked.json.then(|| BufWriter::new(io::stdout().lock()));
    let mut hearing = Hearing {
        verdicts,
        json,
        since,
        most_rows: asked.limit_rows,
        bar: bar.clone(),
        file: String::new(),
        summary: Summary::default(),
        rows: Vec::new(),
    };
    for path in &files {
        hearing.file = path.display().to_string();
        let mut lines = Lines::new(bar.wrap_read(open(path)?)).with_context(|| hearing.file.clone())?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        read(&replay, &name, &mut lines, &mut hearing)?;
    }
    bar.finish_and_clear();
    hearing.end()
}

/// The rules of a policy file, or of a preset.
fn rules(asked: &Asked) -> Result<Rules> {
    let Some(policy) = &asked.policy else { return Ok(Rules::preset(asked.preset)) };
    let sources = Sources::process(Flags { config: Some(policy.clone()), ..Flags::default() });
    Ok(Rules::clone(&load(&sources)?.settings.policies.defaults.rules))
}

/// Hears what becomes of each run, writes it down and adds it up.
struct Hearing<'a> {
    verdicts: Option<BufWriter<File>>,
    json: Option<BufWriter<io::StdoutLock<'a>>>,
    since: Option<Timestamp>,
    bar: ProgressBar,
    file: String,
    summary: Summary,
    rows: Vec<Vec<String>>,
    most_rows: usize,
}

impl Listener for Hearing<'_> {
    fn judged(&mut self, run: Judged) -> io::Result<()> {
        if self.since.is_some_and(|since| run.outcome.ended < since) {
            self.summary.older += 1;
            return Ok(());
        }
        if let Some(verdicts) = &mut self.verdicts {
            serde_json::to_writer(&mut *verdicts, &Verdict::of(&run))?;
            verdicts.write_all(b"\n")?;
        }
        if let Some(json) = &mut self.json {
            json.write_all(if self.summary.runs == 0 { b"{\"runs\":[\n" } else { b",\n" })?;
            serde_json::to_writer(json, &RunReport::of(&run))?;
        } else if run.outcome.stop.is_some() && self.rows.len() < self.most_rows {
            self.rows.push(row(&run));
        }
        self.summary.add(&run);
        Ok(())
    }

    fn unread(&mut self, line: u64, why: &dyn Display) {
        self.summary.unread_lines += 1;
        let complaint = match self.summary.unread_lines {
            count if count <= REPLAY_COMPLAINTS as u64 => format!("{}:{line}: {why}", self.file),
            count if count == REPLAY_COMPLAINTS as u64 + 1 => "… and more lines that cannot be read".to_owned(),
            _ => return,
        };
        self.bar.suspend(|| {
            let _ = writeln!(io::stderr(), "{}", show::plain(&complaint));
        });
    }
}

impl Hearing<'_> {
    fn end(mut self) -> Result<ExitCode> {
        if let Some(mut verdicts) = self.verdicts.take() {
            verdicts.flush().context("writing the verdicts")?;
        }
        if self.summary.runs == 0 && self.summary.older > 0 {
            bail!("all {} recorded runs are older than that; a longer --since takes them in", self.summary.older);
        }
        if self.summary.runs == 0 {
            bail!("no recorded run could be read ({} lines were passed over)", self.summary.unread_lines);
        }
        if let Some(mut json) = self.json.take() {
            json.write_all(b"\n],\"summary\":")?;
            serde_json::to_writer(&mut json, &self.summary)?;
            json.write_all(b"}\n")?;
            json.flush()?;
        } else {
            print_table(&self.summary, self.rows)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

const COLUMNS: [Column; 8] = [
    ("RUN", false),
    ("AGENT", false),
    ("MODEL", false),
    ("STEPS", true),
    ("STOPPED AT", true),
    ("BY", false),
    ("SAVES", true),
    ("WHY", false),
];

fn row(run: &Judged) -> Vec<String> {
    let outcome = &run.outcome;
    let stop = outcome.stop.as_ref();
    let saved = outcome.saved;
    let money = match saved.unpriced_steps < saved.steps {
        true => format!(", {}", show::usd_known(saved.cost, saved.unpriced_steps.into())),
        false => String::new(),
    };
    vec![
        run.run_id.clone(),
        run.agent.clone().unwrap_or_else(|| "-".to_owned()),
        outcome.model.clone().unwrap_or_else(|| "-".to_owned()),
        outcome.total.steps.to_string(),
        stop.map(|stop| stop.step.to_string()).unwrap_or_default(),
        stop.map(|stop| stop.finding.detector.as_str().to_owned()).unwrap_or_default(),
        format!("{} steps{money}", saved.steps),
        stop.map(|stop| stop.finding.proof.summary.clone()).unwrap_or_default(),
    ]
}

fn print_table(summary: &Summary, rows: Vec<Vec<String>>) -> Result<()> {
    let shown = rows.len() as u64;
    if shown > 0 {
        print(&COLUMNS, rows)?;
    }
    let mut out = io::stdout().lock();
    if summary.stopped > shown {
        let more = show::count(summary.stopped - shown);
        writeln!(out, "… and {more} more (--limit-rows shows more, --verdicts FILE writes all)")?;
    }
    if summary.stopped > 0 {
        writeln!(out)?;
    }
    writeln!(
        out,
        "runs        {}, {} would have been stopped",
        show::count(summary.runs),
        show::count(summary.stopped)
    )?;
    writeln!(out, "steps       {}, {} saved", show::count(summary.steps), show::count(summary.saved_steps))?;
    writeln!(
        out,
        "cost        {}, {} saved",
        show::usd_known(summary.cost_usd, summary.unpriced_steps),
        show::usd_known(summary.saved_usd, summary.saved_unpriced_steps)
    )?;
    for (detector, stops) in &summary.detectors {
        writeln!(out, "{:<11} {} stops", detector.as_str(), show::count(*stops))?;
    }
    for (class, of) in &summary.classes {
        let early = match of.stopped_before_onset {
            0 => String::new(),
            early => format!(" ({} before the loop began)", show::count(early)),
        };
        let share = of.stopped as f64 * 100.0 / of.runs.max(1) as f64;
        let (class, stopped, runs) = (show::plain(class), show::count(of.stopped), show::count(of.runs));
        writeln!(out, "{class:<11} {stopped} of {runs} runs stopped, {share:.1} %{early}")?;
    }
    if summary.older > 0 {
        writeln!(out, "{} older runs were left out", show::count(summary.older))?;
    }
    if summary.unread_lines > 0 {
        writeln!(out, "{} lines could not be read", show::count(summary.unread_lines))?;
    }
    Ok(())
}

pub(crate) fn presets() -> impl TypedValueParser<Value = Preset> {
    let find = |name: String| Preset::ALL.into_iter().find(|preset| preset.as_str() == name).unwrap_or_default();
    PossibleValuesParser::new(Preset::ALL.map(Preset::as_str)).map(find)
}

fn create(path: &Path) -> Result<BufWriter<File>> {
    File::create(path).map(BufWriter::new).with_context(|| format!("writing {}", path.display()))
}

fn open(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(Box::new(file))
}

/// How far through the files; drawn on a terminal only.
fn progress_bar(files: &[PathBuf]) -> ProgressBar {
    let bytes = files.iter().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum();
    let style = ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {eta} left");
    let bar = ProgressBar::new(bytes);
    style.map(|style| bar.clone().with_style(style)).unwrap_or(bar)
}
