//! Channels and rules of alerts that are made at run time, in the form of `[alerts.channels.NAME]` and `[[alerts.rules]]` as
//! JSON. They are checked as the file is: by the schema, then by what makes sense together. Nothing here is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sprag_core::alerts::AlertRule;
use sprag_core::limits::AGENT_OVERRIDE_BYTES;

use super::alerts::Channel;
use super::check::check_table;
use super::environment::Environment;
use super::file;
use super::problem::Problem;
use super::resolve::alerts as resolve;
use super::schema;

/// A channel as it was written.
///
/// # Errors
/// Everything that is wrong. Keys are relative to the channel: `url`.
pub(crate) fn channel(name: &str, written: &Value) -> Result<Channel, Vec<Problem>> {
    let node = schema::below(schema::root(), "alerts.channels").and_then(schema::map_values).unwrap_or(&Value::Null);
    let file: file::AlertChannel = read(written, node)?;
    let mut problems = Vec::new();
    resolve::check_name("name", name, &mut problems);
    let channel = resolve::channel("channel", &file, &Environment::process(), &mut problems);
    relative(channel, problems, "channel.")
}

/// A rule as it was written; `channels` are those that there are.
///
/// # Errors
/// Everything that is wrong. Keys are relative to the rule: `on`.
pub(crate) fn rule(
    name: &str,
    written: &Value,
    channels: &BTreeMap<String, Arc<Channel>>,
) -> Result<AlertRule, Vec<Problem>> {
    let node = schema::below(schema::root(), "alerts.rules").map_or(&Value::Null, |rules| &rules["items"]);
    let mut file: file::AlertRule = read(written, node)?;
    file.name = Some(name.to_owned());
    let (mut problems, known) = (Vec::new(), channels.keys().map(String::as_str).collect::<Vec<_>>());
    let rule = resolve::rule("rule", &file, &known, &mut problems);
    relative(rule, problems, "rule.")
}

/// A channel as it was written, for people: without its secrets.
pub(crate) fn masked(written: &Value) -> Value {
    let file = file::AlertChannel::deserialize(written).unwrap_or_default();
    super::agent_override::merged(&Value::Null, &serde_json::to_value(file).unwrap_or_default())
}

fn read<T: DeserializeOwned>(written: &Value, node: &Value) -> Result<T, Vec<Problem>> {
    let wrong = |message: String| vec![Problem::value("", message)];
    if !written.is_object() {
        return Err(wrong("expected an object with the keys of the configuration".to_owned()));
    }
    if written.to_string().len() > AGENT_OVERRIDE_BYTES {
        return Err(wrong(format!("more than {AGENT_OVERRIDE_BYTES} bytes")));
    }
    let table = toml::Table::try_from(written).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let mut problems = Vec::new();
    check_table(&table, node, "", &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    T::deserialize(table).map_err(|error| wrong(error.message().to_owned()))
}

fn relative<T>(made: Option<T>, mut problems: Vec<Problem>, prefix: &str) -> Result<T, Vec<Problem>> {
    for problem in &mut problems {
        problem.key = problem.key.strip_prefix(prefix).unwrap_or(&problem.key).to_owned();
    }
    made.filter(|_| problems.is_empty()).ok_or(problems)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_made_is_checked_as_the_file_is_and_shows_no_secret() {
        let written = json!({"type": "webhook", "url": "https://example.com/private", "secret": "s"});
        let ops = Arc::new(channel("ops", &written).unwrap());
        assert_eq!(ops.target.kind(), "webhook");
        assert_eq!(masked(&written), json!({"type": "webhook", "url": "***", "secret": "***"}));
        for (name, written, key) in [
            ("OPS", written.clone(), "name"),
            ("ops", json!({"type": "webhook"}), "url"),
            ("ops", json!({"type": "pigeon"}), "type"),
            ("ops", json!({"type": "slack", "url": "ftp://x/private"}), "url"),
            ("ops", json!({"type": "slack", "urll": "https://x/private"}), "urll"),
            ("ops", json!([]), ""),
        ] {
            let problems = channel(name, &written).unwrap_err();
            assert_eq!(problems[0].key, key, "{problems:?}");
            assert!(!format!("{problems:?}").contains("/private"), "{problems:?}");
        }
        let channels = BTreeMap::from([("ops".to_owned(), ops)]);
        let budget = rule("money", &json!({"on": "budget", "thresholds": [50, 100]}), &channels).unwrap();
        assert_eq!((budget.name.as_str(), budget.thresholds, budget.is_for_all), ("money", vec![50, 100], true));
        for (written, key) in [
            (json!({}), "on"),
            (json!({"on": "dlp", "channels": ["opps"]}), "channels[0]"),
            (json!({"on": "dlp", "cooldown_minutes": -1}), "cooldown_minutes"),
            (json!({"on": "dlp", "thresholds": [50]}), "thresholds"),
            (json!({"on": "budget", "thresholds": [0]}), "thresholds[0]"),
            (json!({"on": "budget", "thresholds": []}), "thresholds"),
        ] {
            let problems = rule("r", &written, &channels).unwrap_err();
            assert_eq!(problems[0].key, key, "{problems:?}");
        }
    }
}
