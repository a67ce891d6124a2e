//! What happened over time, in even steps, and who led.

use serde::Deserialize;
use sprag_core::id::AgentName;
use sprag_core::limits::PAGE_ROWS;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use super::question::Question;
use super::{Reader, sum_of};
use crate::error::StoreError;
use crate::history::query::{AgentBucket, AgentShare, Bucket, Series, Span, TopBy};
use crate::history::tally::{DAY_MS, MINUTE_MS, SLOT_MS};

#[derive(Deserialize)]
struct Row {
    time: i64,
    requests: u64,
    refused: u64,
    failed: u64,
    cost: i64,
}

#[derive(Deserialize)]
struct Share {
    agent: AgentName,
    requests: u64,
    refused: u64,
    cost: i64,
}

impl Reader {
    pub(in crate::history) fn series(
        &self,
        span: Span,
        now: Timestamp,
        agent: Option<&AgentName>,
    ) -> Result<Series, StoreError> {
        let mut series = Series::empty(span, now, agent.is_some());
        let (table, time, row_ms) = match span {
            _ if agent.is_some() => ("spend", "slot", SLOT_MS),
            Span::Hour => ("minute_totals", "minute", MINUTE_MS),
            Span::Day | Span::Month => ("slot_totals", "slot", SLOT_MS),
        };
        let mut question = Question::default();
        question.and_maybe("agent = {agent:String}", "agent", agent);
        question.only(format!("{time} >= {{first:Int64}}"));
        question.set("first", series.first_at().div_euclid(row_ms));
        let sql = sums_sql(table, time, &question);
        for row in self.ask::<Row>(&sql, &question)? {
            let at = Timestamp(row.time.saturating_mul(row_ms));
            series.add(&Bucket {
                at,
                requests: row.requests,
                blocked: row.refused,
                errors: row.failed,
                cost: NanoUsd(row.cost),
            });
        }
        Ok(series)
    }

    /// The agents that spent or were stopped the most, over the same time as the chart of all of them.
    pub(in crate::history) fn top_agents(
        &self,
        span: Span,
        now: Timestamp,
        by: TopBy,
        limit: u32,
    ) -> Result<Vec<AgentShare>, StoreError> {
        let first_at = Series::empty(span, now, false).first_at();
        let (table, time, row_ms) = match span {
            Span::Hour => ("agent_minutes", "minute", MINUTE_MS),
            Span::Day => ("spend", "slot", SLOT_MS),
            Span::Month => ("agent_days", "day", DAY_MS),
        };
        let mut question = Question::default();
        question.only(format!("{time} >= {{first:Int64}}"));
        question.set("first", first_at.div_euclid(row_ms));
        let order = match by {
            TopBy::Cost => "cost DESC, refused DESC",
            TopBy::Stops => "refused DESC, cost DESC",
        };
        let sql = format!(
            "SELECT agent, sum(steps) AS requests, sum(blocked) AS refused, {} AS cost FROM {table} {}
             GROUP BY agent ORDER BY {order}, requests DESC, agent LIMIT {}",
            sum_of("cost_nano"),
            question.filter(),
            limit.clamp(1, PAGE_ROWS)
        );
        let share = |row: Share| AgentShare {
            name: row.agent,
            requests: row.requests,
            blocked: row.refused,
            cost: NanoUsd(row.cost),
        };
        Ok(self.ask::<Share>(&sql, &question)?.into_iter().map(share).collect())
    }

    /// One bucket after the other from the one in which `since` lies to the one in which `until` lies, empty ones too.
    pub(in crate::history) fn agent_series(
        &self,
        agent: &AgentName,
        (since, until): (Timestamp, Timestamp),
        quarters: u32,
    ) -> Result<Vec<AgentBucket>, StoreError> {
        let mut buckets = AgentBucket::empty(since, until, quarters);
        let bucket_ms = i64::from(quarters.max(1)) * SLOT_MS;
        let (first, last) = (since.0.div_euclid(bucket_ms), until.0.div_euclid(bucket_ms));
        let mut question = Question::default();
        question.and("agent = {agent:String}", "agent", agent);
        question.and("slot >= {first:Int64}", "first", first.saturating_mul(bucket_ms / SLOT_MS));
        question.and("slot < {end:Int64}", "end", (last + 1).saturating_mul(bucket_ms / SLOT_MS));
        for row in self.ask::<Row>(&sums_sql("spend", "slot", &question), &question)? {
            let place = row.time.saturating_mul(SLOT_MS).div_euclid(bucket_ms) - first;
            let Some(bucket) = usize::try_from(place).ok().and_then(|place| buckets.get_mut(place)) else { continue };
            bucket.requests = bucket.requests.saturating_add(row.requests);
            bucket.blocked = bucket.blocked.saturating_add(row.refused);
            bucket.cost = NanoUsd(bucket.cost.0.saturating_add(row.cost));
        }
        Ok(buckets)
    }
}

fn sums_sql(table: &str, time: &str, question: &Question) -> String {
    format!(
        "SELECT {time} AS time, sum(steps) AS requests, sum(blocked) AS refused, sum(errors) AS failed, {} AS cost
         FROM {table} {} GROUP BY {time}",
        sum_of("cost_nano"),
        question.filter()
    )
}
