//! Fields of forms: what they hold, where it comes from, and what is wrong with what somebody wrote.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A field, ready for `field.html`.
#[derive(Debug, Default)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) hint: String,
    pub(super) value: String,
    /// What holds while it is empty.
    pub(super) placeholder: String,
    /// Where the value comes from, in a word; empty where that needs no telling.
    pub(super) source: &'static str,
    /// It is set here, and can be taken back.
    pub(super) is_set: bool,
    pub(super) complaint: Option<String>,
    /// What can be chosen; empty for a text.
    pub(super) choices: Vec<Choice>,
    /// It names an agent; those that are known are offered.
    pub(super) is_agent: bool,
    /// Several lines.
    pub(super) is_lines: bool,
    /// The keyboard that a phone shows.
    pub(super) input_mode: &'static str,
}

/// One thing that can be chosen.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) label: String,
    pub(super) is_chosen: bool,
}

/// What a form brought, by the names of its fields.
pub(super) type Form = BTreeMap<String, String>;

/// What a field is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Dollars, kept as the decimal that was written.
    Money,
    Number,
    Text,
    /// One item a line.
    Lines,
    /// True or false.
    Flag,
}

/// The word that stands for an empty list: nothing is restricted.
pub(super) const ANY: &str = "any";

impl Field {
    /// A text with a label.
    pub(super) fn new(name: &str, label: &str) -> Field {
        Field { name: name.to_owned(), label: label.to_owned(), input_mode: "text", ..Field::default() }
    }

    pub(super) fn hint(self, hint: &str) -> Field {
        Field { hint: hint.to_owned(), ..self }
    }

    pub(super) fn placeholder(self, placeholder: &str) -> Field {
        Field { placeholder: placeholder.to_owned(), ..self }
    }

    pub(super) fn decimal(self) -> Field {
        Field { input_mode: "decimal", ..self }
    }

    /// One that names an agent. The page has the list of them.
    pub(super) fn agent(name: &str) -> Field {
        Field { is_agent: true, ..Field::new(name, "Agent") }
    }

    /// The choices, by value and label.
    pub(super) fn choices<'a>(self, choices: impl IntoIterator<Item = (&'a str, &'a str)>) -> Field {
        let choice = |(value, label): (&str, &str)| Choice {
            value: value.to_owned(),
            label: label.to_owned(),
            is_chosen: false,
        };
        Field { choices: choices.into_iter().map(choice).collect(), ..self }
    }

    /// The same with what it holds.
    pub(super) fn holding(mut self, value: &str) -> Field {
        value.clone_into(&mut self.value);
        for choice in &mut self.choices {
            choice.is_chosen = choice.value == value;
        }
        self
    }

    /// The same with what a form brought, and what is wrong with it.
    pub(super) fn brought(self, form: &Form, complaints: &mut Vec<(String, String)>) -> Field {
        let value = form.get(&self.name).cloned().unwrap_or_else(|| self.value.clone());
        let complaint = take(complaints, &self.name);
        Field { complaint, ..self.holding(&value) }
    }
}

/// The complaints about a key, or about anything in it, taken out of the list.
pub(super) fn take(complaints: &mut Vec<(String, String)>, key: &str) -> Option<String> {
    let is_of = |of: &str| of.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    let (mine, rest): (Vec<_>, Vec<_>) = std::mem::take(complaints).into_iter().partition(|(of, _)| is_of(of));
    *complaints = rest;
    let told: Vec<String> = mine.into_iter().map(|(_, told)| told).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// What is left of complaints after every field has taken its own.
pub(super) fn rest(complaints: Vec<(String, String)>) -> Option<String> {
    let told: Vec<String> = complaints.into_iter().map(|(_, told)| told).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// A value of a policy as the text of a field.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => ANY.to_owned(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

/// The text of a field as a value of a policy. An empty one takes back what was set. What is no number stays a text,
/// so that whoever checks it can say so.
pub(super) fn value_of(reading: Reading, text: &str) -> Value {
    let text = text.trim();
    if text.is_empty() {
        return Value::Null;
    }
    match reading {
        Reading::Money => Value::from(text.strip_prefix('$').unwrap_or(text).trim()),
        Reading::Text => Value::from(text),
        Reading::Number => text.parse::<i64>().map(Value::from).unwrap_or_else(|_| {
            let fraction = text.parse::<f64>().ok().filter(|number| number.is_finite());
            fraction.map_or_else(|| Value::from(text), Value::from)
        }),
        Reading::Lines if text == ANY => Value::Array(Vec::new()),
        Reading::Lines => text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Value::from).collect(),
        Reading::Flag => text.parse::<bool>().map_or_else(|_| Value::from(text), Value::from),
    }
}

/// The value under a dotted key.
pub(super) fn at<'a>(value: &'a Value, key: &str) -> &'a Value {
    key.split('.').fold(value, |value, part| &value[part])
}

/// Puts a value under a dotted key, making the tables on the way.
pub(super) fn put(patch: &mut Value, key: &str, value: Value) {
    let mut place = patch;
    for part in key.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[part];
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_become_values_and_come_back() {
        for (reading, text, value) in [
            (Reading::Money, " $2.50 ", json!("2.50")),
            (Reading::Number, "30", json!(30)),
            (Reading::Number, "0.85", json!(0.85)),
            (Reading::Number, "many", json!("many")),
            (Reading::Number, "NaN", json!("NaN")),
            (Reading::Lines, "gpt-4o*\r\n\n claude-* ", json!(["gpt-4o*", "claude-*"])),
            (Reading::Lines, "any", json!([])),
            (Reading::Flag, "true", json!(true)),
            (Reading::Flag, "perhaps", json!("perhaps")),
            (Reading::Text, "  ", Value::Null),
        ] {
            assert_eq!(value_of(reading, text), value, "{text}");
            assert_eq!(value_of(reading, &text_of(&value)), value, "{text}");
        }
    }

    #[test]
    fn a_complaint_goes_to_the_field_that_it_is_about() {
        let mut complaints = vec![
            ("budget.daily_limit".to_owned(), "much".to_owned()),
            ("models.allow[1]".to_owned(), "odd".to_owned()),
            ("budget".to_owned(), "whole".to_owned()),
        ];
        assert_eq!(take(&mut complaints, "budget.daily"), None);
        assert_eq!(take(&mut complaints, "budget.daily_limit").as_deref(), Some("much"));
        assert_eq!(take(&mut complaints, "models.allow").as_deref(), Some("odd"));
        assert_eq!(rest(complaints).as_deref(), Some("whole"));
    }

    #[test]
    fn keys_lead_into_tables() {
        let mut patch = json!({});
        put(&mut patch, "dlp.modes.pii", json!("off"));
        put(&mut patch, "dlp.profile", Value::Null);
        assert_eq!(patch, json!({"dlp": {"modes": {"pii": "off"}, "profile": null}}));
        assert_eq!(at(&patch, "dlp.modes.pii"), "off");
        assert_eq!(at(&patch, "dlp.modes.infra.x"), &Value::Null);
    }
}
