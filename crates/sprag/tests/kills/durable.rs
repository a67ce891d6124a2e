//! `kill -9` right after a stop was answered: the stop holds in the next process.

use std::fs;

use serde_json::{Value, json};
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{Provider, Script};

use crate::binary::Binary;
use crate::wire::request;

const TOKEN: &str = "a-token-that-nobody-will-ever-guess-0123";

fn start(home: &std::path::Path, provider: &Provider) -> Binary {
    Binary::start(home, provider, &format!("admin.token = \"{TOKEN}\"\ndefaults.run_limits.max_steps = 2"))
}

async fn kill_nine(mut binary: Binary) {
    binary.signal("KILL");
    assert_eq!(binary.exit_code().await, None);
}

/// Asks the admin API and gives its answer.
async fn order(binary: &Binary, method: &str, path: &str, body: &Value) -> Value {
    let greeting = fs::read_to_string(binary.home.join("stdout")).unwrap();
    let admin = greeting.lines().find_map(|line| line.trim().strip_prefix("dashboard  ")).unwrap().to_owned();
    let url = format!("{}/api/v1{path}", admin.trim_end_matches('/'));
    let call = client::post_json(url, body).method(method.parse().unwrap());
    let answer = call.header("authorization", &format!("Bearer {TOKEN}")).fetch().await.unwrap();
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()
}

async fn ask(binary: &Binary, body: &Value, headers: &[(&str, &str)]) -> Whole {
    let call = client::post_json(binary.url("/v1/chat/completions"), body);
    headers.iter().fold(call, |call, (name, value)| call.header(name, value)).fetch().await.unwrap()
}

fn blocked(answer: &Whole) -> String {
    answer.headers.get("x-sprag-blocked").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

fn hello() -> Value {
    request(Dialect::OpenaiChat, false, "hello")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_stopped_stays_stopped() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let run = format!("task-{round}");
        let binary = start(home.path(), &provider);
        assert_eq!(ask(&binary, &hello(), &[("x-sprag-run-id", &run)]).await.status, 200);
        order(&binary, "POST", &format!("/runs/default/{run}/kill"), &json!({"reason": "enough"})).await;
        kill_nine(binary).await;
        let binary = start(home.path(), &provider);
        for old in 0..=round {
            let answer = ask(&binary, &hello(), &[("x-sprag-run-id", &format!("task-{old}"))]).await;
            assert_eq!(blocked(&answer), "run_killed");
            assert_eq!(answer.json()["error"]["kill_reason"], "enough");
        }
        let agent = format!("bot-{round}");
        order(&binary, "PATCH", &format!("/agents/{agent}"), &json!({"active": false})).await;
        kill_nine(binary).await;
        let binary = start(home.path(), &provider);
        assert_eq!(blocked(&ask(&binary, &hello(), &[("x-sprag-agent", &agent)]).await), "agent_inactive");
        kill_nine(binary).await;
    }
    let binary = start(home.path(), &provider);
    order(&binary, "POST", "/runs/default/task-0/resume", &json!({})).await;
    kill_nine(binary).await;
    let binary = start(home.path(), &provider);
    assert_eq!(ask(&binary, &hello(), &[("x-sprag-run-id", "task-0")]).await.status, 200, "resumed for good too");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_sprag_stopped_stays_stopped() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let run = [("x-sprag-run-id", "task")];
    let binary = start(home.path(), &provider);
    for _ in 0..2 {
        assert_eq!(ask(&binary, &hello(), &run).await.status, 200);
    }
    assert_eq!(blocked(&ask(&binary, &hello(), &run).await), "run_limit_exceeded");
    kill_nine(binary).await;
    let binary = start(home.path(), &provider);
    let answer = ask(&binary, &hello(), &run).await;
    assert_eq!(blocked(&answer), "run_killed");
    assert_eq!(answer.json()["error"]["kill_reason"], "step_limit");

    // A resume survives as well: the steps before it do not kill the run again.
    order(&binary, "POST", "/runs/default/task/resume", &json!({})).await;
    kill_nine(binary).await;
    let binary = start(home.path(), &provider);
    for _ in 0..2 {
        assert_eq!(ask(&binary, &hello(), &run).await.status, 200);
    }
    assert_eq!(blocked(&ask(&binary, &hello(), &run).await), "run_limit_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_known_again_by_what_its_kill_kept() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let binary = start(home.path(), &provider);
    let mut body = hello();
    let mut run = String::new();
    for text in ["and then?", "and after that?"] {
        let answer = ask(&binary, &body, &[]).await;
        assert_eq!(answer.status, 200);
        run = answer.header("x-sprag-run-id").to_owned();
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(answer.json()["choices"][0]["message"].clone());
        messages.push(json!({"role": "user", "content": text}));
    }
    order(&binary, "POST", &format!("/runs/default/{run}/kill"), &json!({})).await;
    kill_nine(binary).await;

    for _ in 0..2 {
        let binary = start(home.path(), &provider);
        let answer = ask(&binary, &body, &[]).await;
        assert_eq!((blocked(&answer).as_str(), answer.header("x-sprag-run-id")), ("run_killed", run.as_str()));
        let other = request(Dialect::OpenaiChat, false, "something else");
        assert_eq!(ask(&binary, &other, &[]).await.status, 200);
        kill_nine(binary).await;
    }
}
