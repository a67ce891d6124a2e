//! The admin API of keys, and what it leaves on record.

use serde_json::{Value, json};
use sprag_core::event::{ActKind, EventKind};
use sprag_core::money::NanoUsd;

use crate::place::Place;

async fn create(place: &Place, body: Value) -> Value {
    let (status, key) = place.admin("POST", "/keys", &body).await;
    assert_eq!(status, 200, "{key}");
    key
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_shown_once_listed_and_taken_back() {
    let place = Place::start().await;
    let budget = json!({"max_run_cost": 1, "daily_limit": 5.5, "monthly_limit": "50"});
    let order = json!({"agent": "bot", "name": "ci", "expires_in_seconds": 3600, "budget": budget, "by": "anna"});
    let key = create(&place, order).await;
    let id = key["id"].as_str().unwrap();
    let secret = key["secret"].as_str().unwrap();
    assert!(secret.starts_with("sk-sprag-") && secret.len() == 52, "{}", secret.len());
    let expected = json!({
        "id": id, "name": "ci", "agent": "bot", "state": "active", "hint": secret[48..],
        "created_at": "2023-11-14T22:13:20.000Z", "expires_at": "2023-11-14T23:13:20.000Z", "revoked_at": null,
        "previous": null, "budget": {"max_run_cost": 1.0, "daily_limit": 5.5, "monthly_limit": 50.0},
    });
    let (_, shown) = place.admin("GET", &format!("/keys/{id}"), &json!({})).await;
    assert_eq!(shown, expected, "and no secret");
    let (_, listing) = place.admin("GET", "/keys", &json!({})).await;
    assert_eq!(listing, json!({"items": [expected], "next": null}));
    let kept = place.sprag.app.catalog.snapshot().key(id).unwrap().key.budget.clone();
    assert_eq!((kept.is_set(), kept.daily_limit), (true, Some(NanoUsd(5_500_000_000))));
    assert_eq!(place.refused(&[("x-api-key", secret)]).await, "");

    let (status, rotated) = place.admin("POST", &format!("/keys/{id}/rotate"), &json!({"grace_seconds": 60})).await;
    assert_eq!((status, &rotated["previous"]["hint"]), (200, &json!(secret[48..])));
    assert_eq!(rotated["previous"]["ends_at"], "2023-11-14T22:14:20.000Z");
    assert_ne!(rotated["secret"], secret);
    place.pass_seconds(60);
    let (_, shown) = place.admin("GET", &format!("/keys/{id}"), &json!({})).await;
    assert_eq!((&shown["previous"], &shown["state"]), (&Value::Null, &json!("active")));

    let (status, revoked) = place.admin("DELETE", &format!("/keys/{id}?by=ben"), &json!({})).await;
    assert_eq!((status, &revoked["state"]), (200, &json!("revoked")));
    assert_eq!(place.admin("DELETE", &format!("/keys/{id}"), &json!({})).await.0, 200, "twice is once");
    let (status, problem) = place.admin("POST", &format!("/keys/{id}/rotate"), &json!({})).await;
    assert_eq!((status, &problem["detail"]), (409, &json!("this key was revoked; make a new one")));

    let acts: Vec<_> = place.sprag.events().into_iter().filter(|event| event.kind == EventKind::Admin).collect();
    let told: Vec<_> =
        acts.iter().map(|event| event.act.as_ref().unwrap()).map(|act| (act.what, act.by.as_str())).collect();
    let expected =
        [(ActKind::CreateKey, "admin (anna)"), (ActKind::RotateKey, "admin"), (ActKind::RevokeKey, "admin (ben)")];
    assert_eq!(told, expected);
    let target = format!("key:{id}");
    assert!(acts.iter().all(|event| event.act.as_ref().unwrap().target == target && event.agent.as_str() == "bot"));
    let (_, events) = place.admin("GET", "/events", &json!({})).await;
    assert!(!events.to_string().contains("sk-sprag-"), "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_listed_in_pages_and_by_agent() {
    let place = Place::start().await;
    let mut made = Vec::new();
    for number in 0..5 {
        place.pass_seconds(1);
        let agent = if number % 2 == 0 { "even" } else { "odd" };
        made.push(create(&place, json!({"agent": agent})).await["id"].as_str().unwrap().to_owned());
    }
    made.reverse();
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let (status, page) = place.admin("GET", &format!("/keys?limit=2{cursor}"), &json!({})).await;
        assert_eq!(status, 200, "{page}");
        seen.extend(page["items"].as_array().unwrap().iter().map(|key| key["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, made);
    let (_, page) = place.admin("GET", "/keys?agent=odd", &json!({})).await;
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    for bad in ["/keys?limit=501", "/keys?agnet=odd"] {
        assert_eq!(place.admin("GET", bad, &json!({})).await.0, 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_that_make_no_sense_are_refused() {
    let place = Place::start().await;
    for (body, word) in [
        (json!({}), "`agent`"),
        (json!({"agent": "a b"}), "agent name"),
        (json!({"agent": "bot", "name": "x".repeat(65)}), "`name`"),
        (json!({"agent": "bot", "name": "a\nb"}), "`name`"),
        (json!({"agent": "bot", "expires_at": "2001-01-01T00:00:00Z"}), "future"),
        (json!({"agent": "bot", "expires_in_seconds": 0}), "future"),
        (json!({"agent": "bot", "expires_in_seconds": 1, "expires_at": "2101-01-01T00:00:00Z"}), "not both"),
        (json!({"agent": "bot", "budget": {"daily_limit": 0}}), "`budget.daily_limit`"),
        (json!({"agent": "bot", "budget": {"max_run_cost": -1}}), "`budget.max_run_cost`"),
        (json!({"agent": "bot", "budget": {"dayly_limit": 1}}), "dayly_limit"),
        (json!({"agent": "bot", "secret": "sk-sprag-mine"}), "secret"),
        (json!({"agent": "bot", "by": "sprag"}), "`by`"),
    ] {
        let (status, problem) = place.admin("POST", "/keys", &body).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(status == 400 && detail.contains(word), "{body}: {problem}");
    }
    assert_eq!(create(&place, json!({"agent": "bot", "name": "x".repeat(64)})).await["state"], "active");
    let id = create(&place, json!({"agent": "bot", "expires_in_seconds": 60})).await["id"].as_str().unwrap().to_owned();
    let rotate = format!("/keys/{id}/rotate");
    for (seconds, status) in [(30 * 86_400, 200), (30 * 86_400 + 1, 400)] {
        assert_eq!(place.admin("POST", &rotate, &json!({"grace_seconds": seconds})).await.0, status, "{seconds}");
    }
    place.pass_seconds(60);
    let (status, problem) = place.admin("POST", &rotate, &json!({})).await;
    assert_eq!((status, &problem["detail"]), (409, &json!("this key has expired; make a new one")));
    for (method, path) in [("GET", "/keys/key-nothere0"), ("DELETE", "/keys/none"), ("POST", "/keys/none/rotate")] {
        assert_eq!(place.admin(method, path, &json!({})).await.0, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_that_the_disk_refuses_holds_and_is_told() {
    let place = Place::start().await;
    let issued = place.issue("bot", None).await;
    let catalog = rusqlite::Connection::open(place.sprag.data.path().join("catalog.db")).unwrap();
    let trigger = "CREATE TRIGGER no_keys BEFORE INSERT ON keys BEGIN SELECT RAISE(ABORT, 'no room'); END";
    catalog.execute_batch(trigger).unwrap();
    let id = &issued.entry.key.id;
    let (status, problem) = place.admin("POST", "/keys", &json!({"agent": "bot"})).await;
    assert_eq!(status, 503, "{problem}");
    assert_eq!(place.admin("POST", &format!("/keys/{id}/rotate"), &json!({})).await.0, 503);
    assert_eq!(place.refused(&[("x-api-key", issued.secret.reveal())]).await, "");
    assert_eq!(place.admin("DELETE", &format!("/keys/{id}"), &json!({})).await.0, 503);
    assert!(place.refused(&[("x-api-key", issued.secret.reveal())]).await.contains("was revoked"));
    let acts = place.sprag.events().into_iter().filter_map(|event| event.act).map(|act| act.what);
    assert_eq!(acts.collect::<Vec<_>>(), [ActKind::CreateKey, ActKind::RevokeKey]);
}
