//! Who gets in, and what every answer carries.

use crate::world::{World, is_inert, text};

const API: [&str; 5] =
    ["/api/v1/status", "/api/v1/runs", "/api/v1/runs/default/run-1", "/api/v1/events", "/api/v1/agents"];
const PAGES: [&str; 4] = ["/", "/runs", "/run?agent=default&id=run-1", "/events"];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_without_the_token() {
    let world = World::start().await;
    world.record(1, serde_json::json!({}));
    for path in API.into_iter().chain(["/api/v1/no-such-thing"]) {
        let wrong = world.ask(path).header("authorization", "Bearer wrong").fetch().await.unwrap();
        assert_eq!(wrong.status, 401, "{path}");
        let answer = world.ask(path).header("cookie", "sprag_session=1").fetch().await.unwrap();
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"sprag\"");
        assert_eq!(answer.json()["status"], 401);
        assert!(!text(&answer).contains(&world.token));
    }
    for path in PAGES {
        let answer = world.ask(path).fetch().await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/login"), "{path}");
        // The token itself is for programs; a page wants a session.
        let bearer = format!("Bearer {}", world.token);
        let answer = world.ask(path).header("authorization", &bearer).fetch().await.unwrap();
        assert_eq!(answer.status, 303, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_or_a_session_opens_everything() {
    let world = World::start().await;
    world.record(1, serde_json::json!({}));
    let cookie = world.sign_in().await;
    let bearer = format!("bearer {}", world.token);
    for path in API {
        let by_token = world.ask(path).header("authorization", &bearer).fetch().await.unwrap();
        assert_eq!(by_token.status, 200, "{path}: {}", text(&by_token));
        let by_session = world.ask(path).header("cookie", &format!("a=b; {cookie}")).fetch().await.unwrap();
        assert_eq!(by_session.status, 200, "{path}");
    }
    for path in PAGES {
        let page = world.ask(path).header("cookie", &cookie).fetch().await.unwrap();
        assert_eq!(page.status, 200, "{path}: {}", text(&page));
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_keeps_browsers_strict() {
    let world = World::start().await;
    let cookie = world.sign_in().await;
    let more = ["/healthz", "/readyz", "/login", "/login?token=wrong", "/assets/sprag.css", "/nowhere", "/api/nowhere"];
    for path in API.into_iter().chain(PAGES).chain(more) {
        let answer = world.ask(path).header("cookie", &cookie).fetch().await.unwrap();
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; style-src 'self';"), "{path}: {policy}");
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        let cached = answer.header("cache-control");
        assert_eq!(cached == "no-store", !path.starts_with("/assets/"), "{path}: {cached}");
        if answer.header("content-type").starts_with("text/html") {
            let page = text(&answer);
            assert!(is_inert(&page), "{path}: {page}");
            assert!(!page.contains("https://") && !page.contains("http://fonts"), "{path} asks nobody else");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_listener_answers_to_local_names_only() {
    let world = World::start().await;
    let port = world.sprag.admin.port();
    for host in ["localhost".to_owned(), format!("localhost:{port}"), format!("[::1]:{port}"), "127.0.0.1:1".to_owned()]
    {
        assert_eq!(world.ask("/healthz").header("host", &host).fetch().await.unwrap().status, 200, "{host}");
    }
    let cookie = world.sign_in().await;
    for host in ["evil.example".to_owned(), format!("127.0.0.1.evil.example:{port}"), "10.1.2.3".to_owned()] {
        for path in ["/", "/api/v1/status", "/login", "/readyz"] {
            let answer = world.ask(path).header("host", &host).header("cookie", &cookie).fetch().await.unwrap();
            assert_eq!(answer.status, 403, "{host} {path}");
        }
    }
    assert_eq!(world.ask("/healthz").http2().fetch().await.unwrap().status, 200, "HTTP/2 names the host elsewhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_a_problem_in_the_form_that_was_asked_for() {
    let world = World::start().await;
    let page = world.page("/nowhere").await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (404, "text/html; charset=utf-8"));
    for path in ["/no-such-thing", "/runs/default/no-such-run"] {
        let answer = world.api(path).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (404, "application/problem+json"));
    }
    let bearer = format!("Bearer {}", world.token);
    let posted = world.submit("/api/v1/runs", "", &[("authorization", &bearer)]).await;
    assert_eq!((posted.status.as_u16(), posted.header("content-type")), (405, "application/problem+json"));
    let too_large = "x".repeat(sprag_core::limits::ADMIN_BODY_BYTES);
    assert_eq!(world.submit("/login", &format!("token={too_large}"), &[]).await.status, 413);
    let largest = "x".repeat(sprag_core::limits::ADMIN_BODY_BYTES - "token=".len());
    assert_eq!(world.submit("/login", &format!("token={largest}"), &[]).await.status, 401);
}
