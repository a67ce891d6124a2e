//! Budgets hold over all nodes together.

use sprag_core::money::NanoUsd;
use sprag_core::policy::Reserve;
use sprag_testkit::RedisServer;

use crate::nodes::{Nodes, at_once, daily, stopped, text};

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
    redis.flush();
    // The node that has seen all of it comes first; others have seen less, and find what it brought.
    for number in [2, 0, 1] {
        let answer = nodes.call(number, "task", 30).fetch().await.unwrap();
        assert_eq!(stopped(&answer), "budget_exceeded", "{}", text(&answer));
    }
    assert_eq!(nodes.forwarded(), 3);
    redis.flush();
    // One that has seen less comes first, and the other brings the difference.
    assert_eq!(nodes.call(0, "another", 5).fetch().await.unwrap().status, 200);
    assert_eq!(stopped(&nodes.call(2, "another", 6).fetch().await.unwrap()), "budget_exceeded");
    assert_eq!(nodes.call(1, "another", 5).fetch().await.unwrap().status, 200);
    assert_eq!(stopped(&nodes.call(0, "another", 1).fetch().await.unwrap()), "budget_exceeded");
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
