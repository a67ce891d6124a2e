//! `models`: patterns of names.

use sprag_core::limits;
use sprag_core::policy::Models;

use super::{place, told};
use crate::config::file::{self, AgentModels};
use crate::config::problem::Problem;

/// The models of agents that have none of their own.
pub(super) fn defaults(written: &file::Models, key: &str, problems: &mut Vec<Problem>) -> Models {
    let whole = AgentModels { allow: Some(written.allow.clone()), mode: Some(written.mode) };
    over(&Models::default(), &whole, key, problems)
}

/// Models with what is written for an agent; `key` is where that stands.
pub(super) fn over(base: &Models, written: &AgentModels, key: &str, problems: &mut Vec<Problem>) -> Models {
    let mut models = base.clone();
    if let Some(mode) = written.mode {
        models.mode = mode.into();
    }
    if let Some(allow) = &written.allow {
        models.allow = allow.iter().map(|pattern| pattern.trim().to_owned()).collect();
        check(&place(key, "allow"), &models, problems);
    }
    models
}

fn check(key: &str, models: &Models, problems: &mut Vec<Problem>) {
    if models.allow.len() > limits::MODEL_PATTERNS {
        problems.extend(models.problem().map(|problem| told(key, &problem)));
        return;
    }
    for (index, pattern) in models.allow.iter().enumerate() {
        let alone = Models { mode: models.mode, allow: [pattern.clone()].into() };
        problems.extend(alone.problem().map(|problem| told(format!("{key}[{index}]"), &problem)));
    }
}
