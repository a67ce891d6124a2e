//! The JSON Schema of the configuration, derived from the types in [`file`](super::file).
//!
//! Besides being printed by `sprag schema`, it drives the checks, the environment names and the test of the example
//! file, so that none of them can forget a key.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::file::File;

/// A key that takes a value, with its place in the file. `*` stands for a name that the user chooses.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) path: Vec<String>,
    pub(crate) node: &'static Value,
}

/// The JSON Schema of `sprag.toml`.
#[must_use]
pub fn schema() -> Value {
    root().clone()
}

/// The same, made once.
pub(crate) fn root() -> &'static Value {
    static ROOT: LazyLock<Value> = LazyLock::new(|| {
        let mut settings = SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        let mut root = settings.into_generator().into_root_schema_for::<File>().to_value();
        if let Some(map) = root.as_object_mut() {
            map.insert("title".to_owned(), Value::from("sprag.toml"));
        }
        simplify(&mut root);
        root
    });
    &ROOT
}

/// Every key that takes a value.
pub(crate) fn keys() -> Vec<Key> {
    let mut keys = Vec::new();
    collect(root(), &mut Vec::new(), &mut keys);
    keys
}

/// The schema of `name` inside a table of schema `node`.
pub(crate) fn child<'a>(node: &'a Value, name: &str) -> Option<&'a Value> {
    node["properties"].get(name).or_else(|| map_values(node))
}

/// The schema of what lies at a dotted path below `node`.
pub(crate) fn below<'a>(node: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(node, child)
}

/// The schema of the values of a table whose names the user chooses.
pub(crate) fn map_values(node: &Value) -> Option<&Value> {
    node.get("additionalProperties").filter(|values| values.is_object())
}

/// The names that a table of schema `node` may hold; none where the user chooses them.
pub(crate) fn names(node: &Value) -> Vec<&str> {
    node["properties"].as_object().map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default()
}

/// The texts that a value of schema `node` may be; none where it is not an enumeration.
pub(crate) fn choices(node: &Value) -> Vec<&str> {
    let plain = node["enum"].as_array().into_iter().flatten();
    let described = node["oneOf"].as_array().into_iter().flatten().flat_map(|one| {
        let several = one["enum"].as_array().into_iter().flatten();
        one.get("const").into_iter().chain(several)
    });
    plain.chain(described).filter_map(Value::as_str).collect()
}

/// The JSON types of schema `node`.
pub(crate) fn types(node: &Value) -> Vec<&str> {
    match &node["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ if !choices(node).is_empty() => vec!["string"],
        _ => Vec::new(),
    }
}

/// Whether values of schema `node` must never be shown.
pub(crate) fn is_secret(node: &Value) -> bool {
    node["writeOnly"] == true || map_values(node).is_some_and(|values| values["writeOnly"] == true)
}

fn collect(node: &'static Value, path: &mut Vec<String>, keys: &mut Vec<Key>) {
    let named = node["properties"].as_object().into_iter().flatten().map(|(name, child)| (name.as_str(), child));
    let chosen = map_values(node).map(|child| ("*", child));
    for (name, child) in named.chain(chosen) {
        path.push(name.to_owned());
        let is_section =
            child.get("properties").is_some() || map_values(child).is_some_and(|v| v.get("properties").is_some());
        if is_section {
            collect(child, path, keys);
        } else {
            keys.push(Key { path: path.clone(), node: child });
        }
        path.pop();
    }
}

/// Takes out what JSON has and TOML does not: null. Also formats that only Rust knows.
fn simplify(node: &mut Value) {
    let Some(map) = node.as_object_mut() else { return };
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = map.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    // The default of a section is the defaults of its keys.
    if map.contains_key("properties") || map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if map.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
        map.remove("format");
    }
    merge_only_choice(map);
    map.get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
        .for_each(|(_, child)| simplify(child));
    for key in ["items", "additionalProperties"] {
        map.get_mut(key).into_iter().for_each(simplify);
    }
    for key in ["oneOf", "anyOf"] {
        map.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().for_each(simplify);
    }
}

/// `anyOf: [X, null]` becomes X.
fn merge_only_choice(map: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = map.get_mut("anyOf") else { return };
    choices.retain(|choice| choice["type"] != "null");
    let [Value::Object(only)] = choices.as_mut_slice() else { return };
    let only = std::mem::take(only);
    map.remove("anyOf");
    for (key, value) in only {
        map.entry(key).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_description_and_a_type() {
        let keys = keys();
        assert!(keys.len() > 40, "{}", keys.len());
        for key in keys {
            let path = key.path.join(".");
            assert!(key.node["description"].as_str().is_some_and(|text| text.ends_with('.')), "{path}: {}", key.node);
            assert!(!types(key.node).is_empty(), "{path}: {}", key.node);
            let shown = key.node.get("default").or(key.node.get("examples"));
            assert!(shown.is_some(), "{path} has neither a default nor an example");
        }
    }

    #[test]
    fn knows_nothing_of_null_and_refuses_unknown_keys() {
        let text = schema().to_string();
        assert!(!text.contains("null"), "{text}");
        assert_eq!(root()["additionalProperties"], false);
        assert_eq!(root()["properties"]["proxy"]["additionalProperties"], false);
        assert_eq!(root()["properties"]["proxy"]["properties"]["listen"]["default"], "127.0.0.1:7070");
    }

    #[test]
    fn secrets_are_known() {
        let secret: Vec<_> =
            keys().into_iter().filter(|key| is_secret(key.node)).map(|key| key.path.join(".")).collect();
        let of_channels = ["password", "routing_key", "secret", "token", "url"];
        let expected = [
            "admin.token",
            "admin.viewer_token",
            "events.clickhouse",
            "providers.*.api_key",
            "providers.*.headers",
            "state.redis",
            "telemetry.otlp_headers",
        ];
        let (alerts, others): (Vec<String>, Vec<String>) =
            secret.into_iter().partition(|key| key.starts_with("alerts."));
        assert_eq!(others, expected);
        let mut alerts: Vec<&str> = alerts.iter().map(|key| key.trim_start_matches("alerts.channels.*.")).collect();
        alerts.sort_unstable();
        assert_eq!(alerts, of_channels);
    }
}
