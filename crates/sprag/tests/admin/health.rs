//! What supervisors and load balancers ask.

use sprag_testkit::client;

use crate::world::{World, text};

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_no_token() {
    let world = World::start().await;
    let alive = world.ask("/healthz").fetch().await.unwrap();
    assert_eq!((alive.status.as_u16(), text(&alive).as_str()), (200, "ok"));
    let ready = world.ask("/readyz").fetch().await.unwrap();
    assert_eq!(ready.status, 200);
    assert_eq!(ready.json()["status"], "ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sprag_that_cannot_record_is_not_ready_and_says_why() {
    let world = World::start().await;
    let spool = world.sprag.data.path().join("spool");
    std::fs::remove_dir_all(&spool).unwrap();
    assert_eq!(world.call(&[]).await.status, 200, "calls go on");

    let ready = world.ask("/readyz").fetch().await.unwrap();
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json()["status"], "not_ready");
    let why = ready.json()["problems"][0].as_str().unwrap().to_owned();
    assert!(why.contains("cannot be written") && why.contains("No such file"), "{why}");
    assert_eq!(world.json("/status").await["recording"]["ok"], false);
    assert!(text(&world.page("/").await).contains("Recording is in trouble"));
    assert_eq!(world.ask("/healthz").fetch().await.unwrap().status, 200);

    std::fs::create_dir(&spool).unwrap();
    world.sprag.app.history.flush().unwrap();
    assert_eq!(world.ask("/readyz").fetch().await.unwrap().status, 200);
    assert_eq!(world.json("/status").await["recording"]["ok"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_says_that_it_is_alive_and_nothing_else() {
    let world = World::start().await;
    let alive = client::get(world.sprag.url("/healthz")).fetch().await.unwrap();
    assert_eq!((alive.status.as_u16(), text(&alive).as_str()), (200, "ok"));
    let bearer = format!("Bearer {}", world.token);
    let cookie = world.sign_in().await;
    let admin_paths =
        ["/", "/login", "/readyz", "/metrics", "/runs", "/run", "/events", "/api/v1/status", "/assets/sprag.css"];
    for path in admin_paths {
        let call = client::get(world.sprag.url(path)).header("authorization", &bearer).header("cookie", &cookie);
        assert_eq!(call.fetch().await.unwrap().status, 404, "{path}");
    }
    assert_eq!(client::post(world.sprag.url("/healthz"), "").fetch().await.unwrap().status, 404);
    assert!(world.sprag.events().is_empty(), "none of it is a call");
}
