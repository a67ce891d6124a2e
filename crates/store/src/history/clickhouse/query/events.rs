//! Events in pages.
//!
//! The table is ordered by time, in a part for each day. A listing looks at the last hour first, then at a day and a half, then
//! at everything: most pages are found in the first, and only a rare filter walks further.

use sprag_core::event::Event;

use super::event_row::{COLUMNS, EventRow};
use super::question::Question;
use super::{Reader, bad_cursor, page_rows};
use crate::error::StoreError;
use crate::history::query::{EventFilter, Page};
use crate::history::rows::word;

/// How far from its beginning a listing looks, one after the other; none is everything.
const WINDOWS_MS: [Option<i64>; 3] = [Some(3_600_000), Some(36 * 3_600_000), None];

/// The place of an event in a listing. Of one moment the greater id is the later one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    at: i64,
    id: String,
}

impl Reader {
    pub(in crate::history) fn events(
        &self,
        filter: &EventFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<Event>, StoreError> {
        let size = page_rows(limit);
        let after = cursor.map(Place::parse).transpose()?;
        let mut rows = Vec::new();
        for window in windows(filter) {
            rows = self.events_within(filter, *window, after.clone(), size + 1)?;
            if rows.len() > size {
                break;
            }
        }
        let has_more = rows.len() > size;
        rows.truncate(size);
        let next = rows.last().filter(|_| has_more).map(|row| format!("{}.{}", row.at, row.id));
        Ok(Page { items: rows.into_iter().map(EventRow::event).collect(), next })
    }

    /// At most so many events of a window, each once.
    fn events_within(
        &self,
        filter: &EventFilter,
        window: Option<i64>,
        after: Option<Place>,
        most: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        let mut question = narrowed(filter);
        if let Some(window) = window {
            within(&mut question, filter, window, after.as_ref());
        }
        let mut rows: Vec<EventRow> = Vec::new();
        let mut place = after;
        loop {
            let wanted = most - rows.len();
            let mut question = question.clone();
            if let Some(place) = &place {
                beyond(&mut question, filter.is_oldest_first, place);
            }
            let order = if filter.is_oldest_first { "ASC" } else { "DESC" };
            let filter = question.filter();
            let sql = format!("SELECT {COLUMNS} FROM events {filter} ORDER BY at {order}, id {order} LIMIT {wanted}");
            let found: Vec<EventRow> = self.ask(&sql, &question)?;
            let is_all = found.len() < wanted;
            place = found.last().map(|row| Place { at: row.at, id: row.id.clone() });
            for row in found {
                // An event that was sent twice stands beside itself.
                if rows.last().is_none_or(|last| last.id != row.id) {
                    rows.push(row);
                }
            }
            if is_all || rows.len() == most {
                return Ok(rows);
            }
        }
    }
}

impl Place {
    fn parse(text: &str) -> Result<Place, StoreError> {
        let parts = text.split_once('.').filter(|(_, id)| !id.is_empty());
        let place = parts.and_then(|(at, id)| Some(Place { at: at.parse().ok()?, id: id.to_owned() }));
        place.ok_or_else(|| bad_cursor(text))
    }
}

/// A run's events are found by their index, wherever they are.
fn windows(filter: &EventFilter) -> &'static [Option<i64>] {
    if filter.run.is_some() { &[None] } else { &WINDOWS_MS }
}

fn narrowed(filter: &EventFilter) -> Question {
    let mut question = Question::default();
    question.and_maybe("agent = {agent:String}", "agent", filter.agent.as_ref());
    if let Some(run) = &filter.run {
        question.of_run(run);
    }
    question.and_maybe("key = {key:String}", "key", filter.key.as_ref());
    question.and_maybe("model = {model:String}", "model", filter.model.as_ref());
    question.and_maybe("kind = {kind:String}", "kind", filter.kind.as_ref().map(word));
    question.and_maybe("block_reason = {reason:String}", "reason", filter.block_reason.as_ref());
    let flags = [
        (filter.has_findings, "has_dlp"),
        (filter.blocked, "blocked"),
        (filter.requests_only.then_some(false), "is_act"),
    ];
    for (wanted, flag) in flags {
        if let Some(wanted) = wanted {
            question.only(format!("{flag} = {}", u8::from(wanted)));
        }
    }
    question.and_maybe("at >= {since:Int64}", "since", filter.since.map(|time| time.0));
    question.and_maybe("at < {until:Int64}", "until", filter.until.map(|time| time.0));
    question
}

/// Narrows to so much time from where the listing begins.
fn within(question: &mut Question, filter: &EventFilter, window: i64, after: Option<&Place>) {
    let (edge, first, condition) = if filter.is_oldest_first {
        (filter.since, "(SELECT min(at) FROM events)", "at <= {edge:Int64}")
    } else {
        (filter.until, "(SELECT max(at) FROM events)", "at >= {edge:Int64}")
    };
    let window = if filter.is_oldest_first { window } else { -window };
    match after.map(|place| place.at).or(edge.map(|edge| edge.0)) {
        Some(from) => question.and(condition, "edge", from.saturating_add(window)),
        None => {
            let compare = if filter.is_oldest_first { "<=" } else { ">=" };
            question.only(format!("at {compare} {first} + ({window})"));
        }
    }
}

/// Narrows to what comes after a place. The first part alone lets the order of the table apply.
fn beyond(question: &mut Question, is_oldest_first: bool, place: &Place) {
    question.set("place_id", &place.id);
    question.set("place_at", place.at);
    question.only(if is_oldest_first {
        "at >= {place_at:Int64} AND (at > {place_at:Int64} OR id > {place_id:String})"
    } else {
        "at <= {place_at:Int64} AND (at < {place_at:Int64} OR id < {place_id:String})"
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        let place = Place { at: -5, id: "req.1".to_owned() };
        assert_eq!(Place::parse("-5.req.1").unwrap(), place);
        for bad in ["", ".", "1", "1.", "a.b", "elsewhere"] {
            assert!(matches!(Place::parse(bad), Err(StoreError::BadCursor(_))), "{bad}");
        }
    }
}
