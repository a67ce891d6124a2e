//! What was spent since a moment, by one or by everybody at once, and all sums of a stretch of time.

use serde::Deserialize;
use sprag_core::id::AgentName;
use sprag_core::limits::SPENDERS;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::question::Question;
use super::{Reader, sum_of};
use crate::error::StoreError;
use crate::history::query::{Spender, SpentByAll, Totals};
use crate::history::tally::{DAY_MS, SLOT_MS};

#[derive(Deserialize)]
struct Cost {
    cost: i64,
}

#[derive(Deserialize)]
struct OfAgent {
    agent: AgentName,
    cost: i64,
}

#[derive(Deserialize)]
struct OfKey {
    key: String,
    cost: i64,
}

#[derive(Deserialize)]
struct Sums {
    requests: u64,
    input: i64,
    cached: i64,
    output: i64,
    cost: i64,
    unpriced: u64,
    estimated: u64,
    refused: u64,
    failed: u64,
    saved: i64,
}

impl Reader {
    /// Sums of everything since the quarter of an hour in which `since` lies, of one agent or of all.
    pub(in crate::history) fn totals(&self, since: Timestamp, agent: Option<&AgentName>) -> Result<Totals, StoreError> {
        let mut question = Question::default();
        question.and_maybe("agent = {agent:String}", "agent", agent);
        question.and("slot >= {slot:Int64}", "slot", since.0.div_euclid(SLOT_MS));
        let sql = format!(
            "SELECT sum(steps) AS requests, {} AS input, {} AS cached, {} AS output, {} AS cost, {} AS saved,
                sum(unpriced_steps) AS unpriced, sum(estimated_steps) AS estimated, sum(blocked) AS refused,
                sum(errors) AS failed
             FROM {} {}",
            sum_of("input_tokens"),
            sum_of("cached_tokens"),
            sum_of("output_tokens"),
            sum_of("cost_nano"),
            sum_of("saved_nano"),
            if agent.is_some() { "spend" } else { "slot_totals" },
            question.filter()
        );
        let found: Option<Sums> = self.ask_one(&sql, &question)?;
        Ok(found.map_or_else(Totals::default, |sums| Totals {
            requests: sums.requests,
            input_tokens: sums.input.unsigned_abs(),
            cached_tokens: sums.cached.unsigned_abs(),
            output_tokens: sums.output.unsigned_abs(),
            cost: NanoUsd(sums.cost),
            unpriced: sums.unpriced,
            estimated: sums.estimated,
            blocked: sums.refused,
            errors: sums.failed,
            saved: NanoUsd(sums.saved),
        }))
    }

    /// Money since the quarter of an hour in which `since` lies.
    pub(in crate::history) fn spent(&self, of: Spender<'_>, since: Timestamp) -> Result<NanoUsd, StoreError> {
        self.spent_but_by(None, of, since)
    }

    /// The same, without what one node has sent.
    pub(in crate::history) fn spent_but_by(
        &self,
        node: Option<&str>,
        of: Spender<'_>,
        since: Timestamp,
    ) -> Result<NanoUsd, StoreError> {
        let mut question = since_slot(since);
        question.and_maybe("node <> {node:String}", "node", node);
        let table = match of {
            Spender::Everything => "slot_totals",
            Spender::Agent(agent) => {
                question.and("agent = {agent:String}", "agent", agent);
                "spend"
            }
            Spender::Key(key) => {
                question.and("key = {key:String}", "key", key);
                "key_spend"
            }
        };
        let sql = format!("SELECT {} AS cost FROM {table} {}", sum_of("cost_nano"), question.filter());
        Ok(self.ask_one::<Cost>(&sql, &question)?.map_or(NanoUsd::ZERO, |row| NanoUsd(row.cost)))
    }

    /// The same of everybody, at most so many agents and keys.
    pub(in crate::history) fn spent_by_all(&self, since: Timestamp, most: u32) -> Result<SpentByAll, StoreError> {
        let most = most.min(SPENDERS) as usize;
        let rows = most + 1;
        // The slots of the first day, and whole days from there on: a month costs 30 rows for each agent, not 2880.
        let mut question = since_slot(since);
        let first_day = since.0.div_euclid(DAY_MS) + 1;
        question.set("day", first_day);
        question.set("day_slot", first_day.saturating_mul(DAY_MS / SLOT_MS));
        let sql = format!(
            "SELECT agent, {} AS cost FROM (
                SELECT agent, cost_nano FROM spend {} AND slot < {{day_slot:Int64}}
                UNION ALL SELECT agent, cost_nano FROM agent_days WHERE day >= {{day:Int64}})
             GROUP BY agent ORDER BY cost DESC, agent LIMIT {rows}",
            sum_of("cost_nano"),
            question.filter()
        );
        let mut agents: Vec<(AgentName, NanoUsd)> =
            self.ask::<OfAgent>(&sql, &question)?.into_iter().map(|row| (row.agent, NanoUsd(row.cost))).collect();
        let question = since_slot(since);
        let sql = format!(
            "SELECT key, {} AS cost FROM key_spend {} GROUP BY key ORDER BY cost DESC, key LIMIT {rows}",
            sum_of("cost_nano"),
            question.filter()
        );
        let mut keys: Vec<(String, NanoUsd)> =
            self.ask::<OfKey>(&sql, &question)?.into_iter().map(|row| (row.key, NanoUsd(row.cost))).collect();
        let is_partial = agents.len() > most || keys.len() > most;
        agents.truncate(most);
        keys.truncate(most);
        Ok(SpentByAll { agents, keys, everything: self.spent(Spender::Everything, since)?, is_partial })
    }
}

fn since_slot(since: Timestamp) -> Question {
    let mut question = Question::default();
    question.and("slot >= {slot:Int64}", "slot", since.0.div_euclid(SLOT_MS));
    question
}
