//! Secrets and personal data that were found: how often of each kind, and the latest calls with any.

use serde::Deserialize;
use sprag_core::dlp::{Direction, Outcome};
use sprag_core::event::Event;
use sprag_core::limits::PAGE_ROWS;
use sprag_core::time::Timestamp;

use super::Reader;
use super::question::Question;
use crate::error::StoreError;
use crate::history::query::{EventFilter, FindingCount, FindingsReport, Page};

#[derive(Deserialize)]
struct Row {
    entity: String,
    direction: Direction,
    outcome: Outcome,
    number: u64,
}

#[derive(Deserialize)]
struct Calls {
    number: u64,
}

impl Reader {
    /// What was found since a moment, in at most so many calls, the latest.
    pub(in crate::history) fn findings(&self, since: Timestamp, most: u32) -> Result<FindingsReport, StoreError> {
        let mut question = Question::default();
        question.only("dlp <> ''");
        question.and("at >= {since:Int64}", "since", since.0);
        let latest = |columns: &str, most: u64| {
            format!("SELECT {columns} FROM notes {} ORDER BY at DESC, id DESC LIMIT {most}", question.filter())
        };
        let sql = format!(
            "SELECT JSONExtractString(found, 'entity') AS entity, JSONExtractString(found, 'direction') AS direction,
                JSONExtractString(found, 'outcome') AS outcome, count() AS number
             FROM (SELECT arrayJoin(JSONExtractArrayRaw(text, 'list')) AS found
                FROM (SELECT any(dlp) AS text FROM ({}) GROUP BY id))
             GROUP BY entity, direction, outcome ORDER BY number DESC, entity, direction, outcome LIMIT {PAGE_ROWS}",
            latest("id, dlp", u64::from(most))
        );
        let kinds = self.ask::<Row>(&sql, &question)?.into_iter().map(|row| FindingCount {
            entity: row.entity,
            direction: row.direction,
            outcome: row.outcome,
            count: row.number,
        });
        let kinds = kinds.collect();
        let sql = format!("SELECT uniqExact(id) AS number FROM ({})", latest("id", u64::from(most) + 1));
        let calls = self.ask_one::<Calls>(&sql, &question)?.map_or(0, |row| row.number);
        Ok(FindingsReport { kinds, calls: calls.min(u64::from(most)), is_partial: calls > u64::from(most) })
    }

    /// Calls in which something was found, the latest first.
    pub(in crate::history) fn calls_with_findings(
        &self,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<Event>, StoreError> {
        let filter = EventFilter { has_findings: Some(true), ..EventFilter::default() };
        self.events(&filter, cursor, limit)
    }
}
