//! What programs read.

use serde_json::{Value, json};

use crate::world::{World, text};

fn ids(listing: &Value) -> Vec<&str> {
    listing["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_shows_everywhere_at_once() {
    let world = World::start().await;
    let answer = world.call(&[("x-sprag-agent", "bot"), ("x-sprag-run-id", "task-1")]).await;
    let cost = answer.header("x-sprag-cost-usd").to_owned();

    let status = world.json("/status").await;
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["proxy"], world.sprag.proxy.to_string());
    assert_eq!((&status["in_flight"], &status["runs_in_memory"]), (&json!(0), &json!(1)));
    assert_eq!((&status["recording"]["ok"], &status["recording"]["recorded"]), (&json!(true), &json!(1)));
    assert_eq!(status["today"]["requests"], 1);
    assert!(status["today"]["input_tokens"].as_u64() > Some(0));

    let run = &world.json("/runs").await["items"][0];
    assert_eq!((&run["agent"], &run["id"], &run["steps"]), (&json!("bot"), &json!("task-1"), &json!(1)));
    assert_eq!((&run["status"], &run["origin"]), (&json!("running"), &json!("declared")));

    let detail = world.json("/runs/bot/task-1").await;
    assert_eq!(detail["run"], *run);
    let step = &detail["steps"]["items"][0];
    assert_eq!(step["id"], answer.header("x-sprag-request-id"));
    assert_eq!((&step["run"]["step"], &step["ending"]), (&json!(1), &json!("complete")));
    assert_eq!(step["cost_usd"].as_f64().unwrap(), cost.parse::<f64>().unwrap());
    assert_eq!(detail["children"], json!([]));

    let events = world.json("/events?run=task-1").await;
    assert_eq!(events["items"][0], *step);
    let agents = world.json("/agents").await;
    assert_eq!((&agents["items"][0]["name"], &agents["items"][0]["steps"]), (&json!("bot"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_exact_to_the_last_digit() {
    let world = World::start().await;
    world.record(1, json!({"cost": 9_007_199_254_740_993_i64}));
    let events = text(&world.api("/events").await);
    assert!(events.contains("\"cost_usd\":9007199.254740993,\"cost_nano_usd\":9007199254740993,"), "{events}");
    let runs = text(&world.api("/runs").await);
    assert!(runs.contains("\"cost_usd\":9007199.254740993,\"cost_nano_usd\":9007199254740993,"), "{runs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_are_narrowed() {
    let world = World::start().await;
    for at in 1..=6 {
        let agent = if at % 2 == 0 { "even" } else { "odd" };
        let model = if at > 3 { "large" } else { "small" };
        world.record(at * 1000, json!({"agent": agent, "model": model, "blocked": at == 5, "cost": at, "block_reason": (at == 5).then_some("loop_detected")}));
    }
    for (query, expected) in [
        ("agent=even", vec!["req_6000", "req_4000", "req_2000"]),
        ("model=small&agent=odd", vec!["req_3000", "req_1000"]),
        ("blocked=true", vec!["req_5000"]),
        ("blocked=false&model=large", vec!["req_6000", "req_4000"]),
        ("since=1970-01-01T00:00:05Z", vec!["req_6000", "req_5000"]),
        ("since=1970-01-01T00:00:02Z&until=1970-01-01T00:00:04Z", vec!["req_3000", "req_2000"]),
        ("run=run-4000", vec!["req_4000"]),
        ("run=run-4000&agent=odd", vec![]),
        ("run=no-such-run", vec![]),
        ("kind=llm_call&until=1970-01-01T00:00:02Z", vec!["req_1000"]),
        ("kind=admin", vec![]),
        ("reason=loop_detected", vec!["req_5000"]),
        ("reason=rate_limited", vec![]),
        ("findings=true", vec![]),
        ("findings=false&agent=even&model=small", vec!["req_2000"]),
    ] {
        assert_eq!(ids(&world.json(&format!("/events?{query}")).await), expected, "{query}");
    }
    for (query, expected) in [
        ("agent=odd", vec!["run-5000", "run-3000", "run-1000"]),
        ("status=expired&agent=even", vec!["run-6000", "run-4000", "run-2000"]),
        ("status=killed", vec![]),
        ("id=run-2000", vec!["run-2000"]),
        ("id=run-2000&agent=odd", vec![]),
        ("id=run-2000&status=killed", vec![]),
        ("id_prefix=run-2", vec!["run-2000"]),
        ("id_prefix=run-%25", vec![]),
        ("model=small", vec!["run-3000", "run-2000", "run-1000"]),
        ("model=small&agent=odd", vec!["run-3000", "run-1000"]),
        ("min_cost=0.000000005", vec!["run-6000", "run-5000"]),
        ("min_cost=0.000000005&agent=odd&model=large", vec!["run-5000"]),
        ("since=1970-01-01T00:00:05Z", vec!["run-6000", "run-5000"]),
        ("since=1970-01-01T00:00:02Z&until=1970-01-01T00:00:03Z", vec!["run-2000"]),
        ("status=expired&until=1970-01-01T00:00:02Z", vec!["run-1000"]),
        ("status=running&since=1970-01-01T00:00:02Z", vec![]),
    ] {
        assert_eq!(ids(&world.json(&format!("/runs?{query}")).await), expected, "{query}");
    }
    for query in [
        "/runs?agnet=odd",
        "/runs?status=dead",
        "/runs?limit=0",
        "/runs?limit=501",
        "/runs?cursor=x",
        "/runs?agent=a%20b",
        "/runs?min_cost=-1",
        "/runs?min_cost=much",
        "/runs?since=yesterday",
        "/events?kind=calls",
        "/events?reason=no_reason",
        "/events?findings=some",
        "/events?format=csv",
        "/events/export?format=pdf",
        "/events/export?format=csv&limit=5",
        "/live?agent=a%20b",
        "/spend?span=year",
        "/prices?limit=0",
        "/prices?cursor=x",
        "/events?blocked=maybe",
        "/events?since=yesterday",
        "/events?cursor=1",
        "/runs/odd/run-1000?limit=many",
        "/runs/odd/%FF",
    ] {
        let answer = world.api(query).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("content-type")),
            (400, "application/problem+json"),
            "{query}"
        );
        assert!(answer.json()["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_listing_hold_everything_once() {
    let world = World::start().await;
    for at in 1..=7 {
        world.record(at, json!({}));
        world.record(at + 100, json!({"agent": "long", "run": {"id": "one", "step": at, "origin": "declared"}}));
    }
    for (path, key, expected) in [("/runs", "", 8_usize), ("/events", "", 14), ("/runs/long/one", "steps", 7)] {
        let (mut found, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let answer = world.json(&format!("{path}?limit=3{cursor}")).await;
            let listing = if key.is_empty() { &answer } else { &answer[key] };
            found.extend(ids(listing).into_iter().map(str::to_owned));
            pages += 1;
            match listing["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!((found.len(), pages), (expected, expected.div_ceil(3)), "{path}");
        found.sort();
        found.dedup();
        assert_eq!(found.len(), expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_id_alone_is_enough_unless_two_agents_share_it() {
    let world = World::start().await;
    for (at, agent) in [(1, "a"), (2, "b")] {
        world.record(at, json!({"agent": agent, "run": {"id": "shared", "step": 1, "origin": "declared"}}));
    }
    assert_eq!(ids(&world.json("/runs?id=shared").await).len(), 2);
    assert_eq!(world.json("/runs?id=shared&agent=b").await["items"][0]["agent"], "b");
    let answer = world.api("/events?run=shared").await;
    assert_eq!(answer.status, 400);
    assert!(text(&answer).contains("several agents"), "{}", text(&answer));
    assert_eq!(ids(&world.json("/events?run=shared&agent=b").await), ["req_2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_shows_the_runs_that_are_a_part_of_it() {
    let world = World::start().await;
    world.record(1, json!({"cost": 5}));
    let run = json!({"id": "part", "step": 1, "origin": "session", "parent": "run-1"});
    world.record(2, json!({"run": run, "cost": 7}));
    let detail = world.json("/runs/default/run-1").await;
    assert_eq!(detail["children"][0]["id"], "part");
    assert_eq!(detail["tree_steps"], 2);
    assert_eq!((&detail["run"]["cost_nano_usd"], &detail["tree_cost_nano_usd"]), (&json!(5), &json!(12)));
    assert_eq!(world.json("/runs/default/part").await["run"]["parent"], "run-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_been_idle_for_long_is_over() {
    let world = World::start().await;
    world.call(&[("x-sprag-run-id", "now")]).await;
    // The record is of the year 1970.
    world.record(1, json!({"run": {"id": "then", "step": 1, "origin": "declared"}}));
    let status = async |id: &str| world.json(&format!("/runs?id={id}")).await["items"][0]["status"].clone();
    assert_eq!((status("now").await, status("then").await), (json!("running"), json!("expired")));
    assert_eq!(ids(&world.json("/runs?status=running").await), ["now"]);
    assert_eq!(ids(&world.json("/runs?status=expired").await), ["then"]);
    assert!(text(&world.page("/runs").await).contains("expired"));
}
