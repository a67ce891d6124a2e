//! Exports that take long: they end with what let them in, and with Sprag.

use serde_json::json;
use sprag_testkit::client::Answer;

use crate::kills::done;
use crate::world::World;

/// Many more bytes than the connection holds, so that most pages are read after the client has begun to read.
const EVENTS: i64 = 3000;
const EVENT_BYTES: usize = 16 << 10;

const WAYS: [&str; 3] = ["/events/export?format=jsonl", "/events/export?format=csv", "/runs/default/task/export"];

async fn filled() -> World {
    let world = World::start().await;
    let error = "x".repeat(EVENT_BYTES);
    for step in 1..=EVENTS {
        world.record(step, json!({"run": {"id": "task", "step": step, "origin": "declared"}, "error": error}));
        if step % 500 == 0 {
            world.sprag.app.history.flush().unwrap();
        }
    }
    world
}

/// Begins an export, and reads a little of it.
async fn begun(world: &World, path: &str, header: (&str, &str)) -> Answer {
    let mut answer = world.ask(path).header(header.0, header.1).send().await.unwrap();
    assert_eq!(answer.status, 200, "{path}");
    let first = answer.next().await.unwrap();
    assert!(first.is_some(), "{path}");
    answer
}

/// Reads on; whether it broke off, and how much came.
async fn rest(answer: &mut Answer) -> (bool, usize) {
    let mut bytes = 0;
    loop {
        match answer.next().await {
            Ok(Some(piece)) => bytes += piece.len(),
            Ok(None) => return (false, bytes),
            Err(_) => return (true, bytes),
        }
    }
}

fn whole() -> usize {
    EVENTS as usize * EVENT_BYTES
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_ends_when_the_token_is_taken_back() {
    let world = filled().await;
    for (n, way) in WAYS.into_iter().enumerate() {
        let made = done(&world, "POST", "/tokens", &json!({"name": format!("anna-{n}"), "role": "viewer"})).await;
        let (id, bearer) = (made["id"].as_str().unwrap(), format!("Bearer {}", made["secret"].as_str().unwrap()));
        let mut left = begun(&world, &format!("/api/v1{way}"), ("authorization", &bearer)).await;
        let admin = format!("Bearer {}", world.token);
        let mut other = begun(&world, &format!("/api/v1{way}"), ("authorization", &admin)).await;
        done(&world, "DELETE", &format!("/tokens/{id}"), &json!({})).await;
        let (is_broken, bytes) = rest(&mut left).await;
        assert!(is_broken && bytes < whole() / 2, "{way}: {is_broken}, {bytes} bytes");
        let (is_broken, bytes) = rest(&mut other).await;
        assert!(!is_broken && bytes > whole() - EVENT_BYTES, "another's goes on: {way}: {bytes} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_a_page_ends_with_the_session() {
    let world = filled().await;
    for path in ["/events/export?format=csv", "/run/export?agent=default&id=task"] {
        let cookie = world.sign_in().await;
        let csrf = world.csrf(&cookie).await;
        let mut left = begun(&world, path, ("cookie", &cookie)).await;
        world.submit("/logout", "", &[("cookie", &cookie), ("x-csrf-token", &csrf)]).await;
        let (is_broken, bytes) = rest(&mut left).await;
        assert!(is_broken && bytes < whole() / 2, "{path}: {is_broken}, {bytes} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_ends_when_sprag_stops() {
    let world = filled().await;
    let bearer = format!("Bearer {}", world.token);
    let mut exports = Vec::new();
    for way in WAYS {
        exports.push((way, begun(&world, &format!("/api/v1{way}"), ("authorization", &bearer)).await));
    }
    world.sprag.shutdown.cancel();
    for (way, mut export) in exports {
        let (is_broken, bytes) = rest(&mut export).await;
        assert!(is_broken && bytes < whole() / 2, "{way}: {is_broken}, {bytes} bytes");
    }
    world.sprag.stop().await;
}
