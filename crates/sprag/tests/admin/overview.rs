//! The first page.

use serde_json::{Value, json};

use crate::world::{World, is_inert, links, text};

/// What a chart of the page is drawn from.
fn chart(page: &str, id: &str) -> Value {
    let rest = page.split(&format!("id=\"{id}\"")).nth(1).unwrap();
    let plan = rest.split("data-chart='").nth(1).unwrap().split('\'').next().unwrap();
    serde_json::from_str(&plan.replace("&#34;", "\"")).unwrap()
}

fn sum(values: &Value) -> f64 {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_money_are_drawn_over_time() {
    let world = World::start().await;
    for agent in ["one", "one", "two"] {
        world.call(&[("x-sprag-agent", agent)]).await;
    }
    let cost = world.json("/status").await["today"]["cost_usd"].as_f64().unwrap();
    for (path, steps) in [("/", 60), ("/?span=day", 96), ("/?span=month", 30)] {
        let page = text(&world.page(path).await);
        let (spend, requests) = (chart(&page, "spend-chart"), chart(&page, "requests-chart"));
        assert_eq!(spend["x"].as_array().unwrap().len(), steps, "{path}");
        assert!((sum(&spend["series"][0]["values"]) - cost).abs() < 1e-9, "{path}: {spend}");
        assert_eq!(sum(&requests["series"][0]["values"]), 3.0, "{path}");
        assert!(page.contains("3 requests in the last"), "{page}");
        let agents = page.find(">one</a>").zip(page.find(">two</a>"));
        assert!(agents.is_some_and(|(one, two)| one < two), "the one that spent more stands first: {page}");
    }
    for bad in ["/?span=year", "/?top=size", "/?colour=red"] {
        assert_eq!(world.page(bad).await.status, 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_stop_says_why_and_leads_to_its_run() {
    let world = World::start().await;
    let now = world.sprag.app.clock.now().0;
    let proof = json!({"summary": "`search` was called <b>9</b> times", "compared": "", "threshold": 3.0, "value": 9.0, "window": "", "steps": []});
    let verdict = json!({"detector": "progress", "mode": "enforce", "loop_type": "repeated_step", "confidence": 1.0, "score": 4.0, "count": 4, "proof": proof, "action": "reject", "strike": 1});
    world.record(now, json!({"agent": "looper", "blocked": true, "block_reason": "loop_detected", "verdict": verdict, "status": 429, "ending": "refused", "run": {"id": "round", "step": 9, "origin": "declared"}}));
    world.record(
        now + 1,
        json!({"agent": "spender", "cost": 5, "run": {"id": "dear", "step": 1, "origin": "declared"}}),
    );
    let cookie = world.sign_in().await;
    let csrf = world.csrf(&cookie).await;
    let headers = [("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str())];
    world.submit("/run/kill", "agent=spender&id=dear&reason=enough+%3Ci%3E", &headers).await;
    let page = text(&world.page("/").await);
    for expected in [
        "Going in circles",
        "<code>search</code> was called &#60;b&#62;9&#60;/b&#62; times",
        "enough &#60;i&#62;",
        "by admin",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(is_inert(&page));
    for run in ["/run?agent=looper&id=round", "/run?agent=spender&id=dear"] {
        assert!(links(&page).iter().any(|link| link == run), "{run}: {page}");
    }
    assert!(page.contains("<dt>Saved today</dt>"), "{page}");
    let by_stops = text(&world.page("/?top=stops").await);
    let agents = by_stops.find(">looper</a>").zip(by_stops.find(">spender</a>"));
    assert!(agents.is_some_and(|(looper, spender)| looper < spender), "{by_stops}");
    let by_cost = text(&world.page("/?top=cost").await);
    let agents = by_cost.find(">looper</a>").zip(by_cost.find(">spender</a>"));
    assert!(agents.is_some_and(|(looper, spender)| looper > spender), "{by_cost}");
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_first_call_there_is_no_empty_chart() {
    let world = World::start().await;
    let page = text(&world.page("/?span=month").await);
    assert!(page.contains("Nothing has passed through yet") && !page.contains("data-chart"), "{page}");
    assert!(text(&world.page("/runs").await).contains("No runs on record yet"));
    assert!(text(&world.page("/events").await).contains("No events on record yet"));
}
