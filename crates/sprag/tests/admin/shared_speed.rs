//! How fast pages and the API of a node are whose history is in ClickHouse, over a month of ten million events. Run with
//! `cargo test --release -p sprag --test admin shared_speed -- --ignored --nocapture`.
//!
//! Not a part of every test run: it takes minutes to fill the engine. `SPRAG_HISTORY_DIR` keeps what was filled for the next time.
#![allow(clippy::print_stdout, reason = "it measures, and says what")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, Instant};

use sprag::clock::Clock;
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::Budget;
use sprag_store::history::{ClickHouseAddress, ClickHouseSettings};
use sprag_testkit::month::{self, Month};
use sprag_testkit::{ClickHouseServer, client};

use crate::world::{TOKEN, World, text};

/// What a person waits for without noticing much. It is held against the median of so many answers, after a first one.
const BAR: Duration = Duration::from_millis(200);
const ASKED: usize = 11;
const DATABASE: &str = "sprag";

/// A run of the month, and what follows it: `{agent}` and `{run}` in paths.
struct Known {
    agent: String,
    run: String,
}

/// Every page of the dashboard, with the filters that pages offer.
const PAGES: &[&str] = &[
    "/",
    "/?span=day",
    "/?span=month",
    "/?span=month&top=stops",
    "/runs",
    "/runs?agent=default",
    "/runs?agent=agent-77",
    "/runs?agent=agent-77&status=killed",
    "/runs?status=running",
    "/runs?status=killed",
    "/runs?status=expired",
    "/runs?status=paused",
    "/runs?model=o3",
    "/runs?model=no-such-model",
    "/runs?min_cost=0.035",
    "/runs?min_cost=90",
    "/runs?id=run-ff0",
    "/runs?id=no-such-run",
    "/run?agent={agent}&id={run}",
    "/run?agent={agent}&id={run}&repeats=2",
    "/events",
    "/events?agent=default",
    "/events?agent=agent-77",
    "/events?agent=nobody",
    "/events?agent=agent-77&model=no-such-model",
    "/events?agent={agent}&run={run}",
    "/events?run={run}",
    "/events?model=o3",
    "/events?show=stopped",
    "/events?show=findings",
    "/events?show=admin",
    "/events?reason=loop_detected",
    "/events?reason=dlp_blocked",
    "/events?reason=loop_detected&within=7d",
    "/events?within=1h",
    "/agents",
    "/agents?q=77",
    "/agents?q=no-such-agent",
    "/agents?state=inactive",
    "/agent?name=default",
    "/agent?name=agent-77&span=day",
    "/agent?name=agent-77&span=month",
    "/budgets",
    "/budgets?agent=agent-77",
    "/budgets?runs=1",
    "/dlp",
    "/dlp?span=day",
    "/dlp?span=month",
    "/dlp?agent=agent-77",
    "/detectors",
    "/detectors?span=day",
    "/detectors?span=month",
    "/detectors?span=month&repeats=2",
    "/alerts",
    "/keys",
    "/settings",
    "/panic",
];

/// Every GET of the API that reads something. Exports count until their first piece.
const API: &[&str] = &[
    "/agents",
    "/agents?limit=500",
    "/agents/agent-77",
    "/alerts",
    "/alerts/counts",
    "/alerts/channels",
    "/alerts/rules",
    "/budgets",
    "/budgets?limit=500",
    "/budgets?agent=agent-77",
    "/detectors/shadow",
    "/detectors/shadow?since={month}",
    "/detectors/try?repeats=2",
    "/detectors/try?agent=agent-77&repeats=2",
    "/events",
    "/events?limit=500",
    "/events?agent=agent-77",
    "/events?agent=default&model=o3",
    "/events?since={month}&until={week}",
    "/events/export",
    "/events/export?agent=agent-77",
    "/keys",
    "/keys/{key}",
    "/kills",
    "/me",
    "/prices",
    "/runs",
    "/runs?limit=500",
    "/runs?agent=agent-77",
    "/runs?status=killed&limit=500",
    "/runs/{agent}/{run}",
    "/runs/{agent}/{run}/export",
    "/runs/{agent}/{run}/picture",
    "/runs/{agent}/{run}/try?repeats=2",
    "/spend",
    "/spend?span=day",
    "/spend?span=month",
    "/spend?span=month&agent=agent-77",
    "/status",
    "/tokens",
];

/// These tell nothing of the history: a stream that never ends, and the description itself.
const APART: [&str; 2] = ["/live", "/openapi.json"];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "fills ten million events, which takes minutes"]
async fn pages_answer_in_a_fifth_of_a_second_over_ten_million_shared_events() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = month::folder().unwrap_or(temporary.path().to_owned());
    let Some(server) = start(&dir).await else { return };
    let (world, month) = node_with_a_month(&server).await;
    let known = known(&world).await;
    let key = client::post(format!("http://{}/api/v1/keys", world.sprag.admin), r#"{"agent":"agent-77"}"#.to_owned())
        .header("content-type", "application/json")
        .header("authorization", &format!("Bearer {TOKEN}"));
    let key = key.fetch().await.unwrap().json()["id"].as_str().unwrap().to_owned();
    let ago = |days: i64| sprag_core::time::Timestamp(month.end().0 - days * 86_400_000).to_rfc3339();
    let path_of = |asked: &str| {
        let asked = asked.replace("{agent}", &known.agent).replace("{run}", &known.run).replace("{key}", &key);
        asked.replace("{month}", &ago(30)).replace("{week}", &ago(7))
    };
    let described = world.json("/openapi.json").await;
    let asked: BTreeSet<&str> = API.iter().map(|path| path.split('?').next().unwrap()).collect();
    for (path, _) in described["paths"].as_object().unwrap().iter().filter(|(_, item)| item["get"].is_object()) {
        let path = path.trim_start_matches("/api/v1");
        let path = path.replace("{id}", if path.starts_with("/keys") { "{key}" } else { "{run}" });
        let path = path.replace("{name}", "agent-77");
        assert!(asked.contains(&*path) || APART.contains(&&*path), "{path} is not measured");
    }

    let cookie = world.sign_in().await;
    println!("{:<58}{:>10}{:>10}{:>10}", "", "first ms", "median ms", "worst ms");
    let mut slow = Vec::new();
    let api = API.iter().map(|path| format!("/api/v1{path}"));
    for path in PAGES.iter().map(|path| (*path).to_owned()).chain(api) {
        let url = path_of(&path);
        let mut took = Vec::with_capacity(ASKED + 1);
        for _ in 0..=ASKED {
            let begun = Instant::now();
            fetch(&world, &cookie, &url).await;
            took.push(begun.elapsed());
        }
        let first = took.remove(0);
        took.sort_unstable();
        let (median, worst) = (took[ASKED / 2], took[ASKED - 1]);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!("{path:<58}{:>10.1}{:>10.1}{:>10.1}", ms(first), ms(median), ms(worst));
        if median > BAR {
            slow.push(path);
        }
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    assert!(slow.is_empty(), "over {BAR:?} at a load of {}: {slow:?}", load.trim());
}

/// A whole answer, or of an export the first piece: the rest is written while it is sent.
async fn fetch(world: &World, cookie: &str, url: &str) {
    let bearer = format!("Bearer {TOKEN}");
    let call = world.ask(url).header("cookie", cookie).header("authorization", &bearer);
    if url.contains("/export") {
        let mut answer = call.send().await.unwrap();
        assert_eq!(answer.status, 200, "{url}");
        assert!(!answer.next().await.unwrap().unwrap().is_empty(), "{url}");
        return;
    }
    let answer = call.fetch().await.unwrap();
    assert_eq!(answer.status, 200, "{url}: {}", text(&answer));
}

async fn start(dir: &Path) -> Option<ClickHouseServer> {
    let dir = dir.to_owned();
    tokio::task::spawn_blocking(move || ClickHouseServer::start(&dir)).await.unwrap()
}

/// A node at the end of the month that the server has or is given. Every agent has limits, so that what they have spent is asked.
async fn node_with_a_month(server: &ClickHouseServer) -> (World, Month) {
    let now = Clock::Real.now();
    let kept = ask(server, month::FIND).await.and_then(|told| Month::found(&told, now));
    let month = kept.unwrap_or_else(|| Month::until(now));
    if kept.is_none() {
        ask(server, &format!("DROP DATABASE IF EXISTS {DATABASE}")).await.unwrap();
    }
    let address = ClickHouseAddress::parse(&server.url(DATABASE)).unwrap();
    let world = World::at(Clock::Scripted(Arc::new(AtomicI64::new(month.end().0))), TOKEN, |settings| {
        let forever = Duration::from_secs(36_500 * 86_400);
        (settings.events.retention, settings.events.run_retention) = (forever, forever);
        let patience = Duration::from_secs(60);
        let batch_age = Duration::from_millis(500);
        settings.events.clickhouse = Some(ClickHouseSettings { address, batch_events: 1000, batch_age, patience });
        let (day, month) = (Some(NanoUsd(1_000_000_000_000)), Some(NanoUsd(9_000_000_000_000)));
        let budget = Budget { mode: Mode::Enforce, daily_limit: day, monthly_limit: month, ..Budget::default() };
        settings.policies.defaults.budget = budget.clone();
        settings.budget.budget = budget;
    })
    .await;
    if kept.is_none() {
        // Its tables are there when the node has reached it.
        world.sprag.app.history.flush().unwrap();
        let begun = Instant::now();
        for statement in month.statements() {
            ask(server, &statement).await.unwrap();
        }
        println!("filled {} events in {:.0?}", month::EVENTS, begun.elapsed());
    }
    (world, month)
}

/// What the server says in the database; none where it refuses.
async fn ask(server: &ClickHouseServer, sql: &str) -> Option<String> {
    let call = client::post(format!("{}/", server.url("").trim_end_matches('/')), sql.to_owned());
    let database = if sql.starts_with("DROP") { "default" } else { DATABASE };
    let answer = call.header("x-clickhouse-database", database).fetch().await.unwrap();
    (answer.status == 200).then(|| text(&answer))
}

/// A run that pages show: one of the first page, with all its calls.
async fn known(world: &World) -> Known {
    let runs = world.json("/runs").await;
    let run = &runs["items"][30];
    Known { agent: run["agent"].as_str().unwrap().to_owned(), run: run["id"].as_str().unwrap().to_owned() }
}
