//! Agents: in pages, by name, and what some of them spent.

use rusqlite::Row;
use rusqlite::types::Value;
use serde::Serialize;
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::filter::Conditions;
use super::{Page, Reader, page_rows, sum_of_halves};
use crate::error::StoreError;
use crate::history::rows;
use crate::history::tally::SLOT_MS;

/// What an agent did, over all the time on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentRow {
    /// Its name.
    pub name: AgentName,
    /// Runs begun.
    pub runs: u64,
    /// Requests made, in runs or not.
    pub steps: u64,
    /// What they cost.
    pub cost: NanoUsd,
    /// Requests whose cost is not known.
    pub unpriced_steps: u64,
    /// Requests that were refused.
    pub blocked: u64,
    /// First activity.
    pub first_at: Timestamp,
    /// Last activity.
    pub last_at: Timestamp,
}

impl AgentRow {
    /// Where the listing goes on behind this agent.
    #[must_use]
    pub fn cursor(&self) -> String {
        format!("{}.{}", self.last_at.0, self.name)
    }
}

const COLUMNS: &str = "agent, runs, steps, cost_nano, unpriced_steps, blocked, first_at, last_at";

impl Reader {
    /// Agents by last activity, those whose name has a part in it, whatever its case.
    pub(in crate::history) fn agents(
        &self,
        name_part: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<AgentRow>, StoreError> {
        let (sql, conditions) = agents_sql(name_part, cursor, limit)?;
        let mut items = self.list(&sql, conditions, read)?;
        let size = page_rows(limit) as usize;
        let has_more = items.len() > size;
        items.truncate(size);
        let next = items.last().filter(|_| has_more).map(AgentRow::cursor);
        Ok(Page { items, next })
    }

    pub(in crate::history) fn agent(&self, name: &AgentName) -> Result<Option<AgentRow>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and("agent = ?", name.as_str().to_owned());
        let sql = format!("SELECT {COLUMNS} FROM agent_totals {}", conditions.sql());
        Ok(self.list(&sql, conditions, read)?.pop())
    }

    /// The names of the agents that were seen last, at most so many.
    pub(in crate::history) fn agent_names(&self, most: u32) -> Result<Vec<AgentName>, StoreError> {
        let sql = format!("SELECT agent FROM agent_totals ORDER BY last_at DESC, agent DESC LIMIT {most}");
        self.list(&sql, Conditions::default(), |row| rows::agent_name(row, 0))
    }

    /// Those of some agents that are on record.
    pub(in crate::history) fn seen_of(&self, names: &[AgentName]) -> Result<Vec<AgentName>, StoreError> {
        let conditions = among(names);
        let sql = format!("SELECT agent FROM agent_totals {}", conditions.sql());
        self.list(&sql, conditions, |row| rows::agent_name(row, 0))
    }

    /// What each of some agents spent since the quarter of an hour in which `since` lies; who made no request is left out.
    pub(in crate::history) fn spent_by(
        &self,
        names: &[AgentName],
        since: Timestamp,
    ) -> Result<Vec<(AgentName, NanoUsd)>, StoreError> {
        let (sql, conditions) = spent_by_sql(names, since);
        self.list(&sql, conditions, |row| Ok((rows::agent_name(row, 0)?, NanoUsd(sum_of_halves(row, 1)?))))
    }
}

fn agents_sql(name_part: &str, cursor: Option<&str>, limit: u32) -> Result<(String, Conditions), StoreError> {
    let mut conditions = Conditions::default();
    let part = Some(name_part.to_ascii_lowercase()).filter(|part| !part.is_empty());
    conditions.and_maybe("instr(lower(agent), ?) > 0", part);
    if let Some(cursor) = cursor {
        let (at, name) = agent_place(cursor).ok_or_else(|| StoreError::BadCursor(cursor.chars().take(64).collect()))?;
        conditions.only("(last_at, agent) < (?, ?)");
        conditions.values.extend([Value::from(at), Value::from(name.to_owned())]);
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM agent_totals {} ORDER BY last_at DESC, agent DESC LIMIT {}",
        conditions.sql(),
        page_rows(limit) + 1
    );
    Ok((sql, conditions))
}

fn spent_by_sql(names: &[AgentName], since: Timestamp) -> (String, Conditions) {
    let mut conditions = among(names);
    conditions.and("slot >= ?", since.0.div_euclid(SLOT_MS));
    // A plain sum is an error in SQLite once it passes the largest integer, so high and low bits are summed apart.
    let sql = format!(
        "SELECT agent, sum(cost_nano >> 20), sum(cost_nano & 1048575) FROM spend {} GROUP BY agent",
        conditions.sql()
    );
    (sql, conditions)
}

/// Narrows to some agents. As one value, so that the statement is the same for any number of them.
fn among(names: &[AgentName]) -> Conditions {
    let names: Vec<&str> = names.iter().map(AgentName::as_str).collect();
    let mut conditions = Conditions::default();
    conditions.and("agent IN (SELECT value FROM json_each(?))", serde_json::Value::from(names).to_string());
    conditions
}

/// The time and the name of a cursor.
pub(in crate::history) fn agent_place(cursor: &str) -> Option<(i64, &str)> {
    let (at, name) = cursor.split_once('.')?;
    Some((at.parse().ok()?, name)).filter(|(_, name)| AgentName::parse(name).is_ok())
}

fn read(row: &Row<'_>) -> rusqlite::Result<AgentRow> {
    Ok(AgentRow {
        name: rows::agent_name(row, 0)?,
        runs: rows::count(row, 1)?,
        steps: rows::count(row, 2)?,
        cost: NanoUsd(row.get(3)?),
        unpriced_steps: rows::count(row, 4)?,
        blocked: rows::count(row, 5)?,
        first_at: Timestamp(row.get(6)?),
        last_at: Timestamp(row.get(7)?),
    })
}

#[cfg(test)]
mod tests {
    use sprag_core::event::Event;

    use super::*;
    use crate::history::samples::step;
    use crate::history::tally::Tally;
    use crate::sqlite::{HISTORY, open_writer};

    fn name(text: &str) -> AgentName {
        AgentName::parse(text).unwrap()
    }

    fn filled(events: &[(&str, i64)]) -> (tempfile::TempDir, Reader) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let mut writer = open_writer(&path, HISTORY).unwrap();
        let mut tally = Tally::default();
        for (n, (agent, at)) in events.iter().enumerate() {
            let (agent, at) = (name(agent), Timestamp(*at));
            tally.add(&Event { agent, at, total_ms: 0, cost: Some(NanoUsd(5)), ..step(&n.to_string(), "r", 1) });
        }
        let transaction = writer.transaction().unwrap();
        tally.apply(&transaction).unwrap();
        transaction.commit().unwrap();
        (dir, Reader::new(&path))
    }

    #[test]
    fn pages_follow_one_another_also_among_agents_of_the_same_moment() {
        let (_dir, reader) = filled(&[("b.1", 7), ("a", 7), ("c", 7), ("late", 9), ("Early", 1)]);
        let (mut listed, mut cursor) = (Vec::new(), None);
        loop {
            let page = reader.agents("", cursor.as_deref(), 2).unwrap();
            listed.extend(page.items.iter().map(|row| row.name.to_string()));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(listed, ["late", "c", "b.1", "a", "Early"]);
        let found: Vec<_> = reader.agents("EA", None, 9).unwrap().items.into_iter().map(|row| row.name).collect();
        assert_eq!(found, [name("Early")]);
        assert_eq!(reader.agents("_", None, 9).unwrap().items, [], "a part is no pattern");
        for bad in ["", "x", "1", "1.", "1.a b", ".a"] {
            assert!(matches!(reader.agents("", Some(bad), 9), Err(StoreError::BadCursor(_))), "{bad}");
        }
        assert_eq!(reader.agent_names(2).unwrap(), [name("late"), name("c")]);
        assert_eq!(reader.seen_of(&[name("x"), name("a")]).unwrap(), [name("a")]);
    }

    #[test]
    fn what_some_spent_is_summed_by_agent() {
        let (_dir, reader) = filled(&[("a", 0), ("a", SLOT_MS), ("a", 2 * SLOT_MS), ("b", SLOT_MS), ("c", SLOT_MS)]);
        let spent = reader.spent_by(&[name("a"), name("b"), name("x")], Timestamp(SLOT_MS + 1)).unwrap();
        assert_eq!(spent, [(name("a"), NanoUsd(10)), (name("b"), NanoUsd(5))]);
    }

    #[test]
    fn listings_walk_an_index_and_sort_nothing() {
        let (_dir, reader) = filled(&[]);
        let plan = |(sql, conditions): (String, Conditions)| {
            let explained = format!("EXPLAIN QUERY PLAN {sql}");
            reader.list(&explained, conditions, |row| row.get::<_, String>(3)).unwrap()
        };
        for part in ["", "bot"] {
            let steps = plan(agents_sql(part, Some("1.a"), 10).unwrap());
            assert!(steps.len() == 1 && steps[0].contains("USING INDEX agents_newest "), "{steps:?}");
        }
        let steps = plan(spent_by_sql(&[name("a")], Timestamp(0)));
        assert!(steps[0].ends_with("(agent=? AND slot>?)"), "{steps:?}");
    }
}
