//! A kill on one node meets calls under way on another.

use std::time::{Duration, Instant};

use sprag_core::event::{Ending, Event};
use sprag_core::policy::RunLimits;
use sprag_store::RunKey;
use sprag_testkit::{Fault, Gate, Provider, RedisServer, Reply, Script};

use crate::nodes::{Node, provider, run, two, until};

const RUN: (&str, &str) = ("x-sprag-run-id", "task");

fn stalling() -> Provider {
    let fault = Fault::Stall { after_events: 3, until: Gate::new() };
    Provider::start(Script::always(Reply::text("one two three four five six").fault(fault))).unwrap()
}

/// Begins a stream on `on`, kills its run on `by`, and says how long the client had to wait for the cut.
async fn cut(by: &Node, on: &Node, task: &str) -> Duration {
    let mut answer = on.call(true, &[("x-sprag-run-id", task)]).send().await.unwrap();
    answer.read_at_least(1).await.unwrap();
    let killed = Instant::now();
    by.kill(&format!("run:default/{task}")).await;
    let answer = answer.whole().await;
    let took = killed.elapsed();
    let error = answer.events().last().unwrap().json()["error"].clone();
    assert_eq!(error["kill_reason"], "too expensive", "{error}");
    assert!(error["message"].as_str().unwrap().contains("was killed by anna"), "{error}");
    took
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_on_one_node_cuts_streams_on_another_within_a_second() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = stalling();
    let (a, b) = two(&provider, &redis.url()).await;
    // What was said is counted, and the first count reads its tables.
    cut(&b, &b, "first").await;
    let mut slowest = Duration::ZERO;
    for round in 0..5 {
        slowest = slowest.max(cut(&a, &b, &format!("task{round}")).await);
    }
    println!("a kill on one node cut a stream on another after {slowest:?} at most");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");

    // The act is on record where it was done, the call where it was cut.
    let acts = |events: &[Event]| events.iter().filter(|event| event.act.is_some()).count();
    assert_eq!(acts(&a.sprag.events()), 5);
    let events = b.sprag.settled(6).await;
    assert_eq!(acts(&events), 1, "its own");
    let calls = events.iter().filter(|event| event.act.is_none());
    assert_eq!(calls.filter(|event| event.ending == Ending::Killed).count(), 6);
    assert_eq!(b.ask(&[("x-sprag-run-id", "task0")]).await, (403, "run_killed".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_pub_sub_it_is_cut_within_the_poll() {
    let Some(redis) = RedisServer::start() else { return };
    redis.ask(&["ACL", "SETUSER", "default", "-@pubsub"]);
    let provider = stalling();
    let (a, b) = (Node::start(&provider, &redis.url()).await, Node::start(&provider, &redis.url()).await);
    a.is_linked(true).await;
    b.is_linked(true).await;
    cut(&b, &b, "first").await;
    let took = cut(&a, &b, "task").await;
    assert!(!b.link.status().is_listening, "otherwise this shows nothing");
    println!("without pub/sub a kill on one node cut a stream on another after {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_was_killed_here_is_known_there() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = provider();
    let (a, b) = two(&provider, &redis.url()).await;
    let headers = [("x-session-id", "s")];
    let answer = a.call(false, &headers).fetch().await.unwrap();
    let id = answer.header("x-sprag-run-id").to_owned();
    let kill = a.kill(&format!("run:default/{id}")).await;
    until("the kill", || b.sprag.app.catalog.snapshot().kills.of_scope(&kill.scope).is_some()).await;
    assert_eq!(b.ask(&headers).await, (403, "run_killed".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_where_it_was_stopped_when_it_is_resumed_elsewhere() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = provider();
    let few = |settings: &mut sprag::config::Settings| {
        settings.policies.defaults.run_limits = RunLimits { max_steps: 2, ..RunLimits::default() };
    };
    let a = Node::start_with(&provider, &redis.url(), few).await;
    let b = Node::start_with(&provider, &redis.url(), few).await;
    a.listens().await;
    b.listens().await;
    for _ in 0..2 {
        assert_eq!(b.ask(&[RUN]).await.0, 200);
    }
    assert_eq!(b.ask(&[RUN]).await, (429, "run_limit_exceeded".to_owned()));
    // Sprag itself stopped it on one node; it is stopped on the other.
    let is_killed = |node: &Node| {
        let RunKey { agent, id } = run("task");
        node.sprag.app.catalog.snapshot().kills.of_run(&agent, &id).is_some()
    };
    until("the kill", || is_killed(&a)).await;
    assert_eq!(a.ask(&[RUN]).await, (403, "run_killed".to_owned()));
    a.sprag.app.resume(run("task"), "anna".to_owned()).await.unwrap().unwrap();
    until("the resume", || !is_killed(&b)).await;
    // The one that resumed it had seen nothing of it. What it did before is forgiven, on both, and only that.
    let mark = |node: &Node| node.sprag.app.catalog.snapshot().mark(&run("task"));
    assert_eq!(mark(&b).unwrap().steps, 2);
    until("the same on both", || mark(&a) == mark(&b)).await;
    for _ in 0..2 {
        assert_eq!(b.ask(&[RUN]).await.0, 200);
    }
    assert_eq!(b.ask(&[RUN]).await, (429, "run_limit_exceeded".to_owned()));
}
