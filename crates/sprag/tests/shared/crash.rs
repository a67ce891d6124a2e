//! A node that is killed takes nothing with it: what it had set aside is booked, and its calls are no longer under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;
use sprag::clock::Clock;
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Reserve, RunLimits};
use sprag_testkit::client::{self, Call};
use sprag_testkit::{Provider, RedisServer, Script};

use crate::binary::Binary;
use crate::nodes::{is_connected, share, wait_until};
use crate::sprag::{Sprag, without_detection};

const CONFIG: &str = r#"
state.timeout_ms = 10000
defaults.run_limits.mode = "off"
defaults.budget = { max_run_cost = "1.00", reserve = "worst_case", kill_run = false }
[[price]]
model = "gpt-4o"
input = 0
output = 10000
"#;

fn call(base: &str, cents: u64) -> Call {
    let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}], "max_tokens": cents});
    let call = client::post_json(format!("{base}/v1/chat/completions"), &body).header("x-sprag-run-id", "task");
    call.header("x-mock-usage", &format!("input=0 output={cents}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_node_had_set_aside_is_booked_after_a_minute() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut binary = Binary::start(home.path(), &provider, &format!("state.redis = \"{}\"{CONFIG}", redis.url()));
    tokio::spawn(call(&binary.url(""), 90).header("x-mock-hold", "").fetch());
    provider.gate().reached(1).await;
    binary.signal("KILL");
    assert_eq!(binary.exit_code().await, None);

    let clock = Arc::new(AtomicI64::new(jiff::Timestamp::now().as_millisecond()));
    let sprag = Sprag::start_at(&provider, Clock::Scripted(clock.clone()), |settings| {
        without_detection(settings);
        settings.policies.defaults.run_limits = RunLimits::NONE;
        let price = json!({"model": "gpt-4o", "input": "0", "output": "10000"});
        settings.prices.overrides = vec![serde_json::from_value(price).unwrap()];
        let budget = &mut settings.policies.defaults.budget;
        (budget.max_run_cost, budget.kill_run) = (Some(NanoUsd(1_000_000_000)), false);
        (budget.mode, budget.reserve) = (Mode::Enforce, Reserve::WorstCase);
        share(settings, &redis.url());
    })
    .await;
    wait_until("the node has its Redis", || is_connected(&sprag)).await;
    let stands = async || {
        let refused = call(&sprag.url(""), 30).fetch().await.unwrap();
        assert_eq!(refused.status, 402);
        let error = refused.json()["error"].clone();
        (error["current_cost"].as_f64().unwrap(), error["reserved"].as_f64().unwrap())
    };
    assert_eq!(stands().await, (0.0, 0.9));
    clock.fetch_add(61_000, Ordering::SeqCst);
    assert_eq!(stands().await, (0.9, 0.0));
    // Not a cent more than is left, and that much for whoever asks.
    assert_eq!(call(&sprag.url(""), 10).fetch().await.unwrap().status, 200);
    assert_eq!(call(&sprag.url(""), 1).fetch().await.unwrap().status, 402);
}
