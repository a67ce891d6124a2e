//! Stopping everything at once, and everything that is stopped: kills in force, and taking them back.

use askama::Template;
use axum::extract::{Form as Sent, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use serde_json::{Value, json};
use sprag_core::policy::{KillKind, KillScope};
use sprag_core::time::Timestamp;

use super::field::Field;
use super::filled::Filled;
use super::rows::Moment;
use super::{Page, Shell, html, link, news_at};
use crate::admin::Shared;
use crate::admin::api::model::KillRecord;
use crate::admin::api::{self, Params, desk};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;
use crate::show;

const ROWS: u32 = 50;
/// What somebody types who means it.
const WORD: &str = "stop";

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "panic.html")]
struct Panic {
    shell: Shell,
    /// Where the page asks for news of itself.
    live: &'static str,
    /// The kill of everything, while it is in force.
    all: Option<KillLine>,
    kills: Vec<KillLine>,
    total: u64,
    in_flight: u64,
    newest: Option<String>,
    older: Option<String>,
    everything: Vec<Field>,
    part: Vec<Field>,
    complaint: Option<String>,
}

/// A kill in the table.
struct KillLine {
    id: String,
    /// What is stopped, in words.
    what: String,
    href: Option<String>,
    is_pause: bool,
    reason: String,
    by: String,
    at: Option<Moment>,
    until: Option<Moment>,
}

#[derive(Deserialize)]
pub(super) struct Target {
    id: String,
}

const LENGTHS: [(&str, &str); 5] = [
    ("", "until somebody lifts it"),
    ("600", "for 10 minutes"),
    ("3600", "for an hour"),
    ("28800", "for 8 hours"),
    ("86400", "for a day"),
];

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    list(&admin, visitor, wanted, Filled::nothing()).await
}

async fn list(admin: &Shared, visitor: Visitor, wanted: Wanted, mut filled: Filled) -> Page {
    let page = desk::kills(admin, json!({ "cursor": wanted.cursor, "limit": ROWS })).await?;
    let now = admin.app.clock.now();
    let snapshot = admin.app.catalog.snapshot();
    let all = snapshot.kills.of_scope(&KillScope::Everything).filter(|kill| kill.is_in_force(now));
    let status = filled.status;
    let page = Panic {
        shell: admin.shell("panic", visitor),
        live: news_at(status, "/panic"),
        all: all.map(|kill| KillLine::new(&KillRecord::from(&**kill), now)),
        kills: page.items.iter().map(|kill| KillLine::new(kill, now)).collect(),
        total: admin.kills_in_force(),
        in_flight: admin.app.state.counts().in_flight as u64,
        newest: wanted.cursor.is_some().then(|| "/panic".to_owned()),
        older: page.next.map(|next| link::to("/panic", &[("cursor", Some(&next))])),
        everything: filled.fill(everything_fields()),
        part: filled.fill(part_fields()),
        complaint: filled.rest(),
    };
    Ok(html(status, &page))
}

/// Stops everything, if the word was typed.
pub(super) async fn stop(State(admin): State<Shared>, visitor: Visitor, operator: Operator, filled: Filled) -> Page {
    if filled.text("confirm").to_lowercase() != WORD {
        let filled = filled.but("confirm", format!("nothing was stopped: type {WORD} to confirm"));
        return list(&admin, visitor, Wanted::default(), filled).await;
    }
    let reason = filled.given("reason").unwrap_or("panic button");
    desk::kill(&admin, operator, json!({ "scope": "all", "reason": reason })).await?;
    Ok(Redirect::to("/panic").into_response())
}

/// Stops a part of what passes through.
pub(super) async fn stop_part(
    State(admin): State<Shared>,
    visitor: Visitor,
    operator: Operator,
    filled: Filled,
) -> Page {
    let seconds: Option<u32> = filled.text("expires_in_seconds").parse().ok();
    let mut order = json!({ "reason": filled.given("part_reason"), "expires_in_seconds": seconds });
    for name in ["scope", "route"] {
        if let Some(text) = filled.given(name) {
            order[name] = Value::from(text);
        }
    }
    match desk::kill(&admin, operator, order).await {
        Ok(()) => Ok(Redirect::to("/panic").into_response()),
        Err(problem) => {
            let field_of = |key: &str, _: &str| if key.is_empty() { "scope" } else { key }.to_owned();
            list(&admin, visitor, Wanted::default(), filled.refused(problem, field_of)?).await
        }
    }
}

pub(super) async fn lift(State(admin): State<Shared>, operator: Operator, Sent(target): Sent<Target>) -> Page {
    match desk::lift(&admin, operator, &target.id).await {
        // Somebody else was faster, or it ended: it is lifted either way.
        Err(problem) if problem.status != StatusCode::NOT_FOUND => Err(problem.into()),
        _ => Ok(Redirect::to("/panic").into_response()),
    }
}

fn everything_fields() -> Vec<Field> {
    vec![
        Field::new("reason", "Reason").placeholder("panic button").hint("callers and the record are told"),
        Field::new("confirm", "Type stop to confirm").placeholder(WORD),
    ]
}

fn part_fields() -> Vec<Field> {
    vec![
        Field::new("scope", "What").placeholder("agent:my-agent").hint(
            "agent:NAME, run:AGENT/ID, key:ID, ip=ADDRESS, header:NAME=VALUE, query:NAME=VALUE or jwt:CLAIM=VALUE",
        ),
        Field::new("route", "Only on path").placeholder("every path").hint("/v1/embeddings: with all that lies below"),
        Field::new("part_reason", "Reason").placeholder("manual"),
        Field::new("expires_in_seconds", "How long").choices(LENGTHS).holding(""),
    ]
}

impl KillLine {
    fn new(kill: &KillRecord, now: Timestamp) -> KillLine {
        let scope: Option<KillScope> = kill.scope.parse().ok();
        let (what, href) = match &scope {
            Some(KillScope::Everything) => ("Everything".to_owned(), None),
            Some(KillScope::Agent(agent)) => {
                (format!("Agent {agent}"), Some(link::to("/agent", &[("name", Some(agent.as_str()))])))
            }
            Some(KillScope::Run { agent, run }) => {
                (format!("Run {run} of {agent}"), Some(link::to_run(agent.as_str(), run.as_str())))
            }
            Some(KillScope::Key(_)) => (kill.scope.clone(), Some("/keys".to_owned())),
            _ => (kill.scope.clone(), None),
        };
        let what = match &kill.route {
            Some(route) => format!("{what} on {route}"),
            None => what,
        };
        let moment = |at: &str| api::moment("at", Some(at)).ok().flatten().map(|at| Moment::new(at, now));
        KillLine {
            id: kill.id.clone(),
            what,
            href,
            is_pause: kill.kind == KillKind::Pause,
            reason: show::reason(&kill.reason).to_owned(),
            by: kill.by.clone(),
            at: moment(&kill.at),
            until: kill.expires_at.as_deref().and_then(moment),
        }
    }
}
