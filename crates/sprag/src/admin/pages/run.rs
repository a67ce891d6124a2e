//! One run: what it came to, why it was stopped, its steps on a line of time, and the runs above and below it.

mod chart;
mod picture;
mod step;
mod thresholds;
mod tree;

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use sprag_core::limits::TRIED_REQUESTS;
use sprag_core::loops::{Mode, Proof};
use sprag_core::policy::KillScope;
use sprag_core::time::Timestamp;
use sprag_store::RunKey;
use sprag_store::history::{EventFilter, History, RunRow, RunStatus, RunStopped, StepRow, WouldStop};
use sprag_store::state::RunTotals;

use self::chart::{Chart, Point};
use self::picture::PictureView;
use self::step::StepLine;
use self::thresholds::{Given, TrialView, percent};
use self::tree::{Family, TreeLine};
use super::proof::ProofTable;
use super::rows::{Moment, RunLine, RunRef, origin};
use super::{Page, Shell, html, link};
use crate::admin::Shared;
use crate::admin::api::{self, Order, Params};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;
use crate::show;

const ROWS: u32 = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    agent: Option<String>,
    id: Option<String>,
    cursor: Option<String>,
    repeats: Option<String>,
    same_results: Option<String>,
    stall: Option<String>,
    likeness: Option<String>,
    window: Option<String>,
    window_seconds: Option<String>,
    asked_again: Option<String>,
    compactions: Option<String>,
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
    picture: Option<PictureView>,
    level: Option<Chart>,
    cost: Option<Chart>,
    /// Why there is nothing to see of what detection saw.
    unseen: Option<&'static str>,
    trial: TrialView,
    steps: Vec<StepLine>,
    tree: Vec<TreeLine>,
    /// Sums of its parts, for a run that made no call itself: a command whose agents did.
    parts_only: Option<PartsOnly>,
    /// Parts that were stopped, where it was not.
    stopped_parts: Vec<StoppedPart>,
    is_tree_cut: bool,
    has_parts: bool,
    export: String,
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

/// What the calls of its parts come to.
struct PartsOnly {
    steps: u32,
    first: Moment,
    lasted: String,
}

/// A part that may not go on.
struct StoppedPart {
    run: RunRef,
    /// `killed` or `paused`.
    status: &'static str,
    reason: String,
    summary: String,
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
    /// What stopping it has saved; said of runs that were stopped.
    saved: Option<String>,
    /// There are more requests than the drawings show.
    is_cut: bool,
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
    let policy = admin.app.policy(&key.agent);
    let cursor = wanted.cursor.clone();
    let read = move |history: &History| {
        let Some(run) = history.run(&key)? else { return Ok(None) };
        let family = Family::read(history, &run)?;
        let would = history.would_stop(&key)?;
        let tree = history.run_totals(&key)?.unwrap_or_default();
        let rows = history.evidence(std::slice::from_ref(&run))?.pop().unwrap_or_default();
        let filter = EventFilter {
            run: Some(key),
            requests_only: true,
            is_oldest_first: true,
            // Where requests are ordered by time, they need not be looked for in all that is on record.
            since: Some(run.first_at),
            until: Some(Timestamp(run.last_at.0.saturating_add(1))),
            ..EventFilter::default()
        };
        Ok(Some((run, tree, family, rows, history.events(&filter, cursor.as_deref(), ROWS)?, would)))
    };
    let Some((mut run, tree, mut family, rows, steps, would)) = admin.records.read(read).await? else {
        return Err(Problem::not_found("this agent has no run of this id on record").into());
    };
    admin.expire(family.runs().chain([&mut run]));
    let now = admin.app.clock.now();
    let here = |path: &str, cursor: Option<&str>| {
        let (agent, id) = (run.agent.as_str(), run.id.as_str());
        link::to(path, &[("agent", Some(agent)), ("id", Some(id)), ("cursor", cursor)])
    };
    let shown = steps.items.iter().filter_map(|event| Some(event.run.as_ref()?.step)).collect();
    let proven = proven_steps(&run, would.as_ref());
    let picture = PictureView::new(&StepRow::recorded(&rows), policy.rules.progress.likeness, &proven);
    let level = Chart::new(&levels(rows.iter().filter_map(|row| Some((row.step, row.level?)))), Some(1.0));
    let page = RunPage {
        shell: admin.shell("runs", visitor),
        stopped: run.stopped.as_ref().map(|stopped| Stopped::new(stopped, &run, &shown, now)),
        can_resume: run.stopped.as_ref().is_some_and(|stopped| stopped.through.is_none()),
        would: would.map(|would| Would::new(&would, &shown)),
        facts: Facts::new(&run, &tree, &rows, now),
        unseen: unseen(&rows, level.is_some(), policy.rules.progress.common.mode),
        picture,
        level,
        cost: Chart::new(&costs(&rows), None),
        trial: TrialView::new(&wanted.given(), &policy.rules.progress, &rows),
        steps: StepLine::all(&steps.items, &rows, &proven, &run, now),
        tree: family.lines(&run, now),
        parts_only: PartsOnly::of(&run, &tree, &family, now),
        stopped_parts: StoppedPart::all(&run, &family),
        is_tree_cut: family.is_cut,
        has_parts: !family.below.is_empty(),
        export: here("/run/export", None),
        first_steps: wanted.cursor.is_some().then(|| here("/run", None)),
        more_steps: steps.next.as_ref().map(|next| here("/run", Some(next))),
        run: RunLine::new(&run, now),
    };
    Ok(html(StatusCode::OK, &page))
}

impl Wanted {
    fn given(&self) -> Given {
        Given {
            repeats: self.repeats.clone(),
            same_results: self.same_results.clone(),
            stall: self.stall.clone(),
            likeness: self.likeness.clone(),
            window: self.window.clone(),
            window_seconds: self.window_seconds.clone(),
            asked_again: self.asked_again.clone(),
            compactions: self.compactions.clone(),
        }
    }
}

/// The steps that the proof of a stop names, be it one that only would have been.
fn proven_steps(run: &RunRow, would: Option<&WouldStop>) -> BTreeSet<u32> {
    // What stopped a run above this one is about other steps.
    let stopped = run.stopped.as_ref().filter(|stopped| stopped.through.is_none());
    let of_stop = stopped.and_then(|stopped| serde_json::from_value::<Proof>(stopped.proof.clone()?).ok());
    let proof = of_stop.or_else(|| would.map(|would| would.verdict.finding.proof.clone())).unwrap_or_default();
    proof.steps.iter().map(|step| step.step).collect()
}

/// Levels as values of a chart.
fn levels(levels: impl Iterator<Item = (u32, f32)>) -> Vec<Point> {
    let point = |(step, level): (u32, f32)| Point {
        step,
        value: f64::from(level),
        shown: format!("{} of the threshold", percent(level)),
    };
    levels.map(point).collect()
}

/// What a run had cost at each request; nothing where no price is known.
fn costs(rows: &[StepRow]) -> Vec<Point> {
    if rows.iter().all(|row| row.cost.is_none()) {
        return Vec::new();
    }
    let mut sum = sprag_core::money::NanoUsd::ZERO;
    let mut points = Vec::with_capacity(rows.len());
    for row in rows {
        sum.0 = sum.0.saturating_add(row.cost.unwrap_or_default().0);
        points.push(Point { step: row.step, value: sum.0 as f64, shown: show::usd_headline(sum) });
    }
    points
}

/// Why detection has nothing to show of a run.
fn unseen(rows: &[StepRow], is_seen: bool, mode: Mode) -> Option<&'static str> {
    if is_seen {
        return None;
    }
    Some(match (rows.len(), mode) {
        (0, _) => "The steps are no longer on record.",
        (_, Mode::Off) => {
            "The progress detector is off for this agent, so nothing was compared. Set it to shadow to look without \
             stopping anything."
        }
        (1, _) => "A step is whole when what came back arrives with the next request. This run has made one so far.",
        _ if rows.iter().all(|row| row.evidence.is_none()) => {
            "Detection did not look at these requests: they were refused before it, are no calls of a model, or were \
             recorded by an older version."
        }
        _ => "No request has carried an earlier answer on yet, so there is nothing to compare.",
    })
}

/// The run's events as a file.
pub(super) async fn export(
    State(admin): State<Shared>,
    headers: HeaderMap,
    wanted: Result<Params<Target>, Problem>,
) -> Page {
    let Params(target) = wanted?;
    Ok(api::export_run(admin, headers, target.key()?).await?.into_response())
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

pub(super) async fn approve(State(admin): State<Shared>, operator: Operator, Form(target): Form<Target>) -> Page {
    admin.approve(&operator, target.key()?, None).await?;
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
            reason: show::reason(&stopped.reason).to_owned(),
            by: if stopped.by == "sprag" { "Sprag".to_owned() } else { stopped.by.clone() },
            at: Moment::new(stopped.at, now),
            until: stopped.expires_at.map(|end| show::moment(end, now)),
        }
    }
}

impl PartsOnly {
    fn of(run: &RunRow, tree: &RunTotals, family: &Family, now: Timestamp) -> Option<PartsOnly> {
        if run.steps > 0 {
            return None;
        }
        let first = family.below.iter().map(|(_, part)| part.first_at).min()?.min(run.first_at);
        let last = family.below.iter().map(|(_, part)| part.last_at).max()?.max(run.last_at);
        Some(PartsOnly {
            steps: tree.tree_steps,
            first: Moment::new(first, now),
            lasted: show::duration_ms(last.since_ms(first)),
        })
    }
}

impl StoppedPart {
    fn all(run: &RunRow, family: &Family) -> Vec<StoppedPart> {
        if run.stopped.is_some() {
            return Vec::new();
        }
        let stopped = family.below.iter().filter_map(|(_, part)| Some((part, part.stopped.as_ref()?)));
        stopped
            .map(|(part, stopped)| StoppedPart {
                run: RunRef { id: part.id.to_string(), href: link::to_run(part.agent.as_str(), part.id.as_str()) },
                status: if part.status == RunStatus::Paused { "paused" } else { "killed" },
                reason: show::reason(&stopped.reason).to_owned(),
                summary: show::proof_summary(stopped.proof.as_ref()).to_owned(),
            })
            .collect()
    }
}

impl Would {
    fn new(would: &WouldStop, shown: &BTreeSet<u32>) -> Would {
        let finding = &would.verdict.finding;
        Would {
            step: would.step,
            href: shown.contains(&would.step).then(|| format!("#step-{}", would.step)),
            rule: format!("{}, {}", finding.detector.as_str(), finding.loop_type.replace('_', " ")),
            saved: show::usd_headline(would.saved),
            saved_steps: show::counted(would.saved_steps, "step"),
            proof: ProofTable::new(&finding.proof, shown),
        }
    }
}

impl Facts {
    fn new(run: &RunRow, tree: &RunTotals, rows: &[StepRow], now: Timestamp) -> Facts {
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
            tree_cost: show::usd_headline(tree.tree_cost),
            unpriced: run.unpriced_steps,
            estimated: run.estimated_steps,
            saved: (run.saved.0 > 0 || run.stopped.is_some()).then(|| show::usd_headline(run.saved)),
            is_cut: rows.len() >= TRIED_REQUESTS as usize,
            agent_href: link::to("/runs", &[("agent", Some(run.agent.as_str()))]),
        }
    }
}
