//! Budgets: what is spent, what is set aside for calls under way, and what is left; setting one, and correcting what
//! was spent.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use serde_json::json;
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Holder, Window};
use sprag_core::time::Timestamp;

use super::field::{Field, Reading, put, value_of};
use super::filled::Filled;
use super::rows::{Bar, Moment, Money};
use super::{Page, Shell, agents, html, link, news_at};
use crate::admin::Shared;
use crate::admin::api::{self, Params, desk};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;
use crate::budgets::{BudgetFilter, BudgetRow};

const ROWS: usize = 100;
/// Thousandths of a limit from which on it is coloured.
const NEARLY: u64 = 800;

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    agent: Option<String>,
    /// Sent only when it is ticked.
    runs: Option<String>,
    cursor: Option<String>,
    /// The account that is to be corrected.
    adjust: Option<String>,
    /// Said after something was done.
    saved: Option<String>,
}

#[derive(Template)]
#[template(path = "budgets.html")]
struct Budgets {
    shell: Shell,
    /// Where the page asks for news of itself.
    live: &'static str,
    budgets: Vec<BudgetLine>,
    agent: String,
    agents: Vec<String>,
    with_runs: bool,
    zone: String,
    /// The first page, when this is a later one.
    first: Option<String>,
    more: Option<String>,
    /// The form that sets one.
    set: Vec<Field>,
    /// The form that corrects what an account has spent, where one is chosen.
    adjust: Option<Vec<Field>>,
    account: String,
    complaint: Option<String>,
    is_saved: bool,
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
    adjust_href: String,
    /// Where its limit is changed.
    change_href: Option<String>,
}

const LIMITS: [(&str, &str); 3] =
    [("budget.max_run_cost", "A run"), ("budget.daily_limit", "A day"), ("budget.monthly_limit", "A month")];

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    list(&admin, visitor, wanted, Filled::nothing()).await
}

async fn list(admin: &Shared, visitor: Visitor, wanted: Wanted, mut filled: Filled) -> Page {
    let agent = api::agent_name(wanted.agent.as_deref())?;
    let with_runs = wanted.runs.is_some();
    let filter = BudgetFilter { agent: agent.clone(), key: None, runs: with_runs };
    let agents = admin.agent_names().await?;
    let page = admin.budgets(filter, wanted.cursor.clone(), ROWS).await?;
    let now = admin.app.clock.now();
    let agent = agent.map(|agent| agent.to_string()).unwrap_or_default();
    let here = |cursor: Option<&str>| {
        link::to("/budgets", &[("agent", Some(&agent)), ("runs", with_runs.then_some("on")), ("cursor", cursor)])
    };
    let (status, account) = (filled.status, wanted.adjust.unwrap_or_default());
    let page = Budgets {
        shell: admin.shell("budgets", visitor),
        live: news_at(status, "/budgets"),
        budgets: page.rows.iter().map(|row| BudgetLine::new(row, now)).collect(),
        agents,
        with_runs,
        zone: admin.app.settings.load().budget.zone.to_string(),
        first: wanted.cursor.is_some().then(|| here(None)),
        more: page.next.map(|next| here(Some(&next))),
        set: filled.fill(set_fields(&agent)),
        adjust: (!account.is_empty()).then(|| filled.fill(adjust_fields())),
        account,
        complaint: filled.rest(),
        is_saved: wanted.saved.is_some(),
        agent,
    };
    Ok(html(status, &page))
}

/// Sets limits of an agent. An empty amount leaves a limit as it is.
pub(super) async fn set(State(admin): State<Shared>, visitor: Visitor, operator: Operator, filled: Filled) -> Page {
    let mut patch = json!({});
    for (key, _) in LIMITS {
        if let Some(amount) = filled.given(key) {
            put(&mut patch, key, value_of(Reading::Money, amount));
        }
    }
    let again = |filled| list(&admin, visitor, Wanted::default(), filled);
    let agent = match agents::agent(filled.text("to")) {
        Ok(agent) => agent,
        Err(problem) => return again(filled.but("to", problem.detail)).await,
    };
    if patch == json!({}) {
        return again(filled.but(LIMITS[1].0, "give at least one amount")).await;
    }
    match desk::change_agent(&admin, operator, &agent, json!({ "policy": patch })).await {
        Ok(()) => Ok(Redirect::to(&saved(Some(agent.as_str()))).into_response()),
        Err(problem) => again(filled.refused(problem, |key, _| key.to_owned())?).await,
    }
}

/// Corrects what an account has spent.
pub(super) async fn adjust(State(admin): State<Shared>, visitor: Visitor, operator: Operator, filled: Filled) -> Page {
    let (account, reason) = (filled.text("account"), filled.text("reason"));
    let amount = filled.text("amount_usd").trim_start_matches('+');
    let order = json!({ "account": account, "amount_usd": amount, "reason": reason });
    let wanted = Wanted { adjust: Some(account.to_owned()), ..Wanted::default() };
    if !NanoUsd::parse_usd(amount).is_ok_and(|amount| amount != NanoUsd::ZERO) {
        let told = "dollars to add, or with a minus to take away: -2.50";
        return list(&admin, visitor, wanted, filled.but("amount_usd", told)).await;
    }
    match desk::adjust(&admin, operator, order).await {
        Ok(_) => Ok(Redirect::to(&saved(None)).into_response()),
        Err(problem) => {
            let field_of = |key: &str, told: &str| match key {
                "" if told.contains("`reason`") => "reason".to_owned(),
                _ => key.to_owned(),
            };
            list(&admin, visitor, wanted, filled.refused(problem, field_of)?).await
        }
    }
}

fn saved(agent: Option<&str>) -> String {
    link::to("/budgets", &[("agent", agent), ("saved", Some("1"))])
}

fn set_fields(agent: &str) -> Vec<Field> {
    let limit = |(name, label): (&str, &str)| Field::new(name, label).placeholder("as it is").decimal();
    let to = Field::agent("to").holding(agent);
    [to].into_iter().chain(LIMITS.into_iter().map(limit)).collect()
}

fn adjust_fields() -> Vec<Field> {
    vec![
        Field::new("amount_usd", "Add, dollars").hint("with a minus to take away").placeholder("-2.50").decimal(),
        Field::new("reason", "Reason").hint("stays on record"),
    ]
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
            Holder::Agent(agent) => Some(link::to("/agent", &[("name", Some(agent.as_str()))])),
            Holder::Run(agent, run) => Some(link::to_run(agent.as_str(), run.as_str())),
        };
        let window = if row.id.window == Window::Month { "month" } else { "day" };
        let kind = match &row.id.holder {
            Holder::Everything => window.to_owned(),
            Holder::Agent(_) => format!("agent, {window}"),
            Holder::Key(_) => format!("key, {window}"),
            Holder::Run(agent, _) => format!("run of {agent}"),
        };
        let change_href = match &row.id.holder {
            Holder::Agent(agent) | Holder::Run(agent, _) => {
                Some(format!("{}#budget", link::to("/agent", &[("name", Some(agent.as_str()))])))
            }
            Holder::Everything | Holder::Key(_) => None,
        };
        let account = AccountId { is_shadow: false, ..row.id.clone() }.to_string();
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
            settled: Money::round(Some(row.settled)),
            reserved: Money::round(Some(row.reserved)),
            limit: Money::round(row.limit.as_ref().map(|limit| limit.amount)),
            left: Money::round(row.remaining()),
            ends: row.span.map(|span| Moment::new(span.end, now)),
            is_shadow,
            is_corrected: row.adjusted != NanoUsd::ZERO,
            adjust_href: format!("{}#adjust", link::to("/budgets", &[("adjust", Some(&account))])),
            change_href,
        }
    }
}
