//! The commands that stop and let go.

use serde_json::Value;

use crate::commands::{complaint, printed};
use crate::world::{TOKEN, World};

const RUN: (&str, &str) = ("x-sprag-run-id", "task");

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_killed_listed_and_resumed() {
    let world = World::start().await;
    world.call(&[RUN]).await;
    assert_eq!(
        printed(&world, &["kill", "task", "--reason", "too much"]).await,
        "run:default/task stopped (too much)\n"
    );
    assert_eq!(world.call(&[RUN]).await.status, 403);
    let kills = printed(&world, &["kills"]).await;
    let lines: Vec<_> = kills.lines().collect();
    assert!(lines[0].starts_with("ID ") && lines[0].contains("SCOPE") && lines.len() == 2, "{kills}");
    assert!(lines[1].contains("run:default/task  kill  too much  admin"), "{kills}");
    let shown = printed(&world, &["runs", "task"]).await;
    assert!(shown.contains("  status  killed,") && shown.contains("  stopped too much by admin at "), "{shown}");
    assert!(printed(&world, &["events"]).await.contains("killed run:default/task by admin: too much"));
    assert_eq!(printed(&world, &["resume", "task"]).await, "run:default/task goes on (too much)\n");
    assert_eq!(world.call(&[RUN]).await.status, 200);

    printed(&world, &["kill", "task", "--pause"]).await;
    let kill: Value = serde_json::from_str(&printed(&world, &["approve", "task", "--json"]).await).unwrap();
    assert_eq!(kill["kind"], "pause");
    printed(&world, &["kill", "unseen", "--agent", "bot", "--for", "60"]).await;
    let json: Value = serde_json::from_str(&printed(&world, &["kills", "--json"]).await).unwrap();
    assert!(json["items"][0]["expires_at"].is_string());
    let admin = world.sprag.admin.to_string();
    let missing = complaint(&["kill", "none", "--admin", &admin], Some(TOKEN)).await;
    assert!(missing.contains("no run `none` on record"), "{missing}");
    let nothing = complaint(&["kill", "--admin", &admin], Some(TOKEN)).await;
    assert!(nothing.contains("say what to stop"), "{nothing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wider_scopes_are_killed_and_lifted() {
    let world = World::start().await;
    for (arguments, scope) in [
        (&["kill", "--all"][..], "all"),
        (&["kill", "--agent", "bot"], "agent:bot"),
        (&["kill", "--header", "x-tool-name=web_search"], "header:x-tool-name=web_search"),
        (&["kill", "--key", "0123456789abcdef"], "key:0123456789abcdef"),
        (&["kill", "--query", "tenant=acme"], "query:tenant=acme"),
        (&["kill", "--jwt", "org_id=acme"], "jwt:org_id=acme"),
        (&["kill", "--ip", "192.0.2.7"], "ip=192.0.2.7"),
        (&["kill", "--all", "--route", "/v1/embeddings"], "all on /v1/embeddings"),
    ] {
        assert_eq!(printed(&world, arguments).await, format!("{scope} stopped (manual)\n"));
        let json: Value = serde_json::from_str(&printed(&world, &["kills", "--json"]).await).unwrap();
        let id = json["items"][0]["id"].as_str().unwrap();
        assert_eq!(printed(&world, &["kills", "lift", id]).await, format!("{scope} goes on (manual)\n"));
    }
    assert_eq!(world.call(&[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_listed_and_switched() {
    let world = World::start().await;
    world.call(&[("x-sprag-agent", "bot")]).await;
    let off = "bot is inactive; kill switch off, 20 requests, above 10\n";
    assert_eq!(printed(&world, &["agents", "deactivate", "bot", "--reason", "holiday"]).await, off);
    let on = "bot is active; kill switch off, 20 requests, above 10\n";
    assert_eq!(printed(&world, &["agents", "activate", "bot"]).await, on);
    let switch = ["agents", "kill-switch", "bot", "--on", "--window", "10", "--threshold", "7.5"];
    assert_eq!(printed(&world, &switch).await, "bot is active; kill switch on, 10 requests, above 7.5\n");
    assert!(printed(&world, &["agents", "kill-switch", "bot", "--off"]).await.contains("off, 10 requests"));
    let listed = printed(&world, &["agents"]).await;
    assert!(listed.starts_with("AGENT  STATE   KILL SWITCH"), "{listed}");
    assert!(listed.contains("bot    active  off, 10 requests, above 7.5"), "{listed}");
    let admin = world.sprag.admin.to_string();
    let bad = complaint(&["agents", "kill-switch", "bot", "--window", "4", "--admin", &admin], Some(TOKEN)).await;
    assert!(bad.contains("from 5 to 100"), "{bad}");
}
