//! Budgets, seen and corrected through the API.

use serde_json::{Value, json};
use sprag_core::id::AgentName;
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Stage, StageAction, Zone};
use sprag_core::time::Timestamp;
use sprag_core::wire::Dialect;
use sprag_store::history::OpenCall;

use crate::commands::printed;
use crate::kills::{done, refused};
use crate::till::{START, Till, budget, configure, sums};
use crate::world::text;

fn row(account: &str, settled: f64, reserved: f64) -> (String, f64, f64) {
    (account.to_owned(), settled, reserved)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_settled_and_what_is_set_aside_stand_apart() {
    let till = Till::start(|settings| {
        settings.budget.budget = budget(Mode::Enforce, 0, 0, 10);
        let stages = [Stage { at: 80, action: StageAction::Warn }];
        let budget = budget(Mode::Shadow, 5, 1, 0);
        configure(settings, "bot", sprag_core::policy::Budget { stages: stages.into(), ..budget });
    })
    .await;
    let rows = till.budgets("").await;
    assert_eq!(sums(&rows), [row("everything monthly", 0.0, 0.0), row("agent:bot daily", 0.0, 0.0)], "before any call");

    assert_eq!(till.spend("bot", "task", 30).await, 200);
    let held = tokio::spawn(till.call("bot", "task", 20).header("x-mock-hold", "").fetch());
    till.world.provider.wait_for(|view| view.total == 2).await.unwrap();
    let rows = till.budgets("").await;
    assert_eq!(sums(&rows), [row("everything monthly", 0.3, 0.2), row("agent:bot daily", 0.3, 0.2)]);
    let expected = json!({
        "account": "agent:bot daily", "level": "agent", "holder": "bot", "window": "daily", "mode": "shadow",
        "limit_usd": 1.0, "limit_nano_usd": 1_000_000_000, "settled_usd": 0.3, "settled_nano_usd": 300_000_000,
        "reserved_usd": 0.2, "reserved_nano_usd": 200_000_000, "remaining_usd": 0.5, "remaining_nano_usd": 500_000_000,
        "used_percent": 30.0, "adjusted_usd": 0.0, "adjusted_nano_usd": 0, "starts_at": "2023-11-14T00:00:00.000Z",
        "ends_at": "2023-11-15T00:00:00.000Z", "reserve": "expected", "stages": [{"at": 80, "action": "warn"}],
    });
    assert_eq!(rows[1], expected);
    let runs = till.budgets("?runs=true").await;
    assert_eq!(sums(&runs)[2..], [row("run:bot/task run", 0.3, 0.2)]);
    let of_run = (&runs[2]["holder"], &runs[2]["limit_usd"], &runs[2]["ends_at"], &runs[2]["mode"]);
    assert_eq!(of_run, (&"bot/task".into(), &5.0.into(), &Value::Null, &"shadow".into()));

    till.world.provider.gate().open();
    assert_eq!(held.await.unwrap().unwrap().status, 200);
    till.world.sprag.settled(2).await;
    let rows = till.budgets("").await;
    assert_eq!(sums(&rows), [row("everything monthly", 0.5, 0.0), row("agent:bot daily", 0.5, 0.0)]);
    // Another day: nobody has drawn on its account yet.
    till.pass_hours(24);
    let rows = till.budgets("").await;
    assert_eq!(sums(&rows), [row("everything monthly", 0.5, 0.0), row("agent:bot daily", 0.0, 0.0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_listed_by_whom_they_concern() {
    let till = Till::start(|settings| {
        settings.budget.budget = budget(Mode::Enforce, 0, 50, 0);
        settings.policies.defaults.budget = budget(Mode::Enforce, 3, 2, 0);
        configure(settings, "free", budget(Mode::Off, 0, 1, 1));
    })
    .await;
    let mut keys = Vec::new();
    for agent in ["bot", "bot", "ops"] {
        let order = json!({"agent": agent, "budget": {"monthly_limit": 7}});
        keys.push(done(&till.world, "POST", "/keys", &order).await["id"].as_str().unwrap().to_owned());
    }
    done(&till.world, "DELETE", &format!("/keys/{}", keys[1]), &json!({})).await;
    till.spend("bot", "a", 10).await;
    till.spend("free", "b", 10).await;
    let names = |rows: Vec<Value>| -> Vec<String> {
        rows.iter().map(|row| row["account"].as_str().unwrap().replace("key:key-", "key:")).collect()
    };
    let key = |at: usize| format!("key:{} monthly", keys[at].trim_start_matches("key-"));
    let mut of_keys = [key(0), key(2)];
    of_keys.sort();
    let all = ["everything daily", "agent:bot daily", &of_keys[0], &of_keys[1]];
    assert_eq!(names(till.budgets("").await), all, "no limit of an agent whose budget is off, no key that has ended");
    assert_eq!(names(till.budgets("?agent=bot").await), ["agent:bot daily", &key(0), "run:bot/a run"]);
    assert_eq!(names(till.budgets(&format!("?key={}", keys[1])).await), [key(1)], "one that has ended, if asked for");
    assert_eq!(names(till.budgets("?agent=free").await), Vec::<String>::new());

    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = till.world.json(&format!("/budgets?runs=true&limit=2{cursor}")).await;
        assert!(page["items"].as_array().unwrap().len() <= 2, "{page}");
        paged.extend(names(page["items"].as_array().unwrap().clone()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={}", next.replace(' ', "%20"));
    }
    assert_eq!(paged, [&all[..], &["run:bot/a run"]].concat());
    let bad = refused(&till.world, "GET", "/budgets?cursor=x", &json!({})).await;
    assert_eq!(bad, (400, "`x` is not a cursor of this listing".to_owned()));
    assert_eq!(till.world.api("/budgets?agnet=bot").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_agents_are_listed_with_what_the_record_says() {
    let till = Till::start(|settings| settings.policies.defaults.budget = budget(Mode::Enforce, 0, 1, 1)).await;
    for number in 0..12 {
        till.spend(&format!("bot-{number:02}"), "task", number + 1).await;
    }
    let data = till.world.sprag.stop().await;
    let till = Till::start_in(data.path().to_owned(), |settings| {
        settings.policies.defaults.budget = budget(Mode::Enforce, 0, 1, 1);
    })
    .await;
    let expected: Vec<_> = (0..12)
        .flat_map(|number| ["daily", "monthly"].map(|window| (number, window)))
        .map(|(number, window)| row(&format!("agent:bot-{number:02} {window}"), f64::from(number + 1) / 100.0, 0.0))
        .collect();
    assert_eq!(sums(&till.budgets("").await), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_budget_shows_in_the_status() {
    let change = |settings: &mut sprag::config::Settings| {
        settings.policies.defaults.budget = budget(Mode::Enforce, 0, 1, 0);
        configure(settings, "watched", budget(Mode::Shadow, 0, 1, 0));
    };
    let till = Till::start(change).await;
    for agent in ["bot", "watched"] {
        till.spend(agent, "task", 100).await;
    }
    let status = till.world.json("/status").await;
    assert_eq!((&status["budgets_used_up"], status.get("lost_calls")), (&json!(1), None));
    let data = till.world.sprag.stop().await;
    let till = Till::start_in(data.path().to_owned(), change).await;
    assert_eq!(till.world.json("/status").await["budgets_used_up"], 1, "also before anybody calls");
    till.adjust("agent:bot daily", "-0.000000001").await;
    assert_eq!(till.world.json("/status").await["budgets_used_up"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_are_those_of_the_configured_zone() {
    let change = |settings: &mut sprag::config::Settings| {
        settings.budget.zone = Zone::named("Asia/Tokyo").unwrap();
        settings.policies.defaults.budget = budget(Mode::Enforce, 0, 1, 0);
    };
    let till = Till::start(change).await;
    till.spend("bot", "task", 10).await;
    till.adjust("agent:bot daily", 0.5).await;
    let rows = till.budgets("").await;
    assert_eq!(sums(&rows), [row("agent:bot daily", 0.6, 0.0)]);
    assert_eq!(
        (&rows[0]["starts_at"], &rows[0]["ends_at"]),
        (&"2023-11-14T15:00:00.000Z".into(), &"2023-11-15T15:00:00.000Z".into())
    );
    // Midnight in Greenwich passes, and the day in Tokyo is the same.
    till.pass_hours(2);
    assert_eq!(sums(&till.budgets("").await), [row("agent:bot daily", 0.6, 0.0)]);
    till.pass_hours(15);
    assert_eq!(sums(&till.budgets("").await), [row("agent:bot daily", 0.0, 0.0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_draws_what_is_settled_and_what_is_set_aside() {
    let till = Till::start(|settings| {
        settings.budget.zone = Zone::named("Europe/Berlin").unwrap();
        settings.policies.defaults.budget = budget(Mode::Enforce, 2, 1, 0);
    })
    .await;
    let empty = text(&till.world.page("/budgets").await);
    assert!(empty.contains("No budgets of a day or a month are set."), "{empty}");
    till.spend("bot", "<b>task", 50).await;
    let held = tokio::spawn(till.call("bot", "<b>task", 20).header("x-mock-hold", "").fetch());
    till.world.provider.wait_for(|view| view.total == 2).await.unwrap();
    let page = text(&till.world.page("/budgets").await);
    for expected in [
        "aria-label=\"50.0 % settled, $0.2000 set aside\"",
        "<rect width=\"500\" height=\"10\"/><rect class=\"reserved\" x=\"500\" width=\"200\" height=\"10\"/>",
        "agent, day",
        "days and months are those of Europe/Berlin",
        "href=\"/budgets\" aria-current=\"page\"",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(!page.contains("run of bot"), "{page}");
    let page = text(&till.world.page("/budgets?runs=on").await);
    assert!(page.contains("run of bot") && !page.contains("<b>task"), "{page}");
    assert_eq!(till.world.page("/budgets?agent=no%20agent").await.status, 400);
    till.world.provider.gate().open();
    assert_eq!(held.await.unwrap().unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_say_which_key_and_what_would_have_been_refused() {
    let till = Till::start(|settings| configure(settings, "bot", budget(Mode::Shadow, 0, 1, 0))).await;
    let key = done(&till.world, "POST", "/keys", &json!({"agent": "ops"})).await;
    assert_eq!(till.spend("bot", "task", 90).await, 200);
    assert_eq!(till.spend("bot", "task", 90).await, 200);
    let events = till.world.json("/events").await;
    let (second, first, made) = (&events["items"][0], &events["items"][1], &events["items"][2]);
    assert_eq!((&made["key"], &first["key"]), (&key["id"], &Value::Null));
    assert_eq!(first["would_block"], json!([]));
    let would = &second["would_block"][0];
    assert_eq!((&would["reason"], &would["exceeded_limit"]), (&"budget_exceeded".into(), &"daily".into()), "{second}");
    let page = text(&till.world.page("/run?agent=bot&id=task").await);
    assert!(page.contains("would block (budget_exceeded: daily)"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_a_crash_cut_show_in_the_status() {
    let till = Till::start(|settings| settings.policies.defaults.budget = budget(Mode::Enforce, 0, 1, 0)).await;
    let open = OpenCall {
        id: "req_cut".to_owned(),
        at: Timestamp(START),
        agent: AgentName::parse("bot").unwrap(),
        key: None,
        run: None,
        provider: "openai".to_owned(),
        dialect: Dialect::OpenaiChat,
        path: "POST /v1/chat/completions".to_owned(),
        model: Some("gpt-4o".to_owned()),
        reserved: NanoUsd(250_000_000),
    };
    assert!(till.world.sprag.app.history.opened(&open));
    let data = till.world.sprag.stop().await;
    let till = Till::start_in(data.path().to_owned(), |settings| {
        settings.policies.defaults.budget = budget(Mode::Enforce, 0, 1, 0);
    })
    .await;
    assert_eq!(till.world.json("/status").await["lost_calls"], 1);
    let shown = printed(&till.world, &["status"]).await;
    assert!(shown.contains("  lost       1 call cut by a crash, charged what was set aside\n"), "{shown}");
    assert_eq!(sums(&till.budgets("").await), [row("agent:bot daily", 0.25, 0.0)]);
}
