//! The first call of a node, and its last act.

use std::time::Duration;

use sprag_testkit::{RedisServer, client};

use crate::nodes::{Node, provider, until};

const BOT: [(&str, &str); 1] = [("x-sprag-agent", "bot")];

#[tokio::test(flavor = "multi_thread")]
async fn a_node_knows_from_its_first_call_on_what_is_killed_and_gives_its_last_act() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = provider();
    let Node { sprag: a, link } = Node::start(&provider, &redis.url()).await;
    drop(link);
    let order = sprag::acts::KillOrder {
        scope: "agent:bot".parse().unwrap(),
        kind: sprag_core::policy::KillKind::Kill,
        reason: "why".to_owned(),
        by: "anna".to_owned(),
        expires_at: None,
        proof: None,
    };
    let kill = a.app.kill(order).await.unwrap();
    a.stop().await;
    let b = Node::start(&provider, &redis.url()).await;
    assert_eq!(b.ask(&BOT).await, (403, "run_killed".to_owned()));
    let ready = client::get(format!("http://{}/readyz", b.sprag.admin)).fetch().await.unwrap().json();
    assert_eq!(ready["shared_catalog"]["connected"], true, "{ready}");
    let c = Node::start(&provider, &redis.url()).await;
    b.sprag.app.lift(kill.id.clone(), "anna".to_owned()).await.unwrap().unwrap();
    let took = until("its end", || c.sprag.app.catalog.snapshot().kills.iter().next().is_none()).await;
    assert!(took < Duration::from_secs(10));
}
