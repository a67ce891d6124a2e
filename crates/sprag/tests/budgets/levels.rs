//! Whose money it is: of a key, of an agent, of everybody, of a run and of the runs it is a part of.

use serde_json::{Value, json};
use sprag_core::policy::{Budget, Window};
use sprag_testkit::client::{self, Whole};

use crate::purse::{Purse, budget, cents, chat, reason, run_key};

/// A call that says how long its answer may get.
fn said(purse: &Purse, run: &str, cents: u64) -> client::Call {
    let mut body = chat("hello");
    body["max_tokens"] = json!(cents);
    purse.send(run, cents, &body)
}

/// Level, limit and what is spent, as a refusal tells it.
fn told(answer: &Whole) -> (String, String, f64) {
    let error = &answer.json()["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (text("level"), text("exceeded_limit"), error["current_cost"].as_f64().unwrap_or(-1.0))
}

fn is(level: &str, limit: &str, spent: f64) -> (String, String, f64) {
    (level.to_owned(), limit.to_owned(), spent)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_level_refuses_in_its_own_words() {
    let purse = Purse::start(|settings| {
        settings.policies.defaults.budget = budget(Window::Day, 150);
        settings.budget.budget = budget(Window::Month, 240);
    })
    .await;
    let key = purse.issue("bot", budget(Window::Day, 100)).await;
    let keyed = format!("Bearer {}", key.secret.reveal());
    let by_key = async |cents| said(&purse, "task", cents).header("authorization", &keyed).fetch().await.unwrap();
    let by_name =
        async |agent: &str, cents| said(&purse, "task", cents).header("x-sprag-agent", agent).fetch().await.unwrap();
    assert_eq!(by_key(90).await.status, 200);
    assert_eq!(told(&by_key(20).await), is("key", "daily", 0.9));
    assert_eq!(by_name("bot", 50).await.status, 200, "the agent has more than its key");
    assert_eq!(told(&by_name("bot", 20).await), is("agent", "daily", 1.4));
    assert_eq!(told(&by_key(11).await), is("key", "daily", 0.9), "the key is blamed first");
    assert_eq!(told(&by_key(10).await).0, "", "and the agent's money is enough for both");
    // A name that nobody has used has a budget of its own, but everybody's money is the same.
    assert_eq!(by_name("elsewhere", 80).await.status, 200);
    assert_eq!(told(&by_name("elsewhere", 20).await), is("everything", "monthly", 2.3));
    purse.nothing_is_reserved();
    let settled = |text: &str| purse.account(text).settled;
    assert_eq!(settled(&format!("key:{} daily", key.entry.key.id)), cents(100));
    assert_eq!((settled("agent:bot daily"), settled("everything monthly")), (cents(150), cents(230)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tightest_limit_of_all_levels_is_the_runs() {
    let purse = Purse::start(|settings| {
        settings.policies.defaults.budget = budget(Window::Run, 100);
        settings.budget.budget = Budget { kill_run: false, ..budget(Window::Run, 50) };
    })
    .await;
    assert_eq!(said(&purse, "task", 40).fetch().await.unwrap().status, 200);
    assert_eq!(told(&said(&purse, "task", 20).fetch().await.unwrap()), is("everything", "run", 0.4));
    assert_eq!(said(&purse, "task", 10).fetch().await.unwrap().status, 200, "and it is not killed for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_run_spends_the_money_of_the_whole() {
    let purse = Purse::start(|settings| settings.policies.defaults.budget = budget(Window::Run, 100)).await;
    let part = |run: &str, above: &str, cents| said(&purse, run, cents).header("x-sprag-parent-run-id", above);
    assert_eq!(said(&purse, "top", 30).fetch().await.unwrap().status, 200);
    assert_eq!(part("middle", "top", 30).fetch().await.unwrap().status, 200);
    assert_eq!(part("leaf", "middle", 30).fetch().await.unwrap().status, 200);
    for (run, spent) in [("top", 90), ("middle", 60), ("leaf", 30)] {
        assert_eq!(purse.account(&format!("run:default/{run} run")).settled, cents(spent), "{run}");
    }
    let refused = part("other-leaf", "middle", 20).fetch().await.unwrap();
    assert_eq!(told(&refused), is("agent", "run", 0.9), "{}", refused.json());
    // It is the whole that is out of money.
    assert_eq!(refused.json()["error"]["killed_run"], "top", "{}", refused.json());
    assert_eq!(reason(&said(&purse, "top", 1).fetch().await.unwrap()), "run_killed");
    assert_eq!(reason(&part("leaf", "middle", 1).fetch().await.unwrap()), "run_killed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_run_begins_anew_and_the_day_does_not() {
    let purse = Purse::start(|settings| {
        let mut both = budget(Window::Run, 100);
        both.daily_limit = Some(cents(150));
        settings.policies.defaults.budget = both;
    })
    .await;
    assert_eq!(said(&purse, "task", 90).fetch().await.unwrap().status, 200);
    assert_eq!(reason(&said(&purse, "task", 20).fetch().await.unwrap()), "budget_exceeded");
    assert_eq!(reason(&said(&purse, "task", 1).fetch().await.unwrap()), "run_killed");
    purse.sprag.app.resume(run_key("default", "task"), "anna".to_owned()).await.unwrap();
    assert_eq!(said(&purse, "task", 50).fetch().await.unwrap().status, 200, "a fresh hundred");
    assert_eq!(purse.account("run:default/task run").settled, cents(50));
    assert_eq!(told(&said(&purse, "task", 20).fetch().await.unwrap()), is("agent", "daily", 1.4));
    let (purse, _data) = purse.restarted(|settings| settings.policies.defaults.budget = budget(Window::Run, 100)).await;
    assert_eq!(said(&purse, "task", 50).fetch().await.unwrap().status, 200, "also after a restart");
    assert_eq!(reason(&said(&purse, "task", 1).fetch().await.unwrap()), "budget_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn embeddings_cost_their_input_and_free_questions_cost_nothing() {
    let purse = Purse::start(|settings| {
        settings.policies.defaults.budget =
            Budget { reserve: sprag_core::policy::Reserve::WorstCase, ..budget(Window::Day, 100) };
        let price = json!({"model": "text-embedding-3-small", "input": "100", "output": "0"});
        settings.prices.overrides.push(serde_json::from_value(price).unwrap());
    })
    .await;
    let embed = async |text: &str, tokens: u64| {
        let body = json!({"model": "text-embedding-3-small", "input": text});
        let call = client::post_json(purse.sprag.url("/v1/embeddings"), &body);
        call.header("x-mock-usage", &format!("input={tokens} output=0")).fetch().await.unwrap()
    };
    assert_eq!(embed("hello", 2000).await.status, 200);
    assert_eq!(purse.account("agent:default daily").settled, cents(20));
    assert_eq!(embed(&"x".repeat(100_000), 1).await.status, 402, "it may be ten dollars");
    assert_eq!(said(&purse, "task", 80).fetch().await.unwrap().status, 200);
    assert_eq!(embed("hello", 1).await.status, 402);
    let count: Value = json!({"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hello"}]});
    let counted = client::post_json(purse.sprag.url("/v1/messages/count_tokens"), &count).fetch().await.unwrap();
    assert_eq!(counted.status, 200, "nobody charges for that");
    assert_eq!(client::get(purse.sprag.url("/v1/models")).fetch().await.unwrap().status, 200);
    purse.quiet().await;
    purse.nothing_is_reserved();
    assert_eq!(purse.account("agent:default daily").settled, cents(100));
}

#[tokio::test(flavor = "multi_thread")]
async fn models_without_a_price_meet_a_spent_budget_and_free_ones_do_not() {
    let purse = Purse::start(|settings| {
        settings.policies.defaults.budget = budget(Window::Day, 100);
        let free = json!({"model": "local", "input": "0", "output": "0"});
        settings.prices.overrides.push(serde_json::from_value(free).unwrap());
    })
    .await;
    let ask = async |model: &str| {
        let mut body = chat("hello");
        body["model"] = json!(model);
        purse.send("task", 50, &body).fetch().await.unwrap().status.as_u16()
    };
    assert_eq!((ask("nobody-knows-it").await, ask("local").await), (200, 200));
    assert_eq!(said(&purse, "task", 100).fetch().await.unwrap().status, 200);
    assert_eq!((ask("nobody-knows-it").await, ask("local").await, ask("gpt-4o").await), (402, 200, 402));
    assert_eq!(purse.account("agent:default daily").settled, cents(100));
    purse.nothing_is_reserved();
}
