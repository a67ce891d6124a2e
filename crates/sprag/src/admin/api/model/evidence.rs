//! How alike the steps of a run are, and what other thresholds would have done.

use serde::Serialize;
use sprag_core::loops::{Detector, Picture, ProgressRule, Proof, RuleStop};
use sprag_core::money::NanoUsd;
use sprag_store::history::{RunRow, RunStatus, StepRow};

use super::Usd;
use crate::admin::trial::{Tried, TriedRuns, ended_well};

/// Steps of a run against its steps.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct PictureRecord {
    /// The steps that are compared, ascending: the last ones where there are many.
    pub(crate) steps: Vec<u32>,
    /// One text for each step, with a digit for each step up to itself: 0 nothing alike, 1 similar, 2 the same call or
    /// the same result, 3 the same call with the same result.
    pub(crate) rows: Vec<String>,
    /// Steps that the proof of the stop names.
    pub(crate) proof: Vec<u32>,
    /// How near the run was to its threshold, which is 1, at each request that was judged.
    pub(crate) levels: Vec<LevelRecord>,
    pub(crate) requests: usize,
    /// Requests of which there is evidence; without any there is no picture.
    pub(crate) judged: usize,
}

/// How near a threshold a run was.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct LevelRecord {
    pub(crate) step: u32,
    pub(crate) level: f32,
}

/// The thresholds of `progress`.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct RuleRecord {
    pub(crate) repeats: f64,
    pub(crate) same_results: f64,
    pub(crate) stall: f64,
    pub(crate) likeness: f64,
    pub(crate) asked_again: u32,
    pub(crate) compactions: u32,
    /// Steps that are looked at; 0 is as many as are kept.
    pub(crate) window: u32,
    /// Seconds that are looked back; 0 is no bound.
    pub(crate) window_seconds: u32,
}

/// What would have happened to a run under a rule.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct TrialRecord {
    pub(crate) rule: RuleRecord,
    /// Where it would have been stopped.
    pub(crate) stopped: Option<TrialStop>,
    /// The first request that was refused in fact.
    pub(crate) refused_at: Option<u32>,
    pub(crate) requests: usize,
    pub(crate) judged: usize,
    pub(crate) levels: Vec<LevelRecord>,
}

/// Where a rule would have stopped a run.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct TrialStop {
    pub(crate) step: u32,
    pub(crate) detector: Detector,
    pub(crate) loop_type: String,
    /// Requests from that one on that were let through, and what they cost.
    pub(crate) saved_steps: usize,
    pub(crate) saved_usd: Usd,
    pub(crate) saved_nano_usd: NanoUsd,
    pub(crate) proof: Proof,
}

/// What would have happened to the latest runs.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct TrialSums {
    /// Thresholds that were given; the others are those in force for each agent.
    pub(crate) rule: RuleRecord,
    /// Runs that could be judged.
    pub(crate) runs: usize,
    pub(crate) stopped: usize,
    /// Those of them that went well in fact: nobody stopped them, and their last request was answered.
    pub(crate) ended_well: usize,
    pub(crate) saved_usd: Usd,
    pub(crate) saved_nano_usd: NanoUsd,
    /// There were more requests than are judged at once; the older runs are left out.
    pub(crate) partial: bool,
    /// The runs that would have been stopped, the latest first.
    pub(crate) items: Vec<TrialRun>,
}

/// A run that would have been stopped.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct TrialRun {
    pub(crate) agent: String,
    pub(crate) id: String,
    pub(crate) status: RunStatus,
    pub(crate) ended_well: bool,
    pub(crate) stopped: TrialStop,
}

impl PictureRecord {
    pub(crate) fn new(picture: Picture, rows: &[StepRow], proof: Vec<u32>) -> PictureRecord {
        let text = |row: &Vec<u8>| row.iter().map(|level| char::from(b'0' + level)).collect();
        let levels = rows.iter().filter_map(|row| Some((row.step, row.level?)));
        PictureRecord {
            rows: picture.rows.iter().map(text).collect(),
            steps: picture.steps,
            proof,
            levels: levels.map(LevelRecord::from).collect(),
            requests: rows.len(),
            judged: rows.iter().filter(|row| row.evidence.is_some()).count(),
        }
    }
}

impl From<(u32, f32)> for LevelRecord {
    fn from((step, level): (u32, f32)) -> LevelRecord {
        LevelRecord { step, level }
    }
}

impl From<&ProgressRule> for RuleRecord {
    fn from(rule: &ProgressRule) -> RuleRecord {
        RuleRecord {
            repeats: rule.repeats,
            same_results: rule.same_results,
            stall: rule.stall,
            likeness: rule.likeness,
            asked_again: rule.asked_again,
            compactions: rule.compactions,
            window: rule.common.window.requests,
            window_seconds: rule.common.window.seconds,
        }
    }
}

impl TrialRecord {
    pub(in crate::admin) fn new(rule: &ProgressRule, tried: &Tried) -> TrialRecord {
        TrialRecord {
            rule: RuleRecord::from(rule),
            stopped: tried.trial.stop.as_ref().map(|stop| TrialStop::new(stop, tried)),
            refused_at: tried.refused_at,
            requests: tried.requests,
            judged: tried.judged,
            levels: tried.trial.levels.iter().copied().map(LevelRecord::from).collect(),
        }
    }
}

impl TrialStop {
    fn new(stop: &RuleStop, tried: &Tried) -> TrialStop {
        TrialStop {
            step: stop.step,
            detector: stop.finding.detector,
            loop_type: stop.finding.loop_type.clone(),
            saved_steps: tried.spared,
            saved_usd: Usd(tried.spared_cost),
            saved_nano_usd: tried.spared_cost,
            proof: stop.finding.proof.clone(),
        }
    }
}

impl TrialSums {
    pub(in crate::admin) fn new(rule: &ProgressRule, tried: &TriedRuns) -> TrialSums {
        let stopped = |(run, tried): &(RunRow, Tried)| {
            let stop = tried.trial.stop.as_ref()?;
            Some(TrialRun {
                agent: run.agent.to_string(),
                id: run.id.to_string(),
                status: run.status,
                ended_well: ended_well(run, tried),
                stopped: TrialStop::new(stop, tried),
            })
        };
        let items: Vec<TrialRun> = tried.runs.iter().filter_map(stopped).collect();
        let saved = NanoUsd(items.iter().fold(0, |sum, run| sum.saturating_add(run.stopped.saved_nano_usd.0)));
        TrialSums {
            rule: RuleRecord::from(rule),
            runs: tried.runs.len(),
            stopped: items.len(),
            ended_well: items.iter().filter(|run| run.ended_well).count(),
            saved_usd: Usd(saved),
            saved_nano_usd: saved,
            partial: tried.is_partial,
            items,
        }
    }
}
