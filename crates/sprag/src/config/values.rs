//! Every value of the configuration as it may be shown, and where it comes from: for `sprag check --values` and the
//! dashboard.
//!
//! What is written, not what is made of it: an address is told as its text. What is secret is told as held. Names that
//! the user chooses (providers, agents) are listed with what is set for them, and the rules of detection likewise, because
//! their preset decides the rest.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::Serialize;
use serde_json::Value;

use super::schema::{self, Key};
use super::secret::MASK;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of the configuration file.
    File {
        /// As messages call it.
        file: String,
        /// From 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// The command line.
    Flag {
        /// As it is written there.
        flag: String,
    },
}

/// A value of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigValue {
    /// The table that it stands in, as a dotted path.
    pub section: String,
    /// Its name in there.
    pub key: String,
    /// What it holds, without secrets; nothing where it is not set and has no default.
    pub value: Option<String>,
    /// Where that comes from.
    #[serde(flatten)]
    pub origin: Origin,
}

/// All of them, in the order of the schema. Shared, because every reader of the settings has them; put together when
/// somebody asks, because that takes the whole schema and most never ask.
#[derive(Clone)]
pub struct Values(Arc<LazyLock<Vec<ConfigValue>, Gather>>);

type Gather = Box<dyn FnOnce() -> Vec<ConfigValue> + Send>;

/// Lists of values that may be nobody's business; how many there are may be.
const COUNTED: [&str; 2] = ["dlp.allow", "dlp.allow_patterns"];
/// Where a preset decides what is not set.
const BY_PRESET: &str = "detection";

impl Default for Values {
    fn default() -> Values {
        Values(Arc::new(LazyLock::new(Box::new(Vec::new))))
    }
}

impl fmt::Debug for Values {
    /// What they are made of holds secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Values")
    }
}

impl PartialEq for Values {
    /// Two configurations that do the same are the same, whoever wrote them.
    fn eq(&self, _: &Values) -> bool {
        true
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { file, line } => write!(f, "{file}:{line}"),
            Origin::Environment { variable } => write!(f, "environment variable {variable}"),
            Origin::Flag { flag } => write!(f, "flag {flag}"),
        }
    }
}

impl ConfigValue {
    /// The whole key, as a dotted path.
    #[must_use]
    pub fn path(&self) -> String {
        if self.section.is_empty() { self.key.clone() } else { format!("{}.{}", self.section, self.key) }
    }
}

impl Values {
    /// The values of `table`, in which all layers are put together; `origin_of` tells who set a key.
    pub(crate) fn gather(table: toml::Table, origin_of: impl Fn(&str) -> Origin + Send + 'static) -> Values {
        Values(Arc::new(LazyLock::new(Box::new(move || {
            let written = serde_json::to_value(table).unwrap_or_default();
            let values = schema::keys().iter().flat_map(|key| of_key(key, &written, &origin_of)).collect::<Vec<_>>();
            in_sections(values)
        }))))
    }

    /// Each of them.
    #[must_use]
    pub fn list(&self) -> &[ConfigValue] {
        &self.0
    }
}

/// The values of a key: one, or one for each name that the user has chosen.
fn of_key(key: &Key, written: &Value, origin_of: &impl Fn(&str) -> Origin) -> Vec<ConfigValue> {
    let Some((last, sections)) = key.path.split_last() else { return Vec::new() };
    let is_chosen = key.path.iter().any(|part| part == "*");
    let by_preset = key.path.first().is_some_and(|part| part == BY_PRESET);
    let mut found = vec![(Vec::<&str>::new(), written)];
    for part in sections {
        found = found.into_iter().flat_map(|(path, table)| inner(&path, table, part)).collect();
    }
    // A section that nobody wrote has its defaults all the same.
    if found.is_empty() && !is_chosen {
        found.push((sections.iter().map(String::as_str).collect(), &Value::Null));
    }
    let names = |table: &Value| match (last.as_str(), table) {
        ("*", Value::Object(map)) => map.keys().cloned().collect(),
        ("*", _) => Vec::new(),
        (name, _) => vec![name.to_owned()],
    };
    let one = |section: &str, name: String, table: &Value| {
        let path = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
        let (value, origin) = match table.get(&name) {
            Some(value) => (Some(shown(&path, key.node, value)), origin_of(&path)),
            None if is_chosen || (by_preset && key.node.get("default").is_none()) => return None,
            None => (key.node.get("default").map(|value| shown(&path, key.node, value)), Origin::Default),
        };
        Some(ConfigValue { section: section.to_owned(), key: name, value, origin })
    };
    let of_table = |(path, table): (Vec<&str>, &Value)| {
        let section = path.join(".");
        names(table).into_iter().filter_map(|name| one(&section, name, table)).collect::<Vec<_>>()
    };
    found.into_iter().flat_map(of_table).collect()
}

/// The tables called `part` in a table: all of them where the user chooses the name.
fn inner<'a>(path: &[&'a str], table: &'a Value, part: &'a str) -> Vec<(Vec<&'a str>, &'a Value)> {
    let Some(map) = table.as_object() else { return Vec::new() };
    let is_meant = |name: &str| part == "*" || part == name;
    let meant = map.iter().filter(|(name, value)| is_meant(name) && value.is_object());
    meant.map(|(name, value)| ([path, &[name.as_str()]].concat(), value)).collect()
}

/// The same with what stands in one table next to each other.
fn in_sections(values: Vec<ConfigValue>) -> Vec<ConfigValue> {
    let mut order: Vec<String> = Vec::new();
    for value in &values {
        if !order.contains(&value.section) {
            order.push(value.section.clone());
        }
    }
    let mut values = values;
    values.sort_by_key(|value| order.iter().position(|section| *section == value.section));
    values
}

fn shown(path: &str, node: &Value, value: &Value) -> String {
    match value {
        _ if schema::is_secret(node) => "held, not shown".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Object(map) if map.is_empty() => "none".to_owned(),
        Value::Array(items) if COUNTED.contains(&path) => match items.len() {
            1 => "1 value".to_owned(),
            many => format!("{many} values"),
        },
        other => text(node, other),
    }
}

fn text(node: &Value, value: &Value) -> String {
    match value {
        Value::String(text) => without_password(text),
        Value::Array(items) => items.iter().map(|item| text(&node["items"], item)).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            let part = |(name, value): (&String, &Value)| match schema::child(node, name) {
                Some(child) if !schema::is_secret(child) && !schema::is_secret(node) => {
                    format!("{name} = {}", text(child, value))
                }
                // Nobody knows what a key is that is in no schema.
                _ => format!("{name} = {MASK}"),
            };
            format!("{{ {} }}", map.iter().map(part).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A URL may carry a user and a password.
fn without_password(text: &str) -> String {
    match text.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, host)) => format!("{scheme}://{MASK}@{host}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sandbox::Sandbox;

    fn told(sandbox: &Sandbox, path: &str) -> String {
        let dir = format!("{}/", sandbox.dir.path().display());
        let values = sandbox.load().unwrap().settings.values;
        let found: Vec<&ConfigValue> = values.list().iter().filter(|value| value.path() == path).collect();
        let [value] = found.as_slice() else { panic!("{path}: {found:?}") };
        format!("{} <- {}", value.value.as_deref().unwrap_or("-"), value.origin).replace(&dir, "")
    }

    #[test]
    fn each_value_says_who_set_it_last() {
        let text = "[proxy]\nlisten = \"127.0.0.1:1\"\nmax_connections = 7\n\n[admin]\nlisten = \"127.0.0.1:2\"\n";
        let sandbox = Sandbox::new(text)
            .with_env(&[("SPRAG_PROXY_LISTEN", "127.0.0.1:3"), ("SPRAG_ADMIN_LISTEN", "127.0.0.1:4")])
            .with_flags(&["--proxy", "127.0.0.1:5"]);
        assert_eq!(told(&sandbox, "proxy.listen"), "127.0.0.1:5 <- flag --proxy");
        assert_eq!(told(&sandbox, "admin.listen"), "127.0.0.1:4 <- environment variable SPRAG_ADMIN_LISTEN");
        assert_eq!(told(&sandbox, "proxy.max_connections"), "7 <- sprag.toml:3");
        assert_eq!(told(&sandbox, "proxy.max_header_bytes"), "65536 <- default");
        assert_eq!(told(&sandbox, "data.dir"), "- <- default");
    }

    #[test]
    fn chosen_names_are_listed_with_what_is_set_for_them() {
        let text = "[providers.gw]\ndialect = \"openai\"\nbase_url = \"http://gw\"\napi_key_file = \"/k\"\n\
                    [agents.a.budget]\ndaily_limit = \"5\"\n[detection.progress]\nrepeats = 4\n";
        let sandbox = Sandbox::new(text).with_env(&[("SPRAG_PROVIDERS_GW_API_KEY", "sk-very-secret")]);
        assert_eq!(told(&sandbox, "providers.gw.base_url"), "http://gw <- sprag.toml:3");
        assert_eq!(
            told(&sandbox, "providers.gw.api_key"),
            "held, not shown <- environment variable SPRAG_PROVIDERS_GW_API_KEY"
        );
        assert_eq!(told(&sandbox, "agents.a.budget.daily_limit"), "5 <- sprag.toml:6");
        assert_eq!(told(&sandbox, "detection.progress.repeats"), "4 <- sprag.toml:8");
        let values = sandbox.load().unwrap().settings.values;
        let has = |path: &str| values.list().iter().any(|value| value.path() == path);
        assert!(!has("providers.gw.api_key_file"), "the variable took its place");
        assert!(!has("agents.a.budget.monthly_limit") && !has("detection.progress.stall"));
    }

    #[test]
    fn nothing_secret_is_told() {
        let text = "[admin]\ntoken = \"planted-0123456789-0123456789\"\n\
                    [providers.openai]\napi_key = \"planted-1\"\nheaders = { x-a = \"planted-2\" }\n\
                    [dlp]\nallow = [\"planted-3\"]\n[[routes]]\nname = \"t\"\npath = \"/t\"\nupstream = \"http://h\"\n\
                    headers = { x-b = \"planted-5\" }\n\
                    [jwt]\nissuer = \"https://me:planted-4@login.example.com\"\n\
                    [alerts.channels.ops]\ntype = \"slack\"\nurl = \"https://hooks.example.com/planted-6\"\n";
        let values = Sandbox::new(text).load().unwrap().settings.values;
        let all = serde_json::to_string(values.list()).unwrap();
        assert!(!all.contains("planted"), "{all}");
        assert!(all.contains("1 value") && all.contains("path = /t"), "{all}");
        assert!(all.contains(&format!("https://{MASK}@login.example.com")), "{all}");
    }
}
