//! `budget`: exact amounts, and stages in their order.

use sprag_core::limits;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Budget, Stage, StageAction};

use super::place;
use crate::config::file::{self, AgentBudget, Decimal};
use crate::config::problem::Problem;

const EXAMPLE: &str = "as in { at = 80, action = \"warn\" } or { at = 95, action = \"throttle\", delay_ms = 200 }";

/// A budget with what is written over it; `key` is where that stands.
pub(super) fn over(base: &Budget, written: &AgentBudget, key: &str, problems: &mut Vec<Problem>) -> Budget {
    let mut limit = |name: &str, base: Option<NanoUsd>, written: &Option<Decimal>| match written {
        Some(text) => amount(&place(key, name), &text.0, problems),
        None => base,
    };
    let max_run_cost = limit("max_run_cost", base.max_run_cost, &written.max_run_cost);
    let daily_limit = limit("daily_limit", base.daily_limit, &written.daily_limit);
    let monthly_limit = limit("monthly_limit", base.monthly_limit, &written.monthly_limit);
    let stages = match &written.stages {
        Some(stages) => resolve_stages(&place(key, "stages"), stages, problems).into(),
        None => base.stages.clone(),
    };
    Budget {
        mode: written.mode.map_or(base.mode, Into::into),
        max_run_cost,
        daily_limit,
        monthly_limit,
        reserve: written.reserve.map_or(base.reserve, Into::into),
        stages,
        kill_run: written.kill_run.unwrap_or(base.kill_run),
    }
}

/// An amount of dollars; 0 is no limit.
fn amount(key: &str, text: &str, problems: &mut Vec<Problem>) -> Option<NanoUsd> {
    match NanoUsd::parse_usd(text) {
        Ok(amount) if amount >= NanoUsd::ZERO => (amount > NanoUsd::ZERO).then_some(amount),
        _ => {
            let problem = Problem::value(key, format!("\"{text}\" is not an amount of dollars"));
            problems
                .push(problem.hint("expected a plain number, 0 or more, of at most nine decimal places, as in 5.00"));
            None
        }
    }
}

fn resolve_stages(key: &str, written: &[file::Stage], problems: &mut Vec<Problem>) -> Vec<Stage> {
    if written.len() > limits::BUDGET_STAGES {
        problems.push(Problem::value(key, format!("more than {} stages", limits::BUDGET_STAGES)));
        return Vec::new();
    }
    let mut stages: Vec<Stage> = Vec::with_capacity(written.len());
    for (index, stage) in written.iter().enumerate() {
        let key = format!("{key}[{index}]");
        match resolve_stage(stage) {
            Ok(stage) => {
                if let Some(last) = stages.last().filter(|last| last.at >= stage.at) {
                    let problem =
                        Problem::value(place(&key, "at"), format!("{} does not come after {}", stage.at, last.at));
                    problems.push(problem.hint("write the stages in ascending order"));
                }
                stages.push(stage);
            }
            Err((name, message)) => problems.push(Problem::value(place(&key, name), message).hint(EXAMPLE)),
        }
    }
    stages
}

/// The stage, or a key of it with what is wrong there.
fn resolve_stage(written: &file::Stage) -> Result<Stage, (&'static str, &'static str)> {
    let at = written.at.ok_or(("at", "a stage needs the percentage it begins at"))?;
    let action = match (written.action, written.delay_ms) {
        (Some(file::StageAction::Warn), None) => StageAction::Warn,
        (Some(file::StageAction::Throttle), Some(delay_ms)) => StageAction::Throttle { delay_ms },
        (Some(file::StageAction::Warn), Some(_)) => return Err(("delay_ms", "only \"throttle\" makes calls wait")),
        (Some(file::StageAction::Throttle), None) => {
            return Err(("delay_ms", "\"throttle\" needs to know how long calls wait"));
        }
        (None, _) => return Err(("action", "a stage needs an action, \"warn\" or \"throttle\"")),
    };
    Ok(Stage { at, action })
}
