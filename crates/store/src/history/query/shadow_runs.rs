//! The runs that rules in shadow would have stopped, and how they ended without it.

use sprag_core::limits::PAGE_ROWS;
use sprag_core::time::Timestamp;

use super::filter::{Conditions, EventFilter};
use super::{Reader, WouldStop};
use crate::error::StoreError;
use crate::history::rows;
use crate::run_key::RunKey;

/// A run that a rule in shadow would have stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowRun {
    /// Which.
    pub run: RunKey,
    /// Where it would have ended.
    pub would: WouldStop,
    /// Its last call came to a natural end: the model had nothing more to ask for. Then the stop would have been wrong,
    /// or at least early.
    pub ended_well: bool,
    /// The provider's word for why the last call stopped.
    pub finish: Option<String>,
}

/// Words of providers for an answer that is whole.
const NATURAL_ENDS: [&str; 5] = ["stop", "end_turn", "stop_sequence", "STOP", "completed"];

impl Reader {
    /// Runs with findings in shadow between two moments, the latest first, at most so many.
    pub(in crate::history) fn shadow_runs(
        &self,
        (since, until): (Timestamp, Timestamp),
        most: u32,
        looked_at: u32,
    ) -> Result<Vec<ShadowRun>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.values.extend([since.0.into(), until.0.into()]);
        let sql = format!(
            "SELECT agent, run_id, max(at) AS latest FROM (
                SELECT agent, run_id, at FROM events
                WHERE shadow IS NOT NULL AND run_id IS NOT NULL AND at >= ?1 AND at < ?2
                ORDER BY at DESC LIMIT {looked_at})
             GROUP BY agent, run_id ORDER BY latest DESC LIMIT {}",
            most.min(PAGE_ROWS)
        );
        let found = self
            .list(&sql, conditions, |row| Ok(RunKey { agent: rows::agent_name(row, 0)?, id: rows::run_id(row, 1)? }))?;
        let mut runs = Vec::with_capacity(found.len());
        for run in found {
            let Some(would) = self.would_stop(&run)? else { continue };
            let filter = EventFilter { run: Some(run.clone()), requests_only: true, ..EventFilter::default() };
            let last = self.events(&filter, None, 1)?.items.pop();
            let ended_well = last.as_ref().is_some_and(|event| {
                is_natural_end(event.finish.as_deref(), !event.tools.is_empty(), event.blocked, event.status)
            });
            runs.push(ShadowRun { run, would, ended_well, finish: last.and_then(|event| event.finish) });
        }
        Ok(runs)
    }
}

/// A last request after which the model had nothing more to ask for.
pub(in crate::history) fn is_natural_end(finish: Option<&str>, has_tools: bool, blocked: bool, status: u16) -> bool {
    finish.is_some_and(|finish| NATURAL_ENDS.contains(&finish)) && !has_tools && !blocked && status < 400
}

#[cfg(test)]
mod tests {
    use sprag_core::event::Event;
    use sprag_core::loops::{Action, Detector, Finding, Mode, Proof, Verdict};

    use super::*;
    use crate::history::samples::step;
    use crate::sqlite::{HISTORY, open_writer};

    #[test]
    fn runs_are_told_with_how_they_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let writer = open_writer(&path, HISTORY).unwrap();
        let event = |id: &str, run: &str, number: u32, finish: &str, is_flagged: bool| {
            let (loop_type, proof, detector) = (String::new(), Proof::default(), Detector::Progress);
            let finding =
                Finding { detector, mode: Mode::Shadow, loop_type, confidence: 1.0, score: 4.0, count: 4, proof };
            let shadow = Verdict { finding, action: Action::KillRun, strike: 1, retry_seconds: None };
            let at = Timestamp(id.parse().unwrap());
            let shadow = is_flagged.then_some(shadow);
            Event { at, shadow, finish: Some(finish.to_owned()), tools: Vec::new(), ..step(id, run, number) }
        };
        for event in [
            event("1", "well", 1, "tool_calls", true),
            event("2", "well", 2, "stop", false),
            event("3", "stuck", 1, "stop", false),
            event("4", "stuck", 2, "tool_calls", true),
            event("5", "fine", 1, "stop", false),
        ] {
            assert!(rows::insert(&writer, &event).unwrap());
        }
        let reader = Reader::new(&path);
        let told = |most| -> Vec<(String, u32, bool)> {
            let runs = reader.shadow_runs((Timestamp(0), Timestamp(10)), most, 100).unwrap();
            runs.iter().map(|one| (one.run.id.to_string(), one.would.step, one.ended_well)).collect()
        };
        assert_eq!(told(10), [("stuck".to_owned(), 2, false), ("well".to_owned(), 1, true)]);
        assert_eq!(told(1).len(), 1, "one at most where one is asked for");
        assert!(reader.shadow_runs((Timestamp(5), Timestamp(10)), 10, 100).unwrap().is_empty());
    }
}
