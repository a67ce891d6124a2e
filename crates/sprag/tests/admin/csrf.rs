//! A browser changes something only by a form that Sprag itself gave it.

use serde_json::json;
use sprag_core::limits::ADMIN_BODY_BYTES;
use sprag_testkit::client;

use crate::world::World;

const FORM: &str = "agent=default&id=run-1";

async fn is_killed(world: &World) -> bool {
    !world.json("/kills").await["items"].as_array().unwrap().is_empty()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_needs_what_its_page_gave_it() {
    let world = World::start().await;
    world.record(1, json!({}));
    let (cookie, other) = (world.sign_in().await, world.sign_in().await);
    let (csrf, of_other) = (world.csrf(&cookie).await, world.csrf(&other).await);
    assert_ne!(csrf, of_other);
    let id = cookie.split('=').nth(1).unwrap();
    for form in [
        FORM.to_owned(),
        format!("{FORM}&csrf="),
        format!("{FORM}&csrf={of_other}"),
        format!("{FORM}&csrf={id}"),
        format!("{FORM}&csrf={}", &csrf[1..]),
        format!("{FORM}&CSRF={csrf}"),
    ] {
        let answer = world.submit("/run/kill", &form, &[("cookie", &cookie)]).await;
        assert_eq!(answer.status, 403, "{form}");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    }
    let wrong_header = [("cookie", cookie.as_str()), ("x-csrf-token", of_other.as_str())];
    assert_eq!(world.submit("/run/kill", &format!("{FORM}&csrf={csrf}"), &wrong_header).await.status, 403);
    assert!(!is_killed(&world).await, "and nothing was done");

    let answer = world.submit("/run/kill", &format!("{FORM}&csrf={csrf}"), &[("cookie", &cookie)]).await;
    assert_eq!(answer.status, 303);
    assert!(is_killed(&world).await);
    let by_header = [("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str())];
    assert_eq!(world.submit("/run/resume", FORM, &by_header).await.status, 303, "scripts say it in a header");
    assert!(!is_killed(&world).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_in_a_browser_needs_it_too_and_programs_do_not() {
    let world = World::start().await;
    let cookie = world.sign_in().await;
    let csrf = world.csrf(&cookie).await;
    let kill = || client::post_json(format!("http://{}/api/v1/kills", world.sprag.admin), &json!({"scope": "all"}));
    let without = kill().header("cookie", &cookie).fetch().await.unwrap();
    assert_eq!((without.status.as_u16(), without.header("content-type")), (403, "application/problem+json"));
    assert!(!is_killed(&world).await);
    let with = kill().header("cookie", &cookie).header("x-csrf-token", &csrf).fetch().await.unwrap();
    assert_eq!(with.status, 200);
    // The token decides, whatever cookie comes with it.
    let bearer = format!("Bearer {}", world.token);
    let program = kill().header("cookie", &cookie).header("authorization", &bearer).fetch().await.unwrap();
    assert_eq!(program.status, 200);
    let wrong = kill().header("cookie", &cookie).header("authorization", "Bearer wrong");
    assert_eq!(wrong.header("x-csrf-token", &csrf).fetch().await.unwrap().status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_looked_into_up_to_a_bound() {
    let world = World::start().await;
    world.record(1, json!({}));
    let cookie = world.sign_in().await;
    let form = format!("{FORM}&csrf={}&more=", world.csrf(&cookie).await);
    let filled = |bytes: usize| format!("{form}{}", "x".repeat(bytes - form.len()));
    let headers = [("cookie", cookie.as_str())];
    assert_eq!(world.submit("/run/kill", &filled(ADMIN_BODY_BYTES + 1), &headers).await.status, 413);
    assert!(!is_killed(&world).await);
    assert_eq!(world.submit("/run/kill", &filled(ADMIN_BODY_BYTES), &headers).await.status, 303);
    assert!(is_killed(&world).await);
}
