//! The policy of an agent as a form: one field for each key that people change, in the groups of `[agents.NAME]`.
//!
//! An empty field means what the configuration says. What is typed is checked where the API checks it.

use std::collections::BTreeMap;

use serde_json::Value;
use sprag_core::dlp::FAMILIES;
use sprag_core::loops::{Detector, Preset};

use super::changes;
use super::rates::{self, RateRow};
use crate::admin::api::model::PolicySource;
use crate::admin::pages::field::{ANY, Choice, Field, Form, Reading, at, take, text_of};

/// Fields that belong together.
pub(in crate::admin::pages) struct Group {
    /// Where links to it lead.
    pub(in crate::admin::pages) id: &'static str,
    pub(in crate::admin::pages) title: &'static str,
    pub(in crate::admin::pages) note: &'static str,
    pub(in crate::admin::pages) fields: Vec<Field>,
}

/// The whole form.
pub(in crate::admin::pages) struct PolicyForm {
    pub(in crate::admin::pages) groups: Vec<Group>,
    pub(in crate::admin::pages) rates: Vec<RateRow>,
    pub(in crate::admin::pages) rates_source: &'static str,
    pub(in crate::admin::pages) rates_complaint: Option<String>,
    /// What is wrong and belongs to no field.
    pub(in crate::admin::pages) complaint: Option<String>,
    /// What the fields hold, for when the form comes back.
    pub(in crate::admin::pages) shown: String,
}

/// What is known of a policy.
pub(in crate::admin::pages) struct Known<'a> {
    /// Everything put together.
    pub(in crate::admin::pages) in_force: &'a Value,
    /// Without what is set here.
    pub(in crate::admin::pages) configured: &'a Value,
    /// What is set here.
    pub(in crate::admin::pages) set: &'a Value,
    pub(in crate::admin::pages) sources: &'a BTreeMap<String, PolicySource>,
}

/// A key that people change.
pub(super) struct Key {
    pub(super) path: String,
    pub(super) label: String,
    hint: &'static str,
    pub(super) reading: Reading,
    choices: Vec<(&'static str, &'static str)>,
}

/// A group before it has values.
struct Plan {
    id: &'static str,
    title: &'static str,
    note: &'static str,
    keys: Vec<Key>,
}

const LIMIT_MODES: [(&str, &str); 3] = [("enforce", "enforce"), ("shadow", "shadow: only watch"), ("off", "off")];
const DLP_MODES: [(&str, &str); 4] =
    [("strict", "strict: stop the call"), ("redact", "redact: hide it"), ("log_only", "log only"), ("off", "off")];
const DLP_PROFILES: [(&str, &str); 5] = [
    ("default", "default: hide everything"),
    ("secrets_only", "secrets only: hide keys and credentials"),
    ("strict", "strict: stop calls with keys, credentials, cards"),
    ("log_only", "log only"),
    ("off", "off"),
];

fn plans() -> Vec<Plan> {
    vec![
        Plan {
            id: "budget",
            title: "Budget",
            note: "Dollars. 0 is no limit. Each limit holds beside the others.",
            keys: vec![
                money("budget.max_run_cost", "A run", "with all runs that are a part of it"),
                money("budget.daily_limit", "A day", ""),
                money("budget.monthly_limit", "A month", ""),
                choice("budget.mode", "Mode", &LIMIT_MODES),
                Key {
                    reading: Reading::Flag,
                    ..choice(
                        "budget.kill_run",
                        "A run over its limit",
                        &[("true", "is killed"), ("false", "gets refusals only")],
                    )
                },
            ],
        },
        Plan {
            id: "run-limits",
            title: "Runs",
            note: "How far a run may go. 0 is no limit.",
            keys: vec![
                number("run_limits.max_steps", "Most steps", "one more kills the run"),
                number("run_limits.timeout_seconds", "Most seconds", "from the first call to the last one that begins"),
                choice("run_limits.applies_to", "Which runs", &[("declared", "named ones"), ("all", "all")]),
                choice("run_limits.mode", "Mode", &LIMIT_MODES),
            ],
        },
        Plan {
            id: "models",
            title: "Models and hours",
            note: "One a line. The word any lifts what the configuration restricts.",
            keys: vec![
                lines("models.allow", "Allowed models", "gpt-4o* or claude-*: a star stands for anything"),
                lines("hours.allowed", "Allowed hours", "mon-fri 09:00-18:00, or 22:00-06:00, or sat,sun"),
                Key {
                    reading: Reading::Text,
                    ..number("hours.time_zone", "Time zone", "by its IANA name: Europe/Berlin")
                },
                choice("models.mode", "Mode of models", &LIMIT_MODES),
                choice("hours.mode", "Mode of hours", &LIMIT_MODES),
            ],
        },
        Plan {
            id: "dlp",
            title: "Secrets and personal data",
            note: "The profile says what is done; a family of kinds can differ from it.",
            keys: [choice("dlp.profile", "Profile", &DLP_PROFILES)]
                .into_iter()
                .chain(FAMILIES.iter().map(|(name, _)| {
                    let path = format!("dlp.modes.{name}");
                    Key { label: family(name).to_owned(), path, ..choice("", "", &DLP_MODES) }
                }))
                .collect(),
        },
        Plan {
            id: "detection",
            title: "Loop detection",
            note: "The preset sets all detectors; the mode of each can differ from it.",
            keys: [Key {
                choices: Preset::ALL.iter().map(|preset| (preset.as_str(), preset.as_str())).collect(),
                ..choice("detection.preset", "Preset", &[])
            }]
            .into_iter()
            .chain(Detector::ALL.iter().filter(|detector| **detector != Detector::Score).map(|detector| {
                let path = format!("detection.{}.mode", detector.as_str());
                Key { label: capital(detector.as_str()), path, ..choice("", "", &LIMIT_MODES) }
            }))
            .collect(),
        },
    ]
}

/// A family of kinds, in words.
pub(in crate::admin::pages) fn family(name: &str) -> &'static str {
    match name {
        "api_key" => "API keys",
        "credential" => "Credentials",
        "financial" => "Cards and accounts",
        "pii" => "Personal data",
        "infra" => "Network addresses",
        _ => "Others",
    }
}

impl PolicyForm {
    /// With what is known, or where somebody sent it and it was refused, with what they wrote.
    pub(in crate::admin::pages) fn new(
        known: &Known<'_>,
        draft: Option<&Form>,
        complaints: &mut Vec<(String, String)>,
    ) -> PolicyForm {
        let nothing = Form::new();
        let draft_or_nothing = draft.unwrap_or(&nothing);
        let field =
            |key: Key, complaints: &mut Vec<(String, String)>| key.field(known).brought(draft_or_nothing, complaints);
        let groups = plans()
            .into_iter()
            .map(|Plan { id, title, note, keys }| {
                let fields = keys.into_iter().map(|key| field(key, complaints)).collect();
                Group { id, title, note, fields }
            })
            .collect();
        let rows = match draft.filter(|form| form.contains_key(rates::PRESENT)) {
            Some(form) => rates::from_form(form),
            None => rates::from_policy(&known.in_force["rate_limits"]),
        };
        PolicyForm {
            groups,
            rates: rates::with_complaints(rows, complaints),
            rates_source: source(known.sources.get("rate_limits")),
            rates_complaint: take(complaints, "rate_limits"),
            complaint: None,
            shown: changes::shown(known).to_string(),
        }
    }
}

/// The keys that people change, each with the title of its group.
pub(super) fn keys() -> impl Iterator<Item = (&'static str, Key)> {
    plans().into_iter().flat_map(|plan| plan.keys.into_iter().map(move |key| (plan.title, key)))
}

impl Key {
    fn field(self, known: &Known<'_>) -> Field {
        let inherited = match text_of(at(known.configured, &self.path)) {
            text if text.is_empty() && self.path.starts_with("dlp.modes.") => {
                let name = self.path.trim_start_matches("dlp.modes.");
                text_of(&known.configured["dlp"]["request_modes"][name])
            }
            text => text,
        };
        let inherited = match self.reading {
            Reading::Money if inherited.is_empty() || inherited == "0" => "no limit".to_owned(),
            Reading::Number if inherited == "0" => "no limit".to_owned(),
            Reading::Lines if inherited.is_empty() => ANY.to_owned(),
            _ => inherited,
        };
        let set = text_of(at(known.set, &self.path));
        let mut choices: Vec<Choice> = Vec::new();
        if !self.choices.is_empty() {
            let named = self.choices.iter().find(|(value, _)| *value == inherited);
            let is_by_preset = self.path.starts_with("detection.") && !at(known.set, "detection.preset").is_null();
            let label = match named {
                _ if is_by_preset && self.path != "detection.preset" => "as the preset says".to_owned(),
                // What stands behind the colon is for those who choose.
                Some((_, label)) => format!("as configured ({})", label.split(':').next().unwrap_or(label)),
                None if self.path.starts_with("dlp.modes.") => "as the profile says".to_owned(),
                None => "as configured".to_owned(),
            };
            choices.push(Choice { value: String::new(), label, is_chosen: false });
            choices.extend(self.choices.iter().map(|(value, label)| Choice {
                value: (*value).to_owned(),
                label: (*label).to_owned(),
                is_chosen: false,
            }));
        }
        let field = Field {
            hint: self.hint.to_owned(),
            placeholder: inherited,
            source: source(known.sources.get(&self.path)),
            is_set: !set.is_empty(),
            choices,
            is_lines: self.reading == Reading::Lines,
            input_mode: match self.reading {
                Reading::Money => "decimal",
                Reading::Number => "numeric",
                _ => "text",
            },
            ..Field::new(&self.path, &self.label)
        };
        field.holding(&set)
    }
}

fn source(source: Option<&PolicySource>) -> &'static str {
    match source {
        Some(PolicySource::Set) => "set here",
        Some(PolicySource::Configuration) => "configuration",
        None => "default",
    }
}

fn number(path: &str, label: &str, hint: &'static str) -> Key {
    Key { path: path.to_owned(), label: label.to_owned(), hint, reading: Reading::Number, choices: Vec::new() }
}

fn money(path: &str, label: &str, hint: &'static str) -> Key {
    Key { reading: Reading::Money, ..number(path, label, hint) }
}

fn lines(path: &str, label: &str, hint: &'static str) -> Key {
    Key { reading: Reading::Lines, ..number(path, label, hint) }
}

fn choice(path: &str, label: &str, choices: &[(&'static str, &'static str)]) -> Key {
    Key { reading: Reading::Text, choices: choices.to_vec(), ..number(path, label, "") }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::agent_override;

    #[test]
    fn every_field_is_a_key_of_the_configuration() {
        for (_, key) in keys() {
            // The names of `modes` are the user's own.
            let path = if key.path.starts_with("dlp.modes.") { "dlp.modes" } else { &key.path };
            assert!(agent_override::node_of(path).is_some(), "{}", key.path);
        }
    }
}
