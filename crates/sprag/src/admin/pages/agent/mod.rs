//! One agent: what it did, where it stands, its kill switch, and what it may do.

mod changes;
mod chart;
mod policy;
mod rates;
mod switch;

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::{Form as Sent, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use sprag_core::id::AgentName;
use sprag_core::policy::{DeactivatedBy, Window};
use sprag_core::time::Timestamp;
use sprag_store::history::{AgentBucket, Totals};

use self::changes::Changes;
use self::chart::{Chart, Series};
pub(super) use self::policy::family;
use self::policy::{Known, PolicyForm};
pub(super) use self::switch::{Switch, set as set_switch};
use super::field::{Form, rest};
use super::proof::ProofTable;
use super::rows::{Moment, Money};
use super::span::Span;
use super::{Page, Shell, agents, html, link};
use crate::acts::{Based, version_of};
use crate::admin::Shared;
use crate::admin::api::model::AgentDetail;
use crate::admin::api::{self, Params, desk};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;
use crate::show;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    name: Option<String>,
    span: Option<Span>,
    /// Said after something was saved.
    saved: Option<String>,
}

#[derive(Template)]
#[template(path = "agent.html")]
struct AgentPage {
    shell: Shell,
    name: String,
    href: String,
    runs_href: String,
    budgets_href: String,
    keys_href: String,
    is_active: bool,
    state: &'static str,
    tone: &'static str,
    stopped: Option<Stopped>,
    facts: Facts,
    spans: Vec<super::span::Tab>,
    spend: Chart,
    stops: Chart,
    switch: Switch,
    form: PolicyForm,
    is_saved: bool,
}

/// Why it may not call.
struct Stopped {
    by_kill_switch: bool,
    reason: String,
    at: Option<Moment>,
    proof: Option<ProofTable>,
    /// A proof of another form, as it is.
    raw_proof: Option<String>,
}

struct Facts {
    today: Money,
    today_calls: String,
    month: Money,
    runs: String,
    calls: String,
    stops_today: u64,
    stops: String,
    last: Option<Moment>,
}

/// What somebody sent and what is wrong with it.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) policy: Option<Form>,
    pub(super) switch: Option<Switch>,
    pub(super) complaints: Vec<(String, String)>,
    /// What the page is answered with.
    pub(super) status: StatusCode,
}

/// How often a change is thought out again that another came in between of.
const ATTEMPTS: usize = 3;

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    let agent = agents::agent(wanted.name.as_deref().unwrap_or_default())?;
    let is_saved = wanted.saved.is_some();
    render(&admin, visitor, &agent, wanted.span.unwrap_or_default(), is_saved, Draft::default()).await
}

/// Sets what somebody wrote, or says what is wrong with it and changes nothing.
pub(super) async fn set_policy(
    State(admin): State<Shared>,
    visitor: Visitor,
    operator: Operator,
    Sent(form): Sent<Form>,
) -> Page {
    change(&admin, visitor, operator, |known| changes::of_form(&form, known), &form).await
}

/// Takes one key back, so that the configuration holds again.
pub(super) async fn reset_policy(
    State(admin): State<Shared>,
    visitor: Visitor,
    operator: Operator,
    Sent(form): Sent<Form>,
) -> Page {
    change(&admin, visitor, operator, |known| changes::back(&form, known), &form).await
}

async fn change(
    admin: &Shared,
    visitor: Visitor,
    operator: Operator,
    changes_of: impl Fn(&Known<'_>) -> Result<Changes, Problem>,
    form: &Form,
) -> Page {
    let agent = agents::agent(form.get("name").map(String::as_str).unwrap_or_default())?;
    for _ in 0..ATTEMPTS {
        let detail = desk::agent(admin, &agent).await?;
        let (in_force, configured) = values(admin, &agent, &detail);
        let known = Known { in_force: &in_force, configured: &configured, set: &detail.set, sources: &detail.sources };
        let changes = changes_of(&known)?;
        let draft =
            |status, complaints| Draft { policy: Some(changes.written.clone()), complaints, status, switch: None };
        if !changes.overtaken.is_empty() {
            let draft = draft(StatusCode::CONFLICT, changes.overtaken.clone());
            return render(admin, visitor, &agent, Span::default(), false, draft).await;
        }
        if changes.is_empty() {
            return Ok(saved(&agent));
        }
        let order = json!({ "policy": changes.patch });
        match desk::change_agent_if(admin, operator.clone(), &agent, order, based_on(&detail)).await {
            Ok(()) => return Ok(saved(&agent)),
            Err(problem) if problem.status == StatusCode::PRECONDITION_FAILED => {}
            Err(problem) if problem.status == StatusCode::BAD_REQUEST => {
                let draft = draft(problem.status, problem.slips());
                return render(admin, visitor, &agent, Span::default(), false, draft).await;
            }
            Err(problem) => return Err(problem.into()),
        }
    }
    Err(busy().into())
}

/// What a change is based on that was made out of this.
fn based_on(detail: &AgentDetail) -> Based {
    Based::On(vec![version_of(&detail.set)])
}

fn busy() -> Problem {
    Problem::conflict("others are changing this agent right now, and nothing was saved; go back and save again")
}

/// Back to the page, which says that it is saved.
pub(super) fn saved(agent: &AgentName) -> Response {
    Redirect::to(&link::to("/agent", &[("name", Some(agent.as_str())), ("saved", Some("1"))])).into_response()
}

/// The page; with a draft, what was sent and refused in place of what holds.
pub(super) async fn render(
    admin: &Shared,
    visitor: Visitor,
    agent: &AgentName,
    span: Span,
    is_saved: bool,
    draft: Draft,
) -> Page {
    let detail = desk::agent(admin, agent).await?;
    let now = admin.app.clock.now();
    let start = |window: Window| admin.app.span_of(window).map_or(Timestamp(0), |span| span.start);
    let (day, month) = (start(Window::Day), start(Window::Month));
    let (since, quarters) = (span.since(now), span.quarters());
    let name = agent.clone();
    let read = admin.records.read(move |history| {
        let today = history.totals(day, Some(&name))?;
        let this_month = history.totals(month, Some(&name))?;
        Ok((today, this_month, history.agent_series(&name, (since, now), quarters)?))
    });
    let (today, this_month, series) = read.await?;
    let (in_force, configured) = values(admin, agent, &detail);
    let known = Known { in_force: &in_force, configured: &configured, set: &detail.set, sources: &detail.sources };
    let Draft { policy, switch, mut complaints, status } = draft;
    let switch = switch.unwrap_or_else(|| Switch::of(agent, &detail)).with_complaints(&mut complaints);
    let mut form = PolicyForm::new(&known, policy.as_ref(), &mut complaints);
    form.complaint = rest(complaints);
    let (state, tone) = agents::standing(&detail.agent);
    let href = |path: &str| link::to(path, &[("agent", Some(agent.as_str()))]);
    let page = AgentPage {
        shell: admin.shell("agents", visitor),
        name: agent.to_string(),
        href: span.link("/agent", &[("name", Some(agent.as_str()))]),
        runs_href: href("/runs"),
        budgets_href: href("/budgets"),
        keys_href: href("/keys"),
        is_active: detail.agent.active,
        state,
        tone,
        stopped: (!detail.agent.active).then(|| Stopped::new(&detail, now)),
        facts: Facts::new(&detail, &today, &this_month, now),
        spans: span.tabs("/agent", &[("name", Some(agent.as_str()))]),
        spend: spend(&series),
        stops: stops(&series),
        switch,
        form,
        is_saved,
    };
    Ok(html(status, &page))
}

/// The policy in force, and without what is set here.
fn values(admin: &Shared, agent: &AgentName, detail: &AgentDetail) -> (Value, Value) {
    (serde_json::to_value(&detail.policy).unwrap_or_default(), admin.configured_policy(agent))
}

fn spend(series: &[AgentBucket]) -> Chart {
    let values = series.iter().map(|bucket| bucket.cost.as_usd()).collect();
    Chart::new("bars", "usd", times(series), vec![Series::new("Spend", "accent", values)])
}

fn stops(series: &[AgentBucket]) -> Chart {
    let calls = series.iter().map(|bucket| bucket.requests as f64).collect();
    let stops = series.iter().map(|bucket| bucket.blocked as f64).collect();
    let series_of = vec![Series::new("Calls", "accent", calls), Series::new("Stops", "bad", stops)];
    Chart::new("bars", "count", times(series), series_of)
}

fn times(series: &[AgentBucket]) -> Vec<i64> {
    series.iter().map(|bucket| bucket.at.0 / 1000).collect()
}

impl Stopped {
    fn new(detail: &AgentDetail, now: Timestamp) -> Stopped {
        let proof = detail.proof.as_ref().and_then(|proof| ProofTable::read(proof, &BTreeSet::new()));
        let raw_proof = detail.proof.as_ref().filter(|_| proof.is_none());
        let at = detail.changed_at.as_deref().and_then(|at| api::moment("changed_at", Some(at)).ok().flatten());
        Stopped {
            by_kill_switch: detail.agent.deactivated_by == Some(DeactivatedBy::KillSwitch),
            reason: show::reason(detail.reason.as_deref().unwrap_or_default()).to_owned(),
            at: at.map(|at| Moment::new(at, now)),
            raw_proof: raw_proof.and_then(|proof| serde_json::to_string_pretty(proof).ok()),
            proof,
        }
    }
}

impl Facts {
    fn new(detail: &AgentDetail, today: &Totals, month: &Totals, now: Timestamp) -> Facts {
        let headline = |totals: &Totals| Money {
            shown: show::usd_headline(totals.cost),
            exact: format!("${}", totals.cost),
            is_partial: totals.unpriced > 0,
        };
        let agent = &detail.agent;
        let last = agent.last_at.as_deref().and_then(|at| api::moment("last_at", Some(at)).ok().flatten());
        Facts {
            today: headline(today),
            today_calls: show::counted(today.requests, "call"),
            month: headline(month),
            runs: show::count(agent.runs),
            calls: show::counted(agent.steps, "call"),
            stops_today: today.blocked,
            stops: show::count(agent.blocked),
            last: last.map(|at| Moment::new(at, now)),
        }
    }
}
