//! Runs belong to the key of their caller.

use serde_json::json;
use sprag_core::event::{Event, RunRecord};
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Whole};

use crate::place::{Place, bearer};
use crate::wire::request;

const RUN: (&str, &str) = ("x-sprag-run-id", "task");

/// The run and step that an answer tells its caller, in its headers and in its body.
fn told(answer: &Whole) -> (String, String) {
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let run = answer.header("x-sprag-run-id").to_owned();
    assert_eq!(answer.json()["sprag"]["run_id"], run.as_str());
    (run, answer.header("x-sprag-step").to_owned())
}

fn run_of(events: &[Event], at: usize) -> RunRecord {
    events.iter().filter(|event| event.kind.is_request()).nth(at).unwrap().run.clone().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_keys_of_one_agent_have_two_runs_of_one_name() {
    let place = Place::start().await;
    let (one, two) = (place.issue("bot", None).await, place.issue("bot", None).await);
    let (a, b) = (bearer(&one), bearer(&two));
    let (a, b) = ((a.0, a.1.as_str()), (b.0, b.1.as_str()));
    for (headers, step) in [
        (vec![a, RUN], "1"),
        (vec![b, RUN], "1"),
        (vec![a, RUN], "2"),
        (vec![RUN, ("x-sprag-agent", "bot")], "1"),
        (vec![a, RUN], "3"),
    ] {
        assert_eq!(told(&place.ask(&headers).await), ("task".to_owned(), step.to_owned()), "{headers:?}");
    }
    let full = format!("task#{}", one.entry.key.id);
    let in_full = ("x-sprag-run-id", full.as_str());
    assert_eq!(told(&place.ask(&[a, in_full]).await), ("task".to_owned(), "4".to_owned()), "its own name in full");
    for headers in
        [vec![b, in_full], vec![("x-sprag-agent", "bot"), in_full], vec![b, RUN, ("x-sprag-parent-run-id", &full)]]
    {
        let answer = place.ask(&headers).await;
        assert_eq!(answer.status, 400, "{headers:?}");
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("only a caller with that key names such a run"), "{message}");
    }
    let session = place.ask(&[("x-sprag-agent", "bot"), ("x-session-id", &full)]).await;
    assert_ne!(told(&session).0, "task", "a session of that name is passed over");
    let events = place.sprag.events();
    assert_eq!(run_of(&events, 0).id.as_str(), full, "the record has the whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_of_a_name_stops_the_run_of_one_key_only() {
    let place = Place::start().await;
    let (one, two) = (place.issue("bot", None).await, place.issue("bot", None).await);
    let (a, b) = (bearer(&one), bearer(&two));
    let (a, b) = ((a.0, a.1.as_str()), (b.0, b.1.as_str()));
    place.kill(&format!("run:bot/task#{}", one.entry.key.id)).await;
    let answer = place.ask(&[a, RUN]).await;
    assert_eq!(answer.header("x-sprag-blocked"), "run_killed");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert_eq!(answer.json()["error"]["run_id"], "task");
    assert!(text.contains("run `task`") && !text.contains("#key-"), "{text}");
    assert_eq!(place.ask(&[b, RUN]).await.status, 200);
    place.kill("run:bot/other").await;
    assert_eq!(place.ask(&[a, ("x-sprag-run-id", "other")]).await.status, 200, "the bare name is nobody's with a key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_of_a_key_stops_its_calls_and_no_others() {
    let place = Place::start().await;
    let (one, two) = (place.issue("bot", None).await, place.issue("bot", None).await);
    place.kill(&format!("key:{}", one.entry.key.id)).await;
    let blocked = |answer: &Whole| (answer.status.as_u16(), answer.headers.contains_key("x-sprag-blocked"));
    let (a, b) = (bearer(&one), bearer(&two));
    assert_eq!(blocked(&place.ask(&[(a.0, &a.1)]).await), (403, true));
    assert_eq!(blocked(&place.ask(&[(b.0, &b.1)]).await), (200, false));
    let rotated = place.sprag.app.rotate_key(one.entry.key.id.clone(), 0, "anna".into()).await.unwrap().unwrap();
    let a = bearer(&rotated);
    assert_eq!(blocked(&place.ask(&[(a.0, &a.1)]).await), (403, true), "a new secret is the same key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_of_a_key_cuts_what_is_under_way() {
    let place = Place::start().await;
    let issued = place.issue("bot", None).await;
    let url = place.sprag.url("/v1/chat/completions");
    let call = client::post_json(&url, &request(Dialect::OpenaiChat, true, "hello")).header("x-mock-stall", "1");
    let mut answer = call.header("x-api-key", issued.secret.reveal()).send().await.unwrap();
    answer.read_at_least(1).await.unwrap();
    place.kill(&format!("key:{}", issued.entry.key.id)).await;
    let rest = answer.whole().await;
    let text = String::from_utf8_lossy(&rest.body).into_owned();
    assert!(text.contains("run_killed") && !text.contains("#key-"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_trees_stay_within_the_key() {
    let place = Place::start().await;
    let (one, two) = (place.issue("bot", None).await, place.issue("bot", None).await);
    let (a, b) = (bearer(&one), bearer(&two));
    let (a, b) = ((a.0, a.1.as_str()), (b.0, b.1.as_str()));
    let child = [("x-sprag-run-id", "part"), ("x-sprag-parent-run-id", "task")];
    told(&place.ask(&[a, RUN]).await);
    told(&place.ask(&[a, child[0], child[1]]).await);
    told(&place.ask(&[b, child[0], child[1]]).await);
    let events = place.sprag.settled(3).await;
    let parents = [1, 2].map(|at| run_of(&events, at).parent.unwrap().to_string());
    assert_eq!(parents, [&one, &two].map(|issued| format!("task#{}", issued.entry.key.id)));
    place.kill(&format!("run:bot/task#{}", one.entry.key.id)).await;
    assert_eq!(place.ask(&[a, child[0], child[1]]).await.status, 403, "what is a part of it stops too");
    assert_eq!(place.ask(&[b, child[0], child[1]]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_message_of_a_limit_has_the_callers_name_of_the_run() {
    let place = Place::start_with(|settings| settings.policies.defaults.run_limits.max_steps = 1).await;
    let issued = place.issue("bot", None).await;
    let (name, value) = bearer(&issued);
    told(&place.ask(&[(name, &value), RUN]).await);
    let answer = place.ask(&[(name, &value), RUN]).await;
    assert_eq!(answer.header("x-sprag-blocked"), "run_limit_exceeded");
    let text = format!("{:?} {}", answer.headers, String::from_utf8_lossy(&answer.body));
    assert!(text.contains("run `task`") && !text.contains("#key-"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_over_a_rotation_and_can_be_named() {
    let place = Place::start().await;
    let (one, two) = (place.issue("bot", None).await, place.issue("bot", None).await);
    let mut body = request(Dialect::OpenaiChat, false, "hello");
    let url = place.sprag.url("/v1/chat/completions");
    let first = client::post_json(&url, &body).header("x-api-key", one.secret.reveal()).fetch().await.unwrap();
    let run = told(&first).0;
    assert!(run.starts_with("run_") && !run.contains('#'), "{run}");
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(first.json()["choices"][0]["message"].clone());
    messages.push(json!({"role": "user", "content": "and then?"}));
    let rotated = place.sprag.app.rotate_key(one.entry.key.id.clone(), 0, "anna".into()).await.unwrap().unwrap();
    let stranger = client::post_json(&url, &body).header("x-api-key", two.secret.reveal()).fetch().await.unwrap();
    assert_ne!(told(&stranger).0, run, "another key has another conversation");
    // A foreign credential that reads like the id of the key is not the key.
    let guess = client::post_json(&url, &body).header("x-sprag-agent", "bot").header("x-api-key", &one.entry.key.id);
    assert_ne!(told(&guess.fetch().await.unwrap()).0, run);
    let next = client::post_json(&url, &body).header("x-api-key", rotated.secret.reveal()).fetch().await.unwrap();
    assert_eq!(told(&next), (run.clone(), "2".to_owned()));
    let named = place.ask(&[("x-api-key", rotated.secret.reveal()), ("x-sprag-run-id", &run)]).await;
    assert_eq!(told(&named), (run, "3".to_owned()), "the id that the caller was told is the run");
}
