//! Two Sprags that share a history: each shows what both did, and says when the history is away.

use std::path::Path;
use std::time::{Duration, Instant};

use sprag_store::history::{ClickHouseAddress, ClickHouseSettings};
use sprag_testkit::ClickHouseServer;

use crate::world::{TOKEN, World, text};

const PATIENCE: Duration = Duration::from_secs(60);

async fn world_on(url: &str) -> World {
    let clickhouse = ClickHouseSettings {
        address: ClickHouseAddress::parse(url).unwrap(),
        batch_events: 1000,
        batch_age: Duration::from_millis(20),
        patience: PATIENCE,
    };
    World::configured(TOKEN, |settings| settings.events.clickhouse = Some(clickhouse)).await
}

fn start(dir: &Path) -> Option<ClickHouseServer> {
    ClickHouseServer::start_for(dir, "sprag", "not-to-be-shown")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_node_shows_the_calls_of_both() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = start(dir.path()) else { return };
    let url = server.url("both");
    let (one, two) = (world_on(&url).await, world_on(&url).await);
    assert_eq!(one.call(&[("x-sprag-run-id", "first")]).await.status, 200);
    assert_eq!(two.call(&[("x-sprag-run-id", "second")]).await.status, 200);
    for world in [&one, &two] {
        world.sprag.app.history.flush().unwrap();
    }
    for world in [&one, &two] {
        let runs = text(&world.page("/runs").await);
        assert!(runs.contains("first") && runs.contains("second"), "{runs}");
        let status = world.json("/status").await;
        assert_eq!(status["today"]["requests"], 2);
        assert_eq!(status["recording"]["shared"]["ok"], true);
        assert_eq!(
            (status["recording"]["shared"]["sent"].as_u64(), status["recording"]["shared"]["waiting"].as_u64()),
            { (Some(1), Some(0)) }
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_history_is_away_stays_ready_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut server) = start(dir.path()) else { return };
    let world = world_on(&server.url("away")).await;
    world.sprag.app.history.flush().unwrap();
    assert_eq!(world.ask("/readyz").fetch().await.unwrap().json(), serde_json::json!({"status": "ready"}));
    server.kill();
    assert_eq!(world.call(&[]).await.status, 200, "calls go on");
    assert!(world.sprag.app.history.flush().is_err());

    let ready = world.ask("/readyz").fetch().await.unwrap();
    assert_eq!(ready.status, 200, "the node can do its work");
    let behind = ready.json()["behind"][0].as_str().unwrap().to_owned();
    assert!(behind.contains("1 wait on this node") && behind.contains("ClickHouse at http://127.0.0.1"), "{behind}");
    let page = world.page("/runs").await;
    let page = text(&page);
    assert!(page.contains("ClickHouse at"), "{page}");
    for said in [&behind, &page] {
        assert!(!said.contains("not-to-be-shown"), "{said}");
    }

    server.restart();
    let began = Instant::now();
    while world.ask("/readyz").fetch().await.unwrap().json()["behind"].is_array() {
        assert!(began.elapsed() < PATIENCE, "it never catches up");
    }
    assert_eq!(world.json("/status").await["today"]["requests"], 1);
}
