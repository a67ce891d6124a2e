//! What judging costs, with 10,000 agents that have policies of their own and 100,000 runs under way:
//!
//! ```sh
//! cargo test --release -p sprag --lib judging_cost -- --ignored --nocapture
//! ```
//!
//! The same calls are judged without any limit and with a limit of every kind: three levels of budgets, hours, models,
//! two rates, limits of runs. Each is of another agent and another run, so that little of it is in a cache. Detection is
//! off: it has figures of its own. Every run has a call behind it, as live runs do: of a model that nobody has called yet
//! the first calls wait for each other anyway. The last line is the difference: from reading the policy to money set
//! aside. Apart from that stands what it takes to put the call on record, which only calls with money set aside need.
//! Opening the run before and settling the call after are not in it.

use std::fmt::Write as _;
use std::time::Instant;

use http::{Method, Request};
use serde_json::json;
use sprag_core::event::RunOrigin;
use sprag_core::id::{AgentName, RunId};
use sprag_store::RunKey;
use sprag_store::state::{Lesson, OpenRequest};

use super::*;
use crate::clock::{Clock, Ids};
use crate::config::{Flags, Sources, load};
use crate::gateway::{open, route};

const AGENTS: usize = 10_000;
const RUNS: usize = 100_000;
const CALLS: usize = 50_000;

const NO_DETECTION: &str = r#"
[detection]
progress.mode = "off"
exact.mode = "off"
similar.mode = "off"
oscillation.mode = "off"
chant.mode = "off"
velocity.mode = "off"
"#;

const EVERY_LIMIT: &str = r#"
[budget]
daily_limit = 1000000
monthly_limit = 10000000
time_zone = "America/New_York"
[defaults.run_limits]
max_steps = 100000
timeout_seconds = 0
applies_to = "all"
[defaults.budget]
max_run_cost = 1000
daily_limit = 100000
monthly_limit = 1000000
[defaults.hours]
allowed = ["mon-sun 00:00-24:00"]
time_zone = "Europe/Berlin"
[defaults.models]
allow = ["claude-*", "gemini-*", "gpt-4o*"]
[[defaults.rate_limits]]
name = "calls"
limit_keys = ["agent", "model"]
requests = 1000000
window_seconds = 60
[[defaults.rate_limits]]
name = "burst"
limit_keys = ["agent", "header:x-tool-name"]
rps = 100000
burst = 100000
"#;

#[tokio::test]
#[ignore = "measures, and takes its time"]
async fn judging_cost() {
    let mut limited = format!("{NO_DETECTION}{EVERY_LIMIT}");
    for agent in 0..AGENTS {
        writeln!(limited, "[agents.agent-{agent}.budget]\ndaily_limit = {}", 1000 + agent).unwrap();
    }
    let plain = format!("{NO_DETECTION}[defaults.run_limits]\nmode = \"off\"");
    let [(without, _), (with, recorded)] = [judged(&plain).await, judged(&limited).await];
    let added = [with[0] - without[0], with[1] - without[1]];
    let rows =
        [("without limits", without), ("every limit", with), ("put on record", recorded), ("judging adds", added)];
    for (name, [p50, p90]) in rows {
        println!("{name:<16} p50 {p50:.2} µs   p90 {p90:.2} µs");
    }
}

/// Median and ninth decile of one judgement, and of putting the call on record, in microseconds.
async fn judged(text: &str) -> ([f64; 2], [f64; 2]) {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("sprag.toml");
    std::fs::write(&file, text).unwrap();
    let flags = Flags { config: Some(file), data: Some(data.path().join("data")), ..Flags::default() };
    let settings = load(&Sources { flags, ..Sources::default() }).unwrap().settings;
    let app = App::new(settings, Clock::Real, Ids::Random).unwrap();
    for number in 0..RUNS {
        let id = RunId::parse(&format!("live-{number}")).unwrap();
        let key = RunKey { agent: agent(number), id };
        let (parent, seed, lineage, now) = (None, None, Vec::new(), app.clock.now());
        let request = OpenRequest { key, parent, origin: RunOrigin::Declared, now, seed, lineage };
        app.state.open(&request).unwrap();
        let lesson = Lesson { prompt_bytes: 60, input_full_tokens: 15.0, output_tokens: 100 };
        app.state.learn(&request.key, "gpt-4o", &lesson);
    }
    // What an agent has spent before its first call is looked up with that call.
    for number in 0..AGENTS {
        one(&app, number).await;
    }
    let (mut judging, mut recording) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    for number in 0..CALLS {
        let [judged, recorded] = one(&app, number).await;
        judging.push(judged);
        recording.push(recorded);
    }
    (middle(judging), middle(recording))
}

fn middle(mut times: Vec<f64>) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [times[CALLS / 2], times[CALLS * 9 / 10]]
}

/// Judges one call and puts it on record, and gives the times that took.
async fn one(app: &Arc<App>, number: usize) -> [f64; 2] {
    // Visits all runs in no order that a cache could foresee.
    let run = number * 7919 % RUNS;
    let settings = app.settings.load_full();
    let request = Request::post("/v1/chat/completions")
        .header("x-sprag-agent", agent(run).as_str())
        .header("x-sprag-run-id", format!("live-{run}"))
        .header("x-tool-name", "search");
    let head = Arc::new(request.body(()).unwrap().into_parts().0);
    let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}).to_string();
    let route = route::find(&settings, &Method::POST, head.uri.path(), &head.headers).unwrap();
    let call = Call::parse(route.dialect, &route.plain, body.as_bytes()).unwrap();
    let mut ticket = Ticket::new(app.clone(), &route, &head, Instant::now());
    ticket.keep_sample(body.as_bytes());
    let request =
        open::Request { settings: &settings, route: &route, head: &head, body: body.as_bytes(), call: Some(&call) };
    let opening = open::open(app, request, &mut ticket).await.unwrap();
    let case = Case { route: &route, head: &head, body: body.as_bytes(), call: Some(&call), opening };
    let begun = Instant::now();
    let passed = judge(app, &settings, case, &mut ticket).await.unwrap();
    let judged = Instant::now();
    ticket.mark_permitted(passed.permit.advice());
    [judged - begun, judged.elapsed()].map(|took| took.as_nanos() as f64 / 1000.0)
}

fn agent(number: usize) -> AgentName {
    AgentName::parse(&format!("agent-{}", number % AGENTS)).unwrap()
}
