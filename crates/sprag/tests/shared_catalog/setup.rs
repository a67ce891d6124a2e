//! Keys, tokens, policies, agents, budgets and alerts: set on one node, in force on all.

use std::time::Duration;

use serde_json::json;
use sprag::acts::{Adjustment, KeyOrder, TokenOrder};
use sprag::config::Secret;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Budget, Role};
use sprag_store::outbox::MadeKind;
use sprag_testkit::{RedisServer, client};

use crate::nodes::{Node, agent, provider, two, until};

const BY: &str = "anna";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_everywhere_and_ends_everywhere() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = provider();
    let held = |settings: &mut sprag::config::Settings| {
        let openai = settings.providers.get_mut("openai").unwrap();
        std::sync::Arc::make_mut(openai).key = Some(Secret::new("sk-proj-Zq7VxKw3TnB9mLr2HdYc5PfJ"));
    };
    let a = Node::start_with(&provider, &redis.url(), held).await;
    let b = Node::start_with(&provider, &redis.url(), held).await;
    let order = KeyOrder {
        agent: agent("bot"),
        name: String::new(),
        expires_at: None,
        budget: Budget::default(),
        by: BY.to_owned(),
    };
    let issued = a.sprag.app.create_key(order).await.unwrap();
    let bearer = format!("Bearer {}", issued.secret.reveal());
    let with_key = [("authorization", bearer.as_str())];
    b.comes_to(&with_key, (200, "")).await;
    b.sprag.app.revoke_key(issued.entry.key.id.clone(), BY.to_owned()).await.unwrap().unwrap();
    assert_eq!(b.ask(&with_key).await.0, 401);
    a.comes_to(&with_key, (401, "authentication_error")).await;

    // Nothing in Redis opens anything.
    let dump = redis.ask(&["HGETALL", "sprag:1:{catalog}:key"]).list();
    let texts: Vec<String> = dump.iter().map(|part| part.text()).collect();
    assert!(texts.iter().any(|text| text.contains(&issued.entry.key.id)), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains(&issued.secret.reveal()[9..])), "{texts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_opens_the_admin_side_of_every_node() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = provider();
    let (a, b) = two(&provider, &redis.url()).await;
    let order = TokenOrder { name: "carl".into(), role: Role::Viewer, expires_at: None, by: BY.to_owned() };
    let issued = a.sprag.app.create_token(order).await.unwrap();
    let id = issued.entry.token.id.clone();
    let status = async |node: &Node| {
        let call = client::get(format!("http://{}/api/v1/status", node.sprag.admin));
        let call = call.header("authorization", &format!("Bearer {}", issued.secret.reveal()));
        call.fetch().await.unwrap().status.as_u16()
    };
    until("the token", || b.sprag.app.catalog.snapshot().token(&id).is_some()).await;
    assert_eq!(status(&b).await, 200);
    b.sprag.app.revoke_token(id.clone(), BY.to_owned()).await.unwrap().unwrap();
    until("its end", || a.sprag.app.catalog.snapshot().token(&id).unwrap().token.revoked_at.is_some()).await;
    assert_eq!((status(&a).await, status(&b).await), (401, 401));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_for_agents_is_in_force_on_all_nodes() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = provider();
    let (a, b) = two(&provider, &redis.url()).await;
    let deny = json!({"models": {"allow": ["nothing-like-this"]}});
    for number in 0..3 {
        let name = agent(&format!("bot{number}"));
        a.sprag.app.set_policy(name, deny.clone(), BY.to_owned()).await.unwrap();
    }
    let as_bot = |name| [("x-sprag-agent", name)];
    for name in ["bot0", "bot1", "bot2"] {
        b.comes_to(&as_bot(name), (403, "model_not_allowed")).await;
    }
    // A node that starts later has them from the beginning.
    let late = Node::start(&provider, &redis.url()).await;
    for name in ["bot0", "bot1", "bot2"] {
        late.comes_to(&as_bot(name), (403, "model_not_allowed")).await;
    }
    b.sprag.app.set_policy(agent("bot0"), json!({"models": null}), BY.to_owned()).await.unwrap();
    for node in [&a, &b, &late] {
        node.comes_to(&as_bot("bot0"), (200, "")).await;
    }
    a.sprag.app.deactivate(agent("bot0"), BY.to_owned(), "holiday".to_owned()).await.unwrap();
    b.comes_to(&as_bot("bot0"), (200, "agent_inactive")).await;
    late.sprag.app.activate(agent("bot0"), BY.to_owned()).await.unwrap();
    a.comes_to(&as_bot("bot0"), (200, "")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_counts_once_on_every_node() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = provider();
    let (a, b) = two(&provider, &redis.url()).await;
    let limit = json!({"budget": {"daily_limit": "5.00"}});
    a.sprag.app.set_policy(agent("bot"), limit, BY.to_owned()).await.unwrap();
    let bot = [("x-sprag-agent", "bot")];
    let has_limit = |node: &Node| {
        let limits = node.sprag.app.catalog.snapshot().agent(&agent("bot")).and_then(|bot| bot.policy.clone());
        limits.is_some()
    };
    until("the limit", || has_limit(&b)).await;
    // The account is open on both.
    assert_eq!((a.ask(&bot).await.0, b.ask(&bot).await.0), (200, 200));
    const DOLLAR: i64 = 1_000_000_000;
    let correct = async |node: &Node, usd: i64| {
        let account = "agent:bot daily".parse().unwrap();
        let order = Adjustment { account, amount: NanoUsd(usd * DOLLAR), reason: "why".into(), by: BY.to_owned() };
        node.sprag.app.adjust_budget(order).await.unwrap();
    };
    let account = |node: &Node| node.sprag.app.state.account(&"agent:bot daily".parse().unwrap());
    let spent = |node: &Node| account(node).unwrap().settled.0;
    assert!(spent(&a) < DOLLAR / 10 && spent(&b) < DOLLAR / 10, "calls cost next to nothing");
    let is_about = |node: &Node, usd: i64| (usd * DOLLAR..usd * DOLLAR + DOLLAR / 10).contains(&spent(node));
    correct(&a, 2).await;
    until("the correction", || is_about(&a, 2) && is_about(&b, 2)).await;
    correct(&b, 1).await;
    until("both of them", || is_about(&a, 3) && is_about(&b, 3)).await;
    // Each counts once, also after calls of both.
    assert_eq!((a.ask(&bot).await.0, b.ask(&bot).await.0), (200, 200));
    assert!(is_about(&a, 3) && is_about(&b, 3), "{} {}", spent(&a), spent(&b));
    correct(&b, 2).await;
    a.comes_to(&bot, (402, "budget_exceeded")).await;
    assert!(a.sprag.events().iter().filter(|event| event.act.is_some()).count() <= 3, "acts of the other are not here");
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_and_rules_are_made_for_all_nodes() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = provider();
    let (a, b) = two(&provider, &redis.url()).await;
    let channel = json!({"type": "slack", "url": "https://hooks.example.com/x"});
    let rule = json!({"on": "loop_detected", "channels": ["ops"]});
    let app = &a.sprag.app;
    app.set_alerts(MadeKind::Channel, "ops".into(), channel, true, BY.to_owned()).await.unwrap();
    app.set_alerts(MadeKind::Rule, "loops".into(), rule, true, BY.to_owned()).await.unwrap();
    let told = |node: &Node| {
        let in_force = node.sprag.app.alerts.in_force();
        in_force.rules.rules.iter().find(|rule| rule.name == "loops").map(|rule| rule.channels.clone())
    };
    until("the rule", || told(&b).as_deref() == Some(&["ops".to_owned()])).await;
    b.sprag.app.delete_alerts(MadeKind::Rule, "loops".into(), BY.to_owned()).await.unwrap();
    b.sprag.app.delete_alerts(MadeKind::Channel, "ops".into(), BY.to_owned()).await.unwrap();
    let is_gone = || told(&a).is_none() && !a.sprag.app.alerts.in_force().channels.contains_key("ops");
    let took = until("they are gone", is_gone).await;
    assert!(took < Duration::from_secs(10));
}
