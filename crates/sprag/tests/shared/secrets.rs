//! What may not leave is found while Redis is asked, and hidden as without one.

use serde_json::{Value, json};
use sprag_core::limits::LOOK_AHEAD_BYTES;
use sprag_testkit::RedisServer;

use crate::nodes::{Nodes, text};

const MAIL: &str = "anna.kowalska@acme-motors.com";

fn asking(content: &str) -> Value {
    json!({"model": "gpt-4o", "messages": [{"role": "user", "content": content}], "max_tokens": 1})
}

/// The last body that the provider got.
fn sent(nodes: &Nodes) -> String {
    String::from_utf8(nodes.provider.requests().last().unwrap().body.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_was_hidden_comes_back_to_its_run() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = Nodes::start(1, &redis.url(), |_| {}).await;
    let told = nodes.send(0, "task", 1, &asking(&format!("Write to {MAIL}."))).fetch().await.unwrap();
    assert_eq!(told.status, 200, "{}", text(&told));
    assert!(sent(&nodes).contains("Write to [EMAIL_1]."), "{}", sent(&nodes));
    // Nothing is found in this one, and its answer is still looked at for its run.
    for (run, expected) in [("task", format!("It is {MAIL}.")), ("other", "It is [EMAIL_1].".to_owned())] {
        let call = nodes.send(0, run, 1, &asking("Whom?")).header("x-mock-text", "It is [EMAIL_1].");
        let answer = call.fetch().await.unwrap();
        assert_eq!(answer.json()["choices"][0]["message"]["content"], expected, "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_to_be_looked_at_ahead_is_looked_at() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = Nodes::start(1, &redis.url(), |_| {}).await;
    let around = asking(&format!("{MAIL} ")).to_string().len();
    for length in [LOOK_AHEAD_BYTES, LOOK_AHEAD_BYTES + 1] {
        let body = asking(&format!("{MAIL} {}", "x".repeat(length - around)));
        assert_eq!(body.to_string().len(), length);
        let answer = nodes.send(0, "task", 1, &body).fetch().await.unwrap();
        assert_eq!(answer.status, 200, "{}", text(&answer));
        assert!(!sent(&nodes).contains(MAIL) && sent(&nodes).contains("[EMAIL_1] x"), "{length}");
    }
}
