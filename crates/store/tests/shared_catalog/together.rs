//! Two nodes and a Redis that does what it should.

use std::time::Duration;

use serde_json::json;
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AgentStanding, DeactivatedBy, KillKind};
use sprag_core::time::Timestamp;
use sprag_store::catalog::{KeyEntry, Mark};
use sprag_store::outbox::{Made, MadeKind};
use sprag_testkit::RedisServer;

use crate::node::{Node, key, kill, run_key, token};

async fn two(redis: &RedisServer) -> (Node, Node) {
    let (a, b) = (Node::start(&redis.url()), Node::start(&redis.url()));
    a.is_linked(true).await;
    b.is_linked(true).await;
    (a, b)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_is_everywhere_within_a_second_and_so_is_its_end() {
    let Some(redis) = RedisServer::start() else { return };
    let (a, b) = two(&redis).await;
    let (mut slowest, mut all) = (Duration::ZERO, Duration::ZERO);
    for round in 0..20 {
        let scope = format!("run:bot/task{round}");
        a.catalog.kill(kill(&scope, KillKind::Pause, "anna"), &[1, 2]).unwrap();
        let took = b.sees("the kill", |b| b.is_killed(&scope)).await;
        (slowest, all) = (slowest.max(took), all + took);
        assert_eq!(b.kill_of(&scope), a.kill_of(&scope), "all of it");
    }
    println!("a kill was known on the other node after {:?}, {slowest:?} at most", all / 20);
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    // Whoever only looks from time to time takes fifteen seconds for all of them.
    assert!(all < Duration::from_secs(7), "{all:?}");
    let clues = b.catalog.clues(100).unwrap();
    assert_eq!(clues.iter().filter(|(_, clues)| *clues == [1, 2]).count(), 20, "{clues:?}");

    b.resume("task7");
    a.sees("the resume", |a| !a.is_killed("run:bot/task7")).await;
    let mark = Some(Mark { steps: 3, cost: NanoUsd(7), at: Timestamp(9) });
    a.sees("the mark", |a| a.catalog.snapshot().mark(&run_key("task7")) == mark).await;
    assert!(a.is_killed("run:bot/task8"));
    a.catalog.kill(kill("run:bot/task7", KillKind::Kill, "bert"), &[]).unwrap();
    b.sees("killed again", |b| b.is_killed("run:bot/task7")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_tokens_agents_and_alerts_are_the_same_everywhere() {
    let Some(redis) = RedisServer::start() else { return };
    let (a, b) = two(&redis).await;
    let id = key(1).key.id;
    a.catalog.add_key(key(1)).unwrap();
    b.sees("the key", |b| b.catalog.snapshot().key_of_secret(&[1; 32]).is_some()).await;
    let rotate = |old: &KeyEntry| {
        let key = old.key.rotated("abcd".into(), Timestamp(9));
        Some(KeyEntry { key, hash: [2; 32], previous_hash: Some(old.hash) })
    };
    b.catalog.change_key(&id, rotate).unwrap().unwrap();
    a.sees("the new secret", |a| a.catalog.snapshot().key_of_secret(&[2; 32]).is_some()).await;
    assert_eq!(a.catalog.snapshot().key(&id), b.catalog.snapshot().key(&id));
    let revoke = |old: &KeyEntry| Some(KeyEntry { key: old.key.revoked(Timestamp(7)), ..old.clone() });
    a.catalog.change_key(&id, revoke).unwrap().unwrap();
    b.sees("its end", |b| b.catalog.snapshot().key(&id).unwrap().key.revoked_at.is_some()).await;

    a.catalog.add_token(token(1, "carl")).unwrap();
    b.sees("the token", |b| b.catalog.snapshot().token_of_secret(&[1; 32]).is_some()).await;
    b.catalog.change_token("tok-00000001", |token| token.revoked(Timestamp(8))).unwrap().unwrap();
    a.sees("its end", |a| a.catalog.snapshot().token("tok-00000001").unwrap().token.revoked_at.is_some()).await;

    let bot = AgentName::parse("bot").unwrap();
    let policy = Some(json!({"budget": {"daily_limit": "1.00"}}));
    a.catalog.set_agent(&bot, |known| AgentStanding { policy: policy.clone(), ..known.clone() }).unwrap();
    b.sees("the policy", |b| b.catalog.snapshot().agent(&bot).is_some_and(|agent| agent.policy == policy)).await;
    let stop = |known: &AgentStanding| known.deactivated(DeactivatedBy::Manual, "why".into(), None, Timestamp(3));
    b.catalog.set_agent(&bot, stop).unwrap();
    a.sees("the stop", |a| !a.catalog.snapshot().agent(&bot).unwrap().active).await;
    assert_eq!(a.catalog.snapshot().agent(&bot), b.catalog.snapshot().agent(&bot));

    let made = Made { kind: MadeKind::Channel, name: "ops".into(), body: json!({"type": "slack"}).to_string() };
    a.outbox.make(&made).unwrap();
    b.sees("the channel", |b| b.outbox.made().unwrap() == [made.clone()]).await;
    b.outbox.unmake(MadeKind::Channel, "ops").unwrap();
    a.sees("it is gone", |a| a.outbox.made().unwrap().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn corrections_of_all_nodes_add_up_and_each_counts_once() {
    let Some(redis) = RedisServer::start() else { return };
    let (a, b) = two(&redis).await;
    let (account, at) = ("agent:bot daily", Timestamp(100));
    for (node, amount) in [(&a, 5), (&b, 70), (&a, 600), (&b, -70)] {
        node.catalog.adjust(&account.parse().unwrap(), at, NanoUsd(amount)).unwrap();
    }
    for node in [&a, &b] {
        node.sees("all of them", |node| node.adjusted(account) == 605).await;
    }
    let dir = b.stop().await;
    let b = Node::open(dir);
    assert_eq!(b.adjusted(account), 605, "after a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_node_gets_everything_and_nothing_of_it_opens_anything() {
    let Some(redis) = RedisServer::start() else { return };
    let a = Node::start(&redis.url());
    a.is_linked(true).await;
    for number in 0..250 {
        a.catalog.add_key(KeyEntry { hash: hash(number), ..key_of(number) }).unwrap();
        a.kill(&format!("run:bot/{number}"));
    }
    a.kill("all");
    a.resume("7");
    a.catalog.add_token(token(1, "carl")).unwrap();
    let bot = AgentName::parse("bot").unwrap();
    a.catalog.set_agent(&bot, |known| AgentStanding { policy: Some(json!({"x": 1})), ..known.clone() }).unwrap();
    a.catalog.adjust(&"everything monthly".parse().unwrap(), Timestamp(4), NanoUsd(9)).unwrap();
    let made = Made { kind: MadeKind::Rule, name: "loud".into(), body: json!({"on": "budget"}).to_string() };
    a.outbox.make(&made).unwrap();

    let fresh = Node::start(&redis.url());
    fresh.sees("all keys", |fresh| fresh.catalog.snapshot().keys().count() == 250).await;
    fresh.sees("all kills", |fresh| fresh.catalog.snapshot().kills.iter().count() == 250).await;
    fresh.sees("the rule", |fresh| fresh.outbox.made().unwrap() == [made.clone()]).await;
    let (here, there) = (fresh.catalog.snapshot(), a.catalog.snapshot());
    assert!(fresh.is_killed("all") && !fresh.is_killed("run:bot/7"));
    assert_eq!((here.mark(&run_key("7")), here.agent(&bot)), (there.mark(&run_key("7")), there.agent(&bot)));
    assert_eq!((here.token("tok-00000001"), fresh.adjusted("everything monthly")), (there.token("tok-00000001"), 9));

    // Every key lives for a time only, and no other than these was made.
    let mut names: Vec<String> = redis.ask(&["KEYS", "*"]).list().iter().map(|name| name.text()).collect();
    names.sort();
    let kinds = ["adjustment", "key", "kill", "log", "mark", "policy", "rule", "state", "token"];
    assert_eq!(names, kinds.map(|kind| format!("sprag:1:{{catalog}}:{kind}")));
    for name in names {
        let seconds = redis.ask(&["TTL", &name]).number();
        assert!((29 * 86_400..=30 * 86_400).contains(&seconds), "{name}: {seconds}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_does_as_well() {
    let Some(servers) = RedisServer::cluster(3) else { return };
    let places: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
    let url = format!("redis+cluster://{}", places.join(","));
    let (a, b) = (Node::start(&url), Node::start(&url));
    a.is_linked(true).await;
    b.is_linked(true).await;
    a.kill("agent:bot");
    let took = b.sees("the kill", |b| b.is_killed("agent:bot")).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    b.catalog.add_key(key(1)).unwrap();
    a.sees("the key", |a| a.catalog.snapshot().key_of_secret(&[1; 32]).is_some()).await;
    let fresh = Node::start(&url);
    fresh.sees("the kill", |fresh| fresh.is_killed("agent:bot")).await;
    fresh.sees("the key", |fresh| fresh.catalog.snapshot().key_of_secret(&[1; 32]).is_some()).await;
}

fn hash(number: u16) -> [u8; 32] {
    let mut hash = [9; 32];
    hash[..2].copy_from_slice(&number.to_be_bytes());
    hash
}

fn key_of(number: u16) -> KeyEntry {
    let mut entry = key(1);
    entry.key.id = format!("key-{number:08}");
    entry
}
