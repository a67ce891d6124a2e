//! Rate limits as rows of a form.

use serde_json::{Map, Value};
use sprag_core::limits::RATE_RULES;

use crate::admin::pages::field::{Choice, Form, Reading, take, text_of, value_of};

/// The field that says that a form has rows: without any rows it still may have had some.
pub(in crate::admin::pages) const PRESENT: &str = "rates";

/// One limit.
#[derive(Debug, Default, PartialEq)]
pub(in crate::admin::pages) struct RateRow {
    pub(in crate::admin::pages) place: usize,
    pub(in crate::admin::pages) name: String,
    /// How much; empty for a row that is no limit.
    pub(in crate::admin::pages) amount: String,
    /// `requests`, `tokens` or `rps`.
    pub(in crate::admin::pages) what: String,
    /// Seconds of the window; for `rps` the burst.
    pub(in crate::admin::pages) window: String,
    /// Calls with the same values of these share the limit.
    pub(in crate::admin::pages) keys: String,
    pub(in crate::admin::pages) mode: String,
    pub(in crate::admin::pages) complaint: Option<String>,
}

const MEASURES: [(&str, &str); 3] = [("requests", "requests"), ("tokens", "tokens"), ("rps", "requests a second")];
const MODES: [(&str, &str); 3] = [("enforce", "enforce"), ("shadow", "shadow"), ("off", "off")];

impl RateRow {
    pub(in crate::admin::pages) fn measures(&self) -> Vec<Choice> {
        choices(&MEASURES, &self.what)
    }

    pub(in crate::admin::pages) fn modes(&self) -> Vec<Choice> {
        choices(&MODES, &self.mode)
    }

    /// For people: the first is 1.
    pub(in crate::admin::pages) fn number(&self) -> usize {
        self.place + 1
    }
}

/// The rows of a policy, and an empty one for the next.
pub(super) fn from_policy(rules: &Value) -> Vec<RateRow> {
    let rules = rules.as_array().map(Vec::as_slice).unwrap_or_default();
    let row = |(place, rule): (usize, &Value)| {
        let text = |key: &str| text_of(&rule[key]);
        let (what, amount, window) = match (&rule["requests"], &rule["tokens"]) {
            (Value::Null, Value::Null) => ("rps", text("rps"), text("burst")),
            (Value::Null, _) => ("tokens", text("tokens"), text("window_seconds")),
            _ => ("requests", text("requests"), text("window_seconds")),
        };
        let keys = rule["limit_keys"].as_array().map(|keys| keys.iter().map(text_of).collect::<Vec<_>>().join(", "));
        RateRow {
            place,
            // A name that is only the place is nobody's choice.
            name: Some(text("name")).filter(|name| *name != (place + 1).to_string()).unwrap_or_default(),
            amount,
            what: what.to_owned(),
            window,
            keys: keys.unwrap_or_default(),
            mode: text("mode"),
            complaint: None,
        }
    };
    let mut rows: Vec<RateRow> = rules.iter().enumerate().map(row).collect();
    if rows.len() < RATE_RULES {
        rows.push(empty(rows.len()));
    }
    rows
}

/// The rows of a form, in the order of their places. One more than may be, so that whoever checks it can say so.
pub(super) fn from_form(form: &Form) -> Vec<RateRow> {
    let text = |place: usize, part: &str| form.get(&format!("rate-{place}-{part}")).cloned();
    let row = |place: usize| {
        Some(RateRow {
            place,
            amount: text(place, "amount")?,
            name: text(place, "name").unwrap_or_default(),
            what: text(place, "what").unwrap_or_default(),
            window: text(place, "window").unwrap_or_default(),
            keys: text(place, "keys").unwrap_or_default(),
            mode: text(place, "mode").unwrap_or_default(),
            complaint: None,
        })
    };
    (0..=RATE_RULES).map_while(row).collect()
}

/// The list that rows stand for. Rows without an amount stand for nothing.
pub(super) fn to_policy(rows: &[RateRow]) -> Value {
    let rule = |row: &RateRow| {
        let mut rule = Map::new();
        let mut set = |key: &str, value: Value| {
            if !value.is_null() {
                rule.insert(key.to_owned(), value);
            }
        };
        set("name", value_of(Reading::Text, &row.name));
        set("mode", value_of(Reading::Text, &row.mode));
        let keys: Value = row.keys.split(',').map(str::trim).filter(|key| !key.is_empty()).map(Value::from).collect();
        set("limit_keys", keys);
        let window = if row.what == "rps" { "burst" } else { "window_seconds" };
        set(if row.what.is_empty() { "requests" } else { &row.what }, value_of(Reading::Number, &row.amount));
        set(window, value_of(Reading::Number, &row.window));
        Value::Object(rule)
    };
    rows.iter().filter(|row| !row.amount.trim().is_empty()).map(rule).collect::<Vec<_>>().into()
}

/// The same with what is wrong with each. Rows without an amount are not counted by whoever complains.
pub(super) fn with_complaints(rows: Vec<RateRow>, complaints: &mut Vec<(String, String)>) -> Vec<RateRow> {
    let mut counted = 0;
    let mut complain = |row: RateRow| {
        if row.amount.trim().is_empty() {
            return row;
        }
        let complaint = take(complaints, &format!("rate_limits[{counted}]"));
        counted += 1;
        RateRow { complaint, ..row }
    };
    rows.into_iter().map(&mut complain).collect()
}

fn empty(place: usize) -> RateRow {
    let [what, mode] = ["requests", "enforce"].map(str::to_owned);
    RateRow { place, what, mode, keys: "agent".to_owned(), window: "60".to_owned(), ..RateRow::default() }
}

fn choices(all: &[(&str, &str)], chosen: &str) -> Vec<Choice> {
    let choice = |(value, label): &(&str, &str)| Choice {
        value: (*value).to_owned(),
        label: (*label).to_owned(),
        is_chosen: *value == chosen,
    };
    all.iter().map(choice).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_stand_for_the_list_that_they_come_from() {
        let rules = json!([
            {"name": "1", "mode": "enforce", "limit_keys": ["agent", "model"], "requests": 60, "window_seconds": 30},
            {"name": "bulk", "mode": "shadow", "limit_keys": [], "tokens": 1000, "window_seconds": 60},
            {"name": "3", "mode": "enforce", "limit_keys": [], "rps": 0.5, "burst": 2},
        ]);
        let rows = from_policy(&rules);
        assert_eq!(rows.len(), 4, "the last is for another");
        let mut expected = rules.clone();
        for place in [0, 2] {
            expected[place].as_object_mut().unwrap().remove("name");
        }
        assert_eq!(to_policy(&rows), expected);
    }

    #[test]
    fn a_complaint_stands_at_its_row_also_below_an_empty_one() {
        let pairs = [("rate-0-amount", ""), ("rate-1-amount", "x"), ("rate-1-what", "tokens")];
        let form: Form = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut complaints = vec![("rate_limits[0].tokens".to_owned(), "no number".to_owned())];
        let rows = with_complaints(from_form(&form), &mut complaints);
        assert_eq!((&rows[0].complaint, rows[1].complaint.as_deref()), (&None, Some("no number")));
        assert!(complaints.is_empty());
    }

    #[test]
    fn rows_are_bounded() {
        let form: Form = (0..100).map(|place| (format!("rate-{place}-amount"), "1".to_owned())).collect();
        assert_eq!(from_form(&form).len(), RATE_RULES + 1);
    }
}
