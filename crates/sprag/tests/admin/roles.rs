//! What viewers and admins may do, and whose name stays on record.

use serde_json::{Value, json};
use sprag::config::Secret;
use sprag_testkit::client::{self, Whole};

use crate::commands::complaint;
use crate::world::{TOKEN, World, cookie, text};

const VIEWER: &str = "a-token-for-those-who-may-only-look-0123";

/// Every call of the API that changes something, and bodies that would do it.
const CHANGES: [(&str, &str, &str); 14] = [
    ("POST", "/runs/default/task/kill", "{}"),
    ("POST", "/runs/default/task/resume", "{}"),
    ("POST", "/runs/default/task/approve", "{}"),
    ("POST", "/kills", r#"{"scope": "all"}"#),
    ("DELETE", "/kills/none", ""),
    ("POST", "/keys", r#"{"agent": "bot"}"#),
    ("DELETE", "/keys/none", ""),
    ("POST", "/keys/none/rotate", "{}"),
    ("POST", "/tokens", r#"{"name": "anna", "role": "admin"}"#),
    ("DELETE", "/tokens/none", ""),
    ("POST", "/budgets/adjust", r#"{"account": "everything daily", "amount_usd": 1, "reason": "x"}"#),
    ("POST", "/agents", r#"{"name": "bot"}"#),
    ("PATCH", "/agents/bot", r#"{"active": false}"#),
    // Whether there is such a path is nothing that a viewer learns by trying to change it.
    ("PUT", "/nowhere", "{}"),
];

async fn world() -> World {
    World::configured(TOKEN, |settings| settings.admin.viewer_token = Some(Secret::new(VIEWER))).await
}

async fn ask(world: &World, token: &str, method: &str, path: &str, body: &str) -> Whole {
    let call = client::post(format!("http://{}/api/v1{path}", world.sprag.admin), body.to_owned());
    let call = call.method(method.parse().unwrap()).header("content-type", "application/json");
    call.header("authorization", &format!("Bearer {token}")).fetch().await.unwrap()
}

async fn sign_in(world: &World, token: &str) -> String {
    cookie(&world.ask(&format!("/login?token={token}")).fetch().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_sees_everything_and_changes_nothing() {
    let world = world().await;
    world.record(1, json!({}));
    let seen = ["/status", "/me", "/runs", "/runs/default/run-1", "/events", "/agents", "/agents/default", "/kills"];
    for path in seen.into_iter().chain(["/keys", "/tokens", "/budgets", "/detectors/shadow"]) {
        let answer = ask(&world, VIEWER, "GET", path, "").await;
        assert_eq!(answer.status, 200, "{path}: {}", text(&answer));
    }
    for (method, path, body) in CHANGES {
        let answer = ask(&world, VIEWER, method, path, body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("content-type")),
            (403, "application/problem+json"),
            "{method} {path}"
        );
        assert_eq!(answer.json()["detail"], "`viewer` may look and change nothing; this takes an admin's token");
    }
    for path in ["/kills", "/keys", "/tokens"] {
        assert_eq!(world.json(path).await["items"], json!([]), "{path}");
    }
    assert!(world.sprag.events().iter().all(|event| event.act.is_none()), "and nothing is on record");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewers_pages_have_no_buttons_and_its_forms_do_nothing() {
    let world = world().await;
    world.record(1, json!({}));
    for (token, has_buttons) in [(VIEWER, false), (TOKEN, true)] {
        let cookie = sign_in(&world, token).await;
        for path in ["/agents", "/run?agent=default&id=run-1"] {
            let page = text(&world.ask(path).header("cookie", &cookie).fetch().await.unwrap());
            let forms = page.matches("method=\"post\"").count();
            assert_eq!(forms > 1, has_buttons, "{path}: {page}");
            assert_eq!(page.matches("name=\"csrf\"").count(), forms, "every form carries it: {path}");
            assert!(page.contains("action=\"/logout\""), "{path}");
        }
        let csrf = world.csrf(&cookie).await;
        let headers = [("cookie", cookie.as_str())];
        let killed = world.submit("/run/kill", &format!("agent=default&id=run-1&csrf={csrf}"), &headers).await;
        assert_eq!(killed.status, if has_buttons { 303 } else { 403 });
        assert_eq!(world.json("/kills").await["items"].as_array().unwrap().len(), usize::from(has_buttons));
    }
    let cookie = sign_in(&world, VIEWER).await;
    let form = format!("csrf={}", world.csrf(&cookie).await);
    let left = world.submit("/logout", &form, &[("cookie", &cookie)]).await;
    assert_eq!(left.header("location"), "/login", "a viewer can leave");
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_learns_who_they_are() {
    let world = world().await;
    let anna = ask(&world, TOKEN, "POST", "/tokens", r#"{"name": "anna", "role": "viewer", "expires_in_seconds": 60}"#);
    let anna = anna.await.json();
    let [admin, viewer] = [(TOKEN, true), (VIEWER, false)].map(|(token, may_change)| {
        let name = if may_change { "admin" } else { "viewer" };
        (token, json!({"name": name, "role": name, "may_change": may_change, "token": null, "expires_at": null}))
    });
    let named = json!({"name": "anna", "role": "viewer", "may_change": false, "token": anna["id"], "expires_at": anna["expires_at"]});
    for (token, expected) in [admin, viewer, (anna["secret"].as_str().unwrap(), named)] {
        let me = ask(&world, token, "GET", "/me", "").await;
        assert_eq!(me.json(), expected);
        let cookie = sign_in(&world, token).await;
        let me = world.ask("/api/v1/me").header("cookie", &cookie).fetch().await.unwrap();
        assert_eq!(me.json(), expected, "the same in a browser");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_stays_on_record_under_the_name_of_who_did_it() {
    let world = world().await;
    world.record(1, json!({}));
    let issued = ask(&world, TOKEN, "POST", "/tokens", r#"{"name": "anna", "role": "admin"}"#).await.json();
    let anna = issued["secret"].as_str().unwrap();
    for (method, path, body) in [
        ("POST", "/runs/default/run-1/kill", json!({"by": "admin"})),
        ("POST", "/runs/default/run-1/resume", json!({})),
        ("POST", "/kills", json!({"scope": "agent:bot", "by": "night shift"})),
        ("POST", "/keys", json!({"agent": "bot"})),
        ("PATCH", "/agents/bot", json!({"active": false, "by": "anna"})),
        ("PATCH", "/agents/bot", json!({"policy": {"run_limits": {"max_steps": 3}}})),
        ("POST", "/budgets/adjust", json!({"account": "agent:bot daily", "amount_usd": 1, "reason": "x"})),
        ("POST", "/tokens", json!({"name": "ben", "role": "viewer"})),
    ] {
        let answer = ask(&world, anna, method, path, &body.to_string()).await;
        assert_eq!(answer.status, 200, "{method} {path}: {}", text(&answer));
    }
    let id = |listing: Value, name: &str| {
        let items = listing["items"].as_array().unwrap().clone();
        items.into_iter().find(|item| item["name"] == name).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let ben = id(world.json("/tokens").await, "ben");
    let key = id(world.json("/keys").await, "");
    for path in [format!("/tokens/{ben}?by=admin"), format!("/keys/{key}")] {
        assert_eq!(ask(&world, anna, "DELETE", &path, "").await.status, 200, "{path}");
    }
    let cookie = sign_in(&world, anna).await;
    let form = format!("name=default&csrf={}", world.csrf(&cookie).await);
    assert_eq!(world.submit("/agents/deactivate", &form, &[("cookie", &cookie)]).await.status, 303);

    let acts: Vec<_> = world.sprag.events().into_iter().filter_map(|event| event.act).collect();
    let told: Vec<_> = acts.iter().map(|act| format!("{:?} {}", act.what, act.by)).collect();
    let expected = [
        "CreateToken admin",
        "Kill anna (admin)",
        "Resume anna",
        "Kill anna (night shift)",
        "CreateKey anna",
        "Deactivate anna",
        "SetPolicy anna",
        "AdjustBudget anna",
        "CreateToken anna",
        "RevokeToken anna (admin)",
        "RevokeKey anna",
        "Deactivate anna",
    ];
    assert_eq!(told, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewers_token_that_is_the_admins_is_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("admin-token"), TOKEN).unwrap();
    let file = dir.path().join("sprag.toml");
    std::fs::write(&file, format!("[admin]\nviewer_token = \"{TOKEN}\"\n")).unwrap();
    let (file, data) = (file.display().to_string(), dir.path().display().to_string());
    let ports = ["--proxy", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let said = complaint(&[&["--config", &file, "--data", &data][..], &ports].concat(), None).await;
    assert!(said.contains("`admin.viewer_token` is the admin token too") && !said.contains(TOKEN), "{said}");
}
