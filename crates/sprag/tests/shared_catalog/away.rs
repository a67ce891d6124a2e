//! Redis is away: acts hold where they are done, and arrive when it is back.

use std::time::{Duration, Instant};

use serde_json::json;
use sprag_testkit::{RedisServer, client};

use crate::nodes::{Node, TOKEN, agent, provider, two, until};

const RUN: (&str, &str) = ("x-sprag-run-id", "task");

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_meanwhile_holds_at_once_and_arrives_later() {
    let Some(mut redis) = RedisServer::start() else { return };
    let provider = provider();
    let (a, b) = two(&provider, &redis.url()).await;
    redis.kill();
    a.is_linked(false).await;
    b.is_linked(false).await;
    let begun = Instant::now();
    a.kill("run:default/task").await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(a.ask(&[RUN]).await, (403, "run_killed".to_owned()));
    assert_eq!(b.ask(&[RUN]).await.0, 200, "it cannot know");
    b.sprag.app.deactivate(agent("bot"), "anna".to_owned(), "why".to_owned()).await.unwrap();
    redis.restart();
    b.comes_to(&[RUN], (403, "run_killed")).await;
    a.comes_to(&[("x-sprag-agent", "bot")], (200, "agent_inactive")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_and_programs_see_whether_kills_are_shared() {
    let Some(mut redis) = RedisServer::start() else { return };
    let provider = provider();
    let (a, b) = two(&provider, &redis.url()).await;
    let signed_in = client::get(format!("http://{}/login?token={TOKEN}", a.sprag.admin)).fetch().await.unwrap();
    let cookie = signed_in.header("set-cookie").split(';').next().unwrap_or_default().to_owned();
    let fetch = async |path: &str| {
        let call = client::get(format!("http://{}{path}", a.sprag.admin)).header("cookie", &cookie);
        let call = call.header("authorization", &format!("Bearer {TOKEN}"));
        String::from_utf8(call.fetch().await.unwrap().body.to_vec()).unwrap()
    };
    b.kill("run:default/task").await;
    a.comes_to(&[RUN], (403, "run_killed")).await;
    let page = fetch("/metrics").await;
    assert!(page.contains("sprag_link_up{link=\"catalog\"} 1\n"), "{page}");
    assert!(page.contains("sprag_shared_catalog_listening 1\n"), "{page}");
    assert!(page.contains("sprag_shared_catalog_rows_total{result=\"taken\"} "), "{page}");
    assert!(!page.contains("sprag_shared_catalog_rows_total{result=\"taken\"} 0\n"), "{page}");
    let settings = fetch("/settings").await;
    assert!(settings.contains("Kills, keys and policies</dt><dd>shared with the other nodes for "), "{settings}");

    redis.kill();
    a.is_linked(false).await;
    let page = fetch("/metrics").await;
    assert!(page.contains("sprag_link_up{link=\"catalog\"} 0\n"), "{page}");
    assert!(!page.contains("sprag_link_failures_total{link=\"catalog\"} 0\n"), "{page}");
    assert!(fetch("/settings").await.contains("Kills, keys and policies</dt><dd>not shared for "));
    for path in ["/readyz", "/api/v1/status"] {
        let told: serde_json::Value = serde_json::from_str(&fetch(path).await).unwrap();
        let catalog = &told["shared_catalog"];
        assert_eq!(catalog["connected"], false, "{path}: {told}");
        assert!(catalog["last_error"].is_string() && catalog["since_seconds"].as_u64().unwrap() < 1000, "{catalog}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flushed_redis_costs_nothing() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = provider();
    let (a, b) = two(&provider, &redis.url()).await;
    a.kill("run:default/task").await;
    b.comes_to(&[RUN], (403, "run_killed")).await;
    redis.flush();
    b.kill("agent:bot").await;
    a.comes_to(&[("x-sprag-agent", "bot")], (403, "run_killed")).await;
    let late = Node::start(&provider, &redis.url()).await;
    late.comes_to(&[RUN], (403, "run_killed")).await;
    late.comes_to(&[("x-sprag-agent", "bot")], (403, "run_killed")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_side_of_any_node_will_do() {
    let Some(redis) = RedisServer::start() else { return };
    let provider = provider();
    let (a, b) = two(&provider, &redis.url()).await;
    let change = async |node: &Node, method: &str, path: &str, body: serde_json::Value| {
        let call = client::post_json(format!("http://{}/api/v1{path}", node.sprag.admin), &body);
        let call = call.method(method.parse().unwrap()).header("authorization", &format!("Bearer {TOKEN}"));
        let answer = call.fetch().await.unwrap();
        assert!(answer.status.is_success(), "{} {}", answer.status, answer.json());
        answer.json()
    };
    let killed = change(&a, "POST", "/kills", json!({"scope": "agent:bot", "reason": "why"})).await;
    b.comes_to(&[("x-sprag-agent", "bot")], (403, "run_killed")).await;
    // A kill has the same id everywhere.
    let id = killed["id"].as_str().unwrap();
    until("the kill", || b.sprag.app.catalog.snapshot().kills.iter().any(|kill| kill.id == id)).await;
    b.sprag.app.lift(id.to_owned(), "anna".to_owned()).await.unwrap().unwrap();
    a.comes_to(&[("x-sprag-agent", "bot")], (200, "")).await;
}
