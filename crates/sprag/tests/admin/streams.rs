//! What programs read as it happens or all at once: the live stream, exports, series and prices.

use serde_json::{Value, json};
use sprag_core::limits::LIVE_EVENTS;
use sprag_testkit::client::Answer;

use crate::kills::done;
use crate::world::{World, text};

/// Reads the next message of the stream that is no sign of life.
async fn message(stream: &mut Answer, heard: &mut String) -> (String, Value) {
    loop {
        if let Some((message, rest)) = heard.split_once("\n\n") {
            let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            let found = field("event: ").zip(field("data: "));
            *heard = rest.to_owned();
            if let Some((event, data)) = found {
                return (event, serde_json::from_str(&data).unwrap());
            }
            continue;
        }
        let piece = stream.next().await.unwrap().unwrap();
        heard.push_str(std::str::from_utf8(&piece).unwrap());
    }
}

async fn follow(world: &World, path: &str) -> Answer {
    let bearer = format!("Bearer {}", world.token);
    let stream = world.ask(&format!("/api/v1{path}")).header("authorization", &bearer).send().await.unwrap();
    assert_eq!(stream.status, 200);
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_told_as_they_happen_and_only_those_that_are_asked_for() {
    let world = World::start().await;
    let (mut all, mut bots) = (follow(&world, "/live").await, follow(&world, "/live?agent=bot").await);
    let (mut heard, mut heard_of_bot) = (String::new(), String::new());
    world.call(&[("x-sprag-agent", "other"), ("x-sprag-run-id", "first")]).await;
    let answer = world.call(&[("x-sprag-agent", "bot"), ("x-sprag-run-id", "second")]).await;
    let (word, first) = message(&mut all, &mut heard).await;
    assert_eq!((word.as_str(), &first["agent"]), ("event", &json!("other")));
    let (_, second) = message(&mut all, &mut heard).await;
    let (_, of_bot) = message(&mut bots, &mut heard_of_bot).await;
    assert_eq!(second, of_bot);
    assert_eq!((&of_bot["agent"], &of_bot["run"]["id"]), (&json!("bot"), &json!("second")));
    assert_eq!(of_bot["id"], answer.header("x-sprag-request-id"));
    assert_eq!(of_bot, world.json("/events?agent=bot").await["items"][0], "the same as on record");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_too_slow_learns_how_many_were_missed() {
    let world = World::start().await;
    let mut stream = follow(&world, "/live").await;
    let (mut heard, mut seen, mut missed) = (String::new(), 0, 0);
    world.call(&[]).await;
    let (_, event) = message(&mut stream, &mut heard).await;
    seen += 1;
    // Far more than the stream and the connection hold together.
    let event: sprag_core::event::Event = {
        let recorded = world.sprag.events();
        recorded.into_iter().find(|one| one.id == event["id"]).unwrap()
    };
    let long = sprag_core::event::Event { error: Some("x".repeat(4000)), ..event };
    let told = 20 * LIVE_EVENTS as u64;
    for _ in 0..told {
        world.sprag.app.live.tell(&long);
    }
    while seen + missed < told + 1 {
        match message(&mut stream, &mut heard).await {
            (word, data) if word == "missed" => missed += data["missed"].as_u64().unwrap(),
            _ => seen += 1,
        }
    }
    assert!(missed > 0, "{seen} of {told} were heard");
    assert_eq!(seen + missed, told + 1, "every event is heard or counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_sprag_stops_and_with_the_session_that_opened_it() {
    let world = World::start().await;
    let cookie = world.sign_in().await;
    let mut browser = world.ask("/api/v1/live").header("cookie", &cookie).send().await.unwrap();
    let mut program = follow(&world, "/live").await;
    let csrf = world.csrf(&cookie).await;
    world.submit("/logout", "", &[("cookie", &cookie), ("x-csrf-token", &csrf)]).await;
    let made = done(&world, "POST", "/tokens", &json!({"name": "anna", "role": "viewer"})).await;
    let (id, bearer) = (made["id"].as_str().unwrap(), format!("Bearer {}", made["secret"].as_str().unwrap()));
    let mut viewer = world.ask("/api/v1/live").header("authorization", &bearer).send().await.unwrap();
    assert_eq!(viewer.status, 200, "a viewer may look");
    done(&world, "DELETE", &format!("/tokens/{id}"), &json!({})).await;
    world.call(&[]).await;
    while let Some(piece) = viewer.next().await.unwrap() {
        assert!(!String::from_utf8_lossy(&piece).contains("event: event"));
    }
    while let Some(piece) = browser.next().await.unwrap() {
        assert!(!String::from_utf8_lossy(&piece).contains("event: event"));
    }
    message(&mut program, &mut String::new()).await;
    let stopping = tokio::spawn(world.sprag.stop());
    while program.next().await.is_ok_and(|piece| piece.is_some()) {}
    stopping.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_holds_everything_once_and_nothing_that_a_spreadsheet_runs() {
    let world = World::start().await;
    for at in 1..=1203 {
        world.record(at, json!({"cost": 1, "agent": if at % 3 == 0 { "rare" } else { "common" }}));
    }
    let run = json!({"id": "=HYPERLINK(\"http://evil\")", "step": 1, "origin": "declared"});
    world.record(5000, json!({"agent": "tricky", "run": run, "model": "@SUM(A1)", "error": "-1+1\nand, more", "blocked": true, "block_reason": "rate_limited"}));
    let bearer = format!("Bearer {}", world.token);
    world.submit("/api/v1/runs/rare/run-3/kill", "{\"reason\": \"+evil\"}", &[("authorization", &bearer)]).await;

    let answer = world.api("/events/export?format=jsonl").await;
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    assert!(answer.header("content-disposition").contains("sprag-events.jsonl"));
    let lines: Vec<Value> = text(&answer).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1205);
    assert_eq!(lines[..500], *world.json("/events?limit=500").await["items"].as_array().unwrap());
    let mut ids: Vec<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 1205);

    let rare = text(&world.api("/events/export?format=csv&agent=rare").await);
    assert!(rare.starts_with("at,id,kind,agent,"), "{rare}");
    assert_eq!(rare.lines().count(), 1 + 401 + 1, "a heading, the calls and the kill");
    assert!(rare.contains("killed run:rare/run-3 by admin: +evil"), "{rare}");
    let tricky = text(&world.api("/events/export?format=csv&reason=rate_limited").await);
    for inert in ["\"'=HYPERLINK(\"\"http://evil\"\")\"", ",'@SUM(A1),", "\"'-1+1\nand, more\""] {
        assert!(tricky.contains(inert), "{inert}: {tricky}");
    }
    let page = world.page("/events/export?format=csv&show=stopped").await;
    assert_eq!((page.status.as_u16(), text(&page)), (200, tricky), "the page offers the same");
    assert_eq!(world.page("/events/export").await.status, 400);
    assert_eq!(world.ask("/events/export?format=csv").fetch().await.unwrap().status, 303);
    assert_eq!(world.ask("/api/v1/events/export?format=csv").fetch().await.unwrap().status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn spend_comes_in_even_steps() {
    let world = World::start().await;
    let cost: Value = {
        world.call(&[("x-sprag-agent", "bot")]).await;
        world.json("/events").await["items"][0]["cost_nano_usd"].clone()
    };
    for (path, steps, seconds) in [
        ("/spend", 96, 900),
        ("/spend?span=hour", 60, 60),
        ("/spend?span=month", 30, 86_400),
        ("/spend?span=hour&agent=bot", 5, 900),
    ] {
        let series = world.json(path).await;
        let items = series["items"].as_array().unwrap();
        assert_eq!((items.len(), &series["bucket_seconds"]), (steps, &json!(seconds)), "{path}");
        let sum = |name: &str| items.iter().map(|item| item[name].as_i64().unwrap()).sum::<i64>();
        assert_eq!((sum("requests"), json!(sum("cost_nano_usd"))), (1, cost.clone()), "{path}");
    }
    let other = world.json("/spend?agent=other").await;
    assert!(other["items"].as_array().unwrap().iter().all(|item| item["requests"] == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_in_force_are_listed_in_pages() {
    let world = World::start().await;
    let listing = world.json("/prices?model=gpt-4o-mini&provider=openai").await;
    assert!(listing["gathered"].is_string());
    let mini =
        listing["items"].as_array().unwrap().iter().find(|price| price["model"] == "gpt-4o-mini").unwrap().clone();
    assert_eq!((&mini["provider"], &mini["input"]), (&json!("openai"), &json!(0.15)));
    let (mut found, mut cursor) = (0, String::new());
    loop {
        let page = world.json(&format!("/prices?model=gpt-4o&limit=5{cursor}")).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.iter().all(|price| price["model"].as_str().unwrap().contains("gpt-4o")));
        found += items.len();
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, world.json("/prices?model=gpt-4o&limit=500").await["items"].as_array().unwrap().len());
    assert_eq!(world.json("/prices?model=no-such-model").await["items"], json!([]));
}
