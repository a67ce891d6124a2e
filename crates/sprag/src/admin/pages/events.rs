//! All events, the latest first: calls, what was found in them, and what people and Sprag did.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use sprag_core::event::{ActKind, Event, EventKind};
use sprag_core::time::Timestamp;
use sprag_core::wire::Reason;
use sprag_store::history::EventFilter;

use super::rows::CallLine;
use super::{Page, Shell, html, link};
use crate::admin::Shared;
use crate::admin::api::{self, Params};
use crate::admin::export::{self, Format};
use crate::admin::operator::Visitor;
use crate::admin::problem::Problem;
use crate::admin::roster::offered;
use crate::show;

const ROWS: u32 = 100;
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Which events the filter offers.
const SHOWN: [(&str, &str); 7] = [
    ("requests", "requests"),
    ("stopped", "stopped requests"),
    ("findings", "secrets and personal data"),
    ("admin", "what people did"),
    ("run_killed", "runs that Sprag stopped"),
    ("kill_switch", "kill switch"),
    ("budget", "budgets reached"),
];

/// How far back, in hours.
const WITHIN: [(&str, &str, i64); 4] = [
    ("1h", "last hour", 1),
    ("24h", "last 24 hours", 24),
    ("7d", "last 7 days", 7 * 24),
    ("30d", "last 30 days", 30 * 24),
];

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    agent: Option<String>,
    run: Option<String>,
    model: Option<String>,
    show: Option<String>,
    reason: Option<String>,
    within: Option<String>,
    cursor: Option<String>,
    format: Option<Format>,
}

#[derive(Template)]
#[template(path = "events.html")]
struct Events {
    shell: Shell,
    events: Vec<EventLine>,
    wanted: FilterForm,
    is_narrowed: bool,
    agents: Vec<String>,
    shown: &'static [(&'static str, &'static str)],
    reasons: Vec<(&'static str, &'static str)>,
    within: &'static [(&'static str, &'static str, i64)],
    csv: String,
    /// Where an agent reaches the proxy, for who has none yet.
    proxy_port: u16,
    jsonl: String,
    newest: Option<String>,
    older: Option<String>,
}

/// What the form holds.
struct FilterForm {
    agent: String,
    run: String,
    model: String,
    show: String,
    reason: String,
    within: String,
}

/// An event in the table.
struct EventLine {
    id: String,
    call: CallLine,
    /// The status, or what was done.
    label: String,
    tone: &'static str,
    /// What was done, by whom and why.
    told: Option<String>,
    why: Option<String>,
}

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    if wanted.format.is_some() {
        return Err(Problem::bad_request("`format` belongs to /events/export").into());
    }
    let filter = wanted.filter(&admin).await?;
    let cursor = wanted.cursor.clone();
    let app = admin.app.clone();
    let read = admin.records.read(move |history| {
        let agents = offered(&app, history)?;
        Ok((agents, history.events(&filter, cursor.as_deref(), ROWS)?))
    });
    let (agents, page) = read.await?;
    let now = admin.app.clock.now();
    let stops = Reason::ALL.into_iter().filter(|reason| reason.is_policy()).map(Reason::as_str);
    let page = Events {
        shell: admin.shell("events", visitor),
        events: page.items.iter().map(|event| EventLine::new(event, now)).collect(),
        agents,
        shown: &SHOWN,
        reasons: stops.map(|word| (word, show::reason(word))).collect(),
        within: &WITHIN,
        proxy_port: admin.addresses.proxy.port(),
        csv: wanted.link("/events/export", None, Some("csv")),
        jsonl: wanted.link("/events/export", None, Some("jsonl")),
        newest: wanted.cursor.is_some().then(|| wanted.link("/events", None, None)),
        older: page.next.map(|next| wanted.link("/events", Some(&next), None)),
        is_narrowed: wanted.link("/events", None, None) != "/events",
        wanted: FilterForm {
            agent: wanted.agent.unwrap_or_default(),
            run: wanted.run.unwrap_or_default(),
            model: wanted.model.unwrap_or_default(),
            show: wanted.show.unwrap_or_default(),
            reason: wanted.reason.unwrap_or_default(),
            within: wanted.within.unwrap_or_default(),
        },
    };
    Ok(html(StatusCode::OK, &page))
}

/// What the page lists, as a file.
pub(super) async fn export(
    State(admin): State<Shared>,
    headers: HeaderMap,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    let Some(format) = wanted.format else { return Err(Problem::bad_request("`format` is csv or jsonl").into()) };
    let filter = wanted.filter(&admin).await?;
    Ok(export::events(admin, headers, filter, format).await?)
}

/// Where the list of calls was before.
pub(super) async fn moved(wanted: Result<Params<Wanted>, Problem>) -> Page {
    let Params(wanted) = wanted?;
    Ok(Redirect::permanent(&wanted.link("/events", None, None)).into_response())
}

impl Wanted {
    async fn filter(&self, admin: &Shared) -> Result<EventFilter, Problem> {
        let agent = api::agent_name(self.agent.as_deref())?;
        let run = api::run_key(admin, api::run_id(self.run.as_deref())?, agent.as_ref()).await?;
        let all = EventFilter {
            agent,
            run,
            model: self.model.clone().filter(|model| !model.is_empty()),
            block_reason: api::block_reason(self.reason.as_deref())?,
            since: self.since(admin.app.clock.now())?,
            ..EventFilter::default()
        };
        let of_kind = |kind| EventFilter { kind: Some(kind), ..all.clone() };
        Ok(match self.show.as_deref().unwrap_or_default() {
            "" => all,
            "requests" => EventFilter { requests_only: true, ..all },
            "stopped" => EventFilter { blocked: Some(true), ..all },
            "findings" => EventFilter { has_findings: Some(true), ..all },
            "admin" => of_kind(EventKind::Admin),
            "run_killed" => of_kind(EventKind::RunKilled),
            "kill_switch" => of_kind(EventKind::KillSwitch),
            "budget" => of_kind(EventKind::Budget),
            _ => {
                let words: Vec<&str> = SHOWN.iter().map(|(word, _)| *word).collect();
                return Err(Problem::bad_request(format!("`show` is one of {}", words.join(", "))));
            }
        })
    }

    fn since(&self, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
        let Some(text) = self.within.as_deref().filter(|text| !text.is_empty()) else { return Ok(None) };
        let found = WITHIN.iter().find(|(word, ..)| *word == text);
        let (.., hours) = found.ok_or_else(|| Problem::bad_request("`within` is 1h, 24h, 7d or 30d"))?;
        Ok(Some(Timestamp(now.0.saturating_sub(hours * HOUR_MS))))
    }

    fn link(&self, path: &str, cursor: Option<&str>, format: Option<&str>) -> String {
        let params = [
            ("agent", self.agent.as_deref()),
            ("run", self.run.as_deref()),
            ("model", self.model.as_deref()),
            ("show", self.show.as_deref()),
            ("reason", self.reason.as_deref()),
            ("within", self.within.as_deref()),
            ("cursor", cursor),
            ("format", format),
        ];
        link::to(path, &params)
    }
}

impl EventLine {
    fn new(event: &Event, now: Timestamp) -> EventLine {
        let (id, call) = (event.id.clone(), CallLine::new(event, now));
        let Some(act) = &event.act else {
            let why = event.block_reason.as_deref().map(|reason| show::reason(reason).to_owned());
            return EventLine { id, label: call.status.clone(), tone: call.tone, told: None, why, call };
        };
        let tone = match act.what {
            ActKind::Kill | ActKind::Deactivate => "bad",
            ActKind::Pause | ActKind::BudgetReached | ActKind::RevokeKey => "odd",
            ActKind::Resume | ActKind::Approve | ActKind::Lift | ActKind::Activate => "good",
            _ => "",
        };
        let label = show::act(act.what).to_owned();
        EventLine { id, call, label, tone, told: Some(show::act_told(act)), why: None }
    }
}
