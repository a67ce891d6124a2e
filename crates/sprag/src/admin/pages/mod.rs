//! The dashboard: the same facts as the API, as HTML that works without scripts.
//!
//! A handler reads what it needs, turns it into rows of texts (`rows`) and renders a template. Templates escape
//! everything they are given; nothing is ever marked as safe.

mod agent;
mod agents;
mod alert_forms;
mod alerts;
mod budgets;
mod chart;
mod detectors;
mod dlp;
mod events;
mod field;
mod filled;
mod keys;
mod link;
mod overview;
mod panic;
mod proof;
mod rows;
mod run;
mod runs;
mod settings;
mod shown;
mod span;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};

use super::assets::Files;
use super::operator::Visitor;
use super::problem::Problem;
use super::{Admin, Shared, access, assets, live};

/// What every page has around it.
struct Shell {
    files: Files,
    version: &'static str,
    navigation: &'static [Entry],
    /// The entry of the navigation that is marked.
    here: &'static str,
    /// No call goes out.
    is_all_stopped: bool,
    problems: Vec<String>,
    /// Requests that loop detection failed on.
    detection_failures: u64,
    /// What nodes share cannot be reached.
    is_alone: bool,
    /// Who looks at it.
    operator: String,
    /// Whether they may change anything: otherwise there are no forms.
    may_change: bool,
    /// What every form carries, in the field `csrf`.
    csrf: String,
    /// How much had happened when it was asked for.
    seen: u64,
}

/// A page in the navigation.
struct Entry {
    id: &'static str,
    href: &'static str,
    label: &'static str,
}

impl Entry {
    const fn new(id: &'static str, href: &'static str, label: &'static str) -> Entry {
        Entry { id, href, label }
    }
}

/// In the order in which people need them. Each id has an icon of that name.
const NAVIGATION: &[Entry] = &[
    Entry::new("overview", "/", "Overview"),
    Entry::new("runs", "/runs", "Runs"),
    Entry::new("events", "/events", "Events"),
    Entry::new("agents", "/agents", "Agents"),
    Entry::new("budgets", "/budgets", "Budgets"),
    Entry::new("dlp", "/dlp", "DLP"),
    Entry::new("detectors", "/detectors", "Detectors"),
    Entry::new("alerts", "/alerts", "Alerts"),
    Entry::new("keys", "/keys", "Keys"),
    Entry::new("settings", "/settings", "Settings"),
];

/// A page for when something went wrong.
#[derive(Template)]
#[template(path = "message.html")]
struct Message {
    style: &'static str,
    title: &'static str,
    detail: String,
}

/// A problem, as a browser shows it.
struct PageProblem(Problem);

type Page = Result<Response, PageProblem>;

pub(super) fn routes(admin: &Arc<Admin>) -> Router<Shared> {
    Router::new()
        .route("/", get(overview::show))
        .route("/runs", get(runs::show))
        .route("/runs/kill", post(runs::kill))
        .route("/run", get(run::show))
        .route("/run/export", get(run::export))
        .route("/run/kill", post(run::kill))
        .route("/run/resume", post(run::resume))
        .route("/run/approve", post(run::approve))
        .route("/agents", get(agents::show))
        .route("/agents/activate", post(agents::activate))
        .route("/agents/deactivate", post(agents::deactivate))
        .route("/agents/add", post(agents::add))
        .route("/agent", get(agent::show))
        .route("/agent/kill-switch", post(agent::set_switch))
        .route("/agent/policy", post(agent::set_policy))
        .route("/agent/policy/reset", post(agent::reset_policy))
        .route("/alerts", get(alerts::show))
        .route("/alerts/test", post(alerts::test))
        .route("/alerts/channels", post(alert_forms::set_channel))
        .route("/alerts/channels/delete", post(alert_forms::delete_channel))
        .route("/alerts/rules", post(alert_forms::set_rule))
        .route("/alerts/rules/delete", post(alert_forms::delete_rule))
        .route("/alerts/send-again", post(alert_forms::send_again))
        .route("/budgets", get(budgets::show))
        .route("/budgets/set", post(budgets::set))
        .route("/budgets/adjust", post(budgets::adjust))
        .route("/dlp", get(dlp::show))
        .route("/dlp/mode", post(dlp::set_mode))
        .route("/detectors", get(detectors::show))
        .route("/detectors/set", post(detectors::set))
        .route("/keys", get(keys::show))
        .route("/keys/create", post(keys::create))
        .route("/keys/rotate", post(keys::rotate))
        .route("/keys/revoke", post(keys::revoke))
        .route("/settings", get(settings::show))
        .route("/settings/tokens", post(settings::create_token))
        .route("/settings/tokens/revoke", post(settings::revoke_token))
        .route("/panic", get(panic::show))
        .route("/panic/stop", post(panic::stop))
        .route("/panic/part", post(panic::stop_part))
        .route("/panic/lift", post(panic::lift))
        .route("/events", get(events::show))
        .route("/events/export", get(events::export))
        .route("/calls", get(events::moved))
        .route("/live", get(live::pages))
        .route_layer(from_fn_with_state(admin.clone(), access::require_session))
}

/// The answer to paths that nobody serves.
pub(super) async fn nothing_here(State(_): State<Shared>, uri: Uri) -> Response {
    let problem = Problem::not_found("there is nothing under this address");
    if uri.path().starts_with("/api/") { problem.into_response() } else { PageProblem(problem).into_response() }
}

/// A problem as a browser shows it.
pub(super) fn problem(problem: Problem) -> Response {
    PageProblem(problem).into_response()
}

/// Where a page asks for news of itself: where it is, unless it answers a form, whose address shows nothing.
fn news_at(status: StatusCode, path: &'static str) -> &'static str {
    if status == StatusCode::OK { "" } else { path }
}

/// A sentence in parts: what stands between backticks is code. Backticks that do not pair stay what they are.
fn prose(text: &str) -> Vec<(bool, &str)> {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return vec![(false, text)];
    }
    parts
        .into_iter()
        .enumerate()
        .map(|(place, part)| (place % 2 == 1, part))
        .filter(|(_, part)| !part.is_empty())
        .collect()
}

/// Renders a template.
pub(super) fn html(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be rendered; see the log")
                .into_response()
        }
    }
}

impl Admin {
    fn shell(&self, here: &'static str, visitor: Visitor) -> Shell {
        Shell {
            files: assets::files(),
            version: env!("CARGO_PKG_VERSION"),
            navigation: NAVIGATION,
            here,
            is_all_stopped: self.is_all_stopped(),
            problems: self.recording_problems().into_iter().chain(self.behind()).collect(),
            detection_failures: self.app.detection_failures.number(),
            is_alone: self.app.link.as_ref().is_some_and(|link| !link.is_connected()),
            operator: visitor.operator.name,
            may_change: visitor.operator.role.may_change(),
            csrf: visitor.csrf,
            seen: visitor.seen,
        }
    }
}

impl From<Problem> for PageProblem {
    fn from(problem: Problem) -> PageProblem {
        PageProblem(problem)
    }
}

impl IntoResponse for PageProblem {
    fn into_response(self) -> Response {
        let (status, title) = (self.0.status, self.0.title());
        html(status, &Message { style: assets::files().style, title, detail: self.0.detail.into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_backticks_is_code() {
        assert_eq!(prose("step 4: `shell` ran"), [(false, "step 4: "), (true, "shell"), (false, " ran")]);
        assert_eq!(prose("an odd ` stays"), [(false, "an odd ` stays")]);
        assert_eq!(prose("plain"), [(false, "plain")]);
    }
}
