//! The table held against the proxy.

use serde_json::{Map, Value};
use sprag_core::event::Ending;
use sprag_core::limits::RETRY_AFTER_SECONDS;
use sprag_core::wire::{Dialect, Form};
use sprag_testkit::client::Whole;

use crate::place::Place;
use crate::shapes::{self, Told};
use crate::table::{Case, cases};

const FORMS: [(Dialect, bool); 11] = [
    (Dialect::OpenaiChat, false),
    (Dialect::OpenaiChat, true),
    (Dialect::OpenaiCompletions, false),
    (Dialect::OpenaiCompletions, true),
    (Dialect::OpenaiResponses, false),
    (Dialect::OpenaiResponses, true),
    (Dialect::OpenaiEmbeddings, false),
    (Dialect::Anthropic, false),
    (Dialect::Anthropic, true),
    (Dialect::Gemini, false),
    (Dialect::Gemini, true),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_reason_has_its_form_in_every_dialect() {
    for require_keys in [false, true] {
        let mut place = Place::start(require_keys).await;
        for case in cases().iter().filter(|case| case.require_keys == require_keys) {
            for (dialect, is_stream) in FORMS.into_iter().filter(|(dialect, _)| case.happens_in(*dialect)) {
                let run = format!("{}-{}-{is_stream}", case.case, dialect.name());
                let stop = place.provoke(case, dialect, is_stream, &run).await;
                check_head(case, dialect, &stop, &run);
                match case.form(dialect) {
                    Form::Error => check_error(case, &shapes::error(dialect, &stop), &run),
                    Form::Assistant => check_assistant(case, dialect, is_stream, &stop, &run),
                }
                check_record(&place, case, &stop);
            }
        }
    }
}

/// Clients with habits of their own, each in the form in which it asks.
const CLIENTS: [(&str, Dialect, bool); 4] = [
    ("claude-cli/2.1.325 (external, sdk-cli)", Dialect::Anthropic, true),
    ("codex_exec/0.166.0 (Debian)", Dialect::OpenaiResponses, true),
    ("GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64; terminal)", Dialect::Gemini, true),
    ("ai/7.0.169 ai-sdk/provider-utils/5.0.1 runtime/node.js/v24", Dialect::OpenaiChat, false),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_reason_has_the_status_at_which_its_client_gives_up() {
    for require_keys in [false, true] {
        let mut place = Place::start(require_keys).await;
        for case in cases().iter().filter(|case| case.require_keys == require_keys) {
            for (user_agent, dialect, is_stream) in CLIENTS {
                place.user_agent = user_agent;
                let run = format!("{}-{}-adapted", case.case, dialect.name());
                let stop = place.provoke(case, dialect, is_stream, &run).await;
                let expected = match (case.reason.form(), dialect) {
                    (Form::Assistant, _) => 200,
                    (Form::Error, Dialect::Anthropic) if matches!(case.status, 401 | 402) => case.status,
                    (Form::Error, Dialect::Anthropic) => 451,
                    (Form::Error, Dialect::OpenaiChat) if case.status != 429 => case.status,
                    (Form::Error, Dialect::OpenaiChat) => 403,
                    (Form::Error, _) => 400,
                };
                assert_eq!(stop.status, expected, "{run}");
                assert_eq!(stop.header("x-sprag-blocked"), case.reason.as_str(), "{run}");
                assert!(!stop.headers.contains_key("retry-after"), "{run}: it would only wait");
            }
        }
    }
}

fn check_head(case: &Case, dialect: Dialect, stop: &Whole, run: &str) {
    let text = String::from_utf8_lossy(&stop.body);
    let status = match (case.form(dialect), case.reason.form()) {
        (Form::Error, Form::Assistant) => 403,
        _ => case.status,
    };
    assert_eq!(stop.status, status, "{run}: {text}");
    assert_eq!(stop.header("x-sprag-blocked"), case.reason.as_str(), "{run}");
    assert_eq!(stop.header("x-should-retry"), "false", "{run}");
    assert!(!stop.header("x-sprag-request-id").is_empty(), "{run}");
    if case.has_run {
        assert_eq!(stop.header("x-sprag-run-id"), run);
    }
    // With another status some clients would wait, and ask again.
    let waits: u32 = stop.headers.get("retry-after").map_or(0, |value| value.to_str().unwrap().parse().unwrap());
    match case.waits && status == 429 {
        true => assert!((1..=RETRY_AFTER_SECONDS).contains(&waits), "{run}: {waits}"),
        false => assert_eq!(waits, 0, "{run}"),
    }
}

fn check_error(case: &Case, told: &Told, run: &str) {
    let Told { error, code, beside } = told;
    assert_eq!((error["type"].as_str(), code.as_str()), (Some(case.reason.as_str()), case.code.as_str()), "{run}");
    check_fields(case, error.as_object().unwrap(), run);
    let message = error["message"].as_str().unwrap();
    let signature = match case.has_run {
        true => format!(" [sprag: {}, run {run}]", case.reason.as_str()),
        false => format!(" [sprag: {}]", case.reason.as_str()),
    };
    assert!(message.ends_with(&signature), "{message}");
    check_beside(case, beside.as_object().unwrap(), run);
    let names: Vec<&String> = beside.as_object().unwrap().keys().collect();
    assert!(names.iter().all(|name| ["block_reason", "retry_after_seconds"].contains(&name.as_str())), "{names:?}");
}

fn check_assistant(case: &Case, dialect: Dialect, is_stream: bool, stop: &Whole, run: &str) {
    let said = shapes::assistant(dialect, is_stream, stop);
    assert_eq!(said.model, "sprag-policy", "{run}");
    let finish = match dialect {
        Dialect::Anthropic => "end_turn",
        Dialect::Gemini => "STOP",
        Dialect::OpenaiResponses => "completed",
        _ => "stop",
    };
    assert_eq!((said.finish.as_str(), said.tokens), (finish, 0), "{run}");
    assert!(said.text.ends_with(&format!(" [sprag: {}, run {run}]", case.reason.as_str())), "{}", said.text);
    let about = said.about.as_object().unwrap();
    check_fields(case, about, run);
    check_beside(case, about, run);
}

fn check_fields(case: &Case, told: &Map<String, Value>, run: &str) {
    for (name, expected) in &case.fields {
        let value = told.get(name).unwrap_or_else(|| panic!("{run}: no {name} in {told:?}"));
        let is_right = match (expected, expected.as_f64()) {
            (_, Some(number)) => value.as_f64() == Some(number),
            (Value::String(any), _) if any == "*" => !value.is_null(),
            _ => value == expected,
        };
        assert!(is_right, "{run}: {name} is {value}");
    }
    if case.has_run {
        assert_eq!((told["agent"].as_str(), told["run_id"].as_str()), (Some(case.case.as_str()), Some(run)));
        assert!(told["step"].as_u64().unwrap() > 0, "{run}");
    }
}

fn check_beside(case: &Case, told: &Map<String, Value>, run: &str) {
    assert_eq!(told["block_reason"], case.reason.as_str(), "{run}");
    let waits = told.get("retry_after_seconds").and_then(Value::as_u64);
    assert_eq!(waits.is_some_and(|seconds| seconds > 0), case.waits, "{run}: {waits:?}");
}

fn check_record(place: &Place, case: &Case, stop: &Whole) {
    let id = stop.header("x-sprag-request-id");
    let events = place.sprag.events();
    let event = events.iter().find(|event| event.id == id).unwrap_or_else(|| panic!("{id} is not on record"));
    assert!(event.blocked && event.ending == Ending::Refused, "{event:?}");
    assert_eq!(event.block_reason.as_deref(), Some(case.reason.as_str()));
    assert_eq!((event.status, event.cost), (stop.status.as_u16(), None));
}
