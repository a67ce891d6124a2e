//! A policy in the form of `[agents.NAME]`, with every part of it said, and where the parts come from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sprag_core::dlp::{self, DlpRules, Profile, Ways};
use sprag_core::loops::{Action, Detector, Mode, Rules, RunKind};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Budget, KillSwitch, Policy, RateMeasure, RateRule, Reserve, RunLimits, Stage, StageAction};
use utoipa::ToSchema;

/// What an agent may do.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PolicyRecord {
    run_limits: Limits,
    kill_switch: KillSwitch,
    hours: HoursRecord,
    models: ModelsRecord,
    rate_limits: Vec<RateRecord>,
    budget: BudgetRecord,
    dlp: DlpRecord,
    /// The rules in force, by detector.
    detection: BTreeMap<&'static str, DetectorRecord>,
}

/// How far runs may go; 0 is no limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Limits {
    mode: Mode,
    max_steps: u32,
    timeout_seconds: u32,
    /// `declared` or `all`.
    applies_to: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
struct HoursRecord {
    mode: Mode,
    /// None is any time.
    allowed: Vec<String>,
    time_zone: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct ModelsRecord {
    mode: Mode,
    /// None is every model.
    allow: Vec<String>,
}

#[derive(Debug, Default, Serialize, ToSchema)]
struct RateRecord {
    name: String,
    mode: Mode,
    limit_keys: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<f64>,
}

/// Amounts are exact texts in dollars; null is no limit.
#[derive(Debug, Serialize, ToSchema)]
struct BudgetRecord {
    mode: Mode,
    max_run_cost: Option<String>,
    daily_limit: Option<String>,
    monthly_limit: Option<String>,
    reserve: Reserve,
    stages: Vec<StageRecord>,
    kill_run: bool,
}

/// What happens at a part of a limit.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct StageRecord {
    at: u8,
    action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
}

/// What is done about sensitive data.
#[derive(Debug, Serialize, ToSchema)]
struct DlpRecord {
    profile: Profile,
    reversible: Vec<String>,
    request_modes: BTreeMap<String, dlp::Mode>,
    answer_modes: BTreeMap<String, dlp::Mode>,
}

#[derive(Debug, Serialize, ToSchema)]
struct DetectorRecord {
    mode: Mode,
    action: Action,
}

/// Where a part of a policy comes from. What is not said comes from the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PolicySource {
    /// `[agents.NAME]`
    Configuration,
    /// Set through the admin side.
    Set,
}

impl PolicyRecord {
    pub(in crate::admin::api) fn new(policy: &Policy, rules: &Rules) -> PolicyRecord {
        let detectors = Detector::ALL.into_iter().map(|detector| {
            let common = rules.common(detector);
            (detector.as_str(), DetectorRecord { mode: common.mode, action: common.action })
        });
        PolicyRecord {
            run_limits: policy.run_limits.into(),
            kill_switch: policy.kill_switch,
            hours: HoursRecord {
                mode: policy.hours.mode,
                allowed: policy.hours.windows.iter().map(ToString::to_string).collect(),
                time_zone: policy.hours.zone.to_string(),
            },
            models: ModelsRecord { mode: policy.models.mode, allow: policy.models.allow.to_vec() },
            rate_limits: policy.rate_limits.iter().map(RateRecord::new).collect(),
            budget: BudgetRecord::new(&policy.budget),
            dlp: DlpRecord::new(&policy.dlp),
            detection: detectors.collect(),
        }
    }
}

/// Which keys are written in the configuration, and which are set over it, by their dotted path.
pub(in crate::admin::api) fn sources(written: Option<&Value>, set: &Value) -> BTreeMap<String, PolicySource> {
    let mut sources = BTreeMap::new();
    for (layer, source) in [(written, PolicySource::Configuration), (Some(set), PolicySource::Set)] {
        let mut keys = Vec::new();
        layer.and_then(Value::as_object).into_iter().for_each(|map| collect(map, "", &mut keys));
        if keys.iter().any(|key| key == "detection.preset") {
            // A preset sets all of them.
            keys.extend(
                Detector::ALL.iter().flat_map(|detector| {
                    ["mode", "action"].map(|key| format!("detection.{}.{key}", detector.as_str()))
                }),
            );
        }
        sources.extend(keys.into_iter().map(|key| (key, source)));
    }
    sources
}

fn collect(map: &Map<String, Value>, path: &str, keys: &mut Vec<String>) {
    for (name, value) in map {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match value {
            Value::Object(inner) => collect(inner, &path, keys),
            _ => keys.push(path),
        }
    }
}

impl DlpRecord {
    fn new(rules: &DlpRules) -> DlpRecord {
        let modes = |way: fn(&Ways) -> Option<dlp::Mode>| {
            rules.modes.iter().filter_map(|(name, ways)| Some((name.clone(), way(ways)?))).collect()
        };
        DlpRecord {
            profile: rules.profile,
            reversible: rules.reversible.clone(),
            request_modes: modes(|ways| ways.request),
            answer_modes: modes(|ways| ways.answer),
        }
    }
}

impl From<RunLimits> for Limits {
    fn from(limits: RunLimits) -> Limits {
        Limits {
            mode: limits.mode,
            max_steps: limits.max_steps,
            timeout_seconds: limits.timeout_seconds,
            applies_to: match limits.applies_to {
                RunKind::Declared => "declared",
                RunKind::All => "all",
            },
        }
    }
}

impl RateRecord {
    fn new(rule: &RateRule) -> RateRecord {
        let record = RateRecord {
            name: rule.name.to_string(),
            mode: rule.mode,
            limit_keys: rule.limit_keys.iter().map(ToString::to_string).collect(),
            ..RateRecord::default()
        };
        match rule.measure {
            RateMeasure::Requests { limit, window_ms } => {
                RateRecord { requests: Some(limit), window_seconds: Some(window_ms / 1000), ..record }
            }
            RateMeasure::Tokens { limit, window_ms } => {
                RateRecord { tokens: Some(limit), window_seconds: Some(window_ms / 1000), ..record }
            }
            RateMeasure::Bucket { rps, burst } => RateRecord { rps: Some(rps), burst: Some(burst), ..record },
        }
    }
}

impl BudgetRecord {
    fn new(budget: &Budget) -> BudgetRecord {
        let amount = |limit: Option<NanoUsd>| limit.map(|limit| limit.to_string());
        BudgetRecord {
            mode: budget.mode,
            max_run_cost: amount(budget.max_run_cost),
            daily_limit: amount(budget.daily_limit),
            monthly_limit: amount(budget.monthly_limit),
            reserve: budget.reserve,
            stages: budget.stages.iter().map(StageRecord::new).collect(),
            kill_run: budget.kill_run,
        }
    }
}

impl StageRecord {
    pub(super) fn new(stage: &Stage) -> StageRecord {
        let (action, delay_ms) = match stage.action {
            StageAction::Warn => ("warn", None),
            StageAction::Throttle { delay_ms } => ("throttle", Some(delay_ms)),
        };
        StageRecord { at: stage.at, action: action.to_owned(), delay_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_layer_that_says_something_is_where_it_comes_from() {
        let written =
            serde_json::json!({"budget": {"daily_limit": 5, "mode": "shadow"}, "detection": {"preset": "strict"}});
        let set = serde_json::json!({"budget": {"daily_limit": 6}, "rate_limits": []});
        let sources = sources(Some(&written), &set);
        assert_eq!(sources["budget.daily_limit"], PolicySource::Set);
        assert_eq!(sources["budget.mode"], PolicySource::Configuration);
        assert_eq!(sources["rate_limits"], PolicySource::Set);
        assert_eq!(sources["detection.progress.mode"], PolicySource::Configuration);
        assert_eq!(sources.get("budget.kill_run"), None);
    }
}
