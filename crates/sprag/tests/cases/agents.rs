//! Agents: the kill switch, being set inactive, and how that looks.

use serde_json::{Value, json};
use sprag_core::loops::{Action, Mode};

use crate::place::{Place, stopped};
use crate::{Case, Outcome};

const SAME: &str = "Check the order number 12345 once more and tell me its state";
const BOT: [(&str, &str); 1] = [("x-sprag-agent", "my-agent")];
const AGENT: &str = "/agents/my-agent";

async fn agent(place: &Place) -> Value {
    place.admin("GET", AGENT, &Value::Null).await.1
}

/// Repeats itself until it is stopped.
async fn repeats(place: &Place) -> sprag_testkit::client::Whole {
    for _ in 0..15 {
        let answer = place.ask(SAME, &BOT).await;
        if !stopped(&answer).is_empty() {
            return answer;
        }
    }
    place.ask(SAME, &BOT).await
}

pub(crate) async fn have_a_kill_switch(case: &Case) -> Outcome {
    let title = case.title();
    let blocks = case.name == "block_mode_429";
    let place = Place::start(|settings| {
        if blocks {
            settings.policies.change_rules(|rules| {
                rules.score.common.mode = Mode::Enforce;
                rules.score.common.action = Action::Reject;
            });
        }
    })
    .await;
    let by_itself = matches!(case.name.as_str(), "deactivate_mode" | "activate_clears" | "badge_text");
    if by_itself {
        place.admin("PATCH", AGENT, &json!({"kill_switch": {"enabled": true}})).await;
        assert_eq!(stopped(&repeats(&place).await), "agent_inactive", "{title}");
    } else if !blocks {
        place.admin("PATCH", AGENT, &json!({"active": false})).await;
    }
    match case.name.as_str() {
        "block_mode_429" => {
            let answer = repeats(&place).await;
            let body = answer.json();
            assert_eq!(case.expected["status"], answer.status.as_u16(), "{title}");
            assert_eq!(body["block_reason"], case.expected["block_reason"], "{title}");
            assert!(body["retry_after_seconds"].is_u64(), "{title}: {body}");
            let event = place.sprag.events().pop().unwrap();
            let expected = &case.expected["event"];
            assert_eq!(Some(event.blocked), expected["blocked"].as_bool(), "{title}");
            assert_eq!(event.block_reason.as_deref(), expected["block_reason"].as_str(), "{title}");
            assert_eq!(agent(&place).await["active"], true, "{title}");
        }
        "deactivate_mode" => {
            let standing = agent(&place).await;
            assert_eq!(standing["active"], false, "{title}");
            assert_eq!(standing["deactivated_by"], case.expected["agent.deactivated_by"], "{title}");
            let (_, events) = place.admin("GET", "/events?agent=my-agent", &Value::Null).await;
            let kinds: Vec<_> = events["items"].as_array().unwrap().iter().map(|event| &event["kind"]).collect();
            assert!(kinds.contains(&&case.expected["event_type"]), "{title}: {kinds:?}");
            let next = place.ask("Something else", &BOT).await;
            assert_eq!((next.status.as_u16(), stopped(&next)), (200, "agent_inactive"), "{title}");
        }
        "activate_clears" => {
            let (_, standing) = place.admin("PATCH", AGENT, &json!({"active": true})).await;
            assert_eq!(standing["deactivated_by"], case.expected["deactivated_by"], "{title}");
            assert_eq!(standing["active"], true, "{title}");
            for _ in 0..3 {
                assert_eq!(stopped(&place.ask(SAME, &BOT).await), "", "{title}: the window is empty");
            }
        }
        "manual_deactivation_reason" => {
            assert_eq!(agent(&place).await["deactivated_by"], case.expected["deactivated_by"], "{title}");
        }
        "badge_text" | "badge_text_manual" => {
            let badge = format!(">{}</span>", case.expected["dashboard"].as_str().unwrap());
            assert!(place.page("/agents").await.contains(&badge), "{title}");
        }
        _ => return Outcome::Left("unknown"),
    }
    Outcome::Held
}

/// Their `/api/agents/NAME/kill-switch` is `kill_switch` of our `/agents/NAME`.
pub(crate) async fn are_switched(case: &Case) -> Outcome {
    let title = case.title();
    if case.name == "kill_switch_patch_404" {
        return Outcome::Left("an agent can be set up before it calls");
    }
    let place = Place::start(|_| {}).await;
    if !case.input["setup"].is_null() {
        place.ask("hello", &BOT).await;
    }
    let path = case.input["path"].as_str().unwrap();
    let path = path.strip_prefix("/api").unwrap().strip_suffix("/kill-switch").unwrap();
    let body = match &case.input["body"] {
        Value::Null => Value::Null,
        switch => json!({"kill_switch": switch}),
    };
    let (status, said) = place.admin(case.input["method"].as_str().unwrap(), path, &body).await;
    assert_eq!(case.expected["status"], status, "{title}: {said}");
    if let Some(field) = case.expected["error_contains"].as_str() {
        assert!(said["detail"].as_str().unwrap().contains(field), "{title}: {said}");
    }
    for (key, expected) in case.expected.as_object().unwrap() {
        let found = match key.split_once('.') {
            Some(("body", field)) => vec![(&said["kill_switch"][field], expected)],
            None if key == "body" && status == 200 => expected
                .as_object()
                .unwrap()
                .iter()
                .map(|(field, value)| (&said["kill_switch"][field], value))
                .collect(),
            _ => continue,
        };
        for (found, expected) in found {
            assert!(
                found == expected || found.as_f64().is_some_and(|n| Some(n) == expected.as_f64()),
                "{title}: {said}"
            );
        }
    }
    Outcome::Held
}

pub(crate) async fn answer_inactive(case: &Case) -> Outcome {
    let title = case.title();
    let place = Place::start(|_| {}).await;
    place.admin("PATCH", AGENT, &json!({"active": false})).await;
    let stream = case.input["stream"].as_bool().unwrap();
    let body = json!({"model": "gpt-4o", "stream": stream, "messages": [{"role": "user", "content": "Hello"}]});
    let answer = place.call("/v1/chat/completions", &body, &BOT).fetch().await.unwrap();
    assert_eq!(case.expected["status"], answer.status.as_u16(), "{title}");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(text.contains(case.expected["content_contains"].as_str().unwrap()), "{title}: {text}");
    if stream {
        // Theirs is JSON, which their note calls a defect: a client that streams gets a stream.
        assert!(answer.header("content-type").starts_with("text/event-stream"), "{title}");
    } else {
        let body = answer.json();
        assert_eq!(body["choices"][0]["finish_reason"], case.expected["finish_reason"], "{title}");
        assert_eq!(body["usage"]["total_tokens"], case.expected["usage_total"], "{title}");
    }
    Outcome::Held
}
