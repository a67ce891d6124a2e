//! What others may have left in Redis: garbage, rows of another version, something else under our names.

use sprag_testkit::RedisServer;

use crate::node::{Node, look};

const KILLS: &str = "sprag:1:{catalog}:kill";

#[tokio::test(flavor = "multi_thread")]
async fn garbage_and_rows_of_another_version_are_left_alone() {
    let Some(redis) = RedisServer::start() else { return };
    let a = Node::start(&redis.url());
    a.is_linked(true).await;
    a.kill("agent:one");
    let is_there = || redis.ask(&["HLEN", KILLS]).number() == 1;
    look(is_there, || "the row".to_owned()).await;
    redis.ask(&["HSET", KILLS, "agent:two", "[2,5,\"ab\",0,{\"what\":\"ever\"}]"]);
    redis.ask(&["HSET", KILLS, "agent:three", "nonsense"]);
    redis.ask(&["HSET", KILLS, "\x01\x02", "[1,5,\"ab\",0,{}]"]);
    redis.ask(&["HSET", "sprag:1:{catalog}:key", "key-1", "[1,5,\"ab\",0,[]]"]);
    redis.ask(&["HSET", "sprag:1:{catalog}:whatever", "x", "y"]);
    let fresh = Node::start(&redis.url());
    fresh.sees("what can be read", |fresh| fresh.is_killed("agent:one")).await;
    fresh.is_linked(true).await;
    let status = fresh.link.as_ref().unwrap().status();
    assert_eq!((status.unreadable, status.last_error), (4, None));
    assert!(!fresh.is_killed("agent:two") && !fresh.is_killed("agent:three"));

    // In the log, too; and what comes behind it is taken.
    let seq = redis.ask(&["HINCRBY", "sprag:1:{catalog}:state", "seq", "1"]).number();
    redis.ask(&["XADD", "sprag:1:{catalog}:log", &format!("{seq}-0"), "kind", "kill", "name", "agent:two"]);
    let seq = redis.ask(&["HINCRBY", "sprag:1:{catalog}:state", "seq", "1"]).number();
    redis.ask(&["XADD", "sprag:1:{catalog}:log", &format!("{seq}-0"), "kind", "planet", "name", "mars"]);
    a.kill("agent:four");
    fresh.sees("what comes behind", |fresh| fresh.is_killed("agent:four")).await;
    assert_eq!(fresh.link.as_ref().unwrap().status().unreadable, 4, "each is named once");

    // A row of another version is compared like any other: a later change here takes its place, an earlier one does not.
    fresh.kill("agent:two");
    a.sees("the later one", |a| a.is_killed("agent:two")).await;
    redis.ask(&["HSET", KILLS, "agent:five", "[2,99999999999999,\"ab\",0,{}]"]);
    fresh.kill("agent:five");
    a.kill("agent:six");
    fresh.sees("the others", |fresh| fresh.is_killed("agent:six")).await;
    let row = redis.ask(&["HGET", KILLS, "agent:five"]).text();
    assert!(row.starts_with("[2,"), "{row}");
    assert!(fresh.is_killed("agent:five"), "it holds where it was ordered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_to_which_a_newer_version_adds_something_holds_here_and_stays_as_it_is() {
    let Some(redis) = RedisServer::start() else { return };
    let a = Node::start(&redis.url());
    a.is_linked(true).await;
    a.kill("agent:one");
    let row = |name: &str| redis.ask(&["HGET", KILLS, name]).text();
    look(|| !row("agent:one").is_empty(), || "the row".to_owned()).await;
    let newer = row("agent:one").replace("agent:one", "agent:two").replacen('{', "{\"mood\":\"theirs\",", 1);
    assert!(newer.contains("mood"), "{newer}");
    redis.ask(&["HSET", KILLS, "agent:two", &newer]);
    let fresh = Node::start(&redis.url());
    fresh.sees("both", |fresh| fresh.is_killed("agent:one") && fresh.is_killed("agent:two")).await;
    // What it does itself does not touch their row.
    fresh.kill("agent:three");
    a.sees("the third", |a| a.is_killed("agent:three")).await;
    assert_eq!(row("agent:two"), newer);
}

#[tokio::test(flavor = "multi_thread")]
async fn something_else_under_our_names_gives_way() {
    let Some(redis) = RedisServer::start() else { return };
    for name in ["state", "log", "kill"] {
        redis.ask(&["SET", &format!("sprag:1:{{catalog}}:{name}"), "something else"]);
    }
    let (a, b) = (Node::start(&redis.url()), Node::start(&redis.url()));
    a.kill("agent:one");
    b.sees("the kill", |b| b.is_killed("agent:one")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_has_a_gap_is_made_up_for() {
    let Some(redis) = RedisServer::start() else { return };
    let a = Node::start(&redis.url());
    a.is_linked(true).await;
    a.kill("agent:one");
    let row = || redis.ask(&["HGET", KILLS, "agent:one"]).text();
    look(|| !row().is_empty(), || "the row".to_owned()).await;
    // Another row comes in, and the log no longer has it: all at once, so that nobody sees a part of it.
    let script = "redis.call('HSET', KEYS[1], 'agent:two', ARGV[1])
        local seq = redis.call('HINCRBY', KEYS[2], 'seq', 2)
        return redis.call('XADD', KEYS[3], seq .. '-0', 'kind', 'kill', 'name', 'agent:one')";
    let (state, log) = ("sprag:1:{catalog}:state", "sprag:1:{catalog}:log");
    let other = row().replace("agent:one", "agent:two");
    let answer = redis.ask(&["EVAL", script, "3", KILLS, state, log, &other]);
    assert!(answer.text().ends_with("-0"), "{answer:?}");
    a.sees("the other", |a| a.is_killed("agent:two")).await;
}
