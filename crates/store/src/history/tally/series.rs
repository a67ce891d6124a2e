//! Sums for charts: of all agents by minute and by slot, and of each agent by minute and by day.

use std::collections::BTreeMap;

use rusqlite::{Transaction, params};
use sprag_core::id::AgentName;

use super::{SLOT_MS, Sums};

/// Length of a row of `minute_totals` and of `agent_minutes`.
pub(in crate::history) const MINUTE_MS: i64 = 60 * 1000;
/// Length of a row of `agent_days`.
pub(in crate::history) const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What a batch adds to the tables of charts.
#[derive(Default)]
pub(super) struct Series {
    minutes: BTreeMap<i64, Sums>,
    slots: BTreeMap<i64, Sums>,
    agent_minutes: BTreeMap<(i64, AgentName), Sums>,
    days: BTreeMap<(i64, AgentName), Sums>,
}

impl Series {
    pub(super) fn add(&mut self, at: i64, agent: &AgentName, sums: &Sums) {
        self.minutes.entry(at.div_euclid(MINUTE_MS)).or_default().add(sums);
        self.slots.entry(at.div_euclid(SLOT_MS)).or_default().add(sums);
        self.agent_minutes.entry((at.div_euclid(MINUTE_MS), agent.clone())).or_default().add(sums);
        self.days.entry((at.div_euclid(DAY_MS), agent.clone())).or_default().add(sums);
    }

    pub(super) fn apply(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        for (table, name, rows) in [("minute_totals", "minute", &self.minutes), ("slot_totals", "slot", &self.slots)] {
            let mut upsert = transaction.prepare_cached(&format!(
                "INSERT INTO {table} ({name}, steps, blocked, errors, cost_nano) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT ({name}) {ADD}"
            ))?;
            for (at, s) in rows {
                upsert.execute(params![at, s.steps, s.blocked, s.errors, s.cost_nano])?;
            }
        }
        for (table, name, rows) in [("agent_minutes", "minute", &self.agent_minutes), ("agent_days", "day", &self.days)]
        {
            let mut upsert = transaction.prepare_cached(&format!(
                "INSERT INTO {table} ({name}, agent, steps, blocked, errors, cost_nano) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT ({name}, agent) {ADD}"
            ))?;
            for ((at, agent), s) in rows {
                upsert.execute(params![at, agent.as_str(), s.steps, s.blocked, s.errors, s.cost_nano])?;
            }
        }
        Ok(())
    }
}

/// Without `min` a sum past the largest integer would become a float, which the tables refuse.
const ADD: &str = "DO UPDATE SET
    steps = steps + excluded.steps,
    blocked = blocked + excluded.blocked,
    errors = errors + excluded.errors,
    cost_nano = min(cost_nano + excluded.cost_nano, 9223372036854775807)";
