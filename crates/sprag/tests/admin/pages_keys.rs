//! Virtual keys and admin tokens on the dashboard: made, shown once, changed, taken back.

use serde_json::json;

use crate::browser::{Browser, field};
use crate::world::{World, is_inert, text};

/// The secret that a page shows.
fn secret(page: &str) -> String {
    let from = page.split("id=\"secret\">").nth(1);
    assert!(from.is_some(), "no secret: {page}");
    from.unwrap().split('<').next().unwrap().to_owned()
}

async fn id_of(world: &World, path: &str) -> String {
    world.json(path).await["items"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_shown_once_and_opens() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    assert!(browser.page("/keys").await.contains("No keys"));
    let form = [
        ("agent", "bot"),
        ("name", "<b>CI</b>"),
        ("expires_in_seconds", "86400"),
        ("max_run_cost", ""),
        ("daily_limit", "$2.50"),
        ("monthly_limit", "40"),
    ];
    let answer = browser.send("/keys/create", &form).await;
    assert_eq!((answer.status.as_u16(), answer.header("cache-control")), (200, "no-store"));
    let page = text(&answer);
    let secret = secret(&page);
    assert!(secret.starts_with("sk-sprag-") && page.contains(&format!("OPENAI_API_KEY={secret}")), "{page}");
    assert!(
        is_inert(&page) && page.contains("&#60;b&#62;CI") && page.contains("$2.50 a day, $40.00 a month"),
        "{page}"
    );
    let key = world.json("/keys").await["items"][0].clone();
    assert_eq!((&key["agent"], &key["budget"]["daily_limit"]), (&json!("bot"), &json!(2.5)));
    assert!(key["expires_at"].is_string());

    let list = browser.page("/keys").await;
    assert!(!list.contains(&secret) && is_inert(&list) && list.contains("&#60;b&#62;CI"), "{list}");
    assert!(browser.page("/keys?agent=other").await.contains("No keys of other"));
    let bearer = format!("Bearer {secret}");
    world.call(&[("authorization", &bearer)]).await;
    assert_eq!(world.json("/events?agent=bot").await["items"][0]["key"], key["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_gets_a_new_secret_and_is_taken_back() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    let first = secret(&text(&browser.send("/keys/create", &[("agent", "bot")]).await));
    let id = id_of(&world, "/keys").await;
    let rotated = browser.send("/keys/rotate", &[("id", &id), ("grace_seconds", "3600")]).await;
    assert_eq!(rotated.status, 200);
    let second = secret(&text(&rotated));
    assert_ne!(first, second);
    assert!(browser.page("/keys").await.contains("old secret until"));
    assert_eq!(browser.done("/keys/revoke", &[("id", &id)]).await, "/keys");
    let list = browser.page("/keys").await;
    assert!(list.contains(">revoked<") && !list.contains("action=\"/keys/revoke\""), "{list}");
    for secret in [first, second] {
        assert_eq!(world.call(&[("authorization", &format!("Bearer {secret}"))]).await.status, 401);
    }
    assert_eq!(browser.send("/keys/rotate", &[("id", &id)]).await.status, 409);
    assert_eq!(browser.send("/keys/revoke", &[("id", "key-none")]).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_with_a_slip_makes_no_key() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    let long = "x".repeat(200);
    for (form, name, said) in [
        (vec![("agent", "")], "agent", "give its name"),
        (vec![("agent", "no agent")], "agent", "class=\"complaint\""),
        (vec![("agent", "bot"), ("daily_limit", "<script>")], "daily_limit", "above 0"),
        (vec![("agent", "bot"), ("daily_limit", "0")], "daily_limit", "above 0"),
        (vec![("agent", "bot"), ("monthly_limit", "-5")], "monthly_limit", "above 0"),
        (vec![("agent", "bot"), ("expires_in_seconds", "soon")], "expires_in_seconds", "a number of seconds"),
        (vec![("agent", "bot"), ("name", &long)], "name", "printable characters"),
    ] {
        let page = browser.refused("/keys/create", &form).await;
        assert!(field(&page, name).contains(said) && is_inert(&page), "{form:?}: {page}");
    }
    assert_eq!(world.json("/keys").await["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn people_get_tokens_of_their_own() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    let made = browser.send("/settings/tokens", &[("name", "anna"), ("role", "viewer")]).await;
    assert_eq!((made.status.as_u16(), made.header("cache-control")), (200, "no-store"));
    let secret = secret(&text(&made));
    let anna = Browser::with(&world, &secret).await;
    let settings = anna.page("/settings").await;
    assert!(settings.contains(">anna<") && settings.contains(">viewer<") && !settings.contains(&secret), "{settings}");
    for form in [
        &[("name", "anna"), ("role", "admin")][..],
        &[("name", "<i>"), ("role", "boss")],
        &[("name", "")],
        &[("name", "for ever"), ("role", "admin"), ("expires_in_seconds", "99999999999")],
    ] {
        let page = browser.refused("/settings/tokens", form).await;
        assert!(
            is_inert(&page) && (page.contains("class=\"complaint\"") || page.contains("class=\"alarm\"")),
            "{page}"
        );
    }
    let id = id_of(&world, "/tokens").await;
    browser.done("/settings/tokens/revoke", &[("id", &id)]).await;
    assert_eq!(anna.get("/settings").await.status, 303, "whoever was in with it is out");
}
