//! What detection saw in the requests of a run.

use serde::Serialize;
use sprag_core::event::Ending;
use sprag_core::limits::TRIED_REQUESTS;
use sprag_core::loops::{RecordedStep, StepEvidence};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::Reader;
use super::filter::Conditions;
use crate::error::StoreError;
use crate::history::rows;
use crate::run_key::RunKey;

/// One request of a run, as far as its judgement goes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepRow {
    /// Its number in the run.
    pub step: u32,
    /// When it arrived.
    pub at: Timestamp,
    /// How it ended.
    pub ending: Ending,
    /// Sprag refused it.
    pub blocked: bool,
    /// What it cost.
    pub cost: Option<NanoUsd>,
    /// How near the run was to the threshold of its progress, which is 1.
    pub level: Option<f32>,
    /// What detection saw; absent where it did not look, and in what older versions recorded.
    pub evidence: Option<StepEvidence>,
}

impl StepRow {
    /// The requests that can be judged again.
    #[must_use]
    pub fn recorded(rows: &[StepRow]) -> Vec<RecordedStep> {
        let recorded = |row: &StepRow| {
            let evidence = row.evidence.clone()?;
            Some(RecordedStep { request: row.step, at: row.at, evidence })
        };
        rows.iter().filter_map(recorded).collect()
    }
}

impl Reader {
    /// The requests of a run, oldest first; the last ones where there are too many.
    pub(in crate::history) fn evidence(&self, key: &RunKey) -> Result<Vec<StepRow>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and("agent = ?", key.agent.as_str().to_owned());
        conditions.and("run_id = ?", key.id.as_str().to_owned());
        conditions.only("act IS NULL");
        let sql = format!(
            "SELECT step, at, ending, blocked, cost_nano, level, evidence FROM events {}
             ORDER BY at DESC, seq DESC LIMIT {TRIED_REQUESTS}",
            conditions.sql()
        );
        let mut found = self.list(&sql, conditions, |row| {
            Ok(StepRow {
                step: row.get(0)?,
                at: Timestamp(row.get(1)?),
                ending: rows::from_word(row, 2)?,
                blocked: row.get(3)?,
                cost: row.get::<_, Option<i64>>(4)?.map(NanoUsd),
                level: rows::level(row, 5)?,
                evidence: rows::evidence(row, 6)?,
            })
        })?;
        found.reverse();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use sprag_core::event::Event;

    use super::*;
    use crate::history::samples::step;
    use crate::sqlite::{HISTORY, open_writer};

    #[test]
    fn steps_come_back_with_what_was_seen_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let writer = open_writer(&path, HISTORY).unwrap();
        let evidence = StepEvidence::from_bytes(&[0x10, 0, 0]);
        let at = |number: u32, event: Event| Event { at: Timestamp(i64::from(number)), ..event };
        let seen = Event { level: Some(0.6), evidence: evidence.clone(), ..step("2", "r", 2) };
        for event in [at(2, seen.clone()), at(1, step("1", "r", 1)), at(3, step("3", "other", 1))] {
            assert!(rows::insert(&writer, &event).unwrap());
        }
        let reader = Reader::new(&path);
        let key = RunKey { agent: seen.agent.clone(), id: seen.run.clone().unwrap().id };
        let found = reader.evidence(&key).unwrap();
        let shown: Vec<_> = found.iter().map(|row| (row.step, row.level, row.evidence.clone())).collect();
        assert_eq!(shown, [(1, None, None), (2, Some(0.6), evidence.clone())], "an event without evidence reads fine");
        assert_eq!(StepRow::recorded(&found).iter().map(|one| one.request).collect::<Vec<_>>(), [2]);
        let mut whole = reader.list(
            &format!("SELECT {} FROM events WHERE id = '2'", rows::COLUMNS),
            Conditions::default(),
            rows::read,
        );
        let (_, event) = whole.as_mut().unwrap().pop().unwrap();
        assert_eq!(event, at(2, seen));
    }

    #[test]
    fn only_the_last_requests_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let writer = open_writer(&path, HISTORY).unwrap();
        writer.execute_batch("BEGIN").unwrap();
        for number in 1..=TRIED_REQUESTS + 1 {
            let event = Event { at: Timestamp(i64::from(number)), ..step(&number.to_string(), "r", number) };
            assert!(rows::insert(&writer, &event).unwrap());
        }
        writer.execute_batch("COMMIT").unwrap();
        let any = step("x", "r", 1);
        let found = Reader::new(&path).evidence(&RunKey { agent: any.agent, id: any.run.unwrap().id }).unwrap();
        assert_eq!((found.len(), found[0].step), (TRIED_REQUESTS as usize, 2));
    }
}
