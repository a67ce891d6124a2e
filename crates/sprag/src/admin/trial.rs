//! What other thresholds would have done to runs on record: for the API and the pages.

use serde::Deserialize;
use sprag_core::event::Ending;
use sprag_core::limits::{PROGRESS_STEPS, TRIED_REQUESTS};
use sprag_core::loops::{Mode, ProgressRule, Trial, try_rule};
use sprag_core::money::NanoUsd;
use sprag_store::StoreError;
use sprag_store::history::{History, RunFilter, RunRow, RunStatus, StepRow};

use super::problem::Problem;

/// Requests whose evidence is read at once: some of it is a few hundred bytes.
const READ_AT_ONCE: u64 = 10_000;

/// Thresholds in place of those in force. What is not given stays as it is.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Thresholds {
    pub(super) repeats: Option<f64>,
    pub(super) same_results: Option<f64>,
    pub(super) stall: Option<f64>,
    pub(super) likeness: Option<f64>,
    pub(super) asked_again: Option<u32>,
    pub(super) compactions: Option<u32>,
    /// Steps that are looked at; 0 is as many as are kept, which is 24.
    pub(super) window: Option<u32>,
    /// Seconds that are looked back; 0 is no bound.
    pub(super) window_seconds: Option<u32>,
}

impl Thresholds {
    /// The rule with these thresholds.
    pub(super) fn rule(&self, in_force: &ProgressRule) -> Result<ProgressRule, Problem> {
        let mut rule = in_force.clone();
        // Whether anything follows does not matter here, and neither does in which runs.
        rule.common.mode = Mode::Enforce;
        let steps = PROGRESS_STEPS as u32;
        set("repeats", &mut rule.repeats, self.repeats, 2.0, f64::from(steps))?;
        set("same_results", &mut rule.same_results, self.same_results, 2.0, f64::from(steps))?;
        set("stall", &mut rule.stall, self.stall, 2.0, 100.0)?;
        set("likeness", &mut rule.likeness, self.likeness, 0.5, 1.0)?;
        set("asked_again", &mut rule.asked_again, self.asked_again, 2, 1000)?;
        set("compactions", &mut rule.compactions, self.compactions, 2, 100)?;
        set("window", &mut rule.common.window.requests, self.window, 0, 100)?;
        set("window_seconds", &mut rule.common.window.seconds, self.window_seconds, 0, 86_400)?;
        Ok(rule)
    }
}

/// Sets a value that was given, if it is within its bounds: those of the configuration.
fn set<T: PartialOrd + std::fmt::Display>(
    name: &str,
    value: &mut T,
    given: Option<T>,
    least: T,
    most: T,
) -> Result<(), Problem> {
    match given {
        Some(given) if given >= least && given <= most => *value = given,
        Some(_) => return Err(Problem::bad_request(format!("`{name}` is a number from {least} to {most}"))),
        None => {}
    }
    Ok(())
}

/// A run judged again.
pub(super) struct Tried {
    pub(super) trial: Trial,
    /// Requests on record, and those of them that could be judged.
    pub(super) requests: usize,
    pub(super) judged: usize,
    /// The first request that was refused in fact.
    pub(super) refused_at: Option<u32>,
    /// Requests from the stop on that were not refused, and what they cost.
    pub(super) spared: usize,
    pub(super) spared_cost: NanoUsd,
    /// The last request was answered whole.
    pub(super) is_answered: bool,
}

impl Tried {
    /// Judges the requests of a run by a rule.
    pub(super) fn new(rows: &[StepRow], rule: &ProgressRule) -> Tried {
        let recorded = StepRow::recorded(rows);
        let trial = try_rule(&recorded, rule);
        let stop = trial.stop.as_ref().map_or(u32::MAX, |stop| stop.step);
        let spared = || rows.iter().filter(|row| row.step >= stop && !row.blocked);
        Tried {
            requests: rows.len(),
            judged: recorded.len(),
            refused_at: rows.iter().find(|row| row.blocked).map(|row| row.step),
            spared: spared().count(),
            spared_cost: NanoUsd(spared().filter_map(|row| row.cost).fold(0, |sum, cost| sum.saturating_add(cost.0))),
            is_answered: rows.last().is_some_and(|row| row.ending == Ending::Complete),
            trial,
        }
    }
}

/// The latest runs, judged again.
pub(super) struct TriedRuns {
    pub(super) runs: Vec<(RunRow, Tried)>,
    /// There were more requests than are judged at once; the older runs are left out.
    pub(super) is_partial: bool,
}

/// Judges the latest runs, at most so many of them and so many of their requests; `rule_of` gives the rule for a run.
/// Runs without evidence are left out.
pub(super) fn try_runs(
    history: &History,
    filter: &RunFilter,
    (most_runs, most_requests): (u32, usize),
    rule_of: impl Fn(&RunRow) -> ProgressRule,
) -> Result<TriedRuns, StoreError> {
    let (mut runs, mut judged) = (Vec::new(), 0);
    let mut rest = history.runs(filter, None, most_runs)?.items;
    while !rest.is_empty() {
        let some: Vec<RunRow> = rest.drain(..at_once(&rest)).collect();
        let evidence = history.evidence(&some)?;
        for (run, rows) in some.into_iter().zip(evidence) {
            judged += rows.len();
            if judged > most_requests {
                return Ok(TriedRuns { runs, is_partial: true });
            }
            let tried = Tried::new(&rows, &rule_of(&run));
            if tried.judged > 0 {
                runs.push((run, tried));
            }
        }
    }
    Ok(TriedRuns { runs, is_partial: false })
}

/// How many of some runs are read at once: all of which together have a few thousand requests, and one in any case.
fn at_once(runs: &[RunRow]) -> usize {
    let mut requests = 0;
    let is_within = |run: &&RunRow| {
        requests += run.steps.min(u64::from(TRIED_REQUESTS));
        requests <= READ_AT_ONCE
    };
    runs.iter().take_while(is_within).count().max(1)
}

/// Whether a run went well as far as is known: nobody stopped it, and its last request was answered.
pub(super) fn ended_well(run: &RunRow, tried: &Tried) -> bool {
    !matches!(run.status, RunStatus::Killed | RunStatus::Paused) && run.stopped.is_none() && tried.is_answered
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sprag_core::event::{Event, EventKind, RunOrigin, RunRecord};
    use sprag_core::id::RunId;
    use sprag_core::loops::StepEvidence;
    use sprag_core::time::Timestamp;
    use sprag_store::DataDir;
    use sprag_store::history::HistorySettings;

    use super::*;

    #[test]
    fn so_many_requests_are_judged_and_older_runs_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let data = Arc::new(DataDir::open(dir.path()).unwrap());
        let history = History::open_embedded(data, HistorySettings::default()).unwrap();
        for number in 1..=3 {
            let id = RunId::parse(&number.to_string()).unwrap();
            history.record(&Event {
                run: Some(RunRecord { id, step: 1, parent: None, origin: RunOrigin::Declared }),
                evidence: StepEvidence::from_bytes(&[0x10, 0, 0]),
                ..Event::new(number.to_string(), Timestamp(number), EventKind::LlmCall)
            });
        }
        history.flush().unwrap();
        let tried = |most| {
            let all = RunFilter::default();
            let tried = try_runs(&history, &all, most, |_| ProgressRule::balanced()).unwrap();
            (tried.runs.iter().map(|(run, _)| run.id.to_string()).collect::<Vec<_>>().join(" "), tried.is_partial)
        };
        assert_eq!(tried((9, 3)), ("3 2 1".into(), false), "at the bound");
        assert_eq!(tried((9, 2)), ("3 2".into(), true), "past it");
        assert_eq!(tried((2, 9)), ("3 2".into(), false), "as many runs as were asked for");
    }

    #[test]
    fn as_many_runs_are_read_at_once_as_have_few_requests_together() {
        let dir = tempfile::tempdir().unwrap();
        let data = Arc::new(DataDir::open(dir.path()).unwrap());
        let history = History::open_embedded(data, HistorySettings::default()).unwrap();
        history.record(&Event {
            run: Some(RunRecord { id: RunId::parse("r").unwrap(), step: 1, parent: None, origin: RunOrigin::Declared }),
            ..Event::new("1".to_owned(), Timestamp(1), EventKind::LlmCall)
        });
        history.flush().unwrap();
        let run = history.runs(&RunFilter::default(), None, 1).unwrap().items.remove(0);
        let of =
            |steps: &[u64]| at_once(&steps.iter().map(|&steps| RunRow { steps, ..run.clone() }).collect::<Vec<_>>());
        assert_eq!(of(&[READ_AT_ONCE]), 1, "the longest run by itself");
        assert_eq!(of(&[1000; 12]), 10, "at the bound");
        assert_eq!(of(&[u64::MAX; 12]), 5, "of a long run its last requests count");
    }

    #[test]
    fn what_is_given_is_set_and_the_rest_stays() {
        let mut in_force = ProgressRule::balanced();
        in_force.common.window.seconds = 90;
        let given = Thresholds { repeats: Some(3.0), window: Some(12), ..Thresholds::default() };
        let rule = given.rule(&in_force).unwrap();
        assert_eq!((rule.repeats, rule.common.window.requests, rule.stall), (3.0, 12, in_force.stall));
        assert_eq!(rule.common.window.seconds, 90);
        let given = Thresholds { window: Some(0), window_seconds: Some(0), ..Thresholds::default() };
        let window = given.rule(&in_force).unwrap().common.window;
        assert_eq!((window.requests, window.seconds), (0, 0), "what the configuration takes");
    }

    #[test]
    fn values_out_of_bounds_are_named() {
        let wrong = |given: Thresholds| given.rule(&ProgressRule::balanced()).unwrap_err().detail.into_owned();
        let none = Thresholds::default();
        for (given, said) in [
            (Thresholds { repeats: Some(1.99), ..none }, "`repeats` is a number from 2 to 24"),
            (Thresholds { repeats: Some(24.01), ..none }, "`repeats` is a number from 2 to 24"),
            (Thresholds { stall: Some(f64::NAN), ..none }, "`stall` is a number from 2 to 100"),
            (Thresholds { likeness: Some(f64::INFINITY), ..none }, "`likeness` is a number from 0.5 to 1"),
            (Thresholds { window: Some(101), ..none }, "`window` is a number from 0 to 100"),
            (Thresholds { window_seconds: Some(86_401), ..none }, "`window_seconds` is a number from 0 to 86400"),
            (Thresholds { asked_again: Some(1), ..none }, "`asked_again` is a number from 2 to 1000"),
        ] {
            assert_eq!(wrong(given), said);
        }
    }
}
