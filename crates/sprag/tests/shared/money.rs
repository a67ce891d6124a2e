//! Budgets hold over all nodes together.

use std::time::Duration;

use serde_json::json;
use sprag::acts::Adjustment;
use sprag_core::money::NanoUsd;
use sprag_core::policy::Reserve;
use sprag_testkit::{Cable, RedisServer};

use crate::nodes::{Nodes, at_once, daily, stopped, text, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_at_once_over_three_nodes_never_overrun_a_dollar() {
    let Some(redis) = RedisServer::start() else { return };
    for reserve in [Reserve::WorstCase, Reserve::Expected] {
        redis.flush();
        let nodes = Nodes::start(3, &redis.url(), |settings| daily(settings, 100, reserve)).await;
        let answers = at_once((0..500).map(|number| nodes.call(number, &format!("task-{}", number % 7), 30))).await;
        let mut passed = 0;
        for answer in &answers {
            match stopped(answer) {
                "" if answer.status == 200 => passed += 1,
                "budget_exceeded" => {}
                other => panic!("{reserve:?}: {} {other} {}", answer.status, text(answer)),
            }
        }
        assert_eq!((passed, nodes.forwarded()), (3, 3), "{reserve:?}");
        nodes.quiet().await;
        for sprag in &nodes.sprags {
            let accounts = sprag.app.state.accounts();
            assert!(accounts.iter().all(|state| state.account.reserved == NanoUsd::ZERO), "{accounts:?}");
        }
        // What is left is for whoever asks next, wherever.
        assert_eq!(nodes.call(0, "late", 20).fetch().await.unwrap().status, 402);
        assert_eq!(nodes.call(1, "late", 10).fetch().await.unwrap().status, 200);
        assert_eq!(nodes.call(2, "late", 1).fetch().await.unwrap().status, 402);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_begins_with_what_a_node_has_on_record() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = Nodes::start(2, &redis.url(), |_| {}).await;
    assert_eq!(nodes.call(0, "before", 80).fetch().await.unwrap().status, 200);
    nodes.quiet().await;
    for sprag in &nodes.sprags {
        sprag.app.history.flush().unwrap();
        let mut settings = sprag::config::Settings::clone(&sprag.app.settings.load());
        daily(&mut settings, 100, Reserve::WorstCase);
        sprag.app.replace_settings(settings).unwrap();
    }
    // The node that has it on record opens the account; the other one then meets the same limit.
    assert_eq!(nodes.call(0, "after", 10).fetch().await.unwrap().status, 200);
    assert_eq!(stopped(&nodes.call(1, "after", 20).fetch().await.unwrap()), "budget_exceeded");
    assert_eq!(nodes.call(1, "after", 10).fetch().await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_spent_survives_a_flush() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = Nodes::start(3, &redis.url(), |settings| daily(settings, 100, Reserve::WorstCase)).await;
    for number in 0..3 {
        assert_eq!(nodes.call(number, "task", 30).fetch().await.unwrap().status, 200);
    }
    // Nodes hear what an account has come to a moment after the answer.
    nodes.quiet().await;
    redis.flush();
    // The node that has seen all of it comes first; others have seen less, and find what it brought.
    for number in [2, 0, 1] {
        let answer = nodes.call(number, "task", 30).fetch().await.unwrap();
        assert_eq!(stopped(&answer), "budget_exceeded", "{}", text(&answer));
    }
    assert_eq!(nodes.forwarded(), 3);
    redis.flush();
    // What they have seen is brought back once, and not once for each.
    assert_eq!(nodes.call(0, "another", 5).fetch().await.unwrap().status, 200);
    assert_eq!(stopped(&nodes.call(2, "another", 6).fetch().await.unwrap()), "budget_exceeded");
    assert_eq!(nodes.call(1, "another", 5).fetch().await.unwrap().status, 200);
    assert_eq!(stopped(&nodes.call(0, "another", 1).fetch().await.unwrap()), "budget_exceeded");
}

/// Both ways: a Redis that comes back with what it had, and one that lost everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_correction_made_while_redis_is_away_counts_once_when_it_is_back() {
    for options in [&["--appendonly", "yes", "--appendfsync", "always"][..], &[]] {
        let Some(mut redis) = RedisServer::start_with(options) else { return };
        let nodes = Nodes::start(2, &redis.url(), |settings| daily(settings, 100, Reserve::WorstCase)).await;
        for number in 0..2 {
            assert_eq!(nodes.call(number, "task", 10).fetch().await.unwrap().status, 200);
        }
        nodes.quiet().await;
        redis.kill();
        for number in 0..2 {
            assert_eq!(nodes.call(number, "task", 1).fetch().await.unwrap().status, 503);
        }
        nodes.lost().await;
        let account = "agent:default daily".parse().unwrap();
        let amount = NanoUsd(60 * 10_000_000);
        let order = Adjustment { account, amount, reason: "seen elsewhere".into(), by: "anna".to_owned() };
        nodes.sprags[0].app.adjust_budget(order).await.unwrap();
        let link = nodes.sprags[0].app.link.as_ref().unwrap();
        assert!(link.status().untold_corrections > 0);
        redis.restart();
        nodes.connected().await;
        wait_until("the correction is told", || link.status().untold_corrections == 0).await;
        nodes.quiet().await;
        // Twenty cents and sixty: twenty are left, wherever it is asked.
        // Who has seen more brings it to a Redis that lost everything.
        for number in [1, 0] {
            let answer = nodes.call(number, "task", 21).fetch().await.unwrap();
            assert_eq!(stopped(&answer), "budget_exceeded", "{options:?} {number}: {}", text(&answer));
        }
        assert_eq!(nodes.call(1, "another", 15).fetch().await.unwrap().status, 200, "{options:?}: no less than that");
        assert_eq!(nodes.call(0, "another", 5).fetch().await.unwrap().status, 200, "{options:?}");
        assert_eq!(stopped(&nodes.call(0, "another", 1).fetch().await.unwrap()), "budget_exceeded");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_outruns_its_money_asks_all_nodes_for_more_and_is_cut() {
    let Some(redis) = RedisServer::start() else { return };
    let cable = Cable::to(redis.address()).await.unwrap();
    let nodes = Nodes::start(2, &cable.redis_url(), |settings| daily(settings, 1000, Reserve::Expected)).await;
    let stream = |number: usize, words: usize| {
        let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}], "stream": true});
        let call = nodes.send(number, "task", words as u64, &body).header("x-mock-delta", "5");
        call.header("x-mock-text", "word ".repeat(words).trim_end())
    };
    // By habit an answer has three words; the other node has spent most of the budget.
    assert_eq!(stream(0, 3).fetch().await.unwrap().status, 200);
    assert_eq!(nodes.call(1, "task", 700).fetch().await.unwrap().status, 200);
    let mut answer = stream(0, 900).header("x-mock-stall", "150").send().await.unwrap();
    let mut seen = Vec::new();
    let words = |seen: &[u8]| String::from_utf8_lossy(seen).matches("word").count();
    while words(&seen) < 140 {
        seen.extend_from_slice(&answer.next().await.unwrap().unwrap());
    }
    let app = &nodes.sprags[0].app;
    wait_until("what was asked for is answered", || app.settling.is_empty()).await;
    // The other node meets what the stream has set aside.
    assert_eq!(stopped(&nodes.call(1, "task", 290).fetch().await.unwrap()), "budget_exceeded");
    // The rest comes sooner than Redis says no: the stream must wait for it.
    cable.slow(Duration::from_millis(100));
    nodes.provider.gate().open();
    while let Some(piece) = answer.next().await.unwrap() {
        seen.extend_from_slice(&piece);
    }
    let told = String::from_utf8_lossy(&seen).into_owned();
    assert!(told.contains("budget_exceeded") && told.contains("Budget exceeded"), "{told}");
    assert!(words(&seen) < 900, "it was cut");
    cable.mend();
    nodes.quiet().await;
    assert!(app.state.accounts().iter().all(|state| state.account.reserved == NanoUsd::ZERO));
    assert_eq!(stopped(&nodes.call(1, "task", 1).fetch().await.unwrap()), "budget_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_one_purse_over_all_nodes() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = Nodes::start(3, &redis.url(), |settings| {
        daily(settings, 0, Reserve::WorstCase);
        let budget = &mut settings.policies.defaults.budget;
        (budget.daily_limit, budget.max_run_cost, budget.kill_run) = (None, Some(NanoUsd(1_000_000_000)), false);
    })
    .await;
    let answers = at_once((0..60).map(|number| nodes.call(number, "task", 30))).await;
    let passed = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((passed, nodes.forwarded()), (3, 3));
    assert_eq!(nodes.call(1, "another", 30).fetch().await.unwrap().status, 200, "another run has its own");
}
