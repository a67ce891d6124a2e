//! Stops that the disk refuses: they hold, they are told, and they are on record once.

use std::path::Path;

use sprag::acts::KillOrder;
use sprag_core::event::{ActKind, EventKind};
use sprag_core::id::AgentName;
use sprag_core::policy::KillKind;
use sprag_core::time::Timestamp;

use crate::scene::{START, Scene};

const RUN: (&str, &str) = ("x-sprag-run-id", "task");
const BOT: (&str, &str) = ("x-sprag-agent", "bot");

/// Makes the catalog refuse new rows, or no longer.
fn refuse(data: &Path, is_refusing: bool) {
    let catalog = rusqlite::Connection::open(data.join("catalog.db")).unwrap();
    for table in ["kills", "agents"] {
        let sql = if is_refusing {
            format!("CREATE TRIGGER no_{table} BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no room'); END")
        } else {
            format!("DROP TRIGGER no_{table}")
        };
        catalog.execute_batch(&sql).unwrap();
    }
}

fn acts(scene: &Scene) -> Vec<(EventKind, ActKind)> {
    scene.sprag.events().iter().filter_map(|event| Some((event.kind, event.act.as_ref()?.what))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_kill_is_told_once_and_written_on_the_next_try() {
    let scene = Scene::start().await;
    let order = || KillOrder {
        scope: "run:default/task".parse().unwrap(),
        kind: KillKind::Kill,
        reason: "too expensive".to_owned(),
        by: "anna".to_owned(),
        expires_at: None,
        proof: None,
    };
    refuse(scene.sprag.data.path(), true);
    assert!(scene.sprag.app.kill(order()).await.is_err());
    assert!(scene.sprag.app.kill(order()).await.is_err(), "it is not on record yet");
    scene.is_killed(&[RUN]).await;
    refuse(scene.sprag.data.path(), false);
    scene.sprag.app.kill(order()).await.unwrap();
    assert_eq!(acts(&scene), [(EventKind::Admin, ActKind::Kill)]);
    let catalog = rusqlite::Connection::open(scene.sprag.data.path().join("catalog.db")).unwrap();
    let rows: u32 = catalog.query_row("SELECT count(*) FROM kills", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_deactivation_holds_and_is_told() {
    let scene = Scene::start().await;
    refuse(scene.sprag.data.path(), true);
    let bot = AgentName::parse("bot").unwrap();
    assert!(scene.sprag.app.deactivate(bot, "anna".into(), "holiday".into()).await.is_err());
    assert_eq!(scene.reason(&[BOT]).await, (200, "agent_inactive".to_owned()));
    assert_eq!(acts(&scene), [(EventKind::Admin, ActKind::Deactivate)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_for_a_while_does_not_end_a_pause() {
    let scene = Scene::start().await;
    scene.order("run:default/task", KillKind::Pause, None).await;
    scene.order("run:default/task", KillKind::Kill, Some(Timestamp(START + 60_000))).await;
    scene.pass_seconds(60);
    scene.is_killed(&[RUN]).await;
    let last = scene.sprag.events().into_iter().filter_map(|event| event.act).next_back().unwrap();
    assert_eq!((last.what, last.expires_at), (ActKind::Kill, None), "the record says what holds");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_killed_for_a_while_can_be_killed_again() {
    let scene = Scene::start().await;
    scene.order("run:default/task", KillKind::Kill, Some(Timestamp(START + 60_000))).await;
    scene.pass_seconds(60);
    scene.passes(&[RUN]).await;
    scene.kill("run:default/task").await;
    scene.is_killed(&[RUN]).await;
}
