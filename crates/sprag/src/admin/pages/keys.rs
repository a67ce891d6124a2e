//! Virtual keys: who has one, making one, giving it a new secret, taking it back. A secret is shown once.

use askama::Template;
use axum::extract::{Form as Sent, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sprag_core::money::NanoUsd;
use sprag_core::policy::KeyState;
use sprag_core::time::Timestamp;

use super::field::Field;
use super::filled::Filled;
use super::rows::Moment;
use super::{Page, Shell, html, link};
use crate::admin::Shared;
use crate::admin::api::model::{KeyBudget, KeyRecord, Usd};
use crate::admin::api::{self, Params, desk};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;

const ROWS: u32 = 100;

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    agent: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "keys.html")]
struct Keys {
    shell: Shell,
    keys: Vec<KeyLine>,
    agent: String,
    agents: Vec<String>,
    newest: Option<String>,
    older: Option<String>,
    fields: Vec<Field>,
    complaint: Option<String>,
    /// Only requests with a key are let in.
    are_required: bool,
}

/// A key in the table.
struct KeyLine {
    id: String,
    name: String,
    agent: String,
    agent_href: String,
    hint: String,
    state: &'static str,
    tone: &'static str,
    is_active: bool,
    budget: String,
    created: Option<Moment>,
    expires: Option<Moment>,
    /// Until when the secret before the last rotation still holds.
    previous_until: Option<Moment>,
}

/// A new secret, this once.
#[derive(Template)]
#[template(path = "secret.html")]
struct Told {
    shell: Shell,
    title: String,
    what: &'static str,
    back: &'static str,
    secret: String,
    /// What to do with it, to be copied.
    example: String,
    facts: Vec<(&'static str, String)>,
}

#[derive(Deserialize)]
pub(super) struct Target {
    id: String,
    #[serde(default)]
    grace_seconds: u32,
}

const LIFETIMES: [(&str, &str); 6] = [
    ("", "never"),
    ("86400", "in a day"),
    ("604800", "in 7 days"),
    ("2592000", "in 30 days"),
    ("7776000", "in 90 days"),
    ("31536000", "in a year"),
];
const LIMITS: [(&str, &str); 3] =
    [("max_run_cost", "A run, dollars"), ("daily_limit", "A day, dollars"), ("monthly_limit", "A month, dollars")];

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    list(&admin, visitor, wanted, Filled::nothing()).await
}

async fn list(admin: &Shared, visitor: Visitor, wanted: Wanted, mut filled: Filled) -> Page {
    let (status, agents) = (filled.status, admin.agent_names().await?);
    let agent = api::agent_name(wanted.agent.as_deref())?.map(|agent| agent.to_string()).unwrap_or_default();
    let given = Some(&agent).filter(|agent| !agent.is_empty());
    let page = desk::keys(admin, json!({ "agent": given, "cursor": wanted.cursor, "limit": ROWS })).await?;
    let now = admin.app.clock.now();
    let here = |cursor: Option<&str>| link::to("/keys", &[("agent", given.map(String::as_str)), ("cursor", cursor)]);
    let page = Keys {
        shell: admin.shell("keys", visitor),
        keys: page.items.iter().map(|key| KeyLine::new(key, now)).collect(),
        agents,
        newest: wanted.cursor.is_some().then(|| here(None)),
        older: page.next.map(|next| here(Some(&next))),
        fields: filled.fill(fields(&agent)),
        complaint: filled.rest(),
        are_required: admin.app.settings.load().proxy.require_keys,
        agent,
    };
    Ok(html(status, &page))
}

pub(super) async fn create(State(admin): State<Shared>, visitor: Visitor, operator: Operator, filled: Filled) -> Page {
    let (order, filled) = order(filled);
    if !filled.is_fine() {
        return list(&admin, visitor, Wanted::default(), filled).await;
    }
    match desk::create_key(&admin, operator, order).await {
        Ok(key) => Ok(html(StatusCode::OK, &told(&admin, visitor, key, "New key"))),
        Err(problem) => list(&admin, visitor, Wanted::default(), filled.refused(problem, field_of)?).await,
    }
}

pub(super) async fn rotate(
    State(admin): State<Shared>,
    visitor: Visitor,
    operator: Operator,
    Sent(target): Sent<Target>,
) -> Page {
    let key = desk::rotate_key(&admin, operator, &target.id, target.grace_seconds).await?;
    Ok(html(StatusCode::OK, &told(&admin, visitor, key, "New secret")))
}

pub(super) async fn revoke(State(admin): State<Shared>, operator: Operator, Sent(target): Sent<Target>) -> Page {
    desk::revoke_key(&admin, operator, &target.id).await?;
    Ok(Redirect::to("/keys").into_response())
}

/// The form for a new key.
fn fields(agent: &str) -> Vec<Field> {
    let mut fields = vec![
        Field::agent("agent").hint("whom the key speaks for, whatever the caller says").holding(agent),
        Field::new("name", "Name").placeholder("optional").hint("for people: whose it is, or what for"),
        Field::new("expires_in_seconds", "Ends").choices(LIFETIMES).holding(""),
    ];
    let limit = |(name, label): (&str, &str)| Field::new(name, label).placeholder("no limit").decimal();
    fields.extend(LIMITS.into_iter().map(limit));
    fields
}

/// What a form asks for, and the form with what is wrong with it.
fn order(mut filled: Filled) -> (Value, Filled) {
    if filled.given("agent").is_none() {
        filled = filled.but("agent", "a key speaks for an agent: give its name");
    }
    let mut budget = Map::new();
    for (name, _) in LIMITS {
        let Some(amount) = filled.given(name).map(|text| text.strip_prefix('$').unwrap_or(text).to_owned()) else {
            continue;
        };
        match NanoUsd::parse_usd(&amount) {
            Ok(dollars) if dollars > NanoUsd::ZERO => drop(budget.insert(name.to_owned(), amount.into())),
            _ => filled = filled.but(name, "an amount of dollars above 0, such as 2.50"),
        }
    }
    let expires: Option<u32> = filled.text("expires_in_seconds").parse().ok();
    if expires.is_none() && filled.given("expires_in_seconds").is_some() {
        filled = filled.but("expires_in_seconds", "a number of seconds");
    }
    let (agent, name) = (filled.text("agent"), filled.text("name"));
    (json!({ "agent": agent, "name": name, "expires_in_seconds": expires, "budget": budget }), filled)
}

/// The field of what the API complains about; a bad name of an agent names none.
fn field_of(key: &str, _: &str) -> String {
    match key.strip_prefix("budget.") {
        Some(limit) => limit.to_owned(),
        None if key == "name" => key.to_owned(),
        None => "agent".to_owned(),
    }
}

fn told(admin: &Shared, visitor: Visitor, key: KeyRecord, title: &str) -> Told {
    let secret = key.secret.clone().unwrap_or_default();
    let port = admin.addresses.proxy.port();
    let mut facts = vec![("Agent", key.agent.clone()), ("Id", key.id.clone())];
    if let Some(end) = &key.expires_at {
        facts.push(("Ends", end.clone()));
    }
    if let Some(previous) = &key.previous {
        facts.push(("Old secret holds until", previous.ends_at.clone()));
    }
    facts.push(("Budget", budget(key.budget.as_ref())));
    Told {
        shell: admin.shell("keys", visitor),
        title: if key.name.is_empty() { title.to_owned() } else { format!("{title}: {}", key.name) },
        what: "key",
        back: "/keys",
        example: format!("export OPENAI_BASE_URL=http://127.0.0.1:{port}/v1\nexport OPENAI_API_KEY={secret}"),
        secret,
        facts,
    }
}

/// What may be spent, in words.
fn budget(budget: Option<&KeyBudget>) -> String {
    let Some(budget) = budget else { return "no limit".to_owned() };
    let part = |amount: Option<Usd>, of: &str| amount.map(|Usd(amount)| format!("${amount} {of}"));
    let parts =
        [part(budget.max_run_cost, "a run"), part(budget.daily_limit, "a day"), part(budget.monthly_limit, "a month")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl KeyLine {
    fn new(key: &KeyRecord, now: Timestamp) -> KeyLine {
        let (state, tone) = match key.state {
            KeyState::Active => ("active", "good"),
            KeyState::Expired => ("ended", ""),
            KeyState::Revoked => ("revoked", "bad"),
        };
        let moment = |at: &str| api::moment("at", Some(at)).ok().flatten().map(|at| Moment::new(at, now));
        KeyLine {
            id: key.id.clone(),
            name: key.name.clone(),
            agent: key.agent.clone(),
            agent_href: link::to("/agent", &[("name", Some(&key.agent))]),
            hint: format!("…{}", key.hint),
            state,
            tone,
            is_active: key.state == KeyState::Active,
            budget: budget(key.budget.as_ref()),
            created: moment(&key.created_at),
            expires: key.expires_at.as_deref().and_then(moment),
            previous_until: key.previous.as_ref().and_then(|previous| moment(&previous.ends_at)),
        }
    }
}
