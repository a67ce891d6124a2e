//! The forms of the page of alerts: channels and rules that are made, changed and deleted, and alerts that are sent again.

use axum::extract::{Form as Sent, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use serde_json::{Map, Value};
use sprag_store::outbox::MadeKind;

use super::alerts::{Brought, page};
use super::field::{Field, Form, Reading, text_of, value_of};
use super::{Page, PageProblem};
use crate::admin::Shared;
use crate::admin::operator::{Operator, Visitor};
use crate::config::MASK;

/// A key of a channel or a rule: its name in the configuration, its label, what to write, and how it is read.
type Key = (&'static str, &'static str, &'static str, Reading);

const TYPES: [(&str, &str); 7] = [
    ("slack", "Slack"),
    ("webhook", "Webhook"),
    ("discord", "Discord"),
    ("teams", "Teams"),
    ("telegram", "Telegram"),
    ("pagerduty", "PagerDuty"),
    ("email", "E-mail"),
];
const CHANNEL: [Key; 13] = [
    ("url", "Address", "Webhook, Slack, Discord, Teams; never shown again", Reading::Text),
    ("secret", "Secret", "Webhook: signs messages; never shown again", Reading::Text),
    ("token", "Token", "Telegram: of the bot; never shown again", Reading::Text),
    ("chat", "Chat", "Telegram: its number or @name", Reading::Text),
    ("routing_key", "Routing key", "PagerDuty; never shown again", Reading::Text),
    ("server", "Mail server", "E-mail: HOST or HOST:PORT", Reading::Text),
    ("security", "Encryption", "E-mail: starttls, tls or none", Reading::Text),
    ("username", "User", "E-mail: who signs in", Reading::Text),
    ("password", "Password", "E-mail; never shown again", Reading::Text),
    ("from", "Sender", "E-mail: NAME@HOST", Reading::Text),
    ("recipients", "Recipients", "E-mail: one address a line", Reading::Lines),
    ("allow_private", "Private network", "true: it may lie in a private network", Reading::Flag),
    ("ca_file", "Authorities", "PEM file to trust instead of the system's", Reading::Text),
];
const KINDS: [(&str, &str); 9] = [
    ("loop_detected", "a loop"),
    ("kill_switch", "a kill switch"),
    ("run_killed", "a run that was stopped"),
    ("budget", "a budget"),
    ("error_rate", "calls that fail"),
    ("agent_down", "an agent that is silent"),
    ("dlp", "secrets or personal data"),
    ("velocity", "money that goes too fast"),
    ("unpriced_model", "a model without a price"),
];
const RULE: [Key; 11] = [
    ("agents", "Agents", "one name a line, * stands for anything; empty for all", Reading::Lines),
    ("channels", "Channels", "one name a line; empty for all", Reading::Lines),
    ("cooldown_minutes", "Cooldown in minutes", "15 unless given", Reading::Number),
    ("repeat_minutes", "Repeat after minutes", "of what lasts", Reading::Number),
    ("recovery", "Tell its end", "true or false", Reading::Flag),
    ("ignore_quiet_hours", "In quiet hours too", "true or false", Reading::Flag),
    ("thresholds", "Percentages", "of a budget, one a line", Reading::Lines),
    ("percent", "Failures in percent", "of calls that fail", Reading::Number),
    ("min_requests", "Least calls", "of calls that fail", Reading::Number),
    ("window_minutes", "Window in minutes", "of calls that fail", Reading::Number),
    ("silent_minutes", "Silent for minutes", "of an agent that is silent", Reading::Number),
];

#[derive(Deserialize)]
pub(super) struct Named {
    name: String,
}

#[derive(Deserialize)]
pub(super) struct Again {
    id: String,
    channel: String,
}

/// The fields of a form; with what holds now, where something is changed.
pub(super) fn fields(kind: MadeKind, name: &str, set: &Value) -> Vec<Field> {
    let (choice, label, choices, keys): (_, _, &[(&str, &str)], &[Key]) = match kind {
        MadeKind::Channel => ("type", "Type", &TYPES, &CHANNEL),
        MadeKind::Rule => ("on", "Tells of", &KINDS, &RULE),
    };
    let chosen = set.get(choice).and_then(Value::as_str).unwrap_or(choices[0].0);
    let hint = match kind {
        MadeKind::Channel => "lower-case letters, digits, - and _",
        MadeKind::Rule => "what alerts call it; empty: what it is about",
    };
    let mut fields = vec![
        Field::new(&named(kind, "name"), "Name").hint(hint).holding(name),
        Field::new(&named(kind, choice), label).choices(choices.iter().copied()).holding(chosen),
    ];
    for (key, label, hint, reading) in keys {
        let held = set.get(*key).map(text_of).unwrap_or_default();
        let mut field = Field::new(&named(kind, key), label).hint(hint);
        // A secret is not shown: left empty, it stays.
        field = if held == MASK { field.placeholder("stays as it is") } else { field.holding(&held) };
        field.is_lines = *reading == Reading::Lines;
        fields.push(field);
    }
    fields
}

pub(super) async fn set_channel(
    State(admin): State<Shared>,
    visitor: Visitor,
    operator: Operator,
    Sent(form): Sent<Form>,
) -> Page {
    set(&admin, visitor, operator, MadeKind::Channel, form).await
}

pub(super) async fn set_rule(
    State(admin): State<Shared>,
    visitor: Visitor,
    operator: Operator,
    Sent(form): Sent<Form>,
) -> Page {
    set(&admin, visitor, operator, MadeKind::Rule, form).await
}

pub(super) async fn delete_channel(State(admin): State<Shared>, operator: Operator, Sent(named): Sent<Named>) -> Page {
    admin.delete_alerts(MadeKind::Channel, named.name, operator.name).await?;
    Ok(Redirect::to("/alerts").into_response())
}

pub(super) async fn delete_rule(State(admin): State<Shared>, operator: Operator, Sent(named): Sent<Named>) -> Page {
    admin.delete_alerts(MadeKind::Rule, named.name, operator.name).await?;
    Ok(Redirect::to("/alerts").into_response())
}

pub(super) async fn send_again(State(admin): State<Shared>, operator: Operator, Sent(again): Sent<Again>) -> Page {
    admin.send_again(again.id, Some(again.channel), operator.name).await?;
    Ok(Redirect::to("/alerts#history").into_response())
}

async fn set(admin: &Shared, visitor: Visitor, operator: Operator, kind: MadeKind, form: Form) -> Page {
    let text = |key: &str| form.get(&named(kind, key)).map(|text| text.trim().to_owned()).unwrap_or_default();
    let (choice, keys): (_, &[Key]) = match kind {
        MadeKind::Channel => ("type", &CHANNEL),
        MadeKind::Rule => ("on", &RULE),
    };
    let chosen = text(choice);
    let name = match text("name") {
        empty if empty.is_empty() && kind == MadeKind::Rule => chosen.clone(),
        name => name,
    };
    let held = admin.app.alerts.written(kind, &name).map(|written| crate::config::made_alerts::masked(&written));
    let mut patch = Map::new();
    patch.insert(choice.to_owned(), chosen.into());
    for (key, _, _, reading) in keys {
        let value = match value_of(*reading, &text(key)) {
            Value::Array(items) if *key == "thresholds" => items.iter().map(number).collect(),
            value => value,
        };
        let is_kept_secret = value.is_null() && held.as_ref().is_some_and(|held| held.get(*key) == Some(&MASK.into()));
        if !is_kept_secret {
            patch.insert((*key).to_owned(), value);
        }
    }
    match admin.set_alerts(kind, name, Value::Object(patch), operator.name).await {
        Ok(()) => Ok(Redirect::to("/alerts").into_response()),
        Err(problem) if [StatusCode::BAD_REQUEST, StatusCode::CONFLICT].contains(&problem.status) => {
            let at_field = |(key, told): (String, String)| {
                let key = if key.is_empty() { "name".to_owned() } else { key };
                (named(kind, &key), told)
            };
            let complaints = problem.slips().into_iter().map(at_field).collect();
            page(admin, visitor, problem.status, Brought { form, complaints, ..Brought::default() }).await
        }
        Err(problem) => Err(PageProblem::from(problem)),
    }
}

fn number(item: &Value) -> Value {
    value_of(Reading::Number, item.as_str().unwrap_or_default())
}

/// Both forms stand on one page: their fields have names of their own.
fn named(kind: MadeKind, key: &str) -> String {
    match kind {
        MadeKind::Channel => format!("channel-{key}"),
        MadeKind::Rule => format!("rule-{key}"),
    }
}
