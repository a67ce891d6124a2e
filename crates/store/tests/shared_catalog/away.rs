//! What happens when Redis, or a part of it, is away.

use std::time::{Duration, Instant};

use sprag_core::id::AgentName;
use sprag_core::policy::{AgentStanding, DeactivatedBy, KillKind};
use sprag_core::time::Timestamp;
use sprag_store::catalog::KeyEntry;
use sprag_testkit::{Cable, RedisServer};

use crate::node::{Node, a_millisecond_passes, key, kill, look};

#[tokio::test(flavor = "multi_thread")]
async fn without_pub_sub_a_kill_is_everywhere_within_the_poll() {
    let Some(redis) = RedisServer::start() else { return };
    redis.ask(&["ACL", "SETUSER", "default", "-@pubsub"]);
    let (a, b) = (Node::start(&redis.url()), Node::start(&redis.url()));
    for node in [&a, &b] {
        let link = node.link.clone().unwrap();
        look(|| link.status().is_connected, || format!("{:?}", link.status())).await;
    }
    let mut slowest = Duration::ZERO;
    for round in 0..3 {
        let scope = format!("run:bot/{round}");
        a.kill(&scope);
        slowest = slowest.max(b.sees("the kill", |b| b.is_killed(&scope)).await);
    }
    assert!(!b.link.as_ref().unwrap().status().is_listening, "otherwise this shows nothing");
    println!("without pub/sub a kill was known on the other node after {slowest:?} at most");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_is_cut_listens_again() {
    let Some(redis) = RedisServer::start() else { return };
    let (a, b) = (Node::start(&redis.url()), Node::start(&redis.url()));
    b.is_linked(true).await;
    a.is_linked(true).await;
    redis.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    a.kill("agent:one");
    let took = b.sees("the kill", |b| b.is_killed("agent:one")).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    b.is_linked(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_while_redis_is_away_holds_at_once_and_arrives_later() {
    let Some(mut redis) = RedisServer::start() else { return };
    let (a, b) = (Node::start(&redis.url()), Node::start(&redis.url()));
    a.is_linked(true).await;
    b.is_linked(true).await;
    a.kill("run:bot/old");
    b.sees("the kill", |b| b.is_killed("run:bot/old")).await;
    redis.kill();
    a.is_linked(false).await;
    b.is_linked(false).await;
    let begun = Instant::now();
    a.kill("run:bot/one");
    b.kill("run:bot/two");
    b.resume("old");
    a.catalog.add_key(key(1)).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(a.is_killed("run:bot/one") && !b.is_killed("run:bot/one"));
    // It comes back empty, as one without a disk does.
    redis.restart();
    for node in [&a, &b] {
        let both = |node: &Node| node.is_killed("run:bot/one") && node.is_killed("run:bot/two");
        node.sees("both kills", both).await;
        node.sees("the resume", |node| !node.is_killed("run:bot/old")).await;
        node.sees("the key", |node| node.catalog.snapshot().key_of_secret(&[1; 32]).is_some()).await;
        node.is_linked(true).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_put_back_what_a_redis_has_forgotten() {
    let Some(redis) = RedisServer::start() else { return };
    let (a, b) = (Node::start(&redis.url()), Node::start(&redis.url()));
    a.is_linked(true).await;
    b.is_linked(true).await;
    a.kill("agent:one");
    b.kill("agent:two");
    a.sees("the kill", |a| a.is_killed("agent:two")).await;
    let lifted = a.kill("agent:three");
    a.catalog.lift(&lifted.id).unwrap().unwrap();
    redis.flush();
    let rows = |wanted: usize| {
        let redis = &redis;
        move || redis.ask(&["HLEN", "sprag:1:{catalog}:kill"]).number() == i64::try_from(wanted).unwrap()
    };
    look(rows(3), || "two kills, and one that left".to_owned()).await;
    b.kill("agent:four");
    a.sees("what came later", |a| a.is_killed("agent:four")).await;
    let fresh = Node::start(&redis.url());
    let all = |fresh: &Node| ["one", "two", "four"].iter().all(|name| fresh.is_killed(&format!("agent:{name}")));
    fresh.sees("all", all).await;
    assert!(!fresh.is_killed("agent:three"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_redis_and_a_cut_cable_stop_nothing_here() {
    let Some(redis) = RedisServer::start() else { return };
    let cable = Cable::to(redis.address()).await.unwrap();
    let (a, b) = (Node::start(&cable.redis_url()), Node::start(&redis.url()));
    a.is_linked(true).await;
    b.is_linked(true).await;
    cable.cut();
    a.kill("agent:one");
    a.is_linked(false).await;
    b.kill("agent:two");
    assert!(!b.is_killed("agent:one"));
    cable.mend();
    b.sees("the kill", |b| b.is_killed("agent:one")).await;
    a.sees("the kill", |a| a.is_killed("agent:two")).await;
    redis.freeze();
    a.kill("agent:three");
    a.is_linked(false).await;
    redis.thaw();
    b.sees("the kill", |b| b.is_killed("agent:three")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_brings_nothing_back() {
    let Some(redis) = RedisServer::start() else { return };
    let (a, b) = (Node::start(&redis.url()), Node::start(&redis.url()));
    a.is_linked(true).await;
    b.is_linked(true).await;
    a.kill("run:bot/task");
    a.catalog.add_key(key(1)).unwrap();
    b.sees("the key", |b| b.catalog.snapshot().key_of_secret(&[1; 32]).is_some()).await;
    let dir = b.stop().await;
    a.resume("task");
    let revoke = |old: &KeyEntry| Some(KeyEntry { key: old.key.revoked(Timestamp(7)), ..old.clone() });
    a.catalog.change_key(&key(1).key.id, revoke).unwrap().unwrap();
    let mut b = Node::open(dir);
    assert!(b.is_killed("run:bot/task"));
    b.link(&redis.url());
    b.sees("the resume", |b| !b.is_killed("run:bot/task")).await;
    b.sees("the end of the key", |b| b.catalog.snapshot().key(&key(1).key.id).unwrap().key.revoked_at.is_some()).await;
    assert!(!a.is_killed("run:bot/task"));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_one_row_on_two_nodes_end_the_same_on_both() {
    let Some(mut redis) = RedisServer::start() else { return };
    let bot = AgentName::parse("bot").unwrap();
    let (mut a, mut b) = (Node::alone(), Node::alone());
    a.catalog.add_key(key(1)).unwrap();
    a.link(&redis.url());
    b.link(&redis.url());
    b.sees("the key", |b| b.catalog.snapshot().key_of_secret(&[1; 32]).is_some()).await;
    redis.kill();
    a.is_linked(false).await;
    b.is_linked(false).await;
    a.catalog.kill(kill("all", KillKind::Pause, "anna"), &[]).unwrap();
    a_millisecond_passes();
    b.catalog.kill(kill("all", KillKind::Pause, "bert"), &[]).unwrap();
    // One takes the key back, and later the other gives it a new secret.
    let revoke = |old: &KeyEntry| Some(KeyEntry { key: old.key.revoked(Timestamp(7)), ..old.clone() });
    a.catalog.change_key(&key(1).key.id, revoke).unwrap().unwrap();
    a_millisecond_passes();
    let rotate = |old: &KeyEntry| Some(KeyEntry { hash: [2; 32], previous_hash: Some(old.hash), ..old.clone() });
    b.catalog.change_key(&key(1).key.id, rotate).unwrap().unwrap();
    // One stops the agent, and later the other sets its policy.
    let stop = |known: &AgentStanding| known.deactivated(DeactivatedBy::KillSwitch, "loop".into(), None, Timestamp(3));
    a.catalog.set_agent(&bot, stop).unwrap();
    a_millisecond_passes();
    let policy = Some(serde_json::json!({"budget": {}}));
    b.catalog.set_agent(&bot, |known| AgentStanding { policy: policy.clone(), ..known.clone() }).unwrap();
    redis.restart();
    let agree = |a: &Node, b: &Node| {
        let (here, there) = (a.catalog.snapshot(), b.catalog.snapshot());
        a.kill_of("all") == b.kill_of("all")
            && here.key(&key(1).key.id) == there.key(&key(1).key.id)
            && here.agent(&bot).is_some()
            && here.agent(&bot) == there.agent(&bot)
    };
    a.sees("they agree", |a| agree(a, &b)).await;
    assert_eq!(a.kill_of("all").unwrap().by, "bert", "the later one");
    let entry = a.catalog.snapshot().key(&key(1).key.id).cloned().unwrap();
    assert!(entry.key.revoked_at.is_some(), "a new secret does not bring a key back");
    let agent = a.catalog.snapshot().agent(&bot).cloned().unwrap();
    assert_eq!((agent.active, &agent.policy), (false, &policy), "a policy does not bring an agent back");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_last_goes_out_before_a_node_leaves() {
    let Some(redis) = RedisServer::start() else { return };
    let (mut a, b) = (Node::start(&redis.url()), Node::start(&redis.url()));
    let link = a.link.clone().unwrap();
    assert!(link.first_exchange(Duration::from_secs(20)).await);
    b.is_linked(true).await;
    a.halt().await;
    a.kill("agent:one");
    link.give_last().await;
    b.sees("the kill", |b| b.is_killed("agent:one")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_redis_does_not_wait_for_ever() {
    let Some(mut redis) = RedisServer::start() else { return };
    redis.kill();
    let a = Node::start(&redis.url());
    let link = a.link.clone().unwrap();
    assert!(!link.first_exchange(Duration::from_millis(50)).await);
    redis.restart();
    assert!(link.first_exchange(Duration::from_secs(20)).await);
}
