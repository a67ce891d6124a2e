//! What run state starts from when a run comes back after it was forgotten.

use std::collections::HashSet;

use serde::Deserialize;
use sprag_core::limits::{PAGE_ROWS, RUN_TREE_DEPTH};
use sprag_core::money::NanoUsd;

use super::question::Question;
use super::{Reader, sum_of};
use crate::error::StoreError;
use crate::history::query::PastRun;
use crate::run_key::RunKey;
use crate::state::RunTotals;

#[derive(Deserialize)]
struct Part {
    run_id: String,
}

#[derive(Deserialize)]
struct Sums {
    steps: u64,
    refused: u64,
    cost: i64,
}

#[derive(Deserialize)]
struct LastStep {
    number: u64,
}

impl Reader {
    pub(in crate::history) fn run_totals(&self, key: &RunKey) -> Result<Option<RunTotals>, StoreError> {
        Ok(self.recall(key)?.map(|past| past.totals))
    }

    /// The sums of a run that is not in memory, and the run above it.
    pub(in crate::history) fn recall(&self, key: &RunKey) -> Result<Option<PastRun>, StoreError> {
        let Some(run) = self.run(key)? else { return Ok(None) };
        let parts = self.parts(key)?;
        let (mut tree_steps, mut tree_refused, mut tree_cost) = (run.steps, run.blocked, run.cost.0);
        for some in parts.chunks(PAGE_ROWS as usize) {
            let sums = self.sums_of(key, some)?;
            tree_steps = tree_steps.saturating_add(sums.steps);
            tree_refused = tree_refused.saturating_add(sums.refused);
            tree_cost = tree_cost.saturating_add(sums.cost);
        }
        let steps = run.steps.max(self.last_step(key)?);
        let totals = RunTotals {
            steps: u32::try_from(steps).unwrap_or(u32::MAX),
            cost: run.cost,
            tree_steps: u32::try_from(tree_steps.max(steps)).unwrap_or(u32::MAX),
            tree_cost: NanoUsd(tree_cost),
            tree_refused: u32::try_from(tree_refused).unwrap_or(u32::MAX),
            input_tokens: run.input_tokens,
            output_tokens: run.output_tokens,
            unpriced_steps: u32::try_from(run.unpriced_steps).unwrap_or(u32::MAX),
            failed_steps: u32::try_from(run.errors).unwrap_or(u32::MAX),
            first_at: run.first_at,
            last_at: run.last_at,
        };
        Ok(Some(PastRun { totals, parent: run.parent }))
    }

    /// The ids of all runs below a run, each once, without itself.
    fn parts(&self, key: &RunKey) -> Result<Vec<String>, StoreError> {
        let mut known = HashSet::from([key.id.as_str().to_owned()]);
        let mut level = vec![key.id.as_str().to_owned()];
        let mut parts = Vec::new();
        for _ in 0..RUN_TREE_DEPTH {
            let mut below = Vec::new();
            for some in level.chunks(PAGE_ROWS as usize) {
                let mut question = Question::default();
                question.and("agent = {agent:String}", "agent", &key.agent);
                question.only("parent IN (SELECT arrayJoin(JSONExtract({ids:String}, 'Array(String)')))");
                question.set_list("ids", some);
                let sql = format!("SELECT DISTINCT run_id FROM node_runs {}", question.filter());
                let found: Vec<Part> = self.ask(&sql, &question)?;
                below.extend(found.into_iter().map(|part| part.run_id).filter(|id| known.insert(id.clone())));
            }
            if below.is_empty() {
                break;
            }
            parts.extend(below.iter().cloned());
            level = below;
        }
        Ok(parts)
    }

    fn sums_of(&self, key: &RunKey, ids: &[String]) -> Result<Sums, StoreError> {
        let mut question = Question::default();
        question.and("agent = {agent:String}", "agent", &key.agent);
        question.only(
            "run_hash IN (SELECT cityHash64({agent:String}, arrayJoin(JSONExtract({ids:String}, 'Array(String)'))))",
        );
        question.set_list("ids", ids);
        let sql = format!(
            "SELECT sum(counted.steps) AS steps, sum(counted.blocked) AS refused, {} AS cost FROM runs AS counted {}",
            sum_of("counted.cost_nano"),
            question.filter()
        );
        Ok(self.ask_one(&sql, &question)?.unwrap_or(Sums { steps: 0, refused: 0, cost: 0 }))
    }

    /// The highest number that a step of the run bears: more than there are steps on record when some were cut short
    /// by the end of a process.
    fn last_step(&self, key: &RunKey) -> Result<u64, StoreError> {
        let mut question = Question::default();
        question.of_run(key);
        let sql = format!("SELECT max(step) AS number FROM events {}", question.filter());
        Ok(self.ask_one::<LastStep>(&sql, &question)?.map_or(0, |last| last.number))
    }
}
