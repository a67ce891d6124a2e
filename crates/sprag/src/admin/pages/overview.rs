//! The first page: today's sums, the latest runs and calls, and for a newcomer how to begin.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use sprag_store::history::{EventFilter, RunFilter, Totals};

use super::rows::{CallLine, RunLine};
use super::{Page, Shell, html};
use crate::admin::operator::Visitor;
use crate::admin::{Shared, api, guard};
use crate::show;

const RUNS: u32 = 8;
const CALLS: u32 = 12;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    shell: Shell,
    today: Today,
    in_flight: u64,
    kills: u64,
    uptime: String,
    runs: Vec<RunLine>,
    calls: Vec<CallLine>,
    /// Where agents reach the proxy.
    proxy: String,
}

struct Today {
    calls: String,
    input: String,
    output: String,
    cached: String,
    cost: String,
    cost_exact: String,
    unpriced: u64,
    estimated: u64,
    errors: u64,
    blocked: u64,
}

pub(super) async fn show(State(admin): State<Shared>, visitor: Visitor, request: Request) -> Page {
    let proxy = proxy_url(&admin, &request);
    let now = admin.app.clock.now();
    let read = admin.records.read(move |history| {
        let totals = history.totals(api::midnight(now), None)?;
        let runs = history.runs(&RunFilter::default(), None, RUNS)?.items;
        let calls = history.events(&EventFilter { requests_only: true, ..EventFilter::default() }, None, CALLS)?.items;
        Ok((totals, runs, calls))
    });
    let (totals, mut runs, calls) = read.await?;
    admin.expire(&mut runs);
    let page = Overview {
        shell: admin.shell("overview", visitor),
        today: Today::new(&totals),
        in_flight: admin.app.state.counts().in_flight as u64,
        kills: admin.kills_in_force(),
        uptime: show::seconds(now.since_ms(admin.started) / 1000),
        runs: runs.iter().map(|run| RunLine::new(run, now)).collect(),
        calls: calls.iter().map(|event| CallLine::new(event, now)).collect(),
        proxy,
    };
    Ok(html(StatusCode::OK, &page))
}

impl Today {
    fn new(totals: &Totals) -> Today {
        let share = (totals.cached_tokens * 100).checked_div(totals.input_tokens).unwrap_or(0);
        Today {
            calls: show::count(totals.requests),
            input: show::short_count(totals.input_tokens),
            output: show::short_count(totals.output_tokens),
            cached: format!("{share} %"),
            cost: show::usd_headline(totals.cost),
            cost_exact: format!("${}", totals.cost),
            unpriced: totals.unpriced,
            estimated: totals.estimated,
            errors: totals.errors,
            blocked: totals.blocked,
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
