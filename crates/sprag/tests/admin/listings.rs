//! Runs and events as pages: narrowed, exported, and runs stopped in bulk.

use serde_json::json;

use crate::world::{World, links, text};

/// The runs that a page of runs lists.
async fn runs(world: &World, query: &str) -> Vec<String> {
    let page = text(&world.page(&format!("/runs?{query}")).await);
    let of = |link: String| link.strip_prefix("/run?").and_then(|rest| rest.split("id=").nth(1).map(str::to_owned));
    links(&page).into_iter().filter_map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_narrowed_and_the_form_says_by_what() {
    let world = World::start().await;
    for at in 1..=4 {
        let (agent, model) = (if at % 2 == 0 { "even" } else { "odd" }, if at > 2 { "large" } else { "small" });
        world.record(at, json!({"agent": agent, "model": model, "cost": at * 1_000_000_000}));
    }
    world.call(&[("x-sprag-run-id", "fresh")]).await;
    for (query, expected) in [
        ("agent=odd", vec!["run%2D3", "run%2D1"]),
        ("model=large&agent=even", vec!["run%2D4"]),
        ("min_cost=3", vec!["run%2D4", "run%2D3"]),
        ("min_cost=%243&status=", vec!["run%2D4", "run%2D3"]),
        ("id=run-2", vec!["run%2D2"]),
        ("status=running", vec!["fresh"]),
        ("status=expired&model=small", vec!["run%2D2", "run%2D1"]),
        ("status=killed", vec![]),
    ] {
        assert_eq!(runs(&world, query).await, expected, "{query}");
    }
    let page = text(&world.page("/runs?agent=odd&status=expired&model=large&min_cost=0.5&id=run").await);
    for kept in [
        "name=\"agent\" value=\"odd\"",
        "<option selected>expired</option>",
        "name=\"model\" value=\"large\"",
        "name=\"min_cost\" value=\"0.5\"",
        "name=\"id\" value=\"run\"",
        ">Clear<",
    ] {
        assert!(page.contains(kept), "{kept}: {page}");
    }
    assert!(text(&world.page("/runs?agent=nobody").await).contains("No such runs on record"));
    for bad in ["status=dead", "min_cost=much", "min_cost=-1", "killed=x", "colour=red"] {
        assert_eq!(world.page(&format!("/runs?{bad}")).await.status, 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ticked_runs_are_killed_together_and_the_list_stays_narrowed() {
    let world = World::start().await;
    let tricky = "a/b & \"c\"";
    for run in ["one", "two", "three", tricky] {
        world.call(&[("x-sprag-run-id", run)]).await;
    }
    let page = text(&world.page("/runs").await);
    assert!(page.contains("value=\"run:default/one\" form=\"kill-picked\""), "{page}");
    assert!(page.contains("data-confirm="), "{page}");
    let cookie = world.sign_in().await;
    let csrf = world.csrf(&cookie).await;
    let headers = [("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str())];
    let form =
        "agent=default&model=gpt-4o&reason=too+dear&run=run%3Adefault%2Fone&run=run%3Adefault%2Fa%2Fb+%26+%22c%22";
    let answer = world.submit("/runs/kill", form, &headers).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("location")),
        (303, "/runs?agent=default&model=gpt%2D4o&killed=2")
    );
    let page = text(&world.page(answer.header("location")).await);
    assert!(page.contains("2 runs were killed") && page.contains("too dear"), "{page}");
    let killed = world.json("/runs?status=killed").await;
    let mut ids: Vec<&str> =
        killed["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [tricky, "one"]);
    assert_eq!(killed["items"][0]["stopped"]["reason"], "too dear");
    assert_eq!(world.call(&[("x-sprag-run-id", "one")]).await.status, 403);
    assert_eq!(world.call(&[("x-sprag-run-id", "two")]).await.status, 200);
    for bad in ["", "reason=x", "run=all", "run=agent%3Adefault", "run=run%3Adefault"] {
        let answer = world.submit("/runs/kill", bad, &headers).await;
        assert_eq!(answer.status, 400, "{bad}");
    }
    let foreign = world.submit("/runs/kill", form, &[("cookie", &cookie)]).await;
    assert_eq!(foreign.status, 403, "a form of another site");
    assert_eq!(world.submit("/runs/kill", form, &[]).await.header("location"), "/login");
    assert_eq!(world.json("/status").await["kills"], 2, "nothing else was stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_show_calls_findings_and_what_was_done() {
    let world = World::start().await;
    world.record(1, json!({"agent": "a", "model": "small"}));
    world.record(2, json!({"agent": "a", "model": "large", "blocked": true, "block_reason": "budget_exceeded", "status": 402, "ending": "refused"}));
    let seen = json!({"entity": "EMAIL", "direction": "request", "outcome": "redacted", "path": "messages[0]", "start": 0, "length": 5, "hint": "a…"});
    world.record(3, json!({"agent": "b", "dlp": {"total": 1, "list": [seen]}}));
    world.call(&[("x-sprag-agent", "c"), ("x-sprag-run-id", "task")]).await;
    let cookie = world.sign_in().await;
    let csrf = world.csrf(&cookie).await;
    let headers = [("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str())];
    world.submit("/run/kill", "agent=c&id=task&reason=enough", &headers).await;
    let rows = async |query: &str| {
        let page = text(&world.page(&format!("/events?{query}")).await);
        (page.matches("<td class=\"when\">").count(), page)
    };
    let (all, page) = rows("").await;
    assert_eq!(all, 5, "{page}");
    for expected in ["killed run:c/task by admin: enough", "redacted EMAIL", "Budget used up", ">402<", "small"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    for (query, count) in [
        ("show=requests", 4),
        ("show=stopped", 1),
        ("show=findings", 1),
        ("show=admin", 1),
        ("show=run_killed", 0),
        ("show=kill_switch", 0),
        ("show=budget", 0),
        ("reason=budget_exceeded", 1),
        ("reason=rate_limited", 0),
        ("agent=a", 2),
        ("agent=a&model=small", 1),
        ("run=task", 2),
        ("run=task&agent=a", 0),
        ("run=none", 0),
        ("within=1h", 2),
        ("within=30d&show=requests", 1),
        ("agent=&run=&model=&show=&reason=&within=", 5),
    ] {
        let (found, page) = rows(query).await;
        assert_eq!(found, count, "{query}: {page}");
    }
    let (_, page) = rows("agent=a&show=stopped").await;
    assert!(links(&page).contains(&"/events/export?agent=a&show=stopped&format=csv".to_owned()), "{page}");
    assert!(links(&page).contains(&"/events/export?agent=a&show=stopped&format=jsonl".to_owned()), "{page}");
    for bad in ["show=some", "reason=why", "within=1y", "format=csv", "cursor=x", "colour=red"] {
        assert_eq!(world.page(&format!("/events?{bad}")).await.status, 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_address_of_calls_leads_to_events() {
    let world = World::start().await;
    for (old, new) in [("/calls", "/events"), ("/calls?agent=bot&model=gpt-4o", "/events?agent=bot&model=gpt%2D4o")] {
        let answer = world.page(old).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (308, new));
    }
}
