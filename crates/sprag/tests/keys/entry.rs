//! Who is let in, and how the others are told.

use std::fs;
use std::time::Duration;

use serde_json::json;
use sprag_core::event::Ending;
use sprag_core::wire::Dialect;
use sprag_testkit::client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::place::{Place, bearer, unauthorized};
use crate::wire::{STREAMING, path, request};

const STRANGER: &str = "sk-sprag-0123456789012345678901234567890123456789abc";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_in_every_place_and_speaks_for_its_agent() {
    let place = Place::start().await;
    let issued = place.issue("bot", None).await;
    let secret = issued.secret.reveal();
    for (name, value) in [
        ("authorization", format!("Bearer {secret}")),
        ("authorization", format!("bearer {secret}")),
        ("x-api-key", secret.to_owned()),
        ("x-goog-api-key", secret.to_owned()),
        ("api-key", secret.to_owned()),
    ] {
        assert_eq!(place.ask(&[(name, &value)]).await.status, 200, "{name}");
    }
    let answer = place.call(&format!("/v1/chat/completions?key={secret}"), &[]).fetch().await.unwrap();
    assert_eq!(answer.status, 200);
    let events = place.sprag.settled(6).await;
    assert!(events.iter().filter(|event| event.kind.is_request()).all(|event| event.agent.as_str() == "bot"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_expired_and_revoked_keys_are_refused_and_never_sent_on() {
    let place = Place::start().await;
    let issued = place.issue("bot", Some(60)).await;
    let header = bearer(&issued);
    let header = (header.0, header.1.as_str());
    let id = &issued.entry.key.id;
    let unknown = place.refused(&[("x-api-key", STRANGER)]).await;
    assert!(unknown.contains("is not known here") && !unknown.contains(STRANGER), "{unknown}");
    // A good credential beside it changes nothing, nor does a repeated header.
    for other in [header, ("x-goog-api-key", "AIza"), ("x-api-key", "sk-ant-x")] {
        assert!(place.refused(&[other, ("x-api-key", STRANGER)]).await.contains("is not known here"), "{other:?}");
    }
    let second = place.issue("bot", None).await;
    assert!(place.refused(&[header, ("x-api-key", second.secret.reveal())]).await.contains("two different"));
    assert_eq!(place.refused(&[header, ("x-api-key", issued.secret.reveal())]).await, "", "one key twice is one key");
    place.pass_seconds(60);
    let expired = place.refused(&[header]).await;
    let moment = "2023-11-14T22:14:20.000Z";
    assert!(expired.contains(&format!("virtual key `{id}` expired at {moment}")), "{expired}");
    place.sprag.app.revoke_key(second.entry.key.id.clone(), "anna".into()).await.unwrap();
    let revoked = place.refused(&[("api-key", second.secret.reveal())]).await;
    assert!(revoked.contains(&format!("`{}` was revoked at {moment}", second.entry.key.id)), "{revoked}");
    assert_eq!(place.provider.requests().len(), 1, "only what was let in");
    let events = place.sprag.settled(8).await;
    let last = events.iter().rfind(|event| event.kind.is_request()).unwrap();
    assert_eq!((last.agent.as_str(), last.status, last.ending), ("bot", 401, Ending::Refused));
    assert_eq!(last.block_reason.as_deref(), Some("authentication_error"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_dialect_tells_it_in_its_own_shape() {
    let place = Place::start().await;
    for dialect in STREAMING {
        for is_stream in [false, true] {
            let answer = place.ask_in(dialect, is_stream, &[("x-api-key", STRANGER)]).await;
            let message = unauthorized(&answer);
            let body = answer.json();
            assert_eq!(body["block_reason"], "authentication_error");
            let error = &body["error"];
            match dialect {
                Dialect::Anthropic => {
                    assert_eq!((&body["type"], &error["type"]), (&json!("error"), &json!("authentication_error")))
                }
                Dialect::Gemini => {
                    assert_eq!((&error["code"], &error["status"]), (&json!(401), &json!("UNAUTHENTICATED")));
                    assert_eq!(error["details"][0]["reason"], "AUTHENTICATION_ERROR");
                }
                _ => {
                    assert_eq!((&error["type"], &error["code"]), (&json!("authentication_error"), &json!("sprag_auth")))
                }
            }
            assert!(message.contains("[sprag: authentication_error]"), "{message}");
        }
    }
    assert!(place.provider.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn required_keys_are_required_of_everybody() {
    let place = Place::start_with(|settings| settings.proxy.require_keys = true).await;
    let issued = place.issue("bot", None).await;
    for headers in [&[][..], &[("authorization", "Bearer sk-proj-theirs")], &[("x-note", issued.secret.reveal())]] {
        assert!(place.refused(headers).await.contains("a virtual key is required here"), "{headers:?}");
    }
    let opaque = client::get(place.sprag.url("/v1/files")).fetch().await.unwrap();
    assert!(unauthorized(&opaque).contains("required"));
    let nowhere = client::get(place.sprag.url("/nowhere")).fetch().await.unwrap();
    assert!(unauthorized(&nowhere).contains("required"), "not even which providers there are");
    assert_eq!(client::get(place.sprag.url("/healthz")).fetch().await.unwrap().status, 200);
    let (name, value) = bearer(&issued);
    let opened = client::get(place.sprag.url("/v1/files")).header(name, &value).fetch().await.unwrap();
    assert_ne!(opened.status, 401);
    let nowhere = client::get(place.sprag.url("/nowhere")).header(name, &value).fetch().await.unwrap();
    assert_eq!(nowhere.status, 404);
    assert_eq!(place.refused(&[(name, &value)]).await, "");
    assert_eq!(place.provider.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_cannot_speak_for_another_agent() {
    let place = Place::start().await;
    let issued = place.issue("bot", None).await;
    let (name, value) = bearer(&issued);
    let key = (name, value.as_str());
    let told = |message: String| {
        let expected = format!("virtual key `{}` speaks for agent `bot` and for no other", issued.entry.key.id);
        assert!(message.contains(&expected), "{message}");
    };
    for header in ["x-sprag-agent", "x-agent-id"] {
        told(place.refused(&[key, (header, "other")]).await);
        told(place.refused(&[key, (header, "bot"), (header, "other")]).await);
        assert_eq!(place.refused(&[key, (header, "bot")]).await, "");
    }
    let path_of = |agent: &str| format!("/agents/{agent}/v1/chat/completions");
    told(unauthorized(&place.call(&path_of("other"), &[key]).fetch().await.unwrap()));
    told(unauthorized(&place.call(&path_of("bot"), &[key, ("x-agent-id", "other")]).fetch().await.unwrap()));
    assert_eq!(place.call(&path_of("b%6ft"), &[key]).fetch().await.unwrap().status, 200);
    for (agent, is_told) in [("other", true), ("bot", false)] {
        let mut body = request(Dialect::OpenaiChat, false, "hello");
        body["agentwall_agent_id"] = json!(agent);
        let answer = client::post_json(place.sprag.url(path(Dialect::OpenaiChat, false)), &body).header(name, &value);
        let answer = answer.fetch().await.unwrap();
        if is_told {
            told(unauthorized(&answer));
        } else {
            assert_eq!(answer.status, 200);
        }
    }
    assert_eq!(place.provider.requests().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_writes_first_and_reads_then_learns_the_reason() {
    let place = Place::start().await;
    let body = vec![b'x'; 32 << 20];
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: sprag\r\nconnection: close\r\nx-api-key: {STRANGER}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(place.sprag.proxy).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("is not known here"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_opens_with_both_secrets_for_its_grace() {
    let place = Place::start().await;
    let first = place.issue("bot", None).await;
    let id = first.entry.key.id.clone();
    let second = place.sprag.app.rotate_key(id.clone(), 60, "anna".into()).await.unwrap().unwrap();
    for issued in [&first, &second] {
        assert_eq!(place.refused(&[("x-api-key", issued.secret.reveal())]).await, "");
    }
    assert_eq!(place.refused(&[("x-api-key", first.secret.reveal()), ("api-key", second.secret.reveal())]).await, "");
    place.pass_seconds(60);
    let message = place.refused(&[("x-api-key", first.secret.reveal())]).await;
    assert!(message.contains("was replaced and ended at 2023-11-14T22:14:20.000Z"), "{message}");
    let third = place.sprag.app.rotate_key(id, 0, "anna".into()).await.unwrap().unwrap();
    assert!(place.refused(&[("x-api-key", second.secret.reveal())]).await.contains("was replaced"), "at once");
    assert!(place.refused(&[("x-api-key", first.secret.reveal())]).await.contains("is not known here"));
    assert_eq!(place.refused(&[("x-api-key", third.secret.reveal())]).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_names_the_key_also_of_one_that_was_refused() {
    let place = Place::start_with(|settings| settings.events.flush = Duration::from_secs(3600)).await;
    let issued = place.issue("bot", Some(60)).await;
    let secret = issued.secret.reveal();
    assert_eq!(place.refused(&[("x-api-key", secret)]).await, "");
    place.pass_seconds(60);
    assert!(place.refused(&[("x-api-key", secret)]).await.contains("expired"));
    // What is recorded stands in the spool before the answer is whole.
    let files = fs::read_dir(place.sprag.data.path().join("spool")).unwrap();
    let spool: String = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let named = format!("\"key\":\"{}\"", issued.entry.key.id);
    assert_eq!(spool.matches(&named).count(), 3, "made, used, refused: {spool}");
}
