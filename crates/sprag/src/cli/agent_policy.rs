//! `sprag agents show | create | set | unset`: what an agent may do.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::agents::{state, told};
use super::client::{Answer, Asking};
use super::table::{Column, print};
use crate::admin::api::model::AgentSummary;
use crate::config::agent_override;

/// The parts of an agent's detail that are shown.
#[derive(Deserialize)]
struct Shown {
    reason: Option<String>,
    policy: Map<String, Value>,
    sources: BTreeMap<String, String>,
}

/// Shows an agent's policy, with where each part of it comes from.
pub(super) fn show(name: &str, asking: &Asking) -> Result<ExitCode> {
    let answer = asking.get(&["agents", name], &[])?;
    if asking.json {
        answer.print()?;
        return Ok(ExitCode::SUCCESS);
    }
    let agent: AgentSummary = answer.read()?;
    let shown: Shown = answer.read()?;
    let why = shown.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    writeln!(std::io::stdout(), "{}", crate::show::plain(&format!("{} is {}{why}", agent.name, state(&agent))))?;
    print_parts(&shown, |_| true)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints those parts of a policy that are meant, with where each comes from.
fn print_parts(shown: &Shown, is_meant: impl Fn(&str) -> bool) -> Result<()> {
    const COLUMNS: [Column; 3] = [("KEY", false), ("FROM", false), ("VALUE", false)];
    let mut parts = Vec::new();
    flatten(&shown.policy, "", &mut parts);
    parts.retain(|(key, _)| is_meant(key));
    let row = |(key, value): (String, String)| {
        let from = shown.sources.get(&key).map_or("default", String::as_str).to_owned();
        vec![key, from, value]
    };
    print(&COLUMNS, parts.into_iter().map(row))
}

/// Makes an agent ahead of its first call.
pub(super) fn create(name: &str, settings: &[String], asking: &Asking) -> Result<ExitCode> {
    let body = json!({"name": name, "policy": patch(settings)?});
    let answer = asking.order(Method::POST, &["agents"], &body)?;
    told(&answer, asking)
}

/// Sets parts of an agent's policy over the configuration.
pub(super) fn set(name: &str, settings: &[String], asking: &Asking) -> Result<ExitCode> {
    change(name, patch(settings)?, asking)
}

/// Takes parts back that were set, so that the configuration holds again.
pub(super) fn unset(name: &str, keys: &[String], asking: &Asking) -> Result<ExitCode> {
    let mut patch = json!({});
    for key in keys {
        put(&mut patch, key, Value::Null)?;
    }
    change(name, patch, asking)
}

fn change(name: &str, patch: Value, asking: &Asking) -> Result<ExitCode> {
    let answer: Answer = asking.order(Method::PATCH, &["agents", name], &json!({ "policy": patch }))?;
    let code = told(&answer, asking)?;
    if !asking.json {
        let (mut keys, shown) = (Vec::new(), answer.read::<Shown>()?);
        flatten(patch.as_object().unwrap_or(&Map::new()), "", &mut keys);
        let is_meant = |key: &str| keys.iter().any(|(of, _)| key.strip_prefix(of.as_str()).is_some_and(is_end));
        print_parts(&shown, is_meant)?;
    }
    Ok(code)
}

/// Whether a key is over here, or goes on below.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}

/// A merge patch of `KEY=VALUE` pairs.
fn patch(settings: &[String]) -> Result<Value> {
    let mut patch = json!({});
    for setting in settings {
        let Some((key, text)) = setting.split_once('=') else {
            bail!("`{setting}` sets nothing; expected KEY=VALUE, as in budget.daily_limit=5");
        };
        put(&mut patch, key, literal(key, text))?;
    }
    Ok(patch)
}

fn put(patch: &mut Value, key: &str, value: Value) -> Result<()> {
    let mut place = patch;
    for part in key.split('.') {
        if part.is_empty() {
            bail!("`{key}` is not a key; expected something like budget.daily_limit");
        }
        if !place.is_null() && !place.is_object() {
            bail!("`{key}` is inside something that is set as a whole");
        }
        place = &mut place[part];
    }
    if !place.is_null() {
        bail!("`{key}` is set twice");
    }
    *place = value;
    Ok(())
}

/// A value as JSON or TOML write it; anything else is a text. A list may be written with commas.
fn literal(key: &str, text: &str) -> Value {
    let toml = || {
        let table: toml::Table = format!("value = {text}").parse().ok()?;
        serde_json::to_value(table.get("value").filter(|_| table.len() == 1)?).ok()
    };
    let value = serde_json::from_str(text).ok().or_else(toml).unwrap_or_else(|| Value::from(text));
    let is_list = agent_override::node_of(key).is_some_and(|node| node["type"] == "array");
    match value {
        Value::String(text) if is_list => text.split(',').map(|item| Value::from(item.trim())).collect(),
        value => value,
    }
}

fn flatten(map: &Map<String, Value>, path: &str, parts: &mut Vec<(String, String)>) {
    for (name, value) in map {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match value {
            Value::Object(inner) => flatten(inner, &path, parts),
            Value::String(text) => parts.push((path, text.clone())),
            Value::Null => parts.push((path, "no limit".to_owned())),
            other => parts.push((path, other.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_literals_or_texts() {
        let settings = [
            "budget.daily_limit=5",
            "budget.max_run_cost=0.50",
            "budget.kill_run=false",
            "budget.stages=[{ at = 50, action = \"warn\" }]",
            "run_limits.max_steps=50",
            "hours.time_zone=Europe/Berlin",
            "hours.allowed=[\"mon-fri 09:00-18:00\"]",
            "models.allow=gpt-4o*,claude-*",
        ];
        let expected = json!({
            "budget": {"daily_limit": 5, "max_run_cost": 0.5, "kill_run": false, "stages": [{"at": 50, "action": "warn"}]},
            "run_limits": {"max_steps": 50},
            "hours": {"time_zone": "Europe/Berlin", "allowed": ["mon-fri 09:00-18:00"]},
            "models": {"allow": ["gpt-4o*", "claude-*"]},
        });
        assert_eq!(patch(&settings.map(str::to_owned)).unwrap(), expected);
    }

    #[test]
    fn what_sets_nothing_is_said() {
        for (settings, said) in [
            (&["budget.daily_limit"][..], "expected KEY=VALUE"),
            (&["=5"], "is not a key"),
            (&["a..b=5"], "is not a key"),
            (&["budget=5", "budget.daily_limit=5"], "is set as a whole"),
            (&["budget.daily_limit=5", "budget.daily_limit=6"], "is set twice"),
        ] {
            let settings: Vec<_> = settings.iter().map(|text| (*text).to_owned()).collect();
            assert!(patch(&settings).unwrap_err().to_string().contains(said), "{settings:?}");
        }
    }
}
