//! What is said in the end: what it cost, what was caught and on what proof, and where the record is.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sprag_core::money::NanoUsd;
use sprag_store::RunKey;

use super::asked::Asked;
use super::home::Record;
use super::programs::Program;
use super::supervise::Ended;
use super::tally::{Seen, Stop, Tally};
use super::variables::Kept;
use crate::show;

/// Everything there is to say.
pub(super) struct Report {
    program: String,
    notes: Vec<String>,
    run: RunKey,
    seen: Seen,
    stopped: Option<Stop>,
    exit_code: u8,
    took: Duration,
    /// Addresses that the user had set.
    pub(super) kept: Vec<Kept>,
    /// Where the record is.
    pub(super) record: Record,
    /// Where the dashboard would be, and the data directory.
    place: Option<(String, String)>,
}

impl Report {
    pub(super) fn new(program: &Program, run: &RunKey, tally: &Tally, ended: &Ended, took: Duration) -> Report {
        Report {
            program: program.name(),
            notes: program.notes.clone(),
            run: run.clone(),
            seen: tally.seen(),
            stopped: ended.stopped.clone(),
            exit_code: ended.code(),
            took,
            kept: Vec::new(),
            record: Record::Kept,
            place: None,
        }
    }

    /// Says where the dashboard shows it.
    pub(super) fn shown_at(&mut self, dashboard: String, data_dir: String) {
        self.place = Some((dashboard, data_dir));
    }

    /// Says it: as text, or as JSON where that is asked for.
    ///
    /// # Errors
    /// When a file for it cannot be written.
    pub(super) fn tell(&self, asked: &Asked) -> Result<()> {
        let mut written = Ok(());
        if let Some(file) = &asked.json {
            let text = serde_json::to_string_pretty(&self.as_json())? + "\n";
            let Some(file) = file else {
                let _ = std::io::stderr().write_all(text.as_bytes());
                return Ok(());
            };
            written = fs::write(file, text).with_context(|| format!("cannot write the report to {}", file.display()));
        }
        if !asked.quiet || self.stopped.is_some() {
            let _ = std::io::stderr().write_all(self.as_text().as_bytes());
        }
        written
    }

    /// For programs. Amounts are exact in nano-dollars.
    fn as_json(&self) -> Value {
        let mut sums = serde_json::to_value(self.seen.sums).unwrap_or_default();
        sums["cost_usd"] = json!(self.seen.sums.cost.as_usd());
        json!({
            "run": self.run.id,
            "agent": self.run.agent,
            "program": self.program,
            "exit_code": self.exit_code,
            "stopped": self.stopped,
            "stops": self.seen.stops,
            "refusals": self.seen.refusals,
            "findings": self.seen.hidden,
            "models": self.seen.models,
            "totals": sums,
            "duration_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            "upstreams": self.kept,
            "record": self.record,
            "dashboard": self.place.as_ref().map(|(dashboard, _)| dashboard),
            "notes": self.notes,
        })
    }

    fn as_text(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            let _ = writeln!(text, "sprag: {words}");
        };
        if let Some(stop) = &self.stopped {
            line(format!("stopped {}: {} ({})", self.program, show::reason(&stop.reason), stop.reason));
            stop.summary.iter().for_each(|summary| line(format!("  {summary}")));
        }
        for stop in self.seen.stops.iter().filter(|stop| Some(*stop) != self.stopped.as_ref()) {
            let summary = stop.summary.as_deref().map(|summary| format!(": {summary}")).unwrap_or_default();
            let what = stop.run.as_deref().map_or("the agent".to_owned(), |run| format!("a part of it, {run}"));
            line(format!("also stopped {what}: {} ({}){summary}", show::reason(&stop.reason), stop.reason));
        }
        let sums = &self.seen.sums;
        if sums.steps == 0 && sums.other_requests == 0 {
            no_calls(&self.program, &mut line);
        } else {
            line(self.totals());
        }
        let others = self.seen.refusals.iter().filter(|(reason, _)| {
            let is_told = |stop: &Stop| stop.reason == **reason;
            !self.seen.stops.iter().any(is_told) && *reason != "run_killed"
        });
        for (reason, count) in others {
            line(format!("refused {count} times: {} ({reason})", show::reason(reason)));
        }
        if !self.seen.hidden.is_empty() {
            let kinds: Vec<String> = self.seen.hidden.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            line(format!("secrets and personal data found: {}", kinds.join(", ")));
        }
        self.notes.iter().for_each(|note| line(note.clone()));
        self.kept.iter().for_each(|kept| line(kept.to_string()));
        self.where_it_is().into_iter().for_each(line);
        text
    }

    fn totals(&self) -> String {
        let sums = &self.seen.sums;
        let plural = |count: u64, word: &str| match count {
            1 => format!("1 {word}"),
            _ => format!("{} {word}s", show::count(count)),
        };
        let mut parts = vec![plural(sums.steps, "call")];
        let asides = [(sums.refused, "refused"), (sums.failed, "failed"), (sums.warnings, "with a warning")];
        let asides: Vec<String> =
            asides.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        if !asides.is_empty() {
            parts[0] = format!("{} ({})", parts[0], asides.join(", "));
        }
        parts[0] = format!("{} in {}", parts[0], plural(sums.runs, "conversation"));
        parts.push(money(sums.cost, sums.unpriced));
        let cached = if sums.cached_tokens > 0 {
            format!(" ({} cached)", show::count(sums.cached_tokens))
        } else {
            String::new()
        };
        parts.push(format!("{} tokens in{cached}", show::count(sums.input_tokens)));
        parts.push(format!("{} out", show::count(sums.output_tokens)));
        parts.push(show::duration_ms(u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX)));
        parts.join(", ")
    }

    fn where_it_is(&self) -> Vec<String> {
        let Some((dashboard, data_dir)) = &self.place else { return Vec::new() };
        let RunKey { agent, id } = &self.run;
        let page = format!("{dashboard}/run?agent={agent}&id={id}");
        let mut lines = vec![match &self.record {
            Record::Kept => format!("on record as {id} in {data_dir}; `sprag serve` shows it at {page}"),
            Record::HandedOver => format!("on record as {id}: {page}"),
            Record::Waiting(why) => {
                format!("{id} waits in {data_dir} to be put on record by the next `sprag serve`: {why}")
            }
        }];
        if let Some(trouble) = &self.seen.trouble {
            lines.push(format!("the record is not whole: {trouble}"));
        }
        lines
    }
}

fn money(cost: NanoUsd, unpriced: u64) -> String {
    match unpriced {
        0 => show::usd_headline(cost),
        _ => format!("{} and {unpriced} calls of unknown price, which no budget counts", show::usd_headline(cost)),
    }
}

fn no_calls(program: &str, line: &mut impl FnMut(String)) {
    line(format!("{program} made no call through Sprag. If it should have:"));
    line(
        "  it may have a base URL in its code or its configuration, which wins over variables such as OPENAI_BASE_URL"
            .to_owned(),
    );
    line(
        "  it may be logged in with an account (ChatGPT, Claude on Bedrock or Vertex, Google) instead of an API key"
            .to_owned(),
    );
    line("  it may run elsewhere, in a container say, where 127.0.0.1 is another machine".to_owned());
    line("  `sprag run --print-env` shows what it was given".to_owned());
}
