//! Conversations that look alike and are not the same.

use std::slice::from_ref;

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::say;
use crate::stage::{Said, Stage};

const CHAT: &str = "/v1/chat/completions";
const KEY: (&str, &str) = ("authorization", "Bearer k1");

fn body(messages: &[Value]) -> Value {
    json!({"model": "gpt-4o", "messages": messages})
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_of_one_opening_are_runs_of_their_own() {
    let stage = Stage::start().await;
    let gate = watch::Sender::new(false);
    let mut sampling = Vec::new();
    for sample in 0..5 {
        let answer = say::chat_message(&format!("Idea {sample}"), &[]);
        let call = stage.call(CHAT, &[KEY], &body(&[say::user("Ideas?")]), say::chat(&answer).held(&gate));
        sampling.push((answer, tokio::spawn(call.fetch())));
    }
    stage.reached(5).await;
    gate.send(true).unwrap();
    let mut runs = Vec::new();
    let mut samples = Vec::new();
    for (answer, task) in sampling {
        let said = Said::of(task.await.unwrap().unwrap());
        assert!(!runs.contains(&said.run));
        runs.push(said.run);
        samples.push(answer);
    }
    for (answer, run) in samples.into_iter().zip(&runs).rev() {
        let messages = [say::user("Ideas?"), answer, say::user("More of it.")];
        let next = stage.ask(CHAT, &body(&messages), say::chat(&say::chat_message("More.", &[]))).await;
        assert_eq!(next.place(), (run.as_str(), 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn identical_conversations_in_step_stay_two_runs() {
    let stage = Stage::start().await;
    let mut messages = vec![say::user("Count.")];
    let mut first_runs = Vec::new();
    for step in 1..=6 {
        let answer = json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_0", "type": "function", "function": {"name": "count", "arguments": json!({"n": step}).to_string()}}]});
        let mut runs = Vec::new();
        for _twin in 0..2 {
            let said = stage.ask(CHAT, &body(&messages), say::chat(&answer)).await;
            assert_eq!(said.step, step, "neither takes a step of the other");
            runs.push(said.run);
        }
        runs.sort();
        if step == 1 {
            first_runs = runs.clone();
        }
        assert_eq!(runs, first_runs);
        messages.push(answer);
        messages.push(json!({"role": "tool", "tool_call_id": "call_0", "content": "ok"}));
    }
    assert_ne!(first_runs[0], first_runs[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_with_the_same_small_talk_never_share_a_run() {
    let stage = Stage::start().await;
    let hello = say::chat_message("Hello! How can I help?", &[]);
    for _ in 0..80 {
        stage.ask(CHAT, &body(&[say::user("hi")]), say::chat(&hello)).await;
    }
    let mut runs = Vec::new();
    for stranger in 0..80 {
        let messages = [say::user("hi"), hello.clone(), say::user(&format!("Question {stranger}"))];
        let said = stage.ask(CHAT, &body(&messages), say::chat(&say::chat_message("Well.", &[]))).await;
        assert!(!runs.contains(&said.run), "stranger {stranger}");
        runs.push(said.run);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_or_agent_has_another_run() {
    let stage = Stage::start().await;
    let answer = say::chat_message("", &["a"]);
    let opening = [say::user("Do it.")];
    let next = [say::user("Do it."), answer.clone(), say::tool_result(&answer, 0, "x")];
    let callers: [&[(&str, &str)]; 6] = [
        &[("authorization", "Bearer k1")],
        &[("authorization", "Bearer k2")],
        &[("x-api-key", "k1")],
        &[("authorization", "Bearer k1"), ("x-sprag-agent", "other")],
        &[],
        &[("x-goog-api-key", "k1")],
    ];
    let mut runs = Vec::new();
    for caller in callers {
        let first = stage.ask_with(CHAT, caller, &body(&opening), say::chat(&answer)).await;
        let second = stage.ask_with(CHAT, caller, &body(&next), say::chat(&answer)).await;
        assert_eq!(second.place(), (first.run.as_str(), 2));
        assert!(!runs.contains(&first.run));
        runs.push(first.run);
    }
    // Somebody else's history, call ids and all, is the beginning of a run of one's own.
    let thief = stage.ask_with(CHAT, &[("authorization", "Bearer k3")], &body(&next), say::chat(&answer)).await;
    assert_eq!(thief.step, 1);
    assert!(!runs.contains(&thief.run));
}

#[tokio::test(flavor = "multi_thread")]
async fn geminis_key_may_stand_in_the_query() {
    let stage = Stage::start().await;
    let call = json!({"functionCall": {"name": "ls", "args": {}}});
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": [call]},
        {"role": "user", "parts": [{"text": "on"}]}]});
    let opening = json!({"contents": [{"role": "user", "parts": [{"text": "go"}]}]});
    let path = |key: &str| format!("/v1beta/models/gemini-2.5-flash:generateContent?alt=json&key={key}");
    let first = stage.ask_with(&path("a"), &[], &opening, say::gemini(from_ref(&call))).await;
    let other = stage.ask_with(&path("b"), &[], &contents, say::gemini(from_ref(&call))).await;
    let second = stage.ask_with(&path("a"), &[], &contents, say::gemini(from_ref(&call))).await;
    assert_ne!(other.run, first.run);
    assert_eq!(second.place(), (first.run.as_str(), 2));
}
