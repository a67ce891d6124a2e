//! `kill -9` in the middle of traffic.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use sprag_core::wire::Dialect;
use sprag_testkit::{Provider, Script, client, sse};

use crate::binary::{Binary, events_of, wait_until};
use crate::wire::{path, request};

/// These runs take more steps than one that is named may by default.
const UNLIMITED: &str = "defaults.run_limits.max_steps = 0\ndefaults.run_limits.timeout_seconds = 0
detection.exact.mode = \"off\"\ndetection.progress.mode = \"off\"";

/// A call whose end the client saw.
#[derive(Clone, Debug)]
struct Seen {
    id: String,
    run: String,
    step: u64,
    cost: f64,
}

async fn call(base: &str, run: &str, is_stream: bool) -> Option<Seen> {
    let dialect = if is_stream { Dialect::Anthropic } else { Dialect::OpenaiChat };
    let body = request(dialect, is_stream, "hello");
    let call = client::post_json(format!("{base}{}", path(dialect, is_stream)), &body).header("x-sprag-run-id", run);
    let answer = call.fetch().await.ok()?;
    if answer.broken.is_some() || answer.status != 200 {
        return None;
    }
    let meta = match is_stream {
        true => sse::events(&answer.body).last()?.json()["sprag"].clone(),
        false => answer.json()["sprag"].clone(),
    };
    let Value::Object(meta) = meta else { return None };
    let (step, cost) = (meta["step"].as_u64().unwrap(), meta["cost_usd"].as_f64().unwrap());
    Some(Seen { id: answer.header("x-sprag-request-id").into(), run: run.into(), step, cost })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_saw_the_end_of_is_on_record_after_a_kill() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut answered: Vec<Seen> = Vec::new();
    for round in 0..3 {
        let mut binary = Binary::start(home.path(), &provider, UNLIMITED);
        // A step that is never answered takes a number all the same.
        for run in (0..3).filter(|_| round == 0) {
            let body = request(Dialect::OpenaiChat, false, "hello");
            let call = client::post_json(binary.url("/v1/chat/completions"), &body).header("x-mock-hold", "");
            tokio::spawn(call.header("x-sprag-run-id", &format!("task-{run}")).fetch());
        }
        provider.gate().reached(3).await;
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let mut workers = Vec::new();
        for worker in 0..6 {
            let (base, seen) = (binary.url(""), seen.clone());
            workers.push(tokio::spawn(async move {
                let run = format!("task-{}", worker % 3);
                while let Some(one) = call(&base, &run, worker % 2 == 0).await {
                    seen.lock().unwrap().push(one);
                }
            }));
        }
        wait_until(|| seen.lock().unwrap().len() > 60 + round * 17, || "no traffic".into()).await;
        binary.signal("KILL");
        assert_eq!(binary.exit_code().await, None);
        for worker in workers {
            worker.await.unwrap();
        }
        // A run goes on behind everything that anybody saw of it.
        let new = seen.lock().unwrap().clone();
        for one in &new {
            let earlier = answered.iter().filter(|old| old.run == one.run).map(|old| old.step).max();
            assert!(Some(one.step) > earlier, "step {} after {earlier:?} of {}", one.step, one.run);
        }
        answered.extend(new);
    }

    let mut binary = Binary::start(home.path(), &provider, UNLIMITED);
    for run in ["task-0", "task-1", "task-2"] {
        let body = request(Dialect::OpenaiChat, false, "again");
        let call = client::post_json(binary.url("/v1/chat/completions"), &body).header("x-sprag-run-id", run);
        let answer = call.fetch().await.unwrap();
        let total = answer.json()["sprag"]["total_run_cost"].as_f64().unwrap();
        let paid: f64 = answered.iter().filter(|one| one.run == run).map(|one| one.cost).sum();
        assert!(total > paid, "{run}: {total} after {paid}");
    }
    binary.signal("TERM");
    assert_eq!(binary.exit_code().await, Some(0));

    let events = events_of(&binary.data());
    let by_id: HashMap<&str, _> = events.iter().map(|event| (event.id.as_str(), event)).collect();
    assert_eq!(by_id.len(), events.len(), "none is counted twice");
    for one in &answered {
        let event = by_id.get(one.id.as_str()).unwrap_or_else(|| panic!("{one:?} is lost"));
        assert!((event.cost.unwrap().as_usd() - one.cost).abs() < 1e-12, "{one:?}");
        assert_eq!(u64::from(event.run.as_ref().unwrap().step), one.step);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_answer_before_a_kill_is_on_record() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut answered: Vec<String> = Vec::new();
    // Whole and as a stream. Several times: it may be written by itself in the very moment before the kill.
    for round in 0..6 {
        let mut binary = Binary::start(home.path(), &provider, UNLIMITED);
        let one = call(&binary.url(""), "task", round % 2 == 0).await.unwrap();
        binary.signal("KILL");
        assert_eq!(binary.exit_code().await, None);
        answered.push(one.id);
    }
    let events = events_of(&home.path().join("data"));
    let on_record: Vec<&str> = events.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(on_record, answered);
}
