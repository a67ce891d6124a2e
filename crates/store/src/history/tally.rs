//! Sums over the events of one batch, so that a batch costs one update per run, agent and slot of time.

mod over_time;
mod runs;

use std::collections::BTreeMap;

use rusqlite::{Transaction, params};
use sprag_core::event::{Act, ActKind, Ending, Event, RunRecord};
use sprag_core::id::{AgentName, RunId};

use self::over_time::OverTime;
pub(super) use self::over_time::{DAY_MS, MINUTE_MS};
use self::runs::{RunSums, RunUpsert};
use super::rows::{clamp, word};

/// Length of a slot of the `spend` table.
pub(super) const SLOT_MS: i64 = 15 * 60 * 1000;

/// What a batch adds to the totals. Ordered, so that the same events always make the same rows.
#[derive(Default)]
pub(super) struct Tally {
    runs: BTreeMap<AgentName, BTreeMap<RunId, RunSums>>,
    /// By minute and agent. All other sums over time are made of these.
    minutes: BTreeMap<i64, BTreeMap<AgentName, Sums>>,
    keys: BTreeMap<(String, i64), Sums>,
    /// What was last done about a run.
    acts: BTreeMap<(AgentName, RunId), (i64, RunRecord, Act)>,
}

/// The counters that runs, agents and slots have in common.
#[derive(Clone, Copy, Default)]
struct Sums {
    steps: i64,
    input: i64,
    cached: i64,
    output: i64,
    cost_nano: i64,
    unpriced: i64,
    estimated: i64,
    blocked: i64,
    errors: i64,
    saved_nano: i64,
    first_at: i64,
    last_at: i64,
}

impl Tally {
    /// Adds an event that was not known before.
    pub(super) fn add(&mut self, event: &Event) {
        if let Some(act) = &event.act {
            if let Some(run) = &event.run {
                let key = (event.agent.clone(), run.id.clone());
                self.acts.insert(key, (event.at.0, run.clone(), (**act).clone()));
            }
            return;
        }
        let sums = Sums::of(event);
        let minute = self.minutes.entry(event.at.0.div_euclid(MINUTE_MS)).or_default();
        minute.entry(event.agent.clone()).or_default().add(&sums);
        if let Some(key) = &event.key {
            self.keys.entry((key.clone(), event.at.0.div_euclid(SLOT_MS))).or_default().add(&sums);
        }
        let Some(record) = &event.run else { return };
        let runs = self.runs.entry(event.agent.clone()).or_default();
        runs.entry(record.id.clone()).or_insert_with(|| RunSums::new(record)).add(event, record, &sums);
    }

    /// Writes the sums into the totals.
    pub(super) fn apply(self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let new_runs = self.apply_runs(transaction)?;
        self.apply_acts(transaction)?;
        let sums = OverTime::of(&self.minutes);
        let mut upsert = transaction.prepare_cached(UPSERT_AGENT)?;
        for (agent, s) in &sums.agents {
            let runs = new_runs.get(agent).copied().unwrap_or(0);
            upsert.execute(params![
                agent.as_str(),
                runs,
                s.steps,
                s.input,
                s.cached,
                s.output,
                s.cost_nano,
                s.unpriced,
                s.estimated,
                s.blocked,
                s.errors,
                s.first_at,
                s.last_at
            ])?;
        }
        let mut upsert = transaction.prepare_cached(UPSERT_SPEND)?;
        for ((slot, agent), s) in &sums.agent_slots {
            upsert.execute(params![
                slot,
                agent.as_str(),
                s.steps,
                s.input,
                s.cached,
                s.output,
                s.cost_nano,
                s.unpriced,
                s.estimated,
                s.blocked,
                s.errors,
                s.saved_nano
            ])?;
        }
        sums.apply(transaction)?;
        self.apply_keys(transaction)
    }

    /// Writes the sums of runs, and says how many runs of each agent had no step before.
    fn apply_runs(&self, transaction: &Transaction<'_>) -> rusqlite::Result<BTreeMap<&AgentName, i64>> {
        let mut upsert = RunUpsert::new(transaction)?;
        self.runs.iter().map(|(agent, runs)| Ok((agent, upsert.write(agent, runs.values())?))).collect()
    }

    fn apply_keys(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut upsert = transaction.prepare_cached(UPSERT_KEY_SPEND)?;
        for ((key, slot), s) in &self.keys {
            upsert.execute(params![
                key,
                slot,
                s.steps,
                s.input,
                s.cached,
                s.output,
                s.cost_nano,
                s.unpriced,
                s.blocked
            ])?;
        }
        Ok(())
    }

    /// Where the runs stand after what was done about them. Calls never change that: an answer in flight brings no
    /// killed run back.
    fn apply_acts(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut upsert = transaction.prepare_cached(UPSERT_STATUS)?;
        for ((agent, id), (at, record, act)) in &self.acts {
            let status = match act.what {
                ActKind::Kill => "killed",
                ActKind::Pause => "paused",
                ActKind::Resume | ActKind::Approve | ActKind::Lift | ActKind::StartCommand => "running",
                ActKind::EndCommand => "finished",
                _ => continue,
            };
            let is_stopped = matches!(act.what, ActKind::Kill | ActKind::Pause);
            upsert.execute(params![
                agent.as_str(),
                id.as_str(),
                record.parent.as_ref().map(RunId::as_str),
                word(&record.origin),
                at,
                status,
                is_stopped.then_some(&act.reason),
                is_stopped.then_some(&act.by),
                is_stopped.then_some(at),
                act.expires_at.filter(|_| is_stopped).map(|end| end.0),
                act.proof.as_ref().filter(|_| is_stopped).map(ToString::to_string),
            ])?;
        }
        Ok(())
    }
}

impl Sums {
    fn of(event: &Event) -> Sums {
        let usage = event.usage.unwrap_or_default();
        let failed = matches!(event.ending, Ending::UpstreamError | Ending::UpstreamGone | Ending::TimedOut);
        Sums {
            steps: 1,
            input: clamp(usage.prompt_tokens()),
            cached: clamp(usage.cache_read),
            output: clamp(usage.output),
            cost_nano: event.cost.unwrap_or_default().0,
            unpriced: i64::from(event.unpriced),
            estimated: i64::from(usage.estimated),
            blocked: i64::from(event.blocked),
            errors: i64::from(failed),
            saved_nano: event.saved.unwrap_or_default().0,
            first_at: event.at.0,
            last_at: event.at.0.saturating_add(i64::from(event.total_ms)),
        }
    }

    fn add(&mut self, other: &Sums) {
        self.first_at = if self.steps == 0 { other.first_at } else { self.first_at.min(other.first_at) };
        self.last_at = if self.steps == 0 { other.last_at } else { self.last_at.max(other.last_at) };
        self.steps += other.steps;
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
        self.cost_nano = self.cost_nano.saturating_add(other.cost_nano);
        self.unpriced += other.unpriced;
        self.estimated += other.estimated;
        self.blocked += other.blocked;
        self.errors += other.errors;
        self.saved_nano = self.saved_nano.saturating_add(other.saved_nano);
    }
}

// A sum past the largest integer becomes a float in SQLite, which a STRICT table refuses: without `min` one absurd
// number from an upstream would stop the history for good.
const UPSERT_STATUS: &str = "
INSERT INTO runs (agent, run_id, parent, origin, provider, steps, input_tokens, cached_tokens, output_tokens, cost_nano,
    unpriced_steps, estimated_steps, blocked, errors, first_at, last_at, status, kill_reason, kill_by, kill_at,
    kill_expires_at, kill_proof)
VALUES (?1, ?2, ?3, ?4, '', 0, 0, 0, 0, 0, 0, 0, 0, 0, ?5, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (agent, run_id) DO UPDATE SET
    status = excluded.status,
    kill_reason = excluded.kill_reason,
    kill_by = excluded.kill_by,
    kill_at = excluded.kill_at,
    kill_expires_at = excluded.kill_expires_at,
    kill_proof = excluded.kill_proof";

const UPSERT_AGENT: &str = "
INSERT INTO agent_totals (agent, runs, steps, input_tokens, cached_tokens, output_tokens, cost_nano, unpriced_steps,
    estimated_steps, blocked, errors, first_at, last_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (agent) DO UPDATE SET
    runs = runs + excluded.runs,
    steps = steps + excluded.steps,
    input_tokens = min(input_tokens + excluded.input_tokens, 9223372036854775807),
    cached_tokens = min(cached_tokens + excluded.cached_tokens, 9223372036854775807),
    output_tokens = min(output_tokens + excluded.output_tokens, 9223372036854775807),
    cost_nano = min(cost_nano + excluded.cost_nano, 9223372036854775807),
    unpriced_steps = unpriced_steps + excluded.unpriced_steps,
    estimated_steps = estimated_steps + excluded.estimated_steps,
    blocked = blocked + excluded.blocked,
    errors = errors + excluded.errors,
    first_at = min(first_at, excluded.first_at),
    last_at = max(last_at, excluded.last_at)";

const UPSERT_SPEND: &str = "
INSERT INTO spend (slot, agent, steps, input_tokens, cached_tokens, output_tokens, cost_nano, unpriced_steps,
    estimated_steps, blocked, errors, saved_nano)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (slot, agent) DO UPDATE SET
    steps = steps + excluded.steps,
    input_tokens = min(input_tokens + excluded.input_tokens, 9223372036854775807),
    cached_tokens = min(cached_tokens + excluded.cached_tokens, 9223372036854775807),
    output_tokens = min(output_tokens + excluded.output_tokens, 9223372036854775807),
    cost_nano = min(cost_nano + excluded.cost_nano, 9223372036854775807),
    unpriced_steps = unpriced_steps + excluded.unpriced_steps,
    estimated_steps = estimated_steps + excluded.estimated_steps,
    blocked = blocked + excluded.blocked,
    errors = errors + excluded.errors,
    saved_nano = min(saved_nano + excluded.saved_nano, 9223372036854775807)";

const UPSERT_KEY_SPEND: &str = "
INSERT INTO key_spend (key, slot, steps, input_tokens, cached_tokens, output_tokens, cost_nano, unpriced_steps, blocked)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (key, slot) DO UPDATE SET
    steps = steps + excluded.steps,
    input_tokens = min(input_tokens + excluded.input_tokens, 9223372036854775807),
    cached_tokens = min(cached_tokens + excluded.cached_tokens, 9223372036854775807),
    output_tokens = min(output_tokens + excluded.output_tokens, 9223372036854775807),
    cost_nano = min(cost_nano + excluded.cost_nano, 9223372036854775807),
    unpriced_steps = unpriced_steps + excluded.unpriced_steps,
    blocked = blocked + excluded.blocked";
