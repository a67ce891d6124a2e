//! Pages that follow what happens.

use sprag_core::limits::LIVE_FOLLOWERS;
use sprag_testkit::client::Answer;

use crate::world::{World, text};

/// Reads until the page is told that something changed.
async fn told(page: &mut Answer) {
    let mut heard = String::new();
    while !heard.contains("event: changed") {
        let piece = page.next().await.unwrap().unwrap();
        heard.push_str(std::str::from_utf8(&piece).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_is_told_of_calls_and_of_what_people_change() {
    let world = World::start().await;
    let cookie = world.sign_in().await;
    let mut page = world.ask("/live").header("cookie", &cookie).send().await.unwrap();
    assert_eq!(page.status, 200);
    world.call(&[("x-sprag-run-id", "task")]).await;
    told(&mut page).await;
    let form = format!("name=default&csrf={}", world.csrf(&cookie).await);
    assert_eq!(world.submit("/agents/deactivate", &form, &[("cookie", &cookie)]).await.status, 303);
    told(&mut page).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_told_of_what_happened_before_it_listened() {
    let world = World::start().await;
    let cookie = world.sign_in().await;
    let page = text(&world.ask("/").header("cookie", &cookie).fetch().await.unwrap());
    let stream = page.split('"').find(|part| part.starts_with("/live?seen=")).unwrap().to_owned();
    world.call(&[("x-sprag-run-id", "task")]).await;
    let mut late = world.ask(&stream).header("cookie", &cookie).send().await.unwrap();
    told(&mut late).await;

    let page = text(&world.ask("/").header("cookie", &cookie).fetch().await.unwrap());
    let fresh = page.split('"').find(|part| part.starts_with("/live?seen=")).unwrap();
    assert_ne!(fresh, stream, "it has seen more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_whose_session_is_over_is_told_nothing_more() {
    let world = World::start().await;
    let without = world.ask("/live").fetch().await.unwrap();
    assert_eq!(without.status, 401, "a redirect would lead a stream to the login page");

    let cookie = world.sign_in().await;
    let mut page = world.ask("/live").header("cookie", &cookie).send().await.unwrap();
    let form = format!("csrf={}", world.csrf(&cookie).await);
    assert_eq!(world.submit("/logout", &form, &[("cookie", &cookie)]).await.status, 303);
    world.call(&[]).await;
    while let Some(piece) = page.next().await.unwrap() {
        assert!(!String::from_utf8_lossy(&piece).contains("changed"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_pages_than_there_is_room_for_are_refused_and_room_comes_back() {
    let world = World::start().await;
    let cookie = world.sign_in().await;
    let mut open = Vec::new();
    for _ in 0..LIVE_FOLLOWERS {
        open.push(world.ask("/live").header("cookie", &cookie).send().await.unwrap());
    }
    let refused = world.ask("/live").header("cookie", &cookie).fetch().await.unwrap();
    assert_eq!(refused.status, 503, "{}", text(&refused));
    open.pop().unwrap().abort();
    // The server learns of it when it next writes or reads; a call gives it a reason.
    loop {
        world.call(&[]).await;
        let again = world.ask("/live").header("cookie", &cookie).send().await.unwrap();
        if again.status == 200 {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_compressed_and_stay_with_the_browser() {
    let world = World::start().await;
    let page = text(&world.page("/").await);
    let files: Vec<_> = page.split('"').filter(|part| part.starts_with("/assets/") && part.contains("?v=")).collect();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let packed = world.ask(file).header("accept-encoding", "gzip").fetch().await.unwrap();
        let plain = world.ask(file).fetch().await.unwrap();
        assert_eq!((packed.status, plain.status), (http::StatusCode::OK, http::StatusCode::OK), "{file}");
        assert_eq!(packed.header("content-encoding"), "gzip", "{file}");
        assert!(packed.body.len() < plain.body.len(), "{file}");
        assert!(plain.header("cache-control").contains("immutable"), "{file}");
    }
}
