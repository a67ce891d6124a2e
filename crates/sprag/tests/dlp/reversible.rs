//! Values that the provider does not see and the client gets back.

use serde_json::{Value, json};
use sprag_core::wire::Dialect;
use sprag_testkit::{Reply, Script, When};

use crate::configured::Configured;
use crate::scene::{MAIL, arguments, call, call_of, place, place_saying, sent, spoken, text};
use crate::wire::{STREAMING, request};

const PROMPT: &str = "Write to anna.kowalska@acme-motors.com today.";
const TOOLED: [Dialect; 4] = [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini];

#[tokio::test]
async fn an_answer_brings_the_value_back_wherever_it_is_cut() {
    let said = "I wrote to [EMAIL_1], not to [EMAIL_2].";
    let heard = said.replace("[EMAIL_1]", MAIL);
    for size in 1..=said.len() {
        let place = place_saying(Reply::text(said).delta_chars(size), "").await;
        for dialect in STREAMING {
            for is_stream in [true, false] {
                let body = request(dialect, is_stream, PROMPT).to_string();
                let answer = call(&place, dialect, is_stream, body.clone()).fetch().await.unwrap();
                assert_eq!(sent(&place), body.replace(MAIL, "[EMAIL_1]"), "{dialect:?}");
                assert_eq!(spoken(dialect, is_stream, &answer).text, heard, "{dialect:?} {is_stream} {size}");
            }
        }
    }
}

#[tokio::test]
async fn arguments_bring_the_value_back_wherever_they_are_cut() {
    let asked = json!({"to": "[EMAIL_1]", "text": "line\n\"[EMAIL_1]\" \\"});
    let heard: Value = serde_json::from_str(&asked.to_string().replace("[EMAIL_1]", MAIL)).unwrap();
    for size in 1..=asked.to_string().len() {
        let place = place_saying(Reply::tool("send", asked.clone()).delta_chars(size), "").await;
        for dialect in TOOLED {
            for is_stream in [true, false] {
                let body = request(dialect, is_stream, PROMPT).to_string();
                let answer = call(&place, dialect, is_stream, body).fetch().await.unwrap();
                assert_eq!(arguments(dialect, is_stream, &answer), heard, "{dialect:?} {size} {}", text(&answer));
            }
        }
    }
}

/// A conversation in which the client sends back what it got.
#[tokio::test]
async fn a_value_keeps_its_number_for_the_whole_run() {
    let script = Script::new().agent(
        When::Always,
        [
            Reply::text("First [EMAIL_1]."),
            Reply::text("Then [EMAIL_2] and [EMAIL_1]."),
            Reply::text("Done, [EMAIL_2]."),
        ],
    );
    let place = Configured::start_with(script, "", true).await;
    let mut messages = vec![json!({"role": "user", "content": format!("Ask {MAIL} first.")})];
    let mut runs = Vec::new();
    for (step, is_stream) in [(1, false), (2, true), (3, false)] {
        let mut body = request(Dialect::OpenaiChat, is_stream, "");
        body["messages"] = json!(messages);
        let answer = call(&place, Dialect::OpenaiChat, is_stream, body.to_string()).fetch().await.unwrap();
        let told = spoken(Dialect::OpenaiChat, is_stream, &answer);
        assert_eq!(told.about["step"], step, "the restored answer leads to the run");
        runs.push(told.about["run_id"].clone());
        let seen = sent(&place);
        assert!(!seen.contains('@') && seen.contains("Ask [EMAIL_1] first."), "{seen}");
        messages.push(json!({"role": "assistant", "content": told.text}));
        messages.push(json!({"role": "user", "content": format!("And ben@acme-motors.com, step {step}?")}));
    }
    let said: Vec<&str> =
        messages.iter().filter(|m| m["role"] == "assistant").filter_map(|m| m["content"].as_str()).collect();
    assert_eq!(
        said,
        [
            format!("First {MAIL}."),
            format!("Then ben@acme-motors.com and {MAIL}."),
            "Done, ben@acme-motors.com.".to_owned()
        ]
    );
    assert!(sent(&place).contains("First [EMAIL_1].") && sent(&place).contains("And [EMAIL_2], step 2?"));
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    place.sprag.settled(3).await;
}

/// Says the placeholder without having sent anything, and tells what comes back.
async fn fishes(place: &Configured, agent: &str, headers: &[(&str, &str)]) -> String {
    let body = request(Dialect::OpenaiChat, false, "What is [EMAIL_1]?");
    let mut call = call_of(place, agent, Dialect::OpenaiChat, false, &body).header("x-mock-text", "It is [EMAIL_1].");
    for (name, value) in headers {
        call = call.header(name, value);
    }
    spoken(Dialect::OpenaiChat, false, &call.fetch().await.unwrap()).text
}

async fn tells(place: &Configured, agent: &str, headers: &[(&str, &str)]) {
    let body = request(Dialect::OpenaiChat, false, PROMPT);
    let mut call = call_of(place, agent, Dialect::OpenaiChat, false, &body);
    for (name, value) in headers {
        call = call.header(name, value);
    }
    assert_eq!(call.fetch().await.unwrap().status, 200);
}

#[tokio::test]
async fn nobody_else_gets_the_value() {
    let place = place("").await;
    let (run, key) = (("x-sprag-run-id", "task"), ("authorization", "Bearer provider-key-of-anna"));
    tells(&place, "bot", &[run, key]).await;
    let own = format!("It is {MAIL}.");
    assert_eq!(fishes(&place, "bot", &[run, key]).await, own);
    for (agent, headers) in [
        ("bot", vec![("x-sprag-run-id", "other"), key]),
        ("other", vec![run, key]),
        ("bot", vec![run, ("authorization", "Bearer provider-key-of-ben")]),
        ("bot", vec![run]),
        ("bot", vec![key]),
    ] {
        assert_eq!(fishes(&place, agent, &headers).await, "It is [EMAIL_1].", "{agent} {headers:?}");
    }
    let place = crate::scene::place("providers.openai.api_key = \"sk-of-the-gateway\"").await;
    let (one, two) = (place.issue_key("bot").await, place.issue_key("bot").await);
    tells(&place, "bot", &[run, (one.0, &one.1)]).await;
    assert_eq!(fishes(&place, "bot", &[run, (two.0, &two.1)]).await, "It is [EMAIL_1].");
    assert_eq!(fishes(&place, "bot", &[run, (one.0, &one.1)]).await, own);
}

#[tokio::test]
async fn calls_that_begin_together_share_a_vault() {
    let place = place("").await;
    let gate = place.provider.gate();
    let ask = |mail: &str| {
        let body = request(Dialect::OpenaiChat, false, &format!("Ask {mail}."));
        let call = call_of(&place, "bot", Dialect::OpenaiChat, false, &body).header("x-mock-hold", "");
        call.header("x-sprag-run-id", "task").fetch()
    };
    let (one, two, ()) = tokio::join!(ask("anna@acme-motors.com"), ask("ben@acme-motors.com"), async {
        place.provider.wait_for(|log| log.total == 2).await.unwrap();
        gate.open();
    });
    assert!(one.unwrap().status == 200 && two.unwrap().status == 200);
    let requests = place.provider.requests();
    let seen: Vec<String> =
        requests.iter().map(|r| r.json()["messages"][0]["content"].as_str().unwrap().to_owned()).collect();
    assert_ne!(seen[0], seen[1], "two values have two placeholders");
}

#[tokio::test]
async fn a_vault_ends_with_its_run() {
    let place = place("runs.idle_minutes = 1").await;
    let run = ("x-sprag-run-id", "task");
    tells(&place, "bot", &[run]).await;
    place.pass_seconds(61);
    let idle = std::time::Duration::from_secs(60);
    place.sprag.app.vaults.sweep(place.sprag.app.clock.now(), u64::try_from(idle.as_millis()).unwrap());
    assert!(place.sprag.app.vaults.is_empty());
    assert_eq!(fishes(&place, "bot", &[run]).await, "It is [EMAIL_1].");
}

#[tokio::test]
async fn what_an_answer_brings_of_its_own_is_not_given_back_elsewhere() {
    let place = place_saying(Reply::text("Write to carl@acme-motors.com or [EMAIL_1]."), "").await;
    for dialect in STREAMING {
        for is_stream in [false, true] {
            let body = request(dialect, is_stream, PROMPT).to_string();
            let answer = call(&place, dialect, is_stream, body).fetch().await.unwrap();
            let told = spoken(dialect, is_stream, &answer).text;
            assert!(told.ends_with(&format!(" or {MAIL}.")), "{dialect:?}: {told}");
            assert!(!told.contains("[EMAIL_2]"), "a client never sees a placeholder it cannot read: {told}");
        }
    }
}
