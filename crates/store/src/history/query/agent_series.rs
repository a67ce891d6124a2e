//! What an agent did over time, for a chart.

use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::filter::Conditions;
use super::{Reader, sum_of_halves};
use crate::error::StoreError;
use crate::history::rows;
use crate::history::tally::SLOT_MS;

/// Sums over one bucket of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentBucket {
    /// When it begins.
    pub at: Timestamp,
    /// Requests.
    pub requests: u64,
    /// Requests that were refused.
    pub blocked: u64,
    /// What was spent.
    pub cost: NanoUsd,
}

impl AgentBucket {
    /// The buckets from one moment to another, in which nothing has happened. Each is a number of quarters of an hour.
    pub(in crate::history) fn empty(since: Timestamp, until: Timestamp, quarters: u32) -> Vec<AgentBucket> {
        let bucket_ms = i64::from(quarters.max(1)) * SLOT_MS;
        let numbers = since.0.div_euclid(bucket_ms)..=until.0.div_euclid(bucket_ms);
        numbers.map(|number| AgentBucket { at: Timestamp(number * bucket_ms), ..AgentBucket::default() }).collect()
    }
}

impl Reader {
    /// One bucket after the other from the one in which `since` lies to the one in which `until` lies, empty ones too.
    /// A bucket is a number of quarters of an hour.
    pub(in crate::history) fn agent_series(
        &self,
        agent: &AgentName,
        (since, until): (Timestamp, Timestamp),
        quarters: u32,
    ) -> Result<Vec<AgentBucket>, StoreError> {
        let mut buckets = AgentBucket::empty(since, until, quarters);
        let quarters = i64::from(quarters.max(1));
        let bucket_ms = quarters * SLOT_MS;
        let (first, last) = (since.0.div_euclid(bucket_ms), until.0.div_euclid(bucket_ms));
        let mut conditions = Conditions::default();
        // The index over agents and slots finds these rows alone.
        conditions.and("agent = ?", agent.as_str().to_owned());
        conditions.and("slot >= ?", first * quarters);
        conditions.and("slot < ?", (last + 1) * quarters);
        let sql = format!(
            "SELECT slot / {quarters}, sum(steps), sum(blocked), sum(cost_nano >> 20), sum(cost_nano & 1048575)
             FROM spend {} GROUP BY slot / {quarters}",
            conditions.sql()
        );
        let found = self.list(&sql, conditions, |row| {
            let at = Timestamp(row.get::<_, i64>(0)? * bucket_ms);
            let cost = NanoUsd(sum_of_halves(row, 3)?);
            Ok(AgentBucket { at, requests: rows::count(row, 1)?, blocked: rows::count(row, 2)?, cost })
        })?;
        for bucket in found {
            let place = usize::try_from(bucket.at.0 / bucket_ms - first).ok();
            if let Some(empty) = place.and_then(|place| buckets.get_mut(place)) {
                *empty = bucket;
            }
        }
        Ok(buckets)
    }
}

#[cfg(test)]
mod tests {
    use sprag_core::event::Event;

    use super::*;
    use crate::history::samples::step;
    use crate::history::tally::Tally;
    use crate::sqlite::{HISTORY, open_writer};

    #[test]
    fn buckets_follow_one_another_and_hold_what_happened_in_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let mut writer = open_writer(&path, HISTORY).unwrap();
        let mut tally = Tally::default();
        let bot = AgentName::parse("bot").unwrap();
        for (id, quarter, agent, blocked) in
            [("1", 4, "bot", false), ("2", 7, "bot", true), ("3", 12, "bot", false), ("4", 4, "other", false)]
        {
            let agent = AgentName::parse(agent).unwrap();
            let at = Timestamp(quarter * SLOT_MS + 1);
            tally.add(&Event { agent, at, blocked, cost: Some(NanoUsd(10)), ..step(id, "r", 1) });
        }
        let transaction = writer.transaction().unwrap();
        tally.apply(&transaction).unwrap();
        transaction.commit().unwrap();
        let series =
            Reader::new(&path).agent_series(&bot, (Timestamp(4 * SLOT_MS), Timestamp(12 * SLOT_MS + 5)), 4).unwrap();
        let told: Vec<_> = series.iter().map(|b| (b.at.0 / SLOT_MS, b.requests, b.blocked, b.cost.0)).collect();
        assert_eq!(told, [(4, 2, 1, 20), (8, 0, 0, 0), (12, 1, 0, 10)]);
    }
}
