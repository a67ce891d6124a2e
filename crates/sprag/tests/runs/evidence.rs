//! Conversations that do not come back as they were: edited, cut, forked, summarised, traced.

use serde_json::{Value, json};

use crate::say;
use crate::stage::{Play, Said, Stage};

const CHAT: &str = "/v1/chat/completions";
const LONG: &str = "The suite fails because the cart multiplies the price by the wrong quantity in two places.";

async fn ask(stage: &Stage, messages: &[Value], answer: &Value) -> Said {
    stage.ask(CHAT, &json!({"model": "gpt-4o", "messages": messages}), say::chat(answer)).await
}

fn text(text: &str) -> Value {
    say::chat_message(text, &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_goes_on_with_the_second_choice() {
    let stage = Stage::start().await;
    for choices in [[text("First."), text("Second.")], [say::chat_message("", &["a"]), say::chat_message("", &["b"])]] {
        let opening = say::user(&say::unique("Choose "));
        let body = json!({"model": "gpt-4o", "n": 2, "messages": [opening]});
        let first = stage.ask(CHAT, &body, say::chat_choices(&[&choices[0], &choices[1]])).await;
        let second = ask(&stage, &[opening, choices[1].clone(), say::user("Go on.")], &text("Yes.")).await;
        assert_eq!(second.place(), (first.run.as_str(), 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_edits_the_answer() {
    let stage = Stage::start().await;
    let mut messages = vec![say::user("Write.")];
    let mut run = None;
    for step in 1..=4 {
        let said = ask(&stage, &messages, &text(&format!("<think>{step}</think> Chapter {step}."))).await;
        assert_eq!(said.place(), (run.get_or_insert(said.run.clone()).as_str(), step));
        messages.push(text(&format!("Chapter {step}")));
        messages.push(say::user("And then?"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_history_is_dropped() {
    // A window over tool calls, and one over bare words.
    for with_calls in [true, false] {
        let stage = Stage::start().await;
        let mut messages = vec![say::user("Fix it.")];
        let mut run = None;
        for step in 1..=8 {
            let from = messages.len().saturating_sub(5);
            let window = &messages[from..];
            let answer = if with_calls {
                say::chat_message("", &[&format!("file-{step}")])
            } else {
                text(&format!("{LONG} {step}"))
            };
            let said = ask(&stage, window, &answer).await;
            assert_eq!(said.place(), (run.get_or_insert(said.run.clone()).as_str(), step), "calls: {with_calls}");
            let turn =
                if with_calls { say::tool_result(&answer, 0, "x") } else { say::user(&format!("More of {step}")) };
            messages.extend([answer, turn]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_takes_the_place_of_the_beginning() {
    let stage = Stage::start().await;
    let (first, second) = (say::chat_message("", &["a"]), say::chat_message("", &["b"]));
    let opening = ask(&stage, &[say::user("Fix it.")], &first).await;
    let tail = [first.clone(), say::tool_result(&first, 0, "x")];
    let before = [&[say::user("Fix it.")], &tail[..]].concat();
    assert_eq!(ask(&stage, &before, &second).await.place(), (opening.run.as_str(), 2));
    // The summary itself is asked for in a call of its own.
    let asked = ask(&stage, &[say::user("Summarise: Fix it. read a: x")], &text("They fix it.")).await;
    assert_ne!(asked.run, opening.run);
    let compacted = [say::user("Summary so far: They fix it."), second.clone(), say::tool_result(&second, 0, "y")];
    assert_eq!(ask(&stage, &compacted, &text("Fixed.")).await.place(), (opening.run.as_str(), 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_stays_in_its_run() {
    let stage = Stage::start().await;
    let (one, two) = (text("One."), text("Two."));
    let first = ask(&stage, &[say::user("a")], &one).await;
    ask(&stage, &[say::user("a"), one.clone(), say::user("b")], &two).await;
    ask(&stage, &[say::user("a"), one.clone(), say::user("b"), two, say::user("c")], &text("Three.")).await;
    let fork = ask(&stage, &[say::user("a"), one.clone(), say::user("not b")], &text("Other.")).await;
    assert_eq!(fork.place(), (first.run.as_str(), 4));
    let again = ask(&stage, &[say::user("a"), one, say::user("not b")], &text("Another.")).await;
    assert_eq!(again.place(), (first.run.as_str(), 5));
    // Another first message is another task.
    assert_eq!(ask(&stage, &[say::user("not a")], &text("x")).await.step, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_answers_belong_to_their_caller() {
    let stage = Stage::start().await;
    let id = say::unique("resp_");
    let body = |previous: Value| json!({"model": "gpt-4.1", "input": "go", "previous_response_id": previous});
    let play = || say::responses(&say::unique("resp_"), &[]);
    let caller = |key, agent| [("authorization", key), ("x-sprag-agent", agent)];
    let path = "/v1/responses";
    let first = stage.ask_with(path, &caller("k1", "a"), &body(Value::Null), say::responses(&id, &[])).await;
    for (key, agent, is_same) in [("k2", "a", false), ("k1", "b", false), ("k1", "a", true), ("k1", "a", true)] {
        let said = stage.ask_with(path, &caller(key, agent), &body(id.clone().into()), play()).await;
        assert_eq!(said.run == first.run, is_same, "{key} {agent}");
    }
}

fn traced(trace: &str) -> [(&'static str, String); 1] {
    [("traceparent", format!("00-{trace}-78a768f2645dcecd-01"))]
}

async fn ask_traced(stage: &Stage, trace: char, key: &str, messages: &[Value], play: Play) -> Said {
    let trace = traced(&trace.to_string().repeat(32));
    let headers = [("authorization", key), (trace[0].0, trace[0].1.as_str())];
    stage.ask_with(CHAT, &headers, &json!({"model": "gpt-4o", "messages": messages}), play).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_holds_calls_together() {
    let stage = Stage::start().await;
    let play = || say::chat(&text("ok"));
    // Also those that begin before the first one has ended.
    let words = ["plan", "search", "judge"].map(|word| [say::user(word)]);
    let (a, b, c) = tokio::join!(
        ask_traced(&stage, 'a', "k1", &words[0], play()),
        ask_traced(&stage, 'a', "k1", &words[1], play()),
        ask_traced(&stage, 'a', "k1", &words[2], play()),
    );
    assert_eq!([&a.run, &b.run], [&c.run, &c.run]);
    let mut steps = [a.step, b.step, c.step];
    steps.sort_unstable();
    assert_eq!(steps, [1, 2, 3]);
    assert_ne!(ask_traced(&stage, 'a', "k2", &words[0], play()).await.run, a.run, "the trace of another key");
    assert_ne!(ask_traced(&stage, 'b', "k1", &words[0], play()).await.run, a.run, "another trace");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_trace_for_each_turn_changes_nothing() {
    let stage = Stage::start().await;
    let mut messages = vec![say::user("hello")];
    let mut run = None;
    for (step, trace) in (1..).zip(['1', '2', '3', '4']) {
        let said = ask_traced(&stage, trace, "k1", &messages, say::chat(&text("ok"))).await;
        assert_eq!(said.place(), (run.get_or_insert(said.run.clone()).as_str(), step));
        messages.extend([text("ok"), say::user("more")]);
    }
    let side = ask_traced(&stage, '4', "k1", &[say::user("a title for it")], say::chat(&text("Talk"))).await;
    assert_eq!(side.place(), (run.unwrap().as_str(), 5), "the trace of a turn holds its side calls");
}
