//! A request sent again: after a failure it is the same step of work, after a whole answer it is new.

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::say;
use crate::stage::{Play, Said, Stage};

const CHAT: &str = "/v1/chat/completions";
const KEY: (&str, &str) = ("authorization", "Bearer k1");

fn opening() -> Value {
    json!({"model": "gpt-4o", "messages": [say::user("Do it.")]})
}

fn answer() -> Play {
    say::chat(&say::chat_message("Done.", &[]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_opening_is_tried_again_in_its_run() {
    let stage = Stage::start().await;
    let failed = [
        Play::failure(500),
        Play::failure(429),
        say::chat_stream(&say::chat_message("Do", &[])).piece(40).cut(&watch::Sender::new(true)),
    ];
    let mut runs = Vec::new();
    for play in failed {
        runs.push(stage.ask(CHAT, &opening(), play).await.run);
    }
    let whole = stage.ask(CHAT, &opening(), answer()).await;
    assert_eq!(whole.step, 4);
    assert!(runs.iter().all(|run| *run == whole.run), "{runs:?}");
    // The failure is made good: the next one is a new task.
    let again = stage.ask(CHAT, &opening(), answer()).await;
    assert_ne!(again.run, whole.run);
    assert_eq!(again.step, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opening_after_a_whole_answer_is_a_new_run() {
    let stage = Stage::start().await;
    let first = stage.ask(CHAT, &opening(), answer()).await;
    let second = stage.ask(CHAT, &opening(), answer()).await;
    assert_ne!(first.run, second.run);
    assert_eq!([first.step, second.step], [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_counted_retry_joins_a_call_that_is_still_in_flight() {
    let stage = Stage::start().await;
    let gate = watch::Sender::new(false);
    let with = |count: &'static str| [KEY, ("x-stainless-retry-count", count)];
    let first = tokio::spawn(stage.call(CHAT, &with("0"), &opening(), answer().held(&gate)).fetch());
    stage.reached(1).await;
    // The client has given up waiting; Sprag does not know yet.
    let retry = stage.ask_with(CHAT, &with("1"), &opening(), answer()).await;
    // Somebody else asks the same, for the first time.
    let other = stage.ask_with(CHAT, &with("0"), &opening(), answer()).await;
    gate.send(true).unwrap();
    let first = Said::of(first.await.unwrap().unwrap());
    assert_eq!((retry.place(), first.step), ((first.run.as_str(), 2), 1));
    assert_ne!(other.run, first.run);
    // Nothing of it is left to be joined.
    let late = stage.ask_with(CHAT, &with("1"), &opening(), answer()).await;
    assert_eq!(late.step, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_failed_openings_are_two_runs_to_be_tried_again() {
    let stage = Stage::start().await;
    let gate = watch::Sender::new(false);
    let fail = || tokio::spawn(stage.call(CHAT, &[KEY], &opening(), Play::failure(529).held(&gate)).fetch());
    let failing = [fail(), fail()];
    stage.reached(2).await;
    gate.send(true).unwrap();
    let mut failed = Vec::new();
    for task in failing {
        failed.push(Said::of(task.await.unwrap().unwrap()).run);
    }
    let mut tried = [stage.ask(CHAT, &opening(), answer()).await, stage.ask(CHAT, &opening(), answer()).await];
    assert_ne!(failed[0], failed[1]);
    assert_eq!([tried[0].step, tried[1].step], [2, 2]);
    tried.sort_by(|a, b| a.run.cmp(&b.run));
    failed.sort();
    assert_eq!(failed, [tried[0].run.clone(), tried[1].run.clone()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_broke_off_is_continued_from_what_came() {
    let stage = Stage::start().await;
    let body = json!({"model": "gpt-4o", "stream": true, "messages": [say::user("Write.")]});
    let text = "It was a dark and stormy night";
    let gate = watch::Sender::new(false);
    let mut play = say::chat_stream(&say::chat_message(text, &[])).piece(4096).cut(&gate);
    let end = play.body.windows(4).position(|four| four == b"}\n\nd").unwrap() + 3;
    play.body = play.body.slice(..end);
    let mut first = stage.call(CHAT, &[KEY], &body, play).send().await.unwrap();
    first.read_at_least(1).await.unwrap();
    gate.send(true).unwrap();
    let first = Said::of(first.whole().await);
    let messages = json!([say::user("Write."), {"role": "assistant", "content": text}, say::user("No, brighter.")]);
    let next = stage.ask(CHAT, &json!({"model": "gpt-4o", "messages": messages}), answer()).await;
    assert_eq!(next.place(), (first.run.as_str(), 2));
}
