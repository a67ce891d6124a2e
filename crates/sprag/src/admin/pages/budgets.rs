//! Budgets: what is spent, what is set aside for calls under way, and what is left.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Holder, Window};
use sprag_core::time::Timestamp;

use super::rows::{Bar, Moment, Money};
use super::{Page, Shell, html, link};
use crate::admin::Shared;
use crate::admin::api::{self, Params};
use crate::admin::operator::Visitor;
use crate::admin::problem::Problem;
use crate::budgets::{BudgetFilter, BudgetRow};

const ROWS: usize = 100;
/// Thousandths of a limit from which on it is coloured.
const NEARLY: u64 = 800;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    agent: Option<String>,
    /// Sent only when it is ticked.
    runs: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "budgets.html")]
struct Budgets {
    shell: Shell,
    budgets: Vec<BudgetLine>,
    agent: String,
    agents: Vec<String>,
    with_runs: bool,
    zone: String,
    /// The first page, when this is a later one.
    first: Option<String>,
    more: Option<String>,
}

/// A budget in the table.
struct BudgetLine {
    name: String,
    href: Option<String>,
    /// Whose it is, and over which time.
    kind: String,
    used: String,
    /// `good`, `odd`, `bad`: how it is coloured.
    tone: &'static str,
    settled_bar: Bar,
    reserved_bar: Bar,
    settled: Money,
    reserved: Money,
    limit: Money,
    left: Money,
    ends: Option<Moment>,
    is_shadow: bool,
    is_corrected: bool,
}

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    let agent = api::agent_name(wanted.agent.as_deref())?;
    let with_runs = wanted.runs.is_some();
    let filter = BudgetFilter { agent: agent.clone(), key: None, runs: with_runs };
    let agents = admin.agents().await?;
    let page = admin.budgets(filter, wanted.cursor.clone(), ROWS).await?;
    let now = admin.app.clock.now();
    let agent = agent.map(|agent| agent.to_string()).unwrap_or_default();
    let here = |cursor: Option<&str>| {
        link::to("/budgets", &[("agent", Some(&agent)), ("runs", with_runs.then_some("on")), ("cursor", cursor)])
    };
    let page = Budgets {
        shell: admin.shell("budgets", visitor),
        budgets: page.rows.iter().map(|row| BudgetLine::new(row, now)).collect(),
        agents: agents.into_iter().map(|agent| agent.name).collect(),
        with_runs,
        zone: admin.app.settings.load().budget.zone.to_string(),
        first: wanted.cursor.is_some().then(|| here(None)),
        more: page.next.map(|next| here(Some(&next))),
        agent,
    };
    Ok(html(StatusCode::OK, &page))
}

impl BudgetLine {
    fn new(row: &BudgetRow, now: Timestamp) -> BudgetLine {
        let part = |amount: NanoUsd| row.thousandths(amount).unwrap_or(0);
        let (settled, reserved) = (part(row.settled), part(row.reserved));
        let name = match &row.id.holder {
            Holder::Everything => "Everything".to_owned(),
            Holder::Agent(agent) => agent.to_string(),
            Holder::Key(key) => key.to_string(),
            Holder::Run(_, run) => run.to_string(),
        };
        let href = match &row.id.holder {
            Holder::Everything | Holder::Key(_) => None,
            Holder::Agent(agent) => Some(link::to("/runs", &[("agent", Some(agent.as_str()))])),
            Holder::Run(agent, run) => Some(link::to_run(agent.as_str(), run.as_str())),
        };
        let window = if row.id.window == Window::Month { "month" } else { "day" };
        let kind = match &row.id.holder {
            Holder::Everything => window.to_owned(),
            Holder::Agent(_) => format!("agent, {window}"),
            Holder::Key(_) => format!("key, {window}"),
            Holder::Run(agent, _) => format!("run of {agent}"),
        };
        let is_shadow = row.limit.as_ref().is_some_and(|limit| limit.mode == Mode::Shadow);
        let settled_bar = Bar { start: 0, length: settled.min(Bar::LINE) };
        BudgetLine {
            name,
            href,
            kind,
            used: format!("{}.{} %", settled / 10, settled % 10),
            tone: match settled {
                Bar::LINE.. => "bad",
                NEARLY.. => "odd",
                _ => "good",
            },
            reserved_bar: Bar { start: settled_bar.length, length: reserved.min(Bar::LINE - settled_bar.length) },
            settled_bar,
            settled: Money::new(Some(row.settled), false),
            reserved: Money::new(Some(row.reserved), false),
            limit: Money::new(row.limit.as_ref().map(|limit| limit.amount), false),
            left: Money::new(row.remaining(), false),
            ends: row.span.map(|span| Moment::new(span.end, now)),
            is_shadow,
            is_corrected: row.adjusted != NanoUsd::ZERO,
        }
    }
}
