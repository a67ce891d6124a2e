//! What may not pass at all, what only goes on record, and what is not looked for; by kind, family, direction, agent.

use serde_json::{Value, json};
use sprag_core::dlp::{Direction, Outcome};
use sprag_core::event::{Ending, Event};
use sprag_core::wire::Dialect;
use sprag_testkit::Reply;
use sprag_testkit::client::{self, Whole};

use crate::configured::{Configured, stopped};
use crate::scene::{HIDDEN, KEY, MAIL, call, call_of, place, place_saying, sent, spoken, text};
use crate::shapes::error;
use crate::wire::{STREAMING, request};

const STRICT: &str = "defaults.dlp.profile = \"strict\"";

fn assert_on_record(event: &Event, direction: Direction, outcome: Outcome) {
    let sightings = event.dlp.as_ref().unwrap_or_else(|| panic!("{event:?}"));
    let seen = &sightings.list[0];
    assert_eq!((seen.entity.as_str(), seen.direction, seen.outcome), ("OPENAI_KEY", direction, outcome), "{event:?}");
    assert!(!seen.path.is_empty() && seen.hint == "sk-1***", "{event:?}");
    assert!(!serde_json::to_string(event).unwrap().contains("1234567890"), "{event:?}");
}

#[tokio::test]
async fn a_request_is_refused() {
    let place = place(STRICT).await;
    let mut count = 0;
    for (dialect, is_stream) in STREAMING
        .into_iter()
        .flat_map(|dialect| [(dialect, false), (dialect, true)])
        .chain([(Dialect::OpenaiEmbeddings, false)])
    {
        let body = request(dialect, is_stream, &format!("My API key is {KEY}"));
        let answer = call(&place, dialect, is_stream, body.to_string()).fetch().await.unwrap();
        assert_eq!((answer.status.as_u16(), stopped(&answer)), (403, "dlp_blocked"), "{dialect:?}");
        let told = error(dialect, &answer);
        assert_eq!(told.code, "sprag_dlp");
        assert!(text(&answer).contains("OPENAI_KEY") && !text(&answer).contains("1234567890"), "{}", text(&answer));
        count += 1;
    }
    assert_eq!(place.provider.requests().len(), 0, "what is refused is not sent");
    for event in place.sprag.settled(count).await {
        assert_on_record(&event, Direction::Request, Outcome::Blocked);
        assert_eq!((event.blocked, event.block_reason.as_deref(), event.status), (true, Some("dlp_blocked"), 403));
        assert!(event.cost.is_none_or(|cost| cost.0 == 0), "{event:?}");
    }
    assert_eq!(place.sprag.app.state.counts().in_flight, 0);
}

#[tokio::test]
async fn a_refused_request_takes_nothing_of_a_budget() {
    let place = place(&format!("{STRICT}\n[agents.bot]\nbudget.daily_limit = 0.05\n")).await;
    let bad = request(Dialect::OpenaiChat, false, &format!("{KEY} {}", "word ".repeat(4000)));
    for _ in 0..20 {
        let answer = call_of(&place, "bot", Dialect::OpenaiChat, false, &bad).fetch().await.unwrap();
        assert_eq!(stopped(&answer), "dlp_blocked");
    }
    let good = request(Dialect::OpenaiChat, false, "hello");
    let answer = call_of(&place, "bot", Dialect::OpenaiChat, false, &good).fetch().await.unwrap();
    assert_eq!((answer.status.as_u16(), stopped(&answer)), (200, ""), "{}", text(&answer));
}

fn last_event(answer: &Whole) -> Value {
    let events = answer.events();
    let data = events.iter().rev().find_map(|event| serde_json::from_str(&event.data).ok());
    data.unwrap_or_else(|| panic!("{}", text(answer)))
}

#[tokio::test]
async fn an_answer_is_refused_before_the_secret() {
    for size in [1, 5, 200] {
        let said = format!("The key you want is {KEY}, as agreed.");
        let place = place_saying(Reply::text(said).delta_chars(size), STRICT).await;
        for dialect in STREAMING {
            let whole = call(&place, dialect, false, request(dialect, false, "hi").to_string()).fetch().await.unwrap();
            assert_eq!((whole.status.as_u16(), stopped(&whole)), (403, "dlp_blocked"), "{}", text(&whole));
            assert_eq!(error(dialect, &whole).code, "sprag_dlp");
            let stream = call(&place, dialect, true, request(dialect, true, "hi").to_string()).fetch().await.unwrap();
            assert_eq!((stream.status.as_u16(), &stream.broken), (200, &None));
            let written = text(&stream);
            assert!(written.contains("dlp_blocked"), "{dialect:?}: {written}");
            for answer in [&whole, &stream] {
                assert!(!text(answer).contains("sk-1") && !text(answer).contains("as agreed"), "{}", text(answer));
            }
            let last = last_event(&stream);
            let place = match dialect {
                Dialect::OpenaiResponses if last.get("response").is_some() => "/response/error",
                Dialect::OpenaiResponses => "/message",
                _ => "/error",
            };
            assert!(last.pointer(place).is_some_and(|error| !error.is_null()), "{dialect:?}: {written}");
        }
        for event in place.sprag.settled(STREAMING.len() * 2).await {
            assert_on_record(&event, Direction::Answer, Outcome::Blocked);
            let status = if event.stream { 200 } else { 403 };
            assert_eq!((event.ending, event.blocked, event.status), (Ending::CutOff, true, status), "{event:?}");
            assert!(event.cost.is_some_and(|cost| cost.0 > 0), "the provider wants its money: {event:?}");
        }
    }
}

#[tokio::test]
async fn log_only_changes_no_byte_and_off_does_not_look() {
    for (profile, is_seen) in [("log_only", true), ("off", false)] {
        let said = format!("Your {KEY}, {MAIL}.");
        let config = format!("defaults.dlp.profile = \"{profile}\"");
        let place = place_saying(Reply::text(said.clone()).delta_chars(4), &config).await;
        for dialect in STREAMING {
            for is_stream in [false, true] {
                let body = request(dialect, is_stream, &format!("My {KEY}, {MAIL}")).to_string();
                let answer = call(&place, dialect, is_stream, body.clone()).fetch().await.unwrap();
                assert_eq!(sent(&place), body);
                assert_eq!(spoken(dialect, is_stream, &answer).text, said);
            }
        }
        for event in place.sprag.settled(STREAMING.len() * 2).await {
            assert_eq!(event.dlp.as_ref().map(|seen| seen.total), is_seen.then_some(4), "{event:?}");
            if is_seen {
                assert_on_record(&event, Direction::Request, Outcome::Logged);
            }
        }
    }
}

/// What the provider sees and the client hears of a text that both say.
async fn passes(place: &Configured, agent: &str, said: &str) -> (String, String) {
    let body = request(Dialect::OpenaiChat, false, said);
    let call = call_of(place, agent, Dialect::OpenaiChat, false, &body).header("x-mock-text", said);
    let answer = call.fetch().await.unwrap();
    if answer.status != 200 {
        return (stopped(&answer).to_owned(), String::new());
    }
    let sent: Value = serde_json::from_str(&sent(place)).unwrap();
    (sent["messages"][0]["content"].as_str().unwrap().to_owned(), spoken(Dialect::OpenaiChat, false, &answer).text)
}

#[tokio::test]
async fn modes_are_set_by_kind_family_direction_and_agent() {
    let config = "
        [agents.kind.dlp.modes]
        OPENAI_KEY = \"off\"
        [agents.family.dlp.modes]
        api_key = \"off\"
        pii = \"strict\"
        [agents.asking.dlp.request_modes]
        OPENAI_KEY = \"off\"
        [agents.hearing.dlp.answer_modes]
        OPENAI_KEY = \"off\"
        [agents.keys.dlp]
        profile = \"secrets_only\"
        [agents.good.dlp]
        reversible = []
        [agents.all.dlp]
        reversible = [\"OPENAI_KEY\"]
    ";
    let place = place(config).await;
    let both = |text: &str| (text.to_owned(), text.to_owned());
    let pair = |sent: &str, heard: &str| (sent.to_owned(), heard.to_owned());
    assert_eq!(passes(&place, "default", KEY).await, both(HIDDEN));
    assert_eq!(passes(&place, "kind", KEY).await, both(KEY));
    assert_eq!(passes(&place, "family", KEY).await, both(KEY));
    assert_eq!(passes(&place, "family", MAIL).await, pair("dlp_blocked", ""));
    assert_eq!(passes(&place, "asking", KEY).await, pair(KEY, HIDDEN));
    assert_eq!(passes(&place, "hearing", KEY).await, pair(HIDDEN, KEY));
    assert_eq!(passes(&place, "keys", MAIL).await, both(MAIL));
    assert_eq!(passes(&place, "keys", KEY).await, both(HIDDEN));
    assert_eq!(passes(&place, "good", MAIL).await, both("[REDACTED:EMAIL]"));
    assert_eq!(passes(&place, "all", KEY).await, pair("[OPENAI_KEY_1]", KEY));
}

#[tokio::test]
async fn a_policy_changed_by_api_holds_from_the_next_request_on() {
    let place = place("admin.token = \"a-token-that-nobody-will-ever-guess-0123\"").await;
    let patch = |dlp: Value| {
        let url = format!("http://{}/api/v1/agents/bot", place.sprag.admin);
        client::post_json(url, &json!({"policy": {"dlp": dlp}}))
            .method(http::Method::PATCH)
            .header("authorization", "Bearer a-token-that-nobody-will-ever-guess-0123")
            .fetch()
    };
    assert_eq!(passes(&place, "bot", KEY).await.0, HIDDEN);
    for (dlp, seen) in [
        (json!({"profile": "strict"}), "dlp_blocked"),
        (json!({"profile": "off"}), KEY),
        (json!({"profile": "default", "modes": {"OPENAI_KEY": "log_only"}}), KEY),
        (json!({"modes": {"OPENAI_KEY": "redact"}}), HIDDEN),
    ] {
        let answer = patch(dlp.clone()).await.unwrap();
        assert_eq!(answer.status, 200, "{}", text(&answer));
        assert_eq!(passes(&place, "bot", KEY).await.0, seen, "{dlp}");
        assert_eq!(passes(&place, "other", KEY).await.0, HIDDEN);
    }
    let bad = patch(json!({"modes": {"OPENAI_KEYS": "off"}})).await.unwrap();
    assert!(bad.status.is_client_error() && text(&bad).contains("OPENAI_KEY"), "{}", text(&bad));
}
