//! A step of the timeline: the call, and what detection saw when its result came back.

use std::collections::{BTreeMap, BTreeSet};

use sprag_core::event::Event;
use sprag_core::loops::StepFacts;
use sprag_core::time::Timestamp;
use sprag_store::history::{RunRow, StepRow};

use super::super::rows::CallLine;
use super::thresholds::percent;
use crate::show;

/// A step in the table.
pub(in crate::admin::pages) struct StepLine {
    pub(in crate::admin::pages) call: CallLine,
    /// What came back for it; known with the next request.
    pub(in crate::admin::pages) came: Option<CameBack>,
    /// How near the run was to a stop when the request arrived.
    pub(in crate::admin::pages) level: Option<String>,
    pub(in crate::admin::pages) saved: Option<String>,
    /// The proof names it.
    pub(in crate::admin::pages) is_proven: bool,
}

/// What came back for a call.
pub(in crate::admin::pages) struct CameBack {
    pub(in crate::admin::pages) text: &'static str,
    pub(in crate::admin::pages) tone: &'static str,
    /// Hashes, to be compared by eye.
    pub(in crate::admin::pages) hashes: String,
}

impl StepLine {
    /// The steps of a page; `rows` are those of the run.
    pub(super) fn all(
        events: &[Event],
        rows: &[StepRow],
        proven: &BTreeSet<u32>,
        run: &RunRow,
        now: Timestamp,
    ) -> Vec<StepLine> {
        let facts = |row: &StepRow| row.evidence.as_ref()?.facts(row.step);
        let facts: BTreeMap<u32, StepFacts> = rows.iter().filter_map(facts).map(|facts| (facts.step, facts)).collect();
        let line = |event: &Event| {
            let step = event.run.as_ref().map_or(0, |run| run.step);
            StepLine {
                call: CallLine::new(event, now).within(event, run.first_at, run.last_at),
                came: facts.get(&step).map(CameBack::new),
                level: event.level.map(percent),
                saved: event.saved.map(show::usd_headline),
                is_proven: proven.contains(&step),
            }
        };
        events.iter().map(line).collect()
    }
}

impl CameBack {
    fn new(facts: &StepFacts) -> CameBack {
        let (text, tone) = match (facts.alike.as_str(), facts.failed) {
            ("new", false) => ("something new", "good"),
            ("new", true) => ("a new error", "odd"),
            ("waiting", _) => ("still waiting", "odd"),
            ("exact", false) => ("the same again", "bad"),
            ("masked", false) => ("the same but for numbers", "bad"),
            ("same_error", false) => ("the same result", "bad"),
            ("near", _) => ("nearly the same", "odd"),
            ("stale" | "small_talk", _) => ("nothing new said", "odd"),
            (_, true) => ("the same error", "bad"),
            _ => ("a result", "good"),
        };
        CameBack { text, tone, hashes: format!("asked {}, came back {}", facts.action, facts.result) }
    }
}
