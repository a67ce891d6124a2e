//! Admin tokens made at run time: by the API, by the command, in a browser, and after their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use sprag::clock::Clock;

use crate::commands::{complaint, printed};
use crate::kills::{done, order, refused};
use crate::world::{TOKEN, World, cookie, text};

async fn status(world: &World, token: &str) -> u16 {
    let call = world.ask("/api/v1/status").header("authorization", &format!("Bearer {token}"));
    call.fetch().await.unwrap().status.as_u16()
}

async fn sign_in(world: &World, token: &str) -> String {
    cookie(&world.ask(&format!("/login?token={token}")).fetch().await.unwrap())
}

async fn page(world: &World, cookie: &str) -> u16 {
    world.ask("/runs").header("cookie", cookie).fetch().await.unwrap().status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_shown_once_opens_and_is_taken_back() {
    let world = World::start().await;
    let made = done(&world, "POST", "/tokens", &json!({"name": "anna", "role": "viewer"})).await;
    let secret = made["secret"].as_str().unwrap();
    let id = made["id"].as_str().unwrap();
    assert!(secret.starts_with("sprag-tok-") && secret.len() == 53 && id.starts_with("tok-"), "{made}");
    let expected = json!({
        "id": id, "name": "anna", "role": "viewer", "state": "active", "prefix": secret[..14],
        "created_at": made["created_at"], "expires_at": null, "revoked_at": null,
    });
    assert_eq!(world.json("/tokens").await, json!({"items": [expected], "next": null}), "and no secret");
    assert_eq!(status(&world, secret).await, 200);
    assert_eq!(status(&world, &secret[..52]).await, 401);
    world.sprag.app.history.flush().unwrap();
    for file in std::fs::read_dir(world.sprag.data.path()).unwrap() {
        let path = file.unwrap().path();
        let is_there = |bytes: Vec<u8>| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!path.is_file() || !is_there(std::fs::read(&path).unwrap()), "{}", path.display());
    }

    let (mine, other) = (sign_in(&world, secret).await, world.sign_in().await);
    assert_eq!((page(&world, &mine).await, page(&world, &other).await), (200, 200));
    let revoked = done(&world, "DELETE", &format!("/tokens/{id}"), &json!({})).await;
    assert_eq!(revoked["state"], "revoked");
    assert_eq!(status(&world, secret).await, 401);
    assert_eq!((page(&world, &mine).await, page(&world, &other).await), (303, 200), "only its sessions are over");
    let refused_login = world.ask(&format!("/login?token={secret}")).fetch().await.unwrap();
    assert_eq!((refused_login.status.as_u16(), refused_login.header("set-cookie")), (401, ""));
    assert!(text(&refused_login).contains("was revoked or has expired"), "{}", text(&refused_login));
    let again = done(&world, "DELETE", &format!("/tokens/{id}"), &json!({})).await;
    assert_eq!(again["revoked_at"], revoked["revoked_at"], "twice is once");
    assert_eq!(order(&world, "DELETE", "/tokens/none", &json!({})).await.status, 404);
    let acts: Vec<_> = world.sprag.events().into_iter().filter_map(|event| event.act).collect();
    assert_eq!(acts.len(), 2);
    assert!(acts.iter().all(|act| act.target == format!("token:{id}") && act.reason == "anna"), "{acts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_and_its_sessions_end_with_its_time() {
    let now = Arc::new(AtomicI64::new(1_700_000_000_000));
    let world = World::at(Clock::Scripted(now.clone()), TOKEN, |_| {}).await;
    let body = json!({"name": "ci", "role": "admin", "expires_in_seconds": 60});
    let made = done(&world, "POST", "/tokens", &body).await;
    let secret = made["secret"].as_str().unwrap();
    assert_eq!(made["expires_at"], "2023-11-14T22:14:20.000Z");
    let cookie = sign_in(&world, secret).await;
    now.fetch_add(59_999, Ordering::Relaxed);
    assert_eq!((status(&world, secret).await, page(&world, &cookie).await), (200, 200));
    assert_eq!(refused(&world, "POST", "/tokens", &body).await.0, 409, "the name is in use");
    now.fetch_add(1, Ordering::Relaxed);
    assert_eq!((status(&world, secret).await, page(&world, &cookie).await), (401, 303));
    assert_eq!(world.json("/tokens").await["items"][0]["state"], "expired");
    done(&world, "POST", "/tokens", &body).await;
    let names: Vec<Value> = world.json("/tokens?limit=1").await["items"].as_array().unwrap().clone();
    assert_eq!((names.len(), &names[0]["state"]), (1, &json!("active")), "the newest first");
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_that_make_no_sense_are_refused() {
    let world = World::start().await;
    done(&world, "POST", "/tokens", &json!({"name": "anna", "role": "viewer"})).await;
    for (body, status, word) in [
        (json!({}), 400, "`name`"),
        (json!({"name": "ben"}), 400, "`role`"),
        (json!({"name": "ben", "role": "root"}), 400, "unknown variant `root`"),
        (json!({"name": "a b", "role": "viewer"}), 400, "`name`: it has 1 to 64 letters"),
        (json!({"name": "", "role": "viewer"}), 400, "`name`: it has 1 to 64 letters"),
        (json!({"name": "Admin", "role": "viewer"}), 400, "are taken"),
        (json!({"name": "sprag", "role": "admin"}), 400, "are taken"),
        (json!({"name": "ANNA", "role": "admin"}), 409, "`anna` has a token already"),
        (json!({"name": "ben", "role": "admin", "expires_in_seconds": 0}), 400, "future"),
        (json!({"name": "ben", "role": "admin", "expires_at": "soon"}), 400, "`expires_at` is a moment"),
        (json!({"name": "ben", "role": "admin", "secret": "mine"}), 400, "unknown field `secret`"),
        (json!({"name": "ben", "role": "admin", "by": "sprag"}), 400, "`by` is a name"),
    ] {
        let (found, detail) = refused(&world, "POST", "/tokens", &body).await;
        assert!(found == status && detail.contains(word), "{body}: {found} {detail}");
    }
    assert_eq!(refused(&world, "GET", "/tokens?limit=0", &json!({})).await.0, 400);
    assert_eq!(world.json("/tokens").await["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_that_the_disk_refuses_holds_and_is_told() {
    let world = World::start().await;
    let made = done(&world, "POST", "/tokens", &json!({"name": "anna", "role": "admin"})).await;
    let secret = made["secret"].as_str().unwrap();
    let catalog = rusqlite::Connection::open(world.sprag.data.path().join("catalog.db")).unwrap();
    let trigger = "CREATE TRIGGER no_tokens BEFORE INSERT ON tokens BEGIN SELECT RAISE(ABORT, 'no room'); END";
    catalog.execute_batch(trigger).unwrap();
    assert_eq!(refused(&world, "POST", "/tokens", &json!({"name": "ben", "role": "admin"})).await.0, 503);
    let path = format!("/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(refused(&world, "DELETE", &path, &json!({})).await.0, 503);
    assert_eq!(status(&world, secret).await, 401);
    assert_eq!(world.sprag.events().into_iter().filter_map(|event| event.act).count(), 2, "made, and taken back");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_makes_lists_and_revokes() {
    let world = World::start().await;
    let made = printed(&world, &["tokens", "create", "--name", "anna", "--role", "viewer", "--expires", "30d"]).await;
    assert!(made.contains(" of anna (viewer) is made\n") && made.contains("This is shown once."), "{made}");
    let id = made.split(' ').next().unwrap();
    let secret = made.lines().map(str::trim).find(|line| line.starts_with("sprag-tok-")).unwrap();
    let listed = printed(&world, &["tokens"]).await;
    assert!(listed.contains(id) && listed.contains("viewer") && !listed.contains(secret), "{listed}");
    assert_eq!(printed(&world, &["tokens", "list"]).await, listed);

    let admin = world.sprag.admin.to_string();
    let refused = complaint(&["kill", "--all", "--admin", &admin], Some(secret)).await;
    assert!(refused.contains("`anna` may look and change nothing"), "{refused}");
    let revoked = printed(&world, &["tokens", "revoke", id]).await;
    assert_eq!(revoked, format!("{id} of anna (viewer) is revoked\n"));
    let unknown = complaint(&["tokens", "--admin", &admin], Some(secret)).await;
    assert!(unknown.contains("did not take the admin token"), "{unknown}");
}
