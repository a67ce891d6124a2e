//! What was stopped lately.

use std::collections::HashSet;

use rusqlite::Row;
use serde_json::Value;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::PAGE_ROWS;
use sprag_core::time::Timestamp;

use super::filter::Conditions;
use super::{Reader, page_rows};
use crate::error::StoreError;
use crate::history::rows;

/// Something that was stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct RecentStop {
    /// When.
    pub at: Timestamp,
    /// Whose.
    pub agent: AgentName,
    /// The run; absent where an agent or a request outside any run was stopped.
    pub run: Option<RunId>,
    /// Why, in the word that refusals and kills use, or in the words of who did it.
    pub reason: String,
    /// Who stopped it: a person, or `sprag`.
    pub by: String,
    /// What it rests on, or what was done.
    pub proof: Option<Value>,
    /// The run was stopped for good or until somebody approves, or the agent set inactive; otherwise one request was refused.
    pub is_lasting: bool,
}

/// Refusals that only follow from a stop that is listed itself.
const ECHOES: [&str; 3] = ["run_killed", "run_paused", "agent_inactive"];

const STOPPED_RUNS: &str = "SELECT agent, run_id, kill_at, kill_reason, kill_by, kill_proof FROM runs
    WHERE kill_at IS NOT NULL ORDER BY kill_at DESC";
const SWITCHED_AGENTS: &str = "SELECT agent, NULL, at, json_extract(act, '$.reason'), json_extract(act, '$.by'),
    json_extract(act, '$.proof') FROM events
    WHERE kind <> 'llm_call' AND kind = 'kill_switch' ORDER BY at DESC";
/// The findings of detection stand in the verdict.
const REFUSED: &str = "SELECT agent, run_id, at, block_reason, 'sprag', json_extract(verdict, '$.proof') FROM events
    WHERE blocked = 1 ORDER BY at DESC";

impl Reader {
    /// The latest stops. Refusals are looked for among so many of the latest ones: a storm of them costs no more.
    pub(in crate::history) fn recent_stops(&self, limit: u32) -> Result<Vec<RecentStop>, StoreError> {
        let limit = page_rows(limit) as usize;
        let find = |sql: &str, most: u32, is_lasting: bool| {
            let sql = format!("{sql} LIMIT {most}");
            self.list(&sql, Conditions::default(), |row| read(row, is_lasting))
        };
        let mut stops = find(STOPPED_RUNS, limit as u32, true)?;
        stops.extend(find(SWITCHED_AGENTS, limit as u32, true)?);
        Ok(latest_stops(stops, find(REFUSED, PAGE_ROWS, false)?, limit))
    }
}

/// The latest of what was stopped for longer and of refusals, which come latest first; each run and agent once.
pub(in crate::history) fn latest_stops(
    lasting: Vec<RecentStop>,
    refused: impl IntoIterator<Item = RecentStop>,
    limit: usize,
) -> Vec<RecentStop> {
    let mut stops = lasting;
    let mut known: HashSet<(AgentName, Option<RunId>)> =
        stops.iter().map(|stop| (stop.agent.clone(), stop.run.clone())).collect();
    let is_first = |stop: &RecentStop| {
        !ECHOES.contains(&stop.reason.as_str()) && known.insert((stop.agent.clone(), stop.run.clone()))
    };
    stops.extend(refused.into_iter().filter(is_first));
    stops.sort_by_key(|stop| std::cmp::Reverse(stop.at));
    stops.truncate(limit);
    stops
}

fn read(row: &Row<'_>, is_lasting: bool) -> rusqlite::Result<RecentStop> {
    let proof: Option<String> = row.get(5)?;
    Ok(RecentStop {
        agent: rows::agent_name(row, 0)?,
        run: rows::optional_run_id(row, 1)?,
        at: Timestamp(row.get(2)?),
        reason: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        by: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
        proof: proof.and_then(|text| serde_json::from_str(&text).ok()),
        is_lasting,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{HISTORY, open_writer};

    #[test]
    fn stops_are_found_without_a_walk_over_what_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let _writer = open_writer(&path, HISTORY).unwrap();
        let reader = Reader::new(&path);
        for (sql, index) in
            [(STOPPED_RUNS, "runs_stopped"), (SWITCHED_AGENTS, "events_of_kind"), (REFUSED, "events_blocked")]
        {
            let explained = format!("EXPLAIN QUERY PLAN {sql} LIMIT 5");
            let plan = reader.list(&explained, Conditions::default(), |row| row.get::<_, String>(3)).unwrap();
            assert!(plan.len() == 1 && plan[0].contains(&format!("USING INDEX {index}")), "{plan:?}");
        }
    }
}
