//! What was spent since a moment: by one, and by everybody at once.

use rusqlite::Row;
use sprag_core::id::AgentName;
use sprag_core::limits::SPENDERS;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::filter::Conditions;
use super::{Reader, sum_of_halves};
use crate::error::StoreError;
use crate::history::rows;
use crate::history::tally::SLOT_MS;

/// Whose money it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spender<'a> {
    /// Everybody together.
    Everything,
    /// An agent.
    Agent(&'a AgentName),
    /// A virtual key, by its id.
    Key(&'a str),
}

/// What everybody spent since a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpentByAll {
    /// By each agent that made a request, the most first.
    pub agents: Vec<(AgentName, NanoUsd)>,
    /// By each virtual key that came with one, the most first.
    pub keys: Vec<(String, NanoUsd)>,
    /// By everybody together.
    pub everything: NanoUsd,
    /// There are more agents or keys than are listed; the others spent no more than the last one of a list.
    pub is_partial: bool,
}

// A plain sum is an error in SQLite once it passes the largest integer, so high and low bits are summed apart.
const COST: &str = "sum(cost_nano >> 20), sum(cost_nano & 1048575)";

impl Reader {
    /// Money since the quarter of an hour in which `since` lies.
    pub(in crate::history) fn spent(&self, of: Spender<'_>, since: Timestamp) -> Result<NanoUsd, StoreError> {
        let (sql, conditions) = spent_sql(of, since);
        let found = self.list(&sql, conditions, |row| cost(row, 0))?;
        Ok(found.first().copied().unwrap_or_default())
    }

    /// The same of everybody, at most so many agents and keys.
    pub(in crate::history) fn spent_by_all(&self, since: Timestamp, most: u32) -> Result<SpentByAll, StoreError> {
        let most = most.min(SPENDERS) as usize;
        let of_all = |name: &str, table: &str| {
            format!(
                "SELECT {name}, {COST}, total(cost_nano) AS cost FROM {table} WHERE slot >= ?
                 GROUP BY {name} ORDER BY cost DESC, {name} LIMIT {}",
                most + 1
            )
        };
        let read_agent = |row: &Row<'_>| Ok((rows::agent_name(row, 0)?, cost(row, 1)?));
        let mut agents = self.list(&of_all("agent", "spend"), since_slot(since), read_agent)?;
        let read_key = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, cost(row, 1)?));
        let mut keys = self.list(&of_all("key", "key_spend"), since_slot(since), read_key)?;
        let is_partial = agents.len() > most || keys.len() > most;
        agents.truncate(most);
        keys.truncate(most);
        Ok(SpentByAll { agents, keys, everything: self.spent(Spender::Everything, since)?, is_partial })
    }
}

fn spent_sql(of: Spender<'_>, since: Timestamp) -> (String, Conditions) {
    let mut conditions = since_slot(since);
    let table = match of {
        Spender::Everything => "spend",
        Spender::Agent(agent) => {
            conditions.and("agent = ?", agent.as_str().to_owned());
            "spend"
        }
        Spender::Key(key) => {
            conditions.and("key = ?", key.to_owned());
            "key_spend"
        }
    };
    (format!("SELECT {COST} FROM {table} {}", conditions.sql()), conditions)
}

fn since_slot(since: Timestamp) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.and("slot >= ?", since.0.div_euclid(SLOT_MS));
    conditions
}

fn cost(row: &Row<'_>, index: usize) -> rusqlite::Result<NanoUsd> {
    sum_of_halves(row, index).map(NanoUsd)
}

#[cfg(test)]
mod tests {
    use rusqlite::params_from_iter;
    use sprag_core::event::Event;

    use super::*;
    use crate::history::samples::step;
    use crate::history::tally::Tally;
    use crate::sqlite::{HISTORY, open_writer};

    #[test]
    fn one_spender_is_found_without_a_walk_over_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let connection = open_writer(&dir.path().join("x.db"), HISTORY).unwrap();
        let agent = AgentName::default();
        let cases = [(Spender::Agent(&agent), "(agent=? AND slot>?)"), (Spender::Key("k"), "(key=? AND slot>?)")];
        for (of, expected) in cases {
            let (sql, conditions) = spent_sql(of, Timestamp(0));
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan: String = statement.query_row(params_from_iter(conditions.values), |row| row.get(3)).unwrap();
            assert!(plan.ends_with(expected), "{plan}");
        }
    }

    #[test]
    fn everybody_is_listed_up_to_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let mut writer = open_writer(&path, HISTORY).unwrap();
        let mut tally = Tally::default();
        for (n, name) in (1..).zip(["a", "b", "c"]) {
            let (agent, key) = (AgentName::parse(name).unwrap(), Some(format!("key-{name}")));
            tally.add(&Event { agent, key, cost: Some(NanoUsd(n)), ..step(name, "r", 1) });
        }
        let transaction = writer.transaction().unwrap();
        tally.apply(&transaction).unwrap();
        transaction.commit().unwrap();
        let reader = Reader::new(&path);
        let names = |most| {
            let all = reader.spent_by_all(Timestamp(0), most).unwrap();
            let agents: Vec<String> = all.agents.iter().map(|(agent, cost)| format!("{agent} {}", cost.0)).collect();
            let keys: Vec<String> = all.keys.iter().map(|(key, cost)| format!("{key} {}", cost.0)).collect();
            assert_eq!(all.everything, NanoUsd(6));
            (agents.join(", "), keys.join(", "), all.is_partial)
        };
        assert_eq!(names(3), ("c 3, b 2, a 1".into(), "key-c 3, key-b 2, key-a 1".into(), false), "at the bound");
        assert_eq!(names(2), ("c 3, b 2".into(), "key-c 3, key-b 2".into(), true), "one past it");
    }
}
