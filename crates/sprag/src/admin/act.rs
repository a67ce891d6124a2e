//! Links in alerts: a page that says what a link will do, and a button that does it.
//!
//! Opening a link never does anything: scanners of mail and previews of chats open them too. Nobody signs in here; what
//! is done is on record under `link` and the alert's id.

use std::net::SocketAddr;

use askama::Template;
use axum::Router;
use axum::extract::{ConnectInfo, Form, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::Response;
use axum::routing::get;
use serde::Deserialize;
use sprag_core::alerts::{LinkAct, Moot, RunStanding, fits};
use sprag_core::policy::{Kill, KillKind, KillScope};
use sprag_store::StoreError;
use sprag_store::history::RunStatus;

use super::api::Params;
use super::pages::html;
use super::problem::Problem;
use super::{Admin, Shared, assets, pages};
use crate::acts::KillOrder;
use crate::alerts::links::Opened;
use crate::show;

#[derive(Default, Deserialize)]
struct Offer {
    #[serde(default)]
    t: String,
}

#[derive(Template)]
#[template(path = "act.html")]
struct ActPage {
    style: &'static str,
    title: &'static str,
    text: String,
    facts: Vec<(&'static str, String)>,
    /// What the button says, and what it sends; none where there is nothing to do.
    button: Option<Button>,
}

struct Button {
    label: &'static str,
    is_danger: bool,
    token: String,
}

/// What is known of the run that a link is about.
struct RunFacts {
    facts: Vec<(&'static str, String)>,
    is_over: bool,
}

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/act", get(ask).post(act))
}

/// Says what the link will do. Does nothing.
async fn ask(
    State(admin): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Params(offer): Params<Offer>,
) -> Response {
    match asked(&admin, peer, &offer.t).await {
        Ok((opened, facts)) => {
            let (title, text) = asking(opened.claim.act);
            let label = opened.claim.act.label();
            let button = Button { label, is_danger: opened.claim.act == LinkAct::Kill, token: offer.t };
            page(StatusCode::OK, title, text.to_owned(), facts, Some(button))
        }
        Err(response) => response,
    }
}

/// Does it, once.
async fn act(
    State(admin): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Form(offer): Form<Offer>,
) -> Response {
    let (opened, facts) = match asked(&admin, peer, &offer.t).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let act = opened.claim.act;
    // A task of its own: a browser that goes away in between must not leave a link used that did nothing.
    let done = tokio::spawn(use_once(admin, opened)).await;
    match done.unwrap_or(Err(StoreError::WriterGone)) {
        Ok(Use::Done) => {
            let (title, text) = done_told(act);
            page(StatusCode::OK, title, text.to_owned(), facts, None)
        }
        Ok(Use::Before) => used_page(),
        // Somebody else was faster, by another way.
        Ok(Use::Moot) => moot_page(Moot::Free, facts),
        Err(error) => not_done(&error),
    }
}

/// What became of a link that was pressed.
enum Use {
    Done,
    /// It was used before.
    Before,
    /// There was nothing left to do.
    Moot,
}

/// Takes the link and acts.
async fn use_once(admin: Shared, opened: Opened) -> Result<Use, StoreError> {
    // Taken before it acts: whoever comes second, or after a crash, finds it used.
    let (used, id, until, now) =
        (admin.app.links.used.clone(), opened.id.clone(), opened.until(), admin.app.clock.now());
    let taken = tokio::task::spawn_blocking(move || used.take(&id, now, until)).await;
    if taken.unwrap_or(Err(StoreError::WriterGone))?.is_some() {
        return Ok(Use::Before);
    }
    match do_it(&admin, &opened).await {
        Ok(true) => Ok(Use::Done),
        Ok(false) => Ok(Use::Moot),
        Err(error) => {
            let (used, id) = (admin.app.links.used.clone(), opened.id);
            let given_back = tokio::task::spawn_blocking(move || used.give_back(&id)).await;
            if let Err(error) = given_back.unwrap_or(Err(StoreError::WriterGone)) {
                tracing::error!(%error, "a link that did nothing stays used");
            }
            Err(error)
        }
    }
}

/// A link that can be used now, and what is known of its run; or the page that says why it cannot.
async fn asked(
    admin: &Shared,
    peer: SocketAddr,
    token: &str,
) -> Result<(Opened, Vec<(&'static str, String)>), Response> {
    let now = admin.app.clock.now();
    let Some(opened) = admin.app.links.read(token) else {
        if let Some(seconds) = admin.link_throttle.wait_seconds(peer.ip(), now) {
            let mut response = pages::problem(Problem::too_many_attempts(seconds));
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
            return Err(response);
        }
        admin.link_throttle.count_wrong(peer.ip(), now);
        let text = "It is not one that this Sprag has made, or a part of it is missing. Open it again from the message, \
                    or copy all of it.";
        return Err(page(StatusCode::FORBIDDEN, "This link is not valid", text.to_owned(), Vec::new(), None));
    };
    let (used, id) = (admin.app.links.used.clone(), opened.id.clone());
    let used = tokio::task::spawn_blocking(move || used.used_at(&id)).await.unwrap_or(Err(StoreError::WriterGone));
    match used {
        Ok(None) => {}
        Ok(Some(_)) => return Err(used_page()),
        Err(error) => return Err(not_done(&error)),
    }
    if opened.until() <= now {
        let text = "Links in alerts work for a limited time. Do it on the dashboard instead.".to_owned();
        return Err(page(StatusCode::GONE, "This link has expired", text, Vec::new(), None));
    }
    let stopped = admin.app.catalog.snapshot().kills.of_run(&opened.run.agent, &opened.run.id).cloned();
    let stopped = stopped.filter(|kill| kill.is_in_force(now));
    let known = run_facts(admin, &opened, stopped.as_deref()).await.map_err(pages::problem)?;
    let standing = RunStanding { stopped: stopped.as_deref(), is_over: known.is_over };
    match fits(opened.claim.act, opened.claim.kill.as_deref(), standing) {
        Ok(()) => Ok((opened, known.facts)),
        Err(moot) => Err(moot_page(moot, known.facts)),
    }
}

async fn run_facts(admin: &Admin, opened: &Opened, stopped: Option<&Kill>) -> Result<RunFacts, Problem> {
    let key = opened.run.clone();
    let read = admin.records.read(move |history| Ok((history.run(&key)?, history.run_totals(&key)?))).await?;
    let (mut run, totals) = read;
    admin.expire(&mut run);
    let mut facts = vec![("Agent", opened.run.agent.to_string()), ("Run", opened.run.id.to_string())];
    facts.push(("Told because", opened.claim.why.clone()));
    if let Some(kill) = stopped {
        let word = if kill.kind == KillKind::Pause { "Paused because" } else { "Killed because" };
        facts.push((word, format!("{} (by {})", kill.reason, kill.by)));
    }
    if let Some(run) = &run {
        facts.push(("Steps", show::count(run.steps)));
        facts.push(("Cost so far", show::usd(totals.map_or(run.cost, |totals| totals.tree_cost))));
    }
    let is_over = run.is_none_or(|run| matches!(run.status, RunStatus::Expired | RunStatus::Finished));
    Ok(RunFacts { facts, is_over })
}

/// Whether it was done.
async fn do_it(admin: &Shared, opened: &Opened) -> Result<bool, StoreError> {
    let by = format!("link ({})", opened.claim.alert);
    match (opened.claim.act, &opened.claim.kill) {
        (LinkAct::Kill, _) => {
            let order = KillOrder {
                scope: KillScope::run(&opened.run.agent, &opened.run.id),
                kind: KillKind::Kill,
                reason: "killed by a link in an alert".to_owned(),
                by,
                expires_at: None,
                proof: None,
            };
            admin.app.kill(order).await.map(|_| true)
        }
        // By its id, so that no other stop is taken back than the one that was shown.
        (LinkAct::Approve | LinkAct::Resume, Some(kill)) => {
            admin.app.lift(kill.clone(), by).await.map(|lifted| lifted.is_some())
        }
        (LinkAct::Approve | LinkAct::Resume, None) => Ok(false),
    }
}

fn asking(act: LinkAct) -> (&'static str, &'static str) {
    match act {
        LinkAct::Approve => {
            ("Approve this run?", "It goes on with its next call, and what it did so far is no longer held against it.")
        }
        LinkAct::Kill => {
            ("Kill this run?", "Calls under way are cut and all further ones refused, until it is resumed.")
        }
        LinkAct::Resume => {
            ("Resume this run?", "It may call again, and what it did so far is no longer held against it.")
        }
    }
}

fn done_told(act: LinkAct) -> (&'static str, &'static str) {
    match act {
        LinkAct::Approve => ("Approved", "The run goes on with its next call."),
        LinkAct::Kill => ("Killed", "The run is stopped. It can be resumed on the dashboard."),
        LinkAct::Resume => ("Resumed", "The run may call again."),
    }
}

fn used_page() -> Response {
    let text = "Each link in an alert works once, and this one did. The dashboard shows what it has done.".to_owned();
    page(StatusCode::GONE, "This link was used before", text, Vec::new(), None)
}

fn moot_page(moot: Moot, facts: Vec<(&'static str, String)>) -> Response {
    let (title, text) = match moot {
        Moot::Killed => ("The run is killed already", "Nothing was done. It can be resumed on the dashboard."),
        Moot::Free => {
            ("The run is not stopped any more", "Nothing was done: somebody let it go on, or the stop has ended.")
        }
        Moot::StoppedAnew => (
            "The run was stopped again since",
            "Nothing was done: this link is about an earlier stop. Use the one in the newer message, or the dashboard.",
        ),
        Moot::Over => ("The run has ended", "Nothing was done: it makes no calls that could be stopped."),
    };
    page(StatusCode::CONFLICT, title, text.to_owned(), facts, None)
}

fn not_done(error: &StoreError) -> Response {
    tracing::error!(%error, "what a link asks for could not be done");
    let text =
        format!("It could not be put on record: {error}. The link still works; try again, or use the dashboard.");
    page(StatusCode::SERVICE_UNAVAILABLE, "Nothing was done", text, Vec::new(), None)
}

fn page(
    status: StatusCode,
    title: &'static str,
    text: String,
    facts: Vec<(&'static str, String)>,
    button: Option<Button>,
) -> Response {
    html(status, &ActPage { style: assets::files().style, title, text, facts, button })
}
