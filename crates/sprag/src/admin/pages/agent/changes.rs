//! What a form of an agent's policy changes: the fields that somebody wrote in, and no others. What another has set
//! meanwhile stays, and where both changed the same field nothing is saved before the person has seen that.

use serde_json::{Value, json};

use super::policy::{Known, keys};
use super::rates;
use crate::admin::pages::field::{Form, at, put, text_of, value_of};
use crate::admin::pages::shown::{FIELD, Shown, Written};
use crate::admin::problem::Problem;

/// What a form asks for.
#[derive(Debug)]
pub(in crate::admin::pages) struct Changes {
    /// The merge patch that does it.
    pub(in crate::admin::pages) patch: Value,
    /// The fields that somebody wrote in.
    pub(in crate::admin::pages) written: Form,
    /// What to say where somebody else was faster, by key; the whole has an empty one.
    pub(in crate::admin::pages) overtaken: Vec<(String, String)>,
}

const RATES: &str = "rate_limits";
/// As much of a long list is told.
const SHOWN_CHARS: usize = 80;

/// What the form shows of a policy.
pub(super) fn shown(known: &Known<'_>) -> Shown {
    let fields = keys().map(|(_, key)| {
        let text = text_of(at(known.set, &key.path));
        (key.path, text)
    });
    let rates = rates::to_policy(&rates::from_policy(&known.in_force[RATES]));
    fields.chain([(RATES.to_owned(), rates.to_string())]).collect()
}

/// Reads a form of the policy.
pub(super) fn of_form(form: &Form, known: &Known<'_>) -> Result<Changes, Problem> {
    let page = Shown::read(form.get(FIELD).map(String::as_str))?;
    let now = shown(known);
    let mut changes = Changes { patch: json!({}), written: Form::new(), overtaken: Vec::new() };
    for (_, key) in keys() {
        let Some(text) = form.get(&key.path) else { continue };
        let wanted = value_of(key.reading, text);
        // Compared as texts: 5 and 5.0 and "5" are the same limit.
        let written = now.compare(page.as_ref(), &key.path, &text_of(&wanted));
        if written != Written::Untouched {
            changes.written.insert(key.path.clone(), text.clone());
        }
        changes.put(written, &key.path, wanted, &now);
    }
    if form.contains_key(rates::PRESENT) {
        let wanted = rates::to_policy(&rates::from_form(form));
        let written = now.compare(page.as_ref(), RATES, &wanted.to_string());
        if written != Written::Untouched {
            let is_rate = |name: &str| name == rates::PRESENT || name.starts_with("rate-");
            let rows = form.iter().filter(|(name, _)| is_rate(name));
            changes.written.extend(rows.map(|(name, text)| (name.clone(), text.clone())));
        }
        changes.put(written, RATES, wanted, &now);
    }
    Ok(changes.told(page.as_ref(), &now))
}

/// Takes one key back, so that the configuration holds again.
pub(super) fn back(form: &Form, known: &Known<'_>) -> Result<Changes, Problem> {
    let key = form.get("key").map(String::as_str).unwrap_or_default();
    if key != RATES && !keys().any(|(_, known)| known.path == key) {
        return Err(Problem::bad_request("`key` names no field of the policy"));
    }
    let page = Shown::read(form.get(FIELD).map(String::as_str))?;
    let now = shown(known);
    let is_overtaken = page.as_ref().is_some_and(|page| !page.had(key, now.text(key)));
    let mut changes = Changes { patch: json!({}), written: Form::new(), overtaken: Vec::new() };
    changes.put(if is_overtaken { Written::Overtaken } else { Written::New }, key, Value::Null, &now);
    Ok(changes.told(page.as_ref(), &now))
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.patch.as_object().is_none_or(serde_json::Map::is_empty)
    }

    fn put(&mut self, written: Written, key: &str, wanted: Value, now: &Shown) {
        match written {
            Written::Untouched | Written::InForce => {}
            Written::New => put(&mut self.patch, key, wanted),
            Written::Overtaken => {
                let told = format!("somebody else has changed this: {}", holds(key, now));
                self.overtaken.push((key.to_owned(), told));
            }
        }
    }

    /// The same with a sentence about everything that others have changed, where that is in the way.
    fn told(mut self, page: Option<&Shown>, now: &Shown) -> Changes {
        let Some(page) = page.filter(|_| !self.overtaken.is_empty()) else { return self };
        let all = keys().map(|(group, key)| (format!("{group}, {}", key.label), key.path));
        let all = all.chain([("Rate limits".to_owned(), RATES.to_owned())]);
        let moved: Vec<String> = all
            .filter(|(_, path)| !page.had(path, now.text(path)))
            .map(|(label, path)| format!("{label}: {}", holds(&path, now)))
            .collect();
        let told = format!(
            "Nothing was saved, because somebody else has changed this policy since the page was opened ({}). What you \
             wrote is still here: save again to put it in place of that.",
            moved.join("; ")
        );
        self.overtaken.push((String::new(), told));
        self
    }
}

/// What holds under a key now, in words.
fn holds(key: &str, now: &Shown) -> String {
    match now.text(key) {
        _ if key == RATES => "other limits hold now".to_owned(),
        "" => "it is no longer set".to_owned(),
        text => {
            let line = text.replace('\n', ", ");
            let end = if line.chars().nth(SHOWN_CHARS).is_some() { "…" } else { "" };
            format!("now {}{end}", line.chars().take(SHOWN_CHARS).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn form(pairs: &[(&str, &str)]) -> Form {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// What is asked for where so much is set.
    fn changes(form: &Form, set: &Value, in_force: &Value) -> Changes {
        let sources = BTreeMap::new();
        of_form(form, &Known { in_force, configured: &Value::Null, set, sources: &sources }).unwrap()
    }

    fn page(set: &Value, in_force: &Value) -> String {
        let sources = BTreeMap::new();
        shown(&Known { in_force, configured: &Value::Null, set, sources: &sources }).to_string()
    }

    #[test]
    fn a_patch_holds_what_differs_and_nothing_else() {
        let set = json!({"budget": {"daily_limit": 5, "max_run_cost": "1"}, "models": {"allow": ["gpt-4o*"]}});
        let in_force = json!({"rate_limits": [{"name": "1", "mode": "enforce", "limit_keys": ["agent"], "requests": 60, "window_seconds": 60}]});
        let mut form = form(&[
            ("budget.daily_limit", "5"),
            ("budget.max_run_cost", ""),
            ("budget.monthly_limit", "100.00"),
            ("models.allow", "gpt-4o*\r\nclaude-*"),
            ("run_limits.max_steps", ""),
            ("unknown.key", "5"),
        ]);
        let expected = json!({
            "budget": {"max_run_cost": null, "monthly_limit": "100.00"},
            "models": {"allow": ["gpt-4o*", "claude-*"]},
        });
        assert_eq!(changes(&form, &set, &in_force).patch, expected);
        form.insert(FIELD.to_owned(), page(&set, &in_force));
        assert_eq!(changes(&form, &set, &in_force).patch, expected, "nobody else has changed anything");
        form.insert(rates::PRESENT.to_owned(), "1".to_owned());
        let emptied = changes(&form, &set, &in_force).patch["rate_limits"].clone();
        assert_eq!(emptied, json!([]), "rows that were emptied are gone");
    }

    #[test]
    fn an_old_page_takes_back_nothing_that_others_have_set() {
        let limit = |requests: u32| json!({"rate_limits": [{"name": "1", "mode": "enforce", "limit_keys": [], "requests": requests, "window_seconds": 60}]});
        let old = page(&json!({"budget": {"daily_limit": 5}}), &limit(60));
        let now = json!({"budget": {"daily_limit": 9}, "run_limits": {"max_steps": 7}});
        let mut form = form(&[
            (FIELD, &old),
            ("budget.daily_limit", "5"),
            ("budget.monthly_limit", "100"),
            ("run_limits.max_steps", ""),
            (rates::PRESENT, "1"),
            ("rate-0-amount", "60"),
            ("rate-0-what", "requests"),
            ("rate-0-window", "60"),
            ("rate-0-keys", ""),
            ("rate-0-mode", "enforce"),
        ]);
        let asked = changes(&form, &now, &limit(30));
        assert_eq!(asked.patch, json!({"budget": {"monthly_limit": "100"}}));
        assert!(asked.overtaken.is_empty(), "{asked:?}");
        assert_eq!(asked.written.keys().collect::<Vec<_>>(), ["budget.monthly_limit"]);

        form.insert("budget.daily_limit".to_owned(), "6".to_owned());
        form.insert("rate-0-amount".to_owned(), "61".to_owned());
        let asked = changes(&form, &now, &limit(30));
        let keys: Vec<&str> = asked.overtaken.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["budget.daily_limit", "rate_limits", ""]);
        let whole = &asked.overtaken[2].1;
        for said in ["Budget, A day: now 9", "Runs, Most steps: now 7", "Rate limits: other limits hold now"] {
            assert!(whole.contains(said), "{said}: {whole}");
        }
        assert!(asked.written.contains_key("rate-0-amount") && !asked.written.contains_key("run_limits.max_steps"));
    }

    #[test]
    fn one_key_is_taken_back_unless_it_is_another_by_now() {
        let (five, nine) = (json!({"budget": {"daily_limit": 5}}), json!({"budget": {"daily_limit": 9}}));
        let sources = BTreeMap::new();
        let known = Known { in_force: &Value::Null, configured: &Value::Null, set: &nine, sources: &sources };
        let asked = |pairs: &[(&str, &str)]| back(&form(pairs), &known);
        let patch = json!({"budget": {"daily_limit": null}});
        assert_eq!(asked(&[("key", "budget.daily_limit")]).unwrap().patch, patch);
        let same = page(&nine, &Value::Null);
        assert_eq!(asked(&[("key", "budget.daily_limit"), (FIELD, &same)]).unwrap().patch, patch);
        let old = page(&five, &Value::Null);
        let overtaken = asked(&[("key", "budget.daily_limit"), (FIELD, &old)]).unwrap();
        assert!(overtaken.is_empty() && overtaken.overtaken[0].1.contains("now 9"), "{overtaken:?}");
        assert_eq!(asked(&[("key", "kill_switch")]).unwrap_err().status, 400);
    }
}
