//! Agents: in pages, by name, and what some of them spent.

use std::collections::HashMap;

use serde::Deserialize;
use sprag_core::id::AgentName;
use sprag_core::limits::PAGE_ROWS;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::question::Question;
use super::{Reader, bad_cursor, page_rows, sum_of};
use crate::error::StoreError;
use crate::history::query::{AgentRow, Page, agent_place};
use crate::history::tally::SLOT_MS;

#[derive(Deserialize)]
struct Row {
    agent: AgentName,
    requests: u64,
    cost: i64,
    unpriced: u64,
    refused: u64,
    began: i64,
    ended: i64,
}

#[derive(Deserialize)]
struct Named {
    agent: AgentName,
}

#[derive(Deserialize)]
struct Counted {
    agent: AgentName,
    number: u64,
}

#[derive(Deserialize)]
struct Spent {
    agent: AgentName,
    cost: i64,
}

impl Reader {
    /// Agents by last activity, those whose name has a part in it, whatever its case.
    pub(in crate::history) fn agents(
        &self,
        name_part: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<AgentRow>, StoreError> {
        let size = page_rows(limit);
        let mut question = Question::default();
        let part = Some(name_part.to_ascii_lowercase()).filter(|part| !part.is_empty());
        question.and_maybe("position(lower(agent), {part:String}) > 0", "part", part);
        let mut beyond = "";
        if let Some(cursor) = cursor {
            let (at, name) = agent_place(cursor).ok_or_else(|| bad_cursor(cursor))?;
            question.set("place_at", at);
            question.set("place_name", name);
            beyond = "HAVING (ended, agent) < ({place_at:Int64}, {place_name:String})";
        }
        let order = format!("{beyond} ORDER BY ended DESC, agent DESC LIMIT {}", size + 1);
        let mut items = self.agent_rows(&question, &order)?;
        let has_more = items.len() > size;
        items.truncate(size);
        self.count_runs(&mut items)?;
        let next = items.last().filter(|_| has_more).map(AgentRow::cursor);
        Ok(Page { items, next })
    }

    pub(in crate::history) fn agent(&self, name: &AgentName) -> Result<Option<AgentRow>, StoreError> {
        let mut question = Question::default();
        question.and("agent = {agent:String}", "agent", name);
        let mut found = self.agent_rows(&question, "")?;
        self.count_runs(&mut found)?;
        Ok(found.pop())
    }

    /// The names of the agents that were seen last, at most so many.
    pub(in crate::history) fn agent_names(&self, most: u32) -> Result<Vec<AgentName>, StoreError> {
        let sql = format!(
            "SELECT agent, max(last_at) AS ended FROM node_agent_totals GROUP BY agent
             ORDER BY ended DESC, agent DESC LIMIT {most}"
        );
        let found: Vec<Named> = self.ask(&sql, &Question::default())?;
        Ok(found.into_iter().map(|row| row.agent).collect())
    }

    /// Those of some agents that are on record.
    pub(in crate::history) fn seen_of(&self, names: &[AgentName]) -> Result<Vec<AgentName>, StoreError> {
        let mut seen = Vec::new();
        for names in names.chunks(PAGE_ROWS as usize) {
            let mut question = Question::default();
            question.among(names);
            let sql = format!("SELECT DISTINCT agent FROM node_agent_totals {}", question.filter());
            seen.extend(self.ask::<Named>(&sql, &question)?.into_iter().map(|row| row.agent));
        }
        Ok(seen)
    }

    /// What each of some agents spent since the quarter of an hour in which `since` lies; who made no request is left out.
    pub(in crate::history) fn spent_by(
        &self,
        names: &[AgentName],
        since: Timestamp,
    ) -> Result<Vec<(AgentName, NanoUsd)>, StoreError> {
        let mut spent = Vec::new();
        for names in names.chunks(PAGE_ROWS as usize) {
            let mut question = Question::default();
            question.among(names);
            question.and("slot >= {slot:Int64}", "slot", since.0.div_euclid(SLOT_MS));
            let sql = format!(
                "SELECT agent, {} AS cost FROM spend {} GROUP BY agent ORDER BY agent",
                sum_of("cost_nano"),
                question.filter()
            );
            spent.extend(self.ask::<Spent>(&sql, &question)?.into_iter().map(|row| (row.agent, NanoUsd(row.cost))));
        }
        Ok(spent)
    }

    fn agent_rows(&self, question: &Question, order: &str) -> Result<Vec<AgentRow>, StoreError> {
        let sql = format!(
            "SELECT agent, sum(steps) AS requests, {} AS cost, sum(unpriced_steps) AS unpriced, sum(blocked) AS refused,
                min(first_at) AS began, max(last_at) AS ended
             FROM agent_totals {} GROUP BY agent {order}",
            sum_of("cost_nano"),
            question.filter()
        );
        let found: Vec<Row> = self.ask(&sql, question)?;
        let agent = |row: Row| AgentRow {
            name: row.agent,
            runs: 0,
            steps: row.requests,
            cost: NanoUsd(row.cost),
            unpriced_steps: row.unpriced,
            blocked: row.refused,
            first_at: Timestamp(row.began),
            last_at: Timestamp(row.ended),
        };
        Ok(found.into_iter().map(agent).collect())
    }

    /// Nodes share runs, so that each of them counts some that others count too: only the runs themselves tell.
    fn count_runs(&self, agents: &mut [AgentRow]) -> Result<(), StoreError> {
        if agents.is_empty() {
            return Ok(());
        }
        let names: Vec<AgentName> = agents.iter().map(|agent| agent.name.clone()).collect();
        let mut question = Question::default();
        question.among(&names);
        question.only("steps > 0");
        let sql =
            format!("SELECT agent, uniqExact(run_hash) AS number FROM node_runs {} GROUP BY agent", question.filter());
        let counted: HashMap<AgentName, u64> =
            self.ask::<Counted>(&sql, &question)?.into_iter().map(|row| (row.agent, row.number)).collect();
        for agent in agents {
            agent.runs = counted.get(&agent.name).copied().unwrap_or(0);
        }
        Ok(())
    }
}
