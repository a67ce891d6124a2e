//! Stopping everything and parts of it, and budgets, on the dashboard.

use serde_json::json;

use crate::browser::{Browser, field};
use crate::kills::done;
use crate::world::{World, is_inert, links};

#[tokio::test(flavor = "multi_thread")]
async fn everything_stops_at_a_typed_word_and_goes_on_when_lifted() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    assert!(links(&browser.page("/").await).contains(&"/panic".to_owned()));
    for word in ["", "yes", "<script>"] {
        let page = browser.refused("/panic/stop", &[("confirm", word)]).await;
        assert!(field(&page, "confirm").contains("nothing was stopped") && is_inert(&page), "{page}");
    }
    assert_eq!(world.call(&[]).await.status, 200);
    let reason = "<b>a leak</b>";
    assert_eq!(browser.done("/panic/stop", &[("confirm", " STOP "), ("reason", reason)]).await, "/panic");
    assert_eq!(world.call(&[]).await.status, 403);
    let page = browser.page("/panic").await;
    assert!(page.contains("Everything is stopped") && page.contains("&#60;b&#62;a leak") && is_inert(&page), "{page}");
    assert!(!page.contains("action=\"/panic/stop\""), "it is stopped already");
    assert!(browser.page("/keys").await.contains("Everything is stopped"), "every page says so");
    let kill = world.json("/kills").await["items"][0].clone();
    assert_eq!((&kill["scope"], &kill["reason"]), (&json!("all"), &json!(reason)));
    let id = kill["id"].as_str().unwrap();
    assert_eq!(browser.done("/panic/lift", &[("id", id)]).await, "/panic");
    assert_eq!(world.call(&[]).await.status, 200);
    assert_eq!(browser.done("/panic/lift", &[("id", id)]).await, "/panic", "one that is gone is lifted too");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_stopped_listed_in_pages_and_lifted() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    let part = [("scope", "agent:bot"), ("route", "/v1"), ("part_reason", "odd"), ("expires_in_seconds", "600")];
    browser.done("/panic/part", &part).await;
    let kill = world.json("/kills").await["items"][0].clone();
    assert_eq!((&kill["scope"], &kill["route"], &kill["reason"]), (&json!("agent:bot"), &json!("/v1"), &json!("odd")));
    assert!(kill["expires_at"].is_string());
    assert!(browser.page("/panic").await.contains("Agent bot on /v1"));
    for (form, name, said) in [
        (vec![("scope", "")], "scope", "say what to stop"),
        (vec![("scope", "<script>alert(1)</script>")], "scope", "a scope is"),
        (vec![("scope", "agent:bot"), ("route", "v1")], "route", "begins with"),
    ] {
        let page = browser.refused("/panic/part", &form).await;
        assert!(field(&page, name).contains(said) && is_inert(&page), "{form:?}: {page}");
    }
    for number in 0..60 {
        let scope = format!("header:x-name={}<{number}>", if number == 0 { "<script>" } else { "" });
        done(&world, "POST", "/kills", &json!({ "scope": scope })).await;
    }
    let first = browser.page("/panic").await;
    assert!(is_inert(&first), "{first}");
    let lifts = |page: &str| page.matches("action=\"/panic/lift\"").count();
    let next = links(&first).into_iter().find(|link| link.contains("cursor=")).unwrap();
    let second = browser.page(&next).await;
    assert_eq!((lifts(&first), lifts(&second)), (50, 11));
    assert!(is_inert(&second) && second.contains("&#60;script&#62;"), "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_set_and_what_was_spent_corrected() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    assert!(browser.page("/budgets").await.contains("budget.daily_limit=5"));
    world.call(&[("x-sprag-agent", "bot")]).await;
    let to =
        browser.done("/budgets/set", &[("to", "bot"), ("budget.daily_limit", "4"), ("budget.max_run_cost", "")]).await;
    assert_eq!(to, "/budgets?agent=bot&saved=1");
    assert_eq!(world.json("/agents/bot").await["override"], json!({"budget": {"daily_limit": "4"}}));
    let page = browser.page("/budgets").await;
    let links = links(&page);
    assert!(links.contains(&"/agent?name=bot#budget".to_owned()), "{links:?}");
    let adjust = links.into_iter().find(|link| link.contains("adjust=")).unwrap();
    let form = browser.page(adjust.split('#').next().unwrap()).await;
    assert!(form.contains("name=\"account\" value=\"agent:bot daily\""), "{form}");
    let account = ("account", "agent:bot daily");
    browser.done("/budgets/adjust", &[account, ("amount_usd", "+1.50"), ("reason", "<i>by phone</i>")]).await;
    let row = world.json("/budgets?agent=bot").await["items"][0].clone();
    assert_eq!(row["adjusted_usd"], json!(1.5));
    assert!(browser.page("/budgets").await.contains("corrected"));

    for (path, form, name, said) in [
        ("/budgets/set", vec![("to", ""), ("budget.daily_limit", "1")], "to", "an agent has a name"),
        ("/budgets/set", vec![("to", "bot")], "budget.daily_limit", "at least one amount"),
        ("/budgets/set", vec![("to", "bot"), ("budget.daily_limit", "<b>")], "budget.daily_limit", "is not an amount"),
        ("/budgets/adjust", vec![account, ("amount_usd", "much"), ("reason", "x")], "amount_usd", "dollars to add"),
        ("/budgets/adjust", vec![account, ("amount_usd", "0"), ("reason", "x")], "amount_usd", "dollars to add"),
        ("/budgets/adjust", vec![account, ("amount_usd", "-1"), ("reason", " ")], "reason", "stays on record"),
    ] {
        let page = browser.refused(path, &form).await;
        assert!(
            field(&page, name).contains("class=\"complaint\"") && field(&page, name).contains(said),
            "{form:?}: {page}"
        );
        assert!(is_inert(&page));
    }
    let odd = [("account", "<script>"), ("amount_usd", "1"), ("reason", "x")];
    let page = browser.refused("/budgets/adjust", &odd).await;
    assert!(page.contains("class=\"alarm\"") && is_inert(&page), "{page}");
    assert_eq!(world.json("/budgets?agent=bot").await["items"][0]["adjusted_usd"], json!(1.5));
}
