//! Runs: their limits, the loop in them, and what the caller is told.

use serde_json::{Value, json};
use sprag::config::file::Compat;
use sprag_core::loops::{Action, Mode, Preset, Rules};
use sprag_testkit::client::Whole;

use crate::place::{Place, stopped};
use crate::{Case, Outcome};

const RUN: [(&str, &str); 1] = [("x-sprag-run-id", "task-123")];

/// Under the preset of the system that the case comes from.
async fn agentwall() -> Place {
    Place::start(|settings| settings.responses.compat = vec![Compat::Agentwall]).await
}

async fn ask(place: &Place, number: u64) -> Whole {
    place.ask(&format!("Question number {number}"), &RUN).await
}

pub(crate) async fn are_limited(case: &Case) -> Outcome {
    let (title, place) = (case.title(), agentwall().await);
    let answer = match case.name.as_str() {
        "step_limit" => {
            let most = case.input["max_steps"].as_u64().unwrap();
            for number in 1..=most {
                assert_eq!(ask(&place, number).await.status, 200, "{title}: {number}");
            }
            ask(&place, most + 1).await
        }
        "timeout" => {
            ask(&place, 1).await;
            place.pass_seconds(case.input["seconds_since_first_request"].as_i64().unwrap());
            ask(&place, 2).await
        }
        _ => {
            ask(&place, 1).await;
            let reason = &case.expected["documented"]["kill_reason"];
            place.admin("POST", "/runs/default/task-123/kill", &json!({"reason": reason})).await;
            ask(&place, 2).await
        }
    };
    let error = &answer.json()["error"];
    assert_eq!(answer.status, 429, "{title}");
    match case.name.as_str() {
        "step_limit" => {
            for field in ["type", "code", "step"] {
                assert_eq!(error[field], case.expected["error"][field], "{title}");
            }
            // The one word that is ours: the contract calls the reason so.
            assert_eq!(error["kill_reason"], "step_limit", "{title}");
        }
        "timeout" => assert_eq!(error["kill_reason"], case.expected["kill_reason"], "{title}"),
        _ => {
            for field in ["type", "code", "kill_reason"] {
                assert_eq!(error[field], case.expected["documented"][field], "{title}");
            }
        }
    }
    let later = ask(&place, 99).await;
    assert_eq!((later.status.as_u16(), stopped(&later)), (429, "run_killed"), "{title}");
    Outcome::Held
}

pub(crate) async fn end_after_their_steps(case: &Case) -> Outcome {
    let place = agentwall().await;
    let prompts = case.input["prompts"].as_array().unwrap();
    let mut passed = 0;
    for prompt in prompts {
        if !stopped(&place.ask(prompt.as_str().unwrap(), &RUN).await).is_empty() {
            break;
        }
        passed += 1;
    }
    assert_eq!((passed, prompts.len() > 30), (30, true), "{}", case.title());
    Outcome::Held
}

/// By default, in a run that nobody named.
pub(crate) async fn stop_at_the_same_error(case: &Case) -> Outcome {
    let place = Place::start(|settings| {
        settings.policies.change_rules(|rules| *rules = Rules::preset(Preset::Balanced));
    })
    .await;
    let mut messages = vec![json!({"role": "user", "content": "How is the weather in Paris?"})];
    let order = [("x-mock-tool", "name=search_weather args={\"city\":\"Paris\"}")];
    let most = case.expected["by_turn_lte"].as_u64().unwrap();
    for turn in 0.. {
        let body = json!({"model": "gpt-4o", "messages": messages});
        let answer = place.call("/v1/chat/completions", &body, &order).fetch().await.unwrap();
        if stopped(&answer) == "loop_detected" {
            break;
        }
        assert!(turn < most, "{}: turn {turn} was paid for", case.title());
        let said = answer.json()["choices"][0]["message"].clone();
        let result =
            json!({"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "error: not found"});
        messages.extend([said, result]);
    }
    Outcome::Held
}

pub(crate) async fn say_when_to_retry(case: &Case) -> Outcome {
    let place = Place::start(|settings| {
        settings.responses.compat = vec![Compat::Fairvisor];
        let seconds = u32::try_from(case.input["window_seconds"].as_u64().unwrap()).unwrap();
        settings.policies.change_rules(|rules| {
            rules.repeat.common.mode = Mode::Enforce;
            rules.repeat.common.action = Action::Reject;
            rules.repeat.common.window.seconds = seconds;
        });
    })
    .await;
    let mut answer = place.ask("the same", &[]).await;
    for _ in 0..5 {
        answer = place.ask("the same", &[]).await;
    }
    let expected = &case.expected["headers"];
    assert_eq!(case.expected["status"], answer.status.as_u16(), "{}", case.title());
    assert_eq!(answer.header("retry-after"), expected["Retry-After"], "{}", case.title());
    for name in ["x-fairvisor-reason", "x-sprag-blocked"] {
        assert_eq!(answer.header(name), expected["X-<product>-Reason"], "{}", case.title());
    }
    Outcome::Held
}

pub(crate) async fn say_what_repeats(case: &Case) -> Outcome {
    let place = Place::start(|settings| {
        settings.responses.compat = vec![Compat::Agentwall];
        settings.policies.change_rules(|rules| *rules = Rules::preset(Preset::Agentwall));
    })
    .await;
    place.ask("Search for the weather in Paris", &RUN).await;
    let answer = place.ask("Search for the weather in Paris", &RUN).await;
    assert_eq!(case.expected["status"], answer.status.as_u16(), "{}", case.title());
    let body: Value = answer.json();
    for (field, expected) in case.expected["body"]["error"].as_object().unwrap() {
        assert_eq!(&body["error"][field], expected, "{}: {body}", case.title());
    }
    Outcome::Held
}

/// In headers, and in the answer itself where it is not a stream.
pub(crate) async fn are_told_of(case: &Case) -> Outcome {
    let (title, place) = (case.title(), agentwall().await);
    let body =
        json!({"model": "gpt-4o", "stream": case.input["stream"], "messages": [{"role": "user", "content": "hi"}]});
    let answer = place.call("/v1/chat/completions", &body, &RUN).fetch().await.unwrap();
    for name in case.expected["headers"].as_array().unwrap() {
        let name = name.as_str().unwrap().to_lowercase();
        assert!(answer.headers.contains_key(&name), "{title}: {name}");
    }
    if let Some(expected) = case.expected["content_type"].as_str() {
        assert!(answer.header("content-type").starts_with(expected), "{title}");
    }
    for field in case.expected["body.agentwall_has"].as_array().into_iter().flatten() {
        assert!(!answer.json()["agentwall"][field.as_str().unwrap()].is_null(), "{title}: {field}");
    }
    Outcome::Held
}
