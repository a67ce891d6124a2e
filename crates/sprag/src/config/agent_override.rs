//! What is set for an agent over the configuration, in the form of `[agents.NAME]` as JSON.
//!
//! It is checked as the file is: by the schema, then by what makes sense together. Changes are merge patches of
//! RFC 7386, in which `null` takes a key back. Nothing here is stored.

use serde::Deserialize;
use serde_json::{Map, Value};
use sprag_core::id::AgentName;
use sprag_core::limits::AGENT_OVERRIDE_BYTES;
use sprag_core::policy::Policy;

use super::check::check_table;
use super::file::Agent;
use super::problem::Problem;
use super::resolve::policy::over;
use super::schema;

/// The policy of an agent with `set` over what is configured.
///
/// # Errors
/// Everything that is wrong. Keys are relative to the agent: `budget.daily_limit`.
pub(crate) fn overridden(configured: &Policy, agent: &AgentName, set: &Value) -> Result<Policy, Vec<Problem>> {
    let table = as_table(set).map_err(|message| vec![Problem::value("", message)])?;
    let mut problems = Vec::new();
    check_table(&table, node(), "", &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let agent_file = Agent::deserialize(table).map_err(|error| vec![Problem::value("", error.message())])?;
    // As in the file, because the counters of rate limits are named by their place.
    let prefix = format!("agents.{agent}");
    let policy = over(configured, &agent_file, &prefix, &mut problems);
    if problems.is_empty() {
        return Ok(policy);
    }
    let relative = |key: &str| key.strip_prefix(&prefix).and_then(|key| key.strip_prefix('.')).map(str::to_owned);
    for problem in &mut problems {
        problem.key = relative(&problem.key).unwrap_or_default();
    }
    Err(problems)
}

/// `set` changed by a merge patch. Tables that end up empty are left out.
pub(crate) fn merged(set: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut merged = match set {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    for (name, change) in patch {
        let value = match change {
            Value::Null => Value::Null,
            Value::Object(_) => self::merged(merged.get(name).unwrap_or(&Value::Null), change),
            other => other.clone(),
        };
        if value.is_null() || value.as_object().is_some_and(Map::is_empty) {
            merged.remove(name);
        } else {
            merged.insert(name.clone(), value);
        }
    }
    Value::Object(merged)
}

/// The keys that are written for an agent, and nothing else.
pub(crate) fn written(agent: &Agent) -> Value {
    let whole = serde_json::to_value(agent).unwrap_or_default();
    merged(&Value::Null, &whole)
}

/// The schema of a key such as `budget.daily_limit`.
pub(crate) fn node_of(key: &str) -> Option<&'static Value> {
    schema::below(node(), key)
}

/// The schema of `[agents.NAME]`.
fn node() -> &'static Value {
    schema::child(schema::root(), "agents").and_then(schema::map_values).unwrap_or(&Value::Null)
}

fn as_table(set: &Value) -> Result<toml::Table, String> {
    if !set.is_object() {
        return Err("expected an object with the keys of [agents.NAME]".to_owned());
    }
    if set.to_string().len() > AGENT_OVERRIDE_BYTES {
        return Err(format!("more than {AGENT_OVERRIDE_BYTES} bytes are set"));
    }
    toml::Table::try_from(set).map_err(|error| format!("cannot be read: {error}"))
}

#[cfg(test)]
mod tests;
