//! Pages of a node that shares its history: all of them show what another did, and learn of it while they are open.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sprag_store::history::{ClickHouseAddress, ClickHouseSettings};
use sprag_testkit::ClickHouseServer;

use crate::world::{TOKEN, World, text};

const PATIENCE: Duration = Duration::from_secs(60);

/// A node with its history at an address.
async fn node(url: &str) -> World {
    let address = ClickHouseAddress::parse(url).unwrap();
    World::configured(TOKEN, |settings| {
        settings.events.clickhouse = Some(ClickHouseSettings {
            address,
            batch_events: 1000,
            batch_age: Duration::from_millis(50),
            patience: PATIENCE,
        });
    })
    .await
}

/// Two nodes with a new database; none where there is no ClickHouse, and testkit says so.
async fn nodes() -> Option<(World, World)> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let server = tokio::task::spawn_blocking(ClickHouseServer::shared).await.unwrap()?;
    let url = server.url(&format!("pages_{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    Some((node(&url).await, node(&url).await))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_a_node_shows_what_another_did() {
    let Some((one, other)) = nodes().await else { return };
    let headers = [("x-sprag-agent", "far-away"), ("x-sprag-run-id", "shared-task")];
    assert_eq!(one.call(&headers).await.status, 200);
    assert_eq!(other.call(&headers).await.status, 200, "the same run goes on here");
    for world in [&one, &other] {
        world.sprag.app.history.flush().unwrap();
    }
    for path in ["/", "/runs", "/events", "/run?agent=far-away&id=shared-task", "/agents", "/agent?name=far-away"] {
        let page = other.page(path).await;
        assert_eq!(page.status, 200, "{path}: {}", text(&page));
        assert!(text(&page).contains("far-away"), "{path}: {}", text(&page));
    }
    for path in ["/detectors", "/dlp", "/budgets", "/keys", "/panic", "/alerts", "/settings"] {
        assert_eq!(other.page(path).await.status, 200, "{path}");
    }
    let run = other.json("/runs/far-away/shared-task").await;
    assert_eq!(run["run"]["steps"], 2, "{run}");
    let agents = other.json("/agents").await;
    let agent = agents["items"].as_array().unwrap().iter().find(|agent| agent["name"] == "far-away").unwrap();
    assert_eq!(agent["runs"], 1, "one run, not one of each node: {agent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_learns_of_what_other_nodes_did() {
    let Some((_one, other)) = nodes().await else { return };
    let cookie = other.sign_in().await;
    let mut page = other.ask("/live").header("cookie", &cookie).send().await.unwrap();
    let mut heard = String::new();
    while !heard.contains("event: changed") {
        let piece = page.next().await.unwrap().unwrap();
        heard.push_str(std::str::from_utf8(&piece).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_says_when_the_shared_history_is_away() {
    // Nothing listens on the port of discard.
    let world = node("http://reader:secret@127.0.0.1:9/sprag").await;
    assert_eq!(world.call(&[("x-sprag-run-id", "task")]).await.status, 200, "a run that is new here goes on");
    let page = text(&world.page("/events").await);
    assert!(page.contains("ClickHouse at") && page.contains("events"), "{page}");
    assert!(!page.contains("secret"), "{page}");
}
