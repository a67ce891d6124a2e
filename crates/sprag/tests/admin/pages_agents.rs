//! The pages of agents: where they stand, their kill switch, and what they may do.

use serde_json::{Value, json};
use sprag::config::Secret;
use sprag_core::id::AgentName;
use sprag_core::loops::{Proof, ProofStep};
use sprag_core::policy::DeactivatedBy;
use sprag_core::time::Timestamp;

use crate::browser::{Browser, field};
use crate::kills::done;
use crate::world::{TOKEN, World, is_inert, links, text};

const BOT: &str = "/agent?name=bot";

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_listed_with_where_they_stand_and_found_by_name() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    assert!(browser.page("/agents").await.contains("No agent has called yet"));
    for agent in ["search-bot", "build-bot", "writer"] {
        world.call(&[("x-sprag-agent", agent)]).await;
    }
    browser.done("/agents/deactivate", &[("name", "writer"), ("reason", "<b>holiday</b>")]).await;
    let build = AgentName::parse("build-bot").unwrap();
    let killed = |standing: &sprag_core::policy::AgentStanding| {
        standing.deactivated(DeactivatedBy::KillSwitch, "score 12".into(), None, Timestamp(1))
    };
    world.sprag.app.catalog.set_agent(&build, killed).unwrap();
    let page = browser.page("/agents").await;
    for expected in ["Deactivated by Kill Switch", ">Inactive<", ">Active<", ">search-bot<"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(links(&page).contains(&"/agent?name=search%2Dbot".to_owned()), "{page}");
    for (query, found) in [
        ("q=BOT", &["search-bot", "build-bot"][..]),
        ("q=bot&state=killed", &["build-bot"]),
        ("state=inactive", &["build-bot", "writer"]),
        ("state=active", &["search-bot"]),
        ("state=armed", &[]),
        ("q=%3Cscript%3E", &[]),
    ] {
        let page = browser.page(&format!("/agents?{query}")).await;
        assert!(is_inert(&page), "{query}");
        for name in ["search-bot", "build-bot", "writer"] {
            let is_listed = page.contains(&format!(">{name}</a>"));
            assert_eq!(is_listed, found.contains(&name), "{query}: {name}");
        }
    }
    let page = browser.page("/agent?name=writer").await;
    assert!(page.contains("&#60;b&#62;holiday&#60;/b&#62;") && is_inert(&page), "{page}");
    assert_eq!(browser.done("/agents/activate", &[("name", "writer"), ("from", "agent")]).await, "/agent?name=writer");
    assert!(!browser.page("/agent?name=writer").await.contains("holiday"));
    assert_eq!(browser.get("/agent?name=nobody").await.status, 404);
    assert_eq!(browser.get("/agent").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_set_up_ahead_of_its_first_call() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    assert_eq!(browser.done("/agents/add", &[("name", " bot ")]).await, BOT);
    assert!(browser.page(BOT).await.contains(">never<"));
    let again = browser.refused("/agents/add", &[("name", "bot")]).await;
    assert!(field(&again, "name").contains("is known already"), "{again}");
    let bad = browser.refused("/agents/add", &[("name", "<script>alert(1)</script>")]).await;
    assert!(is_inert(&bad) && field(&bad, "name").contains("class=\"complaint\""), "{bad}");
    assert!(bad.contains("hx-get=\"/agents\""), "the address of the form has no news: {bad}");
    assert!(browser.page("/agents").await.contains("hx-get=\"\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proof_of_a_kill_switch_is_shown() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    world.call(&[("x-sprag-agent", "bot")]).await;
    let proof = Proof {
        summary: "<i>the same</i> three times".to_owned(),
        steps: vec![ProofStep {
            step: 7,
            alike: "same_prompt".to_owned(),
            tools: vec!["shell".into()],
            ..ProofStep::default()
        }],
        ..Proof::default()
    };
    let proof = serde_json::to_value(proof).unwrap();
    let killed = |standing: &sprag_core::policy::AgentStanding| {
        standing.deactivated(DeactivatedBy::KillSwitch, "score 12 over 10".into(), Some(proof), Timestamp(1))
    };
    world.sprag.app.catalog.set_agent(&AgentName::parse("bot").unwrap(), killed).unwrap();
    let page = browser.page(BOT).await;
    for expected in ["Deactivated by Kill Switch", "score 12 over 10", "&#60;i&#62;the same", "same prompt", ">7<"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(is_inert(&page));
    for is_blocked in [true, false] {
        world.call(&[("x-sprag-agent", "bot")]).await;
        let events = world.json("/events?agent=bot").await;
        let last = events["items"].as_array().unwrap().iter().find(|event| event["act"].is_null()).unwrap();
        assert_eq!(last["blocked"], is_blocked);
        browser.done("/agents/activate", &[("name", "bot"), ("from", "agent")]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_set_by_its_form_and_taken_back() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    world.call(&[("x-sprag-agent", "bot")]).await;
    let page = browser.page(BOT).await;
    assert!(field(&page, "run_limits.max_steps").contains("placeholder=\"30\""), "{page}");
    assert!(field(&page, "budget.daily_limit").contains(">default<"));
    let form = [
        ("name", "bot"),
        ("budget.daily_limit", "$5.50"),
        ("budget.kill_run", "false"),
        ("run_limits.max_steps", "2"),
        ("models.allow", "gpt-4o*\r\nclaude-*"),
        ("hours.time_zone", "Europe/Berlin"),
        ("dlp.profile", "log_only"),
        ("dlp.modes.pii", "off"),
        ("detection.preset", "observe"),
        ("detection.chant.mode", "enforce"),
        ("budget.monthly_limit", ""),
        ("rates", "1"),
        ("rate-0-amount", "600"),
        ("rate-0-what", "requests"),
        ("rate-0-window", "60"),
        ("rate-0-keys", "agent, model"),
        ("rate-0-mode", "shadow"),
        ("rate-1-amount", ""),
    ];
    assert_eq!(browser.done("/agent/policy", &form).await, "/agent?name=bot&saved=1");
    let set = world.json("/agents/bot").await["override"].clone();
    let expected = json!({
        "budget": {"daily_limit": "5.50", "kill_run": false},
        "run_limits": {"max_steps": 2},
        "models": {"allow": ["gpt-4o*", "claude-*"]},
        "hours": {"time_zone": "Europe/Berlin"},
        "dlp": {"profile": "log_only", "modes": {"pii": "off"}},
        "detection": {"preset": "observe", "chant": {"mode": "enforce"}},
        "rate_limits": [{"limit_keys": ["agent", "model"], "mode": "shadow", "requests": 600, "window_seconds": 60}],
    });
    assert_eq!(set, expected);
    let page = browser.page("/agent?name=bot&saved=1").await;
    assert!(page.contains("Saved."), "{page}");
    assert!(field(&page, "budget.daily_limit").contains("value=\"5.50\""), "{page}");
    assert!(field(&page, "budget.daily_limit").contains("set here"));
    assert!(field(&page, "dlp.modes.pii").contains("<option value=\"off\" selected>"));
    assert!(page.contains("name=\"rate-0-amount\" value=\"600\""), "{page}");

    // The same again changes nothing, and leaves no event.
    let events = |world: &World| {
        let read = world.sprag.app.history.clone();
        read.flush().unwrap();
        let filter = sprag_store::history::EventFilter::default();
        read.events(&filter, None, 100).unwrap().items.iter().filter(|event| event.act.is_some()).count()
    };
    let before = events(&world);
    browser.done("/agent/policy", &form).await;
    assert_eq!(events(&world), before);

    let emptied = [("name", "bot"), ("budget.daily_limit", ""), ("rates", "1"), ("rate-0-amount", "")];
    browser.done("/agent/policy", &emptied).await;
    browser.done("/agent/policy/reset", &[("name", "bot"), ("key", "dlp.modes.pii")]).await;
    let set = world.json("/agents/bot").await["override"].clone();
    assert_eq!((&set["budget"], &set["rate_limits"]), (&json!({"kill_run": false}), &json!([])));
    assert_eq!(set["dlp"], json!({"profile": "log_only"}));
    browser.done("/agent/policy/reset", &[("name", "bot"), ("key", "rate_limits")]).await;
    assert_eq!(world.json("/agents/bot").await["override"].get("rate_limits"), None);
    assert_eq!(browser.send("/agent/policy/reset", &[("name", "bot"), ("key", "kill_switch")]).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_said_at_its_field_and_changes_nothing() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    world.call(&[("x-sprag-agent", "bot")]).await;
    let page = browser
        .refused(
            "/agent/policy",
            &[
                ("name", "bot"),
                ("budget.daily_limit", "<script>much</script>"),
                ("budget.monthly_limit", "-1"),
                ("run_limits.max_steps", "many"),
                ("hours.allowed", "funday 9-5"),
                ("models.allow", "gpt-4o"),
                ("rates", "1"),
                ("rate-0-amount", "5"),
                ("rate-0-what", "tokens"),
                ("rate-0-window", ""),
            ],
        )
        .await;
    assert!(is_inert(&page), "{page}");
    assert!(field(&page, "run_limits.max_steps").contains("expected a whole number"), "{page}");
    assert!(field(&page, "run_limits.max_steps").contains("value=\"many\""));
    assert!(!field(&page, "models.allow").contains("complaint") && field(&page, "models.allow").contains(">gpt-4o<"));

    // The schema is asked first; what only makes sense together comes up when that is right.
    let page = browser
        .refused(
            "/agent/policy",
            &[
                ("name", "bot"),
                ("budget.daily_limit", "<script>much</script>"),
                ("budget.monthly_limit", "-1"),
                ("hours.allowed", "funday 9-5"),
                ("rates", "1"),
                ("rate-0-amount", ""),
                ("rate-1-amount", "5"),
                ("rate-1-what", "tokens"),
            ],
        )
        .await;
    assert!(is_inert(&page), "{page}");
    for (name, said) in [
        ("budget.daily_limit", "is not an amount of dollars"),
        ("budget.daily_limit", "value=\"&#60;script&#62;much"),
        ("budget.monthly_limit", "class=\"complaint\""),
        ("hours.allowed", "class=\"complaint\""),
    ] {
        assert!(field(&page, name).contains(said), "{name}: {page}");
    }
    let row = page.split("aria-label=\"Rate limit 2\"").nth(1).unwrap();
    assert!(row.contains("`tokens` needs `window_seconds`"), "{row}");
    assert_eq!(world.json("/agents/bot").await["override"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn turning_the_kill_switch_on_asks_for_an_alert_channel() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    world.call(&[("x-sprag-agent", "bot")]).await;
    let on = [("name", "bot"), ("enabled", "on"), ("window_size", "30"), ("threshold", "7.5")];
    let ask = browser.send("/agent/kill-switch", &on).await;
    assert_eq!(ask.status, 200);
    let ask = text(&ask);
    for expected in ["No alert channel is configured", "Set up a channel", "Enable without", "value=\"7.5\""] {
        assert!(ask.contains(expected), "{expected}: {ask}");
    }
    let switch = |agent: &Value| agent["kill_switch"].clone();
    assert_eq!(switch(&world.json("/agents/bot").await)["enabled"], false, "nothing is set before the answer");
    let without: Vec<_> = on.into_iter().chain([("without_alerts", "true")]).collect();
    assert_eq!(browser.done("/agent/kill-switch", &without).await, "/agent?name=bot&saved=1");
    let expected = json!({"enabled": true, "window_size": 30, "threshold": 7.5});
    assert_eq!(switch(&world.json("/agents/bot").await), expected);
    assert!(browser.page(BOT).await.contains("name=\"enabled\" checked"));

    // Who has it on may change it, and turn it off, without being asked.
    browser
        .done("/agent/kill-switch", &[("name", "bot"), ("enabled", "on"), ("window_size", "31"), ("threshold", "8")])
        .await;
    browser.done("/agent/kill-switch", &[("name", "bot"), ("window_size", "31"), ("threshold", "8")]).await;
    assert_eq!(
        switch(&world.json("/agents/bot").await),
        json!({"enabled": false, "window_size": 31, "threshold": 8.0})
    );

    for (window, threshold, said) in [
        ("4", "8", "5 to 100"),
        ("101", "8", "5 to 100"),
        ("20", "0.5", "1 to 50"),
        ("x", "nan", "a number from 1 to 50"),
    ] {
        let form = [("name", "bot"), ("enabled", "on"), ("window_size", window), ("threshold", threshold)];
        let page = browser.refused("/agent/kill-switch", &form).await;
        assert!(
            page.split("class=\"complaint\">").skip(1).any(|rest| rest.split('<').next().unwrap().contains(said)),
            "{page}"
        );
        assert!(page.contains(&format!("value=\"{window}\"")), "what was typed stays: {page}");
    }
    assert_eq!(switch(&world.json("/agents/bot").await)["enabled"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_sees_the_policy_and_no_button() {
    let viewer = "a-token-for-those-who-only-look-0123456789";
    let world = World::configured(TOKEN, |settings| settings.admin.viewer_token = Some(Secret::new(viewer))).await;
    world.call(&[("x-sprag-agent", "bot")]).await;
    done(&world, "PATCH", "/agents/bot", &json!({"policy": {"budget": {"daily_limit": 5}}})).await;
    let browser = Browser::with(&world, viewer).await;
    for path in [BOT, "/agents", "/budgets", "/keys", "/panic", "/dlp", "/detectors", "/settings"] {
        let page = browser.page(path).await;
        let forms: Vec<&str> =
            page.split("<form").skip(1).filter(|form| form.split('>').next().unwrap().contains("post")).collect();
        let buttons = forms.iter().filter(|form| form.split("</form>").next().unwrap().contains("<button")).count();
        assert_eq!(buttons, 1, "only the one that signs out on {path}: {page}");
    }
    assert!(browser.page(BOT).await.contains("value=\"5\""));
    assert_eq!(browser.send("/agent/policy", &[("name", "bot"), ("budget.daily_limit", "9")]).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_draws_what_was_spent_and_stopped() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    let now = world.sprag.app.clock.now().0;
    world.record(now - 1000, json!({"agent": "bot", "cost": 2_500_000_000_i64}));
    world.record(now - 500, json!({"agent": "bot", "blocked": true, "status": 429, "block_reason": "loop_detected"}));
    world.record(now - 5 * 86_400_000, json!({"agent": "bot", "cost": 1_000_000_000_i64}));
    for (span, spent) in [("day", 2.5), ("week", 3.5), ("month", 3.5)] {
        let page = browser.page(&format!("{BOT}&span={span}")).await;
        let charts: Vec<Value> = page
            .split("data-chart=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().replace("&#34;", "\""))
            .map(|json| serde_json::from_str(&json).unwrap())
            .collect();
        let sum = |chart: &Value, series: usize| -> f64 {
            chart["series"][series]["values"].as_array().unwrap().iter().filter_map(Value::as_f64).sum()
        };
        assert!((sum(&charts[0], 0) - spent).abs() < 1e-9, "{span}: {charts:?}");
        assert_eq!(sum(&charts[1], 1), 1.0, "{span}");
        assert!(page.contains("$2.50") || page.contains("$3.50"), "{page}");
    }
    assert_eq!(browser.get(&format!("{BOT}&span=year")).await.status, 400);
}
