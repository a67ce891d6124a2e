//! `sprag alerts add-channel | set-channel | remove-channel | add-rule | set-rule | remove-rule | send-again`

use std::io::Write;

use anyhow::{Context, Result, bail};
use http::Method;
use serde_json::{Map, Value, json};

use super::client::Asking;
use crate::admin::api::model::AgainRecord;
use crate::show;

/// Keys whose value is a text, also one of digits.
const TEXTS: [&str; 10] =
    ["chat", "url", "secret", "token", "routing_key", "server", "username", "password", "from", "ca_file"];
/// Keys whose value is a list.
const LISTS: [&str; 4] = ["recipients", "agents", "channels", "thresholds"];

/// A channel or a rule.
#[derive(Clone, Copy)]
pub(super) enum What {
    Channel,
    Rule,
}

impl What {
    fn word(self) -> &'static str {
        match self {
            What::Channel => "channel",
            What::Rule => "rule",
        }
    }

    fn path(self) -> &'static str {
        match self {
            What::Channel => "channels",
            What::Rule => "rules",
        }
    }
}

pub(super) fn add(what: What, name: &str, settings: &[String], asking: &Asking) -> Result<()> {
    let mut body = json!({ "name": name });
    body[what.word()] = patch(settings)?;
    let answer = asking.order(Method::POST, &["alerts", what.path()], &body)?;
    if asking.json { answer.print() } else { done(what, name, "is made") }
}

pub(super) fn set(what: What, name: &str, settings: &[String], asking: &Asking) -> Result<()> {
    let mut body = json!({});
    body[what.word()] = patch(settings)?;
    let answer = asking.order(Method::PATCH, &["alerts", what.path(), name], &body)?;
    if asking.json { answer.print() } else { done(what, name, "is changed") }
}

pub(super) fn remove(what: What, name: &str, asking: &Asking) -> Result<()> {
    let answer = asking.order(Method::DELETE, &["alerts", what.path(), name], &Value::Null)?;
    if asking.json { answer.print() } else { done(what, name, "is deleted") }
}

pub(super) fn send_again(id: &str, channel: Option<&str>, asking: &Asking) -> Result<()> {
    let answer = asking.order(Method::POST, &["alerts", id, "resend"], &json!({ "channel": channel }))?;
    if asking.json {
        return answer.print();
    }
    let again: AgainRecord = answer.read()?;
    let plural = if again.messages == 1 { "channel" } else { "channels" };
    writeln!(std::io::stdout(), "{} is sent again to {} {plural}", show::plain(&again.id), again.messages)?;
    Ok(())
}

fn done(what: What, name: &str, told: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{} {} {told}", what.word(), show::plain(name))?;
    Ok(())
}

/// A merge patch of `KEY=VALUE` pairs. `KEY=@FILE` takes the value from a file, so that a secret stands on no command line;
/// `KEY=` takes it back.
fn patch(settings: &[String]) -> Result<Value> {
    let mut patch = Map::new();
    for setting in settings {
        let Some((key, text)) = setting.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            bail!("`{setting}` sets nothing; expected KEY=VALUE, as in type=slack");
        };
        let read;
        let text = match text.strip_prefix('@') {
            Some(file) => {
                read = std::fs::read_to_string(file).with_context(|| format!("reading {file} for `{key}`"))?;
                read.trim()
            }
            None => text,
        };
        let value = match text {
            "" => Value::Null,
            text if LISTS.contains(&key) => text.split(',').map(|item| scalar(item.trim())).collect(),
            text if TEXTS.contains(&key) => Value::from(text),
            text => scalar(text),
        };
        if patch.insert(key.to_owned(), value).is_some() {
            bail!("`{key}` is set twice");
        }
    }
    Ok(Value::Object(patch))
}

/// A number or a truth as such; anything else is a text.
fn scalar(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        _ => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_become_a_patch() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "https://example.com/x\n").unwrap();
        let settings =
            [format!("url=@{}", file.display()), "type=slack".into(), "allow_private=true".into(), "secret=".into()];
        let expected = json!({"url": "https://example.com/x", "type": "slack", "allow_private": true, "secret": null});
        assert_eq!(patch(&settings).unwrap(), expected);
        let digits = ["chat=-1001234567890".to_owned(), "password=123456".to_owned()];
        assert_eq!(patch(&digits).unwrap(), json!({"chat": "-1001234567890", "password": "123456"}));
        let rule = ["thresholds=50,80".to_owned(), "agents=prod-*".to_owned(), "cooldown_minutes=5".to_owned()];
        assert_eq!(patch(&rule).unwrap(), json!({"thresholds": [50, 80], "agents": ["prod-*"], "cooldown_minutes": 5}));
        for (settings, said) in
            [(&["type"][..], "expected KEY=VALUE"), (&["a=1", "a=2"], "is set twice"), (&["a=@/nowhere"], "/nowhere")]
        {
            let settings: Vec<_> = settings.iter().map(|text| (*text).to_owned()).collect();
            assert!(format!("{:#}", patch(&settings).unwrap_err()).contains(said), "{settings:?}");
        }
    }
}
