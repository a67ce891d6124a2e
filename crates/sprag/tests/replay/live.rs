//! Traces sent through the proxy, against a provider that gives the recorded answers: it stops where replay says.
//!
//! Beside our own traces those in `../shared/traces` are tried, some of each file, where they are.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sprag::replay::Replay;
use sprag::replay::lines::Lines;
use sprag::replay::trace::{Trace, judge};
use sprag_core::loops::{Preset, Rules};
use sprag_core::price::Prices;

use crate::fixture;
use crate::stage::{Play, Stage};

/// Runs tried of each file.
const OF_EACH: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_stops_where_replay_says() {
    let stage = Stage::start().await;
    let (mut runs, mut stopped) = (0, 0);
    for file in files() {
        let mut lines = Lines::new(File::open(&file).unwrap()).unwrap();
        let mut tried = 0;
        while let Some((_, line)) = lines.next_line().unwrap() {
            let trace = Trace::parse(line.unwrap()).unwrap();
            // What rewrites its history is several runs to a proxy that is told nothing.
            if tried == OF_EACH || trace.is_scratchpad() || !grows(&trace) {
                continue;
            }
            tried += 1;
            runs += 1;
            let replay = Replay::new(Rules::preset(Preset::Balanced), Prices::embedded(), false);
            let expected = judge(&trace, &replay).outcome.stop.map(|stop| stop.step);
            stopped += usize::from(expected.is_some());
            assert_eq!(send(&stage, &trace, runs).await, expected, "{}", trace.run_id);
        }
    }
    assert!(runs > 2 && stopped > 0, "{stopped} of {runs} runs stopped");
}

/// Sends the requests of a trace until one is refused; gives its number.
async fn send(stage: &Stage, trace: &Trace<'_>, number: usize) -> Option<u32> {
    // An agent of its own: what others did is no evidence against it.
    let agent = format!("agent-{number}");
    let headers = [("authorization", "Bearer k"), ("x-sprag-agent", agent.as_str())];
    for (step, exchange) in (1..).zip(trace.exchanges()) {
        let messages: Vec<Value> =
            exchange.request.iter().map(|raw| serde_json::from_str(raw.get()).unwrap()).collect();
        let answer: Value = exchange.answer.map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap());
        let choices = json!([{"index": 0, "message": answer, "finish_reason": "stop"}]);
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
        let answer = json!({"id": format!("chatcmpl-{number}-{step}"), "object": "chat.completion", "model": "gpt-4o", "choices": choices, "usage": usage});
        let body = json!({"model": "gpt-4o", "messages": messages});
        let said = stage.ask_with("/v1/chat/completions", &headers, &body, Play::json(&answer)).await;
        if said.headers.contains_key("x-sprag-blocked") {
            return Some(step);
        }
        assert_eq!((said.status, said.step), (200, step), "{}: one run", trace.run_id);
    }
    None
}

/// Whether each request begins with the one before it and its answer.
fn grows(trace: &Trace<'_>) -> bool {
    let requests: Vec<_> = trace.exchanges().collect();
    requests.windows(2).all(|two| {
        let (before, after) = (&two[0], &two[1].request);
        let said = before.request.iter().chain(&before.answer).map(|raw| raw.get());
        after.len() > before.request.len() + 1 && said.zip(after).all(|(one, other)| one == other.get())
    })
}

fn files() -> Vec<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("SPRAG_SHARED").map_or(beside, PathBuf::from);
    let mut files = vec![fixture("traces.jsonl")];
    match sprag::replay::lines::files(&[shared.join("traces")]) {
        Ok(found) if shared.join("traces").is_dir() => files.extend(found),
        _ => eprintln!("only our own traces: there are none in `../shared/traces`"),
    }
    files
}
