//! Sums over time: of each agent, and of all together, by minute, slot and day.

use std::collections::BTreeMap;

use rusqlite::{Transaction, params};
use sprag_core::id::AgentName;

use super::{SLOT_MS, Sums};

/// Length of a row of `minute_totals` and of `agent_minutes`.
pub(in crate::history) const MINUTE_MS: i64 = 60 * 1000;
/// Length of a row of `agent_days`.
pub(in crate::history) const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What the minutes of a batch add up to.
pub(super) struct OverTime<'a> {
    pub(super) agents: BTreeMap<&'a AgentName, Sums>,
    /// By slot and agent.
    pub(super) agent_slots: BTreeMap<(i64, &'a AgentName), Sums>,
    agent_minutes: &'a BTreeMap<i64, BTreeMap<AgentName, Sums>>,
    agent_days: BTreeMap<(i64, &'a AgentName), Sums>,
    minutes: BTreeMap<i64, Sums>,
    slots: BTreeMap<i64, Sums>,
}

impl<'a> OverTime<'a> {
    pub(super) fn of(agent_minutes: &'a BTreeMap<i64, BTreeMap<AgentName, Sums>>) -> OverTime<'a> {
        let mut over_time = OverTime {
            agents: BTreeMap::new(),
            agent_slots: BTreeMap::new(),
            agent_minutes,
            agent_days: BTreeMap::new(),
            minutes: BTreeMap::new(),
            slots: BTreeMap::new(),
        };
        for (minute, agents) in agent_minutes {
            // Slots and days are whole numbers of minutes.
            let slot = minute.div_euclid(SLOT_MS / MINUTE_MS);
            let day = minute.div_euclid(DAY_MS / MINUTE_MS);
            for (agent, sums) in agents {
                over_time.agents.entry(agent).or_default().add(sums);
                over_time.agent_slots.entry((slot, agent)).or_default().add(sums);
                over_time.agent_days.entry((day, agent)).or_default().add(sums);
                over_time.minutes.entry(*minute).or_default().add(sums);
                over_time.slots.entry(slot).or_default().add(sums);
            }
        }
        over_time
    }

    /// Writes what charts are made of.
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
        let minutes = self.agent_minutes.iter().flat_map(|(minute, agents)| agents.iter().map(|of| (*minute, of)));
        write_agents(transaction, ("agent_minutes", "minute"), minutes.map(|(minute, (agent, s))| (minute, agent, s)))?;
        let days = self.agent_days.iter().map(|((day, agent), s)| (*day, *agent, s));
        write_agents(transaction, ("agent_days", "day"), days)
    }
}

fn write_agents<'a>(
    transaction: &Transaction<'_>,
    (table, name): (&str, &str),
    rows: impl Iterator<Item = (i64, &'a AgentName, &'a Sums)>,
) -> rusqlite::Result<()> {
    let mut upsert = transaction.prepare_cached(&format!(
        "INSERT INTO {table} ({name}, agent, steps, blocked, errors, cost_nano) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT ({name}, agent) {ADD}"
    ))?;
    for (at, agent, s) in rows {
        upsert.execute(params![at, agent.as_str(), s.steps, s.blocked, s.errors, s.cost_nano])?;
    }
    Ok(())
}

/// Without `min` a sum past the largest integer would become a float, which the tables refuse.
const ADD: &str = "DO UPDATE SET
    steps = steps + excluded.steps,
    blocked = blocked + excluded.blocked,
    errors = errors + excluded.errors,
    cost_nano = min(cost_nano + excluded.cost_nano, 9223372036854775807)";
