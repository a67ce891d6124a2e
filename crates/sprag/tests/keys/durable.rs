//! The real program: keys and revocations outlive `kill -9`, and no secret is written anywhere.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sprag_core::wire::Dialect;
use sprag_testkit::client;
use sprag_testkit::{Provider, Reply, Script, When};

use crate::binary::Binary;
use crate::place::{HELD, TOKEN};
use crate::wire::{STREAMING, path, request};

const PIECE: usize = 10;

fn start(home: &Path, provider: &Provider, more: &str) -> Binary {
    let file = home.join("gemini-key");
    fs::write(&file, format!("{}\n", HELD[2].1)).unwrap();
    let more = format!(
        "admin.token = \"{TOKEN}\"\nproxy.require_keys = true\nproviders.openai.api_key = \"{}\"\n\
         providers.anthropic.api_key = \"{}\"\nproviders.gemini.api_key_file = {file:?}\n{more}",
        HELD[0].1, HELD[1].1
    );
    Binary::start(home, provider, &more)
}

async fn kill_nine(mut binary: Binary) {
    binary.signal("KILL");
    assert_eq!(binary.exit_code().await, None);
}

async fn order(binary: &Binary, method: &str, path: &str, body: &Value) -> Value {
    let greeting = fs::read_to_string(binary.home.join("stdout")).unwrap();
    let admin = greeting.lines().find_map(|line| line.trim().strip_prefix("dashboard  ")).unwrap().to_owned();
    let call = client::post_json(format!("{}/api/v1{path}", admin.trim_end_matches('/')), body);
    let call = call.method(method.parse().unwrap()).header("authorization", &format!("Bearer {TOKEN}"));
    let answer = call.fetch().await.unwrap();
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()
}

async fn status(binary: &Binary, secret: &str) -> u16 {
    let body = request(Dialect::OpenaiChat, false, "hello");
    let call = client::post_json(binary.url("/v1/chat/completions"), &body).header("x-api-key", secret);
    call.fetch().await.unwrap().status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_rotations_and_revocations_outlive_the_process() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let binary = start(home.path(), &provider, "");
    let key = order(&binary, "POST", "/keys", &json!({"agent": "bot"})).await;
    let (id, first) = (key["id"].as_str().unwrap(), key["secret"].as_str().unwrap());
    kill_nine(binary).await;

    let binary = start(home.path(), &provider, "");
    assert_eq!(status(&binary, first).await, 200);
    let rotated = order(&binary, "POST", &format!("/keys/{id}/rotate"), &json!({"grace_seconds": 3600})).await;
    let second = rotated["secret"].as_str().unwrap();
    kill_nine(binary).await;

    let binary = start(home.path(), &provider, "");
    assert_eq!((status(&binary, first).await, status(&binary, second).await), (200, 200));
    order(&binary, "DELETE", &format!("/keys/{id}"), &json!({})).await;
    kill_nine(binary).await;

    let binary = start(home.path(), &provider, "");
    assert_eq!((status(&binary, first).await, status(&binary, second).await), (401, 401));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_written_anywhere() {
    let error = [Reply::status(500).message("upstream failed")];
    let script = Script::new().when(When::Header("x-want".into(), "error".into()), error);
    let provider = Provider::start(script).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut binary = start(home.path(), &provider, "log.format = \"json\"\nlog.level = \"trace\"\nlog.calls = true");
    let mut secrets: Vec<String> = HELD.iter().map(|(_, key)| (*key).to_owned()).collect();
    let key = order(&binary, "POST", "/keys", &json!({"agent": "bot", "name": "ci"})).await;
    let id = key["id"].as_str().unwrap();
    let rotated = order(&binary, "POST", &format!("/keys/{id}/rotate"), &json!({"grace_seconds": 3600})).await;
    let ours = [&key, &rotated].map(|key| key["secret"].as_str().unwrap().to_owned());
    secrets.extend(ours.clone());
    let stranger = "sk-sprag-Qw3ErTy7UiOp1AsDf5GhJk9LzXc2VbNm4Qa6WsEd8RfTg".to_owned();
    secrets.push(stranger.clone());
    for dialect in STREAMING {
        for is_stream in [false, true] {
            for secret in ours.iter().chain([&stranger]) {
                let url = binary.url(path(dialect, is_stream));
                let joint = if url.contains('?') { '&' } else { '?' };
                let body = request(dialect, is_stream, "hello");
                let bearer = format!("Bearer {secret}");
                let calls = [
                    client::post_json(&url, &body).header("authorization", &bearer),
                    client::post_json(&url, &body).header("x-api-key", secret).header("x-want", "error"),
                    client::post_json(&url, &body).header("x-api-key", secret).header("x-mock-cut", "events=1"),
                    client::post_json(&url, &body).header("x-goog-api-key", secret).http2(),
                    client::post_json(format!("{url}{joint}key={secret}"), &body),
                    client::post_json(&url, &body).header("api-key", secret).header("x-agent-id", "other"),
                ];
                for call in calls {
                    let Ok(answer) = call.fetch().await else { continue };
                    let said = format!("{:?} {}", answer.headers, String::from_utf8_lossy(&answer.body));
                    assert!(secrets.iter().all(|secret| !said.contains(secret.as_str())), "{said}");
                }
            }
        }
    }
    assert!(provider.requests().len() > 40, "calls passed: {}", provider.requests().len());
    order(&binary, "DELETE", &format!("/keys/{id}"), &json!({})).await;
    provider.wait_for(|log| log.open_responses == 0).await.unwrap();
    binary.signal("TERM");
    assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
    assert!(binary.log().lines().count() > 200, "there is a log to search");
    for file in ["sprag.toml", "gemini-key"] {
        fs::remove_file(home.path().join(file)).unwrap();
    }
    assert_clean(home.path(), &secrets);
    // The search finds what is there.
    fs::write(home.path().join("found"), &ours[0][12..30]).unwrap();
    assert!(std::panic::catch_unwind(|| assert_clean(home.path(), &secrets)).is_err());
}

fn assert_clean(path: &Path, secrets: &[String]) {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().for_each(|entry| assert_clean(&entry.unwrap().path(), secrets));
    }
    let bytes = fs::read(path).unwrap();
    for secret in secrets {
        for piece in secret.as_bytes()[9..].windows(PIECE) {
            let found = memchr::memmem::find(&bytes, piece);
            assert!(found.is_none(), "{secret} in {} at {found:?}", path.display());
        }
    }
}
