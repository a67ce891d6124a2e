//! Environment variables as configuration: every key, its path in capitals, joined with `_` after `SPRAG_`.
//!
//! The names come from the schema. The process's environment is read once, in [`Environment::process`]; everything
//! else works on values.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value as Schema;
use toml::Value;

use super::check::check_value;
use super::presets::PRESETS;
use super::problem::{Problem, nearest};
use super::schema::{self, Key};

/// The environment, or what a test says it is.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

/// A key that a variable sets.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) path: Vec<String>,
    pub(crate) value: Value,
    pub(crate) variable: String,
}

const PREFIX: &str = "SPRAG_";
/// Variables that are no key.
const OTHERS: [&str; 2] = ["SPRAG_CONFIG", "SPRAG_RUN"];

impl Environment {
    /// The environment of this process. Variables that are not UTF-8 are left out.
    #[must_use]
    pub fn process() -> Environment {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// The value of a variable. An empty one counts as absent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The keys that variables set. `names` are those that the file uses for providers and agents: `my-gw` there is `MY_GW` here.
    pub(crate) fn layer(&self, names: &[String], problems: &mut Vec<Problem>) -> Vec<Assignment> {
        let keys = LazyCell::new(schema::keys);
        let mut layer = Vec::new();
        for (variable, value) in &self.0 {
            if value.is_empty() || !variable.starts_with(PREFIX) || OTHERS.contains(&variable.as_str()) {
                continue;
            }
            match find(variable, &keys, names) {
                Some((path, node)) => match read(value, node, &path.join(".")) {
                    Ok(value) => layer.push(Assignment { path, value, variable: variable.clone() }),
                    Err(found) => problems.extend(found.into_iter().map(|p| from_variable(p, variable))),
                },
                None if is_from_kubernetes(variable, value) => {}
                None => problems.push(unknown(variable, &keys, names)),
            }
        }
        layer
    }
}

impl fmt::Debug for Environment {
    /// Names only: values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Environment {
        Environment(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// The variable of a key. `*` in the path stays.
pub(crate) fn variable_of(path: &[String]) -> String {
    format!("{PREFIX}{}", path.join("_").replace('-', "_").to_uppercase())
}

/// Says that a problem comes from a variable.
pub(crate) fn from_variable(problem: Problem, variable: &str) -> Problem {
    Problem { origin: Some(format!("environment variable {variable}")), ..problem }
}

/// The key that `variable` sets. No two can fit: no name of a key ends in the name of another.
fn find(variable: &str, keys: &[Key], names: &[String]) -> Option<(Vec<String>, &'static Schema)> {
    keys.iter().find_map(|key| {
        let pattern = variable_of(&key.path);
        let Some((head, tail)) = pattern.split_once('*') else {
            return (pattern == variable).then(|| (key.path.clone(), key.node));
        };
        let name = variable.strip_prefix(head)?.strip_suffix(tail).filter(|name| !name.is_empty())?;
        let name = chosen_name(name, names);
        let path = key.path.iter().map(|part| if part == "*" { name.clone() } else { part.clone() });
        Some((path.collect(), key.node))
    })
}

/// The name in the file that is written `name` in a variable.
fn chosen_name(name: &str, names: &[String]) -> String {
    let lower = name.to_lowercase();
    names.iter().find(|known| known.replace('-', "_") == lower).cloned().unwrap_or(lower)
}

/// A variable's text as the type that the key takes.
fn read(text: &str, node: &Schema, path: &str) -> Result<Value, Vec<Problem>> {
    let types = schema::types(node);
    let shown = if schema::is_secret(node) { "something else".to_owned() } else { format!("\"{text}\"") };
    let wrong = |expected: &str| vec![Problem::value(path, format!("expected {expected}, found {shown}"))];
    let value = match types.first().copied() {
        Some("integer") => text.trim().parse().map(Value::Integer).map_err(|_| wrong("a whole number"))?,
        Some("number") if types.len() == 1 => text.trim().parse().map(Value::Float).map_err(|_| wrong("a number"))?,
        Some("boolean") => match text.trim() {
            "true" | "1" => Value::Boolean(true),
            "false" | "0" => Value::Boolean(false),
            word if types.contains(&"string") => Value::from(word),
            _ => return Err(wrong("true or false")),
        },
        Some("array") if !text.trim_start().starts_with('[') => {
            Value::Array(text.split(',').map(|item| Value::from(item.trim())).collect())
        }
        Some("array") => inline(text).ok_or_else(|| wrong("a list, as in [\"a\", \"b\"] or a,b"))?,
        Some("object") => inline(text).ok_or_else(|| wrong("a table, as in { name = \"value\" }"))?,
        _ => Value::from(text),
    };
    let mut problems = Vec::new();
    check_value(&value, node, path, &mut problems);
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

fn inline(text: &str) -> Option<Value> {
    let mut table: toml::Table = format!("value = {}", text.trim()).parse().ok()?;
    table.remove("value").filter(|_| table.is_empty())
}

fn unknown(variable: &str, keys: &[Key], names: &[String]) -> Problem {
    let providers: Vec<&str> = PRESETS.iter().map(|p| p.name).chain(names.iter().map(String::as_str)).collect();
    let mut known: Vec<String> = OTHERS.iter().map(|&name| name.to_owned()).collect();
    for pattern in keys.iter().map(|key| variable_of(&key.path)) {
        match pattern.split_once('*') {
            None => known.push(pattern),
            Some(_) => {
                known.extend(providers.iter().map(|name| pattern.replace('*', &name.replace('-', "_").to_uppercase())))
            }
        }
    }
    let candidates: Vec<&str> = known.iter().map(String::as_str).collect();
    let problem = from_variable(Problem::name("", "not a variable of Sprag; it is ignored"), variable).warning();
    match nearest(variable, &candidates) {
        Some((near, _)) => problem.hint(format!("the nearest known name is {near}")),
        None => problem,
    }
}

/// Kubernetes puts these into every pod beside a service called `sprag` or `sprag-…`.
fn is_from_kubernetes(variable: &str, value: &str) -> bool {
    let rest = format!("_{}", variable.trim_start_matches(PREFIX));
    let is_port = rest.split("_PORT_").nth(1).is_some_and(|tail| tail.starts_with(|c: char| c.is_ascii_digit()));
    let is_link = rest.ends_with("_PORT") && value.contains("://");
    rest.contains("_SERVICE_HOST") || rest.contains("_SERVICE_PORT") || is_port || is_link
}

#[cfg(test)]
mod tests;
