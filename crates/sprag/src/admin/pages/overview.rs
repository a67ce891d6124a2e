//! The first page: what happens now, what it costs, what was stopped and why; for a newcomer how to begin.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use sprag_store::history::{AgentShare, EventFilter, RecentStop, RunFilter, Span, TopBy, Totals};

use super::chart::{self, Chart};
use super::rows::{Bar, Moment, Money, RunLine, RunRef};
use super::{Page, Shell, html, link};
use crate::admin::api::Params;
use crate::admin::operator::Visitor;
use crate::admin::problem::Problem;
use crate::admin::{Shared, api, guard};
use crate::show;

const RUNS: u32 = 8;
const AGENTS: u32 = 8;
const STOPS: u32 = 8;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    span: Option<Span>,
    top: Option<TopBy>,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    shell: Shell,
    today: Today,
    in_flight: u64,
    kills: u64,
    uptime: String,
    is_new: bool,
    spans: Vec<Tab>,
    spend: Chart,
    requests: Chart,
    agents: Vec<AgentLine>,
    by_cost: Tab,
    by_stops: Tab,
    stops: Vec<StopLine>,
    runs: Vec<RunLine>,
    /// Where agents reach the proxy.
    proxy: String,
}

/// A choice of what the page shows.
struct Tab {
    label: &'static str,
    href: String,
    is_here: bool,
}

struct Today {
    requests: String,
    last_hour: String,
    input: String,
    output: String,
    cached: String,
    cost: String,
    cost_exact: String,
    unpriced: u64,
    errors: String,
    has_errors: bool,
    stopped: String,
    saved: String,
    saved_exact: String,
}

/// An agent among those that lead.
struct AgentLine {
    name: String,
    href: String,
    requests: String,
    stops: String,
    has_stops: bool,
    cost: Money,
    /// Its part of what the first one has.
    bar: Bar,
}

/// Something that was stopped.
struct StopLine {
    at: Moment,
    reason: String,
    /// The proof in a sentence, or who did it.
    why: String,
    tone: &'static str,
    agent: String,
    run: Option<RunRef>,
}

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
    request: Request,
) -> Page {
    let Params(wanted) = wanted?;
    let (span, top) = (wanted.span.unwrap_or_default(), wanted.top.unwrap_or_default());
    let proxy = proxy_url(&admin, &request);
    let now = admin.app.clock.now();
    let read = admin.records.read(move |history| {
        let totals = history.totals(api::midnight(now), None)?;
        let series = history.series(span, now, None)?;
        let hour = if span == Span::Hour { series.clone() } else { history.series(Span::Hour, now, None)? };
        let agents = history.top_agents(span, now, top, AGENTS)?;
        let stops = history.recent_stops(STOPS)?;
        let runs = history.runs(&RunFilter::default(), None, RUNS)?.items;
        let first = history.events(&EventFilter { requests_only: true, ..EventFilter::default() }, None, 1)?;
        Ok((totals, series, hour, agents, stops, runs, first.items.is_empty()))
    });
    let (totals, series, hour, agents, stops, mut runs, is_empty) = read.await?;
    admin.expire(&mut runs);
    let page = Overview {
        shell: admin.shell("overview", visitor),
        today: Today::new(&totals, hour.buckets.iter().map(|bucket| bucket.requests).sum()),
        in_flight: admin.app.state.counts().in_flight as u64,
        kills: admin.kills_in_force(),
        uptime: show::seconds(now.since_ms(admin.started) / 1000),
        is_new: is_empty && runs.is_empty(),
        spans: [("Hour", Span::Hour), ("24 hours", Span::Day), ("30 days", Span::Month)]
            .map(|(label, one)| Tab { label, href: here(one, top), is_here: one == span })
            .into(),
        spend: chart::spend(&series, span),
        requests: chart::requests(&series, span),
        agents: agent_lines(&agents, top),
        by_cost: Tab { label: "Spend", href: here(span, TopBy::Cost), is_here: top == TopBy::Cost },
        by_stops: Tab { label: "Stops", href: here(span, TopBy::Stops), is_here: top == TopBy::Stops },
        stops: stops.iter().map(|stop| StopLine::new(stop, now)).collect(),
        runs: runs.iter().map(|run| RunLine::new(run, now)).collect(),
        proxy,
    };
    Ok(html(StatusCode::OK, &page))
}

/// The page with these choices. What it shows unasked is not said.
fn here(span: Span, top: TopBy) -> String {
    let span = match span {
        Span::Hour => None,
        Span::Day => Some("day"),
        Span::Month => Some("month"),
    };
    link::to("/", &[("span", span), ("top", (top == TopBy::Stops).then_some("stops"))])
}

impl Today {
    fn new(totals: &Totals, last_hour: u64) -> Today {
        let share = (totals.cached_tokens * 100).checked_div(totals.input_tokens).unwrap_or(0);
        Today {
            requests: show::count(totals.requests),
            last_hour: show::count(last_hour),
            input: show::short_count(totals.input_tokens),
            output: show::short_count(totals.output_tokens),
            cached: format!("{share} %"),
            cost: show::usd_headline(totals.cost),
            cost_exact: format!("${}", totals.cost),
            unpriced: totals.unpriced,
            errors: show::count(totals.errors),
            has_errors: totals.errors > 0,
            stopped: show::count(totals.blocked),
            saved: show::usd_headline(totals.saved),
            saved_exact: format!("${}", totals.saved),
        }
    }
}

fn agent_lines(agents: &[AgentShare], top: TopBy) -> Vec<AgentLine> {
    let measure = |agent: &AgentShare| match top {
        TopBy::Cost => agent.cost.0.unsigned_abs(),
        TopBy::Stops => agent.blocked,
    };
    let most = agents.iter().map(measure).max().unwrap_or(0);
    let line = |agent: &AgentShare| AgentLine {
        name: agent.name.to_string(),
        href: link::to("/runs", &[("agent", Some(agent.name.as_str()))]),
        requests: show::count(agent.requests),
        stops: show::count(agent.blocked),
        has_stops: agent.blocked > 0,
        cost: Money::new(Some(agent.cost), false),
        bar: Bar::part(measure(agent), most),
    };
    agents.iter().map(line).collect()
}

impl StopLine {
    fn new(stop: &RecentStop, now: sprag_core::time::Timestamp) -> StopLine {
        let summary = show::proof_summary(stop.proof.as_ref());
        let why = match (summary, stop.by.as_str()) {
            ("", "sprag" | "") => String::new(),
            ("", by) => format!("by {by}"),
            (summary, _) => summary.to_owned(),
        };
        StopLine {
            at: Moment::new(stop.at, now),
            reason: show::reason(&stop.reason).to_owned(),
            why,
            tone: if stop.is_lasting { "bad" } else { "odd" },
            agent: stop.agent.to_string(),
            run: stop
                .run
                .as_ref()
                .map(|run| RunRef { id: run.to_string(), href: link::to_run(stop.agent.as_str(), run.as_str()) }),
        }
    }
}

/// A proxy that listens everywhere is reached under the name that brought the browser here.
fn proxy_url(admin: &Shared, request: &Request) -> String {
    let proxy = admin.addresses.proxy;
    match guard::host_of(request.uri(), request.headers()) {
        Some(host) if proxy.ip().is_unspecified() => format!("http://{host}:{}", proxy.port()),
        _ => format!("http://{proxy}"),
    }
}
