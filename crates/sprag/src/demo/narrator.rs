//! Tells in the terminal what happens, and where to look.
//!
//! Each kind of stop is explained once; after that it is one line.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use sprag_core::time::Timestamp;

use super::agent::News;
use super::call::run;
use super::scene::Role;
use crate::app::App;
use crate::show;

pub(super) struct Narrator<'a, W> {
    out: &'a mut W,
    admin: SocketAddr,
    data: PathBuf,
    began: Instant,
    /// Who was told about, and about what.
    explained: BTreeSet<(Role, &'static str)>,
    stops: u32,
}

impl<'a, W: Write> Narrator<'a, W> {
    /// Says what this is, where to look, and who plays.
    pub(super) fn begin(
        out: &'a mut W,
        admin: SocketAddr,
        data: PathBuf,
        link: &str,
        is_opened: bool,
    ) -> Result<Narrator<'a, W>> {
        let opened = if is_opened { "   (opened in your browser)" } else { "" };
        writeln!(
            out,
            "Sprag demo. Models and tools are scripted, everything else is real. No key, no money, nothing is kept.\n"
        )?;
        writeln!(out, "  dashboard  {link}{opened}\n")?;
        for role in Role::ALL {
            let mark = if role.is_healthy() { "works" } else { "-" };
            writeln!(out, "  {:<12} {:<6} {}", role.name(), mark, role.part())?;
        }
        writeln!(out, "\nOpen the dashboard and watch. Ctrl-C ends it.\n")?;
        out.flush()?;
        Ok(Narrator { out, admin, data, began: Instant::now(), explained: BTreeSet::new(), stops: 0 })
    }

    pub(super) fn tell(&mut self, news: &News) -> Result<()> {
        match news {
            News::Finished { role, task, steps } => self.finished(*role, *task, *steps)?,
            News::Stopped { role, task, step, reason, why } => self.stopped(*role, *task, *step, reason, why)?,
            News::Saw { role, task, text } => self.saw(*role, *task, text)?,
        }
        Ok(self.out.flush()?)
    }

    /// Sums up, once the server has ended.
    pub(super) fn end(self, app: &App) -> Result<()> {
        let totals = app.history.totals(Timestamp(0), None)?;
        writeln!(
            self.out,
            "\n{} calls in {} would have cost {}; stopped: {}. {} goes with it.",
            show::count(totals.requests),
            show::seconds(self.began.elapsed().as_secs()),
            show::usd_headline(totals.cost),
            show::count(self.stops.into()),
            self.data.display(),
        )?;
        writeln!(
            self.out,
            "Next: `sprag run -- CMD` guards one command, `sprag` all your agents; `sprag replay` judges what they did before."
        )?;
        Ok(self.out.flush()?)
    }

    fn finished(&mut self, role: Role, task: u32, steps: u32) -> Result<()> {
        if !self.explained.insert((role, "finished")) {
            return Ok(());
        }
        let time = self.time();
        // Of others something was held up or hidden.
        let untouched = if role.is_healthy() { ", untouched" } else { "" };
        writeln!(self.out, "{time}  {} finished {} after {steps} steps{untouched}", role.name(), run(role, task))?;
        Ok(())
    }

    fn stopped(&mut self, role: Role, task: u32, step: u32, reason: &str, why: &str) -> Result<()> {
        self.stops += 1;
        let (time, run) = (self.time(), run(role, task));
        let word = if reason == "run_paused" || role == Role::Payments { "PAUSED" } else { "STOPPED" };
        writeln!(self.out, "{time}  {word} {run} at step {step}: {}", show::plain(why))?;
        if self.explained.insert((role, "stopped")) {
            if let Some(note) = note(role) {
                writeln!(self.out, "       {note}")?;
            }
            writeln!(self.out, "       why: http://{}/run?agent={}&id={run}", self.admin, role.name())?;
        }
        Ok(())
    }

    fn saw(&mut self, role: Role, task: u32, text: &str) -> Result<()> {
        if !self.explained.insert((role, "saw")) {
            return Ok(());
        }
        let time = self.time();
        writeln!(
            self.out,
            "{time}  HIDDEN a key and an address in {}; this is what the provider got:",
            run(role, task)
        )?;
        for line in text.lines() {
            writeln!(self.out, "         {}", show::plain(line))?;
        }
        writeln!(self.out, "       more: http://{}/dlp", self.admin)?;
        Ok(())
    }

    fn time(&self) -> String {
        let seconds = self.began.elapsed().as_secs();
        format!("{:>2}:{:02}", seconds / 60, seconds % 60)
    }
}

/// What there is to learn from the first stop of a role.
fn note(role: Role) -> Option<&'static str> {
    match role {
        Role::NightShift => Some("The next call was refused before it was paid for, and the run is killed."),
        Role::Pendulum => Some("No step repeats the one before it: cycles of any length are seen."),
        Role::BigSpender => {
            Some("A run of this agent may cost half a dollar; the call that could cross that never went out.")
        }
        Role::Payments => Some("This one is not killed, it waits for you: press Approve on its page and it goes on."),
        _ => None,
    }
}
