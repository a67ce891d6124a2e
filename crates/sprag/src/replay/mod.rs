//! Recorded runs, judged offline: where each would have been stopped, and what that would have saved.
//!
//! The judgement is the proxy's own: each step's request is read as a [`sprag_core::wire::Call`] and looked at by the
//! same detectors. Here is only what brings recordings into that form. A run ends at its first stop; what the
//! recording holds behind it is counted as saved.
//!
//! - [`follow`]: one run, step by step
//! - [`lines`]: files as lines, decompressed, within bounds
//! - [`trace`]: the trace format, one run per line
//! - [`read`]: which format a line is in, and what is done with it
//! - `capture`: recorded exchanges, told apart as the proxy does
//! - `claude_code`, `codex`: session logs; `conversation` makes requests of what they hold
//! - `open_runs`: the runs of one file that go on at once
//! - [`report`]: what came of it, as numbers

mod capture;
mod claude_code;
mod codex;
mod conversation;
pub mod follow;
pub mod lines;
mod open_runs;
pub mod read;
pub mod report;
pub mod trace;

use serde_json::value::RawValue;
use sprag_core::limits::HISTORY_MARKS;
use sprag_core::loops::Rules;
use sprag_core::price::Prices;
use sprag_core::time::Timestamp;
use sprag_core::wire::{Call, Dialect, History, Mark, OwnFields, StreamOptions, read_history};
use sprag_store::state::Recent;

pub use self::follow::{Follow, Outcome, Spent, Stop};

/// What recordings are judged by.
pub struct Replay {
    rules: Rules,
    prices: Prices,
    /// Conversations read before, so that only new messages are parsed.
    marks: Recent<Mark>,
    is_declared: bool,
}

/// A recorded run and what became of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// The run.
    pub run_id: String,
    /// Who made it, as far as the recording says.
    pub agent: Option<String>,
    /// What the recording says that the run is.
    pub label: Option<Label>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What a labelled recording says that its run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// `healthy`, `loop` and so on.
    pub class: String,
    /// The first step that repeats something, 0 for the first of the run.
    pub onset: Option<u32>,
}

/// The moment at which recordings without a date begin.
const BEGINNING: Timestamp = Timestamp(1_000_000_000_000);
/// Between two steps of a recording without times.
const STEP_MS: i64 = 1000;

impl Replay {
    /// Judges by these rules; `is_declared` takes runs as named by their callers.
    #[must_use]
    pub fn new(rules: Rules, prices: Prices, is_declared: bool) -> Replay {
        Replay { rules, prices, marks: Recent::new(HISTORY_MARKS), is_declared }
    }

    /// Begins to follow a run of which nothing says whether its caller named it.
    #[must_use]
    pub fn follow(&self) -> Follow<'_> {
        self.follow_as(false)
    }

    fn follow_as(&self, is_declared: bool) -> Follow<'_> {
        Follow::new(&self.rules, &self.prices, is_declared || self.is_declared)
    }

    /// The conversation of a request; what was read before is not read again.
    fn history(&self, call: &Call<'_>) -> Option<History> {
        let history = read_history(call, |raw| self.marks.get(raw))?;
        for (raw, mark) in &history.marks {
            self.marks.insert(*raw, *mark);
        }
        Some(history)
    }
}

/// A call made of items that are apart already: what [`Call::parse`] gives for a body with just these.
fn call_of<'a>(dialect: Dialect, model: Option<&'a str>, items: Vec<&'a RawValue>) -> Call<'a> {
    Call {
        dialect,
        model: model.map(Into::into),
        model_in_body: None,
        fallback_models: Vec::new(),
        is_stream: false,
        items,
        fixed: Vec::new(),
        prompt: None,
        max_output_tokens: None,
        choices: 1,
        previous_id: None,
        is_continued: false,
        session: None,
        own: OwnFields::default(),
        stream_options: StreamOptions::default(),
    }
}

/// A moment as logs write it: RFC 3339.
fn moment(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_millisecond()))
}
