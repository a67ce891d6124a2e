//! Values against the schema: unknown keys, wrong types, texts that are no choice, numbers out of range.
//!
//! The same check serves the file, the environment and the flags. What only makes sense together (an address, a URL,
//! a provider's name) is decided in `resolve`.

use serde_json::Value as Schema;
use toml::Value;

use super::problem::{Problem, either, nearest};
use super::schema;

/// Every way in which `table`, found at `path`, is not what `node` describes.
pub(crate) fn check_table(table: &toml::Table, node: &Schema, path: &str, problems: &mut Vec<Problem>) {
    for (name, value) in table {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match schema::child(node, name) {
            Some(child) => check_value(value, child, &path, problems),
            None => problems.push(unknown_key(name, &path, node)),
        }
    }
}

/// Every way in which `value`, found at `path`, is not what `node` describes.
pub(crate) fn check_value(value: &Value, node: &Schema, path: &str, problems: &mut Vec<Problem>) {
    let types = schema::types(node);
    let is_expected = types.iter().any(|name| match *name {
        "number" => value.is_integer() || value.is_float(),
        "integer" => value.is_integer(),
        "boolean" => value.is_bool(),
        "array" => value.is_array(),
        "object" => value.is_table(),
        _ => value.is_str(),
    });
    if !is_expected {
        let message = format!("expected {}, found {}", expected(node), found(value));
        problems.push(Problem::value(path, message));
        return;
    }
    match value {
        Value::Table(table) => check_table(table, node, path, problems),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_value(item, &node["items"], &format!("{path}[{index}]"), problems);
            }
        }
        Value::String(text) => check_choice(text, node, path, problems),
        Value::Integer(number) => check_range(*number as f64, node, path, problems),
        Value::Float(number) => check_range(*number, node, path, problems),
        _ => {}
    }
}

fn check_choice(text: &str, node: &Schema, path: &str, problems: &mut Vec<Problem>) {
    let choices = schema::choices(node);
    if choices.is_empty() || choices.contains(&text) {
        return;
    }
    let problem = Problem::value(path, format!("expected {}, found \"{text}\"", expected(node)));
    problems.push(match nearest(text, &choices) {
        Some((choice, true)) => problem.hint(format!("did you mean \"{choice}\"?")),
        _ => problem,
    });
}

/// Bounds are small enough that a float holds them exactly.
fn check_range(number: f64, node: &Schema, path: &str, problems: &mut Vec<Problem>) {
    let (min, max) = (node["minimum"].as_f64(), node["maximum"].as_f64());
    let is_inside = min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max);
    if !is_inside || number.is_nan() {
        let min = min.unwrap_or(f64::MIN);
        let range = max.map_or_else(|| format!("{min} or more"), |max| format!("{min} to {max}"));
        problems.push(Problem::value(path, format!("{number} is out of range")).hint(format!("expected {range}")));
    }
}

fn unknown_key(name: &str, path: &str, node: &Schema) -> Problem {
    let problem = Problem::name(path, "unknown key");
    let here = schema::names(node);
    let slip = |names: &[&str]| nearest(name, names).filter(|(_, is_slip)| *is_slip).map(|(near, _)| near.to_owned());
    if let Some(near) = slip(&here) {
        return problem.hint(format!("did you mean `{near}`?"));
    }
    // `listen` at the top of the file is meant for a section.
    let keys = schema::keys();
    let last_names: Vec<_> = keys.iter().filter_map(|key| key.path.last().map(String::as_str)).collect();
    let elsewhere = slip(&last_names).and_then(|near| keys.iter().rfind(|key| key.path.last() == Some(&near)));
    match (elsewhere, nearest(name, &here)) {
        (Some(key), _) => problem.hint(format!("did you mean `{}`?", key.path.join(".").replace('*', "NAME"))),
        (None, Some((near, _))) => {
            problem.hint(format!("the nearest known key is `{near}`; known here: {}", here.join(", ")))
        }
        (None, None) => problem,
    }
}

fn expected(node: &Schema) -> String {
    let choices = schema::choices(node);
    if !choices.is_empty() {
        let is_also_switch = schema::types(node).contains(&"boolean");
        return if is_also_switch { format!("true, false or {}", either(&choices)) } else { either(&choices) };
    }
    let names: Vec<_> = schema::types(node)
        .iter()
        .map(|name| match *name {
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a list",
            "object" => "a table",
            _ => "a string",
        })
        .collect();
    names.join(" or ")
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number with a fraction",
        Value::Boolean(_) => "a boolean",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests;
