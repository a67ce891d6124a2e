//! One run: what it came to, its steps on a line of time, and the runs that are a part of it.

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use sprag_core::policy::KillScope;
use sprag_core::time::Timestamp;
use sprag_store::RunKey;
use sprag_store::history::{EventFilter, History, RunRow, RunStopped, WouldStop};
use sprag_store::state::RunTotals;

use super::proof::ProofTable;
use super::rows::{CallLine, Moment, RunLine, RunRef, origin};
use super::{Page, Shell, html, link};
use crate::admin::Shared;
use crate::admin::api::{self, Order, Params};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;
use crate::show;

const ROWS: u32 = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    agent: Option<String>,
    id: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    shell: Shell,
    run: RunLine,
    stopped: Option<Stopped>,
    /// It was stopped itself, so that it can be let go.
    can_resume: bool,
    would: Option<Would>,
    facts: Facts,
    steps: Vec<CallLine>,
    children: Vec<RunLine>,
    first_steps: Option<String>,
    more_steps: Option<String>,
}

/// Why a run may not go on.
struct Stopped {
    reason: String,
    by: String,
    at: Moment,
    until: Option<String>,
    /// The run above it that was stopped.
    through: Option<RunRef>,
    proof: Option<ProofTable>,
    /// A proof of another form, as it is.
    raw_proof: Option<String>,
}

/// What rules in shadow would have done.
struct Would {
    step: u32,
    href: Option<String>,
    rule: String,
    saved: String,
    saved_steps: String,
    proof: ProofTable,
}

/// The run that a form is about.
#[derive(Deserialize)]
pub(super) struct Target {
    agent: String,
    id: String,
    reason: Option<String>,
}

/// What a run has beside what its line in a table shows.
struct Facts {
    origin: &'static str,
    provider: String,
    parent: Option<RunRef>,
    first: Moment,
    cached: String,
    cost: String,
    /// With all its parts.
    tree_cost: String,
    unpriced: u64,
    estimated: u64,
    agent_href: String,
}

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    let (agent, id) = (api::agent_name(wanted.agent.as_deref())?, api::run_id(wanted.id.as_deref())?);
    let (Some(agent), Some(id)) = (agent, id) else {
        return Err(Problem::bad_request("a run is named by its agent and its id").into());
    };
    let key = RunKey { agent, id };
    let cursor = wanted.cursor.clone();
    let read = move |history: &History| {
        let Some(run) = history.run(&key)? else { return Ok(None) };
        let children = history.children(&key)?;
        let would = history.would_stop(&key)?;
        let tree = history.run_totals(&key)?.unwrap_or_default();
        let filter =
            EventFilter { run: Some(key), requests_only: true, is_oldest_first: true, ..EventFilter::default() };
        Ok(Some((run, tree, children, history.events(&filter, cursor.as_deref(), ROWS)?, would)))
    };
    let Some((mut run, tree, mut children, steps, would)) = admin.records.read(read).await? else {
        return Err(Problem::not_found("this agent has no run of this id on record").into());
    };
    admin.expire(children.iter_mut().chain([&mut run]));
    let now = admin.app.clock.now();
    let here = |cursor: Option<&str>| {
        let (agent, id) = (run.agent.as_str(), run.id.as_str());
        link::to("/run", &[("agent", Some(agent)), ("id", Some(id)), ("cursor", cursor)])
    };
    let shown = steps.items.iter().filter_map(|event| Some(event.run.as_ref()?.step)).collect();
    let page = RunPage {
        shell: admin.shell("runs", visitor),
        stopped: run.stopped.as_ref().map(|stopped| Stopped::new(stopped, &run, &shown, now)),
        can_resume: run.stopped.as_ref().is_some_and(|stopped| stopped.through.is_none()),
        would: would.map(|would| Would::new(&would, &shown)),
        facts: Facts::new(&run, &tree, now),
        steps: steps
            .items
            .iter()
            .map(|event| CallLine::new(event, now).within(event, run.first_at, run.last_at))
            .collect(),
        children: children.iter().map(|run| RunLine::new(run, now)).collect(),
        first_steps: wanted.cursor.is_some().then(|| here(None)),
        more_steps: steps.next.map(|next| here(Some(&next))),
        run: RunLine::new(&run, now),
    };
    Ok(html(StatusCode::OK, &page))
}

pub(super) async fn kill(State(admin): State<Shared>, operator: Operator, Form(target): Form<Target>) -> Page {
    let key = target.key()?;
    admin.kill(&operator, KillScope::run(&key.agent, &key.id), Order::because(target.reason)).await?;
    Ok(Redirect::to(&link::to_run(&target.agent, &target.id)).into_response())
}

pub(super) async fn resume(State(admin): State<Shared>, operator: Operator, Form(target): Form<Target>) -> Page {
    admin.resume(&operator, target.key()?, None).await?;
    Ok(Redirect::to(&link::to_run(&target.agent, &target.id)).into_response())
}

impl Target {
    fn key(&self) -> Result<RunKey, Problem> {
        match (api::agent_name(Some(&self.agent))?, api::run_id(Some(&self.id))?) {
            (Some(agent), Some(id)) => Ok(RunKey { agent, id }),
            _ => Err(Problem::bad_request("a run is named by its agent and its id")),
        }
    }
}

impl Stopped {
    fn new(stopped: &RunStopped, run: &RunRow, shown: &BTreeSet<u32>, now: Timestamp) -> Stopped {
        // Steps of another run are not on this page.
        let none = BTreeSet::new();
        let shown = if stopped.through.is_some() { &none } else { shown };
        let proof = stopped.proof.as_ref().and_then(|proof| ProofTable::read(proof, shown));
        let raw_proof = stopped.proof.as_ref().filter(|_| proof.is_none());
        Stopped {
            through: stopped
                .through
                .as_ref()
                .map(|above| RunRef { id: above.to_string(), href: link::to_run(run.agent.as_str(), above.as_str()) }),
            raw_proof: raw_proof.and_then(|proof| serde_json::to_string_pretty(proof).ok()),
            proof,
            reason: stopped.reason.clone(),
            by: stopped.by.clone(),
            at: Moment::new(stopped.at, now),
            until: stopped.expires_at.map(|end| show::moment(end, now)),
        }
    }
}

impl Would {
    fn new(would: &WouldStop, shown: &BTreeSet<u32>) -> Would {
        let finding = &would.verdict.finding;
        Would {
            step: would.step,
            href: shown.contains(&would.step).then(|| format!("#step-{}", would.step)),
            rule: format!("{}, {}", finding.detector.as_str(), finding.loop_type.replace('_', " ")),
            saved: show::usd(would.saved),
            saved_steps: show::count(would.saved_steps),
            proof: ProofTable::new(&finding.proof, shown),
        }
    }
}

impl Facts {
    fn new(run: &RunRow, tree: &RunTotals, now: Timestamp) -> Facts {
        Facts {
            origin: origin(run.origin),
            provider: run.provider.clone(),
            parent: run.parent.as_ref().map(|parent| RunRef {
                id: parent.to_string(),
                href: link::to_run(run.agent.as_str(), parent.as_str()),
            }),
            first: Moment::new(run.first_at, now),
            cached: show::count(run.cached_tokens),
            cost: if run.cost.0 == 0 && run.unpriced_steps > 0 {
                "unknown".to_owned()
            } else {
                show::usd_headline(run.cost)
            },
            tree_cost: show::usd(tree.tree_cost),
            unpriced: run.unpriced_steps,
            estimated: run.estimated_steps,
            agent_href: link::to("/runs", &[("agent", Some(run.agent.as_str()))]),
        }
    }
}
