//! What a replay came to, as numbers and in the forms that programs read.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use sprag_core::loops::{Action, Detector, Proof};
use sprag_core::money::NanoUsd;

use super::{Judged, Spent};
use crate::admin::api::model::Usd;

/// One line of a verdict file: the first request that is refused, 0 for the first of the run.
#[derive(Debug, Serialize)]
pub struct Verdict<'a> {
    run_id: &'a str,
    killed_at_step: Option<u32>,
    detector: Option<Detector>,
    loop_type: Option<&'a str>,
    score: Option<f64>,
    proof: Option<&'a Proof>,
}

/// A run as `--json` prints it. Steps count from 1, as everywhere in Sprag.
#[derive(Debug, Serialize)]
pub struct RunReport<'a> {
    run_id: &'a str,
    agent: Option<&'a str>,
    model: Option<&'a str>,
    class: Option<&'a str>,
    steps: u32,
    #[serde(serialize_with = "maybe_usd")]
    cost_usd: Option<NanoUsd>,
    stopped_at_step: Option<u32>,
    action: Option<Action>,
    detector: Option<Detector>,
    loop_type: Option<&'a str>,
    confidence: Option<f64>,
    score: Option<f64>,
    proof: Option<&'a Proof>,
    saved_steps: u32,
    #[serde(serialize_with = "maybe_usd")]
    saved_usd: Option<NanoUsd>,
}

/// All runs together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Runs judged.
    pub runs: u64,
    /// Those that would have been stopped.
    pub stopped: u64,
    /// All recorded steps.
    pub steps: u64,
    /// Those that would not have happened.
    pub saved_steps: u64,
    /// What all steps cost, as far as it is known.
    #[serde(serialize_with = "usd")]
    pub cost_usd: NanoUsd,
    /// What would not have been spent, as far as it is known.
    #[serde(serialize_with = "usd")]
    pub saved_usd: NanoUsd,
    /// Steps of which it is not known what they cost.
    pub unpriced_steps: u64,
    /// The part of them that would not have happened.
    pub saved_unpriced_steps: u64,
    /// Stops of each detector.
    pub detectors: BTreeMap<Detector, u64>,
    /// What labelled recordings say, class by class.
    pub classes: BTreeMap<String, ClassSummary>,
    /// Runs that were left out because they are older than asked for.
    #[serde(skip_serializing_if = "is_none")]
    pub older: u64,
    /// Lines that could not be read.
    pub unread_lines: u64,
}

/// The runs of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassSummary {
    /// Runs.
    pub runs: u64,
    /// Those that would have been stopped.
    pub stopped: u64,
    /// The part of them that was stopped before the labelled loop began.
    pub stopped_before_onset: u64,
}

impl<'a> Verdict<'a> {
    /// The verdict about a run.
    #[must_use]
    pub fn of(judged: &'a Judged) -> Verdict<'a> {
        let stop = judged.outcome.stop.as_ref();
        let finding = stop.map(|stop| &stop.finding);
        Verdict {
            run_id: &judged.run_id,
            killed_at_step: stop.map(|stop| stop.step - 1),
            detector: finding.map(|finding| finding.detector),
            loop_type: finding.map(|finding| finding.loop_type.as_str()),
            score: finding.map(|finding| finding.score),
            proof: finding.map(|finding| &finding.proof),
        }
    }
}

impl<'a> RunReport<'a> {
    /// The report of a run.
    #[must_use]
    pub fn of(judged: &'a Judged) -> RunReport<'a> {
        let outcome = &judged.outcome;
        let finding = outcome.stop.as_ref().map(|stop| &stop.finding);
        RunReport {
            run_id: &judged.run_id,
            agent: judged.agent.as_deref(),
            model: outcome.model.as_deref(),
            class: judged.label.as_ref().map(|label| label.class.as_str()),
            steps: outcome.total.steps,
            cost_usd: known(outcome.total),
            stopped_at_step: outcome.stop.as_ref().map(|stop| stop.step),
            action: outcome.stop.as_ref().map(|stop| stop.action),
            detector: finding.map(|finding| finding.detector),
            loop_type: finding.map(|finding| finding.loop_type.as_str()),
            confidence: finding.map(|finding| finding.confidence),
            score: finding.map(|finding| finding.score),
            proof: finding.map(|finding| &finding.proof),
            saved_steps: outcome.saved.steps,
            saved_usd: known(outcome.saved),
        }
    }
}

impl Summary {
    /// Adds a run.
    pub fn add(&mut self, judged: &Judged) {
        let (total, saved) = (judged.outcome.total, judged.outcome.saved);
        let stop = judged.outcome.stop.as_ref();
        let is_stopped = u64::from(stop.is_some());
        self.runs += 1;
        self.stopped += is_stopped;
        self.steps += u64::from(total.steps);
        self.saved_steps += u64::from(saved.steps);
        self.cost_usd += total.cost;
        self.saved_usd += saved.cost;
        self.unpriced_steps += u64::from(total.unpriced_steps);
        self.saved_unpriced_steps += u64::from(saved.unpriced_steps);
        if let Some(stop) = stop {
            *self.detectors.entry(stop.finding.detector).or_default() += 1;
        }
        if let Some(label) = &judged.label {
            let is_early = stop.is_some_and(|stop| label.onset.is_some_and(|onset| stop.step <= onset));
            let class = self.classes.entry(label.class.clone()).or_default();
            class.runs += 1;
            class.stopped += is_stopped;
            class.stopped_before_onset += u64::from(is_early);
        }
    }
}

/// A cost of which nothing is known is none, not zero.
fn known(spent: Spent) -> Option<NanoUsd> {
    (spent.unpriced_steps < spent.steps || spent.steps == 0).then_some(spent.cost)
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

fn usd<S: Serializer>(amount: &NanoUsd, serializer: S) -> Result<S::Ok, S::Error> {
    Usd(*amount).serialize(serializer)
}

fn maybe_usd<S: Serializer>(amount: &Option<NanoUsd>, serializer: S) -> Result<S::Ok, S::Error> {
    amount.map(Usd).serialize(serializer)
}
