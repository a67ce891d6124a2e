//! Secrets and personal data that were found: how often of each kind, and the latest calls with any.

use sprag_core::dlp::{Direction, Outcome};
use sprag_core::event::Event;
use sprag_core::limits::PAGE_ROWS;
use sprag_core::time::Timestamp;

use super::filter::{Conditions, Cursor};
use super::{Page, Reader, page, page_rows};
use crate::error::StoreError;
use crate::history::rows;

/// How often something was found in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingsReport {
    /// By kind, way and outcome, the most frequent first.
    pub kinds: Vec<FindingCount>,
    /// Calls in which anything was found.
    pub calls: u64,
    /// There were more such calls than a report looks at; the older ones are left out.
    pub is_partial: bool,
}

/// How often one kind was found on one way with one outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingCount {
    /// Its name: `OPENAI_KEY`.
    pub entity: String,
    /// Which way it went.
    pub direction: Direction,
    /// What became of it.
    pub outcome: Outcome,
    /// How often. Of each call the first findings count, as far as they are on record.
    pub count: u64,
}

// The index over calls with findings finds these rows alone, in this order.
const FOUND: &str = "SELECT dlp FROM events WHERE dlp IS NOT NULL AND at >= ? ORDER BY at DESC";

impl Reader {
    /// What was found since a moment, in at most so many calls, the latest.
    pub(in crate::history) fn findings(&self, since: Timestamp, most: u32) -> Result<FindingsReport, StoreError> {
        let sql = format!(
            "SELECT json_extract(value, '$.entity') AS entity, json_extract(value, '$.direction') AS direction,
                json_extract(value, '$.outcome') AS outcome, count(*) AS number
             FROM ({FOUND} LIMIT {most}), json_each(dlp, '$.list')
             GROUP BY entity, direction, outcome ORDER BY number DESC, entity, direction, outcome LIMIT {PAGE_ROWS}"
        );
        let kinds = self.list(&sql, since_moment(since), |row| {
            let (direction, outcome) = (rows::from_word(row, 1)?, rows::from_word(row, 2)?);
            Ok(FindingCount { entity: row.get(0)?, direction, outcome, count: rows::count(row, 3)? })
        })?;
        let sql = format!("SELECT count(*) FROM ({FOUND} LIMIT {most} + 1)");
        let calls = self.list(&sql, since_moment(since), |row| rows::count(row, 0))?.pop().unwrap_or(0);
        Ok(FindingsReport { kinds, calls: calls.min(u64::from(most)), is_partial: calls > u64::from(most) })
    }

    /// Calls in which something was found, the latest first.
    pub(in crate::history) fn calls_with_findings(
        &self,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<Event>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.only("dlp IS NOT NULL");
        if let Some(cursor) = cursor {
            conditions.beyond("(at, seq) < (?, ?)", Cursor::parse(cursor)?);
        }
        let sql = format!(
            "SELECT {} FROM events {} ORDER BY at DESC, seq DESC LIMIT {}",
            rows::COLUMNS,
            conditions.sql(),
            page_rows(limit) + 1
        );
        let found = self.list(&sql, conditions, rows::read)?;
        Ok(page(found, limit, |seq, event: &Event| Cursor { at: event.at.0, seq }))
    }
}

fn since_moment(since: Timestamp) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.values.push(since.0.into());
    conditions
}

#[cfg(test)]
mod tests {
    use sprag_core::dlp::{Sighting, Sightings};

    use super::*;
    use crate::history::samples::step;
    use crate::sqlite::{HISTORY, open_writer};

    fn found(id: &str, at: i64, kinds: &[&str]) -> Event {
        let mut sightings = Sightings::default();
        for kind in kinds {
            sightings.note(Sighting {
                entity: (*kind).to_owned(),
                direction: Direction::Request,
                outcome: if *kind == "EMAIL" { Outcome::Covered } else { Outcome::Redacted },
                path: "messages[0].content".to_owned(),
                start: 0,
                length: 4,
                hint: "a***".to_owned(),
            });
        }
        Event { at: Timestamp(at), dlp: (!kinds.is_empty()).then_some(sightings), ..step(id, "r", 1) }
    }

    #[test]
    fn findings_are_counted_by_kind_up_to_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let writer = open_writer(&path, HISTORY).unwrap();
        for event in [
            found("1", 1, &["SSN"]),
            found("2", 2, &["EMAIL", "EMAIL", "SSN"]),
            found("3", 3, &[]),
            found("4", 4, &["EMAIL"]),
        ] {
            assert!(rows::insert(&writer, &event).unwrap());
        }
        let reader = Reader::new(&path);
        let told = |report: &FindingsReport| -> Vec<String> {
            report.kinds.iter().map(|kind| format!("{} {:?} {}", kind.entity, kind.outcome, kind.count)).collect()
        };
        let report = reader.findings(Timestamp(2), 2).unwrap();
        assert_eq!(told(&report), ["EMAIL Covered 3", "SSN Redacted 1"]);
        assert_eq!((report.calls, report.is_partial), (2, false), "at the bound");
        let report = reader.findings(Timestamp(0), 2).unwrap();
        assert_eq!((report.calls, report.is_partial), (2, true), "one past it");

        let first = reader.calls_with_findings(None, 2).unwrap();
        let ids = |page: &Page<Event>| page.items.iter().map(|event| event.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&first), ["4", "2"]);
        assert_eq!(ids(&reader.calls_with_findings(first.next.as_deref(), 2).unwrap()), ["1"]);
    }

    #[test]
    fn calls_without_findings_are_not_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let connection = open_writer(&dir.path().join("x.db"), HISTORY).unwrap();
        let plan: String = connection.query_row(&format!("EXPLAIN QUERY PLAN {FOUND}"), [0], |row| row.get(3)).unwrap();
        assert!(plan.contains("USING INDEX events_dlp "), "{plan}");
    }
}
