//! Channels and rules made at run time, over those of the configuration, which cannot be changed here.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sprag_core::alerts::{AlertRule, AlertRules};
use sprag_store::outbox::{Made, MadeKind};

use crate::config::{self, Problem, made_alerts};

/// What was made, as it was written. Channels hold secrets.
#[derive(Clone, Default)]
pub(crate) struct MadeAlerts {
    pub(crate) channels: BTreeMap<String, Value>,
    pub(crate) rules: BTreeMap<String, Value>,
}

impl MadeAlerts {
    pub(super) fn new(made: Vec<Made>) -> MadeAlerts {
        let mut all = MadeAlerts::default();
        for one in made {
            let Ok(written) = serde_json::from_str(&one.body) else { continue };
            all.of_kind(one.kind).insert(one.name, written);
        }
        all
    }

    /// One of them, as it was written.
    pub(crate) fn get(&self, kind: MadeKind, name: &str) -> Option<&Value> {
        match kind {
            MadeKind::Channel => self.channels.get(name),
            MadeKind::Rule => self.rules.get(name),
        }
    }

    pub(super) fn of_kind(&mut self, kind: MadeKind) -> &mut BTreeMap<String, Value> {
        match kind {
            MadeKind::Channel => &mut self.channels,
            MadeKind::Rule => &mut self.rules,
        }
    }

    /// Together with what is configured, which goes first where names are the same. Gives what could not be used, too.
    pub(super) fn over(&self, configured: &config::Alerts) -> (config::Alerts, Vec<Problem>) {
        let mut problems = Vec::new();
        let mut channels = configured.channels.clone();
        for (name, written) in &self.channels {
            if channels.contains_key(name) {
                continue;
            }
            match made_alerts::channel(name, written) {
                Ok(channel) => drop(channels.insert(name.clone(), Arc::new(channel))),
                Err(found) => problems.extend(found),
            }
        }
        let is_configured = |name: &str| configured.rules.rules.iter().any(|rule| rule.name == name);
        let mut rules: Vec<AlertRule> = configured.rules.rules.clone();
        for (name, written) in self.rules.iter().filter(|(name, _)| !is_configured(name)) {
            // A channel that has left the configuration must not silence the others of the rule.
            let (mut written, gone) = without_channels(written, |channel| channels.contains_key(channel));
            let is_left_alone = !gone.is_empty() && written["channels"].as_array().is_some_and(Vec::is_empty);
            if is_left_alone && let Some(map) = written.as_object_mut() {
                map.remove("channels");
            }
            match made_alerts::rule(name, &written, &channels) {
                Ok(rule) if is_left_alone => rules.push(AlertRule { channels: Vec::new(), is_for_all: false, ..rule }),
                Ok(rule) => rules.push(rule),
                Err(found) => problems.extend(found),
            }
            let gone = gone
                .iter()
                .map(|channel| Problem::value("channels", format!("rule {name}: there is no channel {channel}")));
            problems.extend(gone);
        }
        for rule in rules.iter_mut().filter(|rule| rule.is_for_all) {
            rule.channels = channels.keys().cloned().collect();
        }
        let rules = AlertRules { rules, quiet: configured.rules.quiet.clone() };
        // Where nothing differs the engine must not see other rules.
        let rules = if rules == *configured.rules { configured.rules.clone() } else { Arc::new(rules) };
        (
            config::Alerts {
                rules,
                channels,
                dashboard_url: configured.dashboard_url.clone(),
                link_ms: configured.link_ms,
            },
            problems,
        )
    }

    /// The rules that name a channel.
    pub(crate) fn naming(&self, channel: &str) -> Vec<String> {
        let names = |written: &Value| {
            let listed = written.get("channels").and_then(Value::as_array);
            listed.is_some_and(|listed| listed.iter().any(|name| name == channel))
        };
        self.rules.iter().filter(|(_, written)| names(written)).map(|(name, _)| name.clone()).collect()
    }
}

/// A rule as it was written, but for channels that are not there; and those.
fn without_channels(written: &Value, is_there: impl Fn(&str) -> bool) -> (Value, Vec<String>) {
    let mut written = written.clone();
    let mut gone = Vec::new();
    if let Some(listed) = written.get_mut("channels").and_then(Value::as_array_mut) {
        listed.retain(|name| {
            let stays = name.as_str().is_none_or(&is_there);
            if !stays {
                gone.extend(name.as_str().map(str::to_owned));
            }
            stays
        });
    }
    (written, gone)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(kind: MadeKind, name: &str, body: Value) -> Made {
        Made { kind, name: name.to_owned(), body: body.to_string() }
    }

    fn slack(host: &str) -> Value {
        json!({"type": "slack", "url": format!("https://{host}/x")})
    }

    #[test]
    fn what_is_configured_goes_first_and_what_cannot_be_used_is_left_out() {
        let mut configured = config::Alerts::default();
        let filed = made_alerts::channel("filed", &slack("filed.example.com")).unwrap();
        configured.channels.insert("filed".to_owned(), Arc::new(filed));
        let rule = made_alerts::rule("dlp", &json!({"on": "dlp"}), &configured.channels).unwrap();
        Arc::make_mut(&mut configured.rules).rules.push(rule);
        let (same, problems) = MadeAlerts::default().over(&configured);
        assert!(problems.is_empty() && Arc::ptr_eq(&same.rules, &configured.rules), "nothing differs");

        let all = MadeAlerts::new(vec![
            made(MadeKind::Channel, "filed", slack("other.example.com")),
            made(MadeKind::Channel, "ops", slack("ops.example.com")),
            made(MadeKind::Channel, "odd", json!({"type": "pigeon"})),
            made(MadeKind::Rule, "dlp", json!({"on": "budget"})),
            made(MadeKind::Rule, "loops", json!({"on": "loop_detected", "channels": ["ops", "gone"]})),
            made(MadeKind::Rule, "lost", json!({"on": "loop_detected", "channels": ["gone"]})),
        ]);
        let (in_force, problems) = all.over(&configured);
        let hosts: Vec<&str> = in_force.channels.values().map(|channel| channel.target.host()).collect();
        assert_eq!(hosts, ["filed.example.com", "ops.example.com"]);
        let told: Vec<(&str, &[String])> =
            in_force.rules.rules.iter().map(|rule| (rule.name.as_str(), rule.channels.as_slice())).collect();
        let both = ["filed".to_owned(), "ops".to_owned()];
        let expected = [("dlp", &both[..]), ("loops", &both[1..]), ("lost", &[])];
        assert_eq!(told, expected, "one for all tells those made later, too; a channel that is gone silences no other");
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert_eq!(all.naming("ops"), ["loops"]);
    }
}
