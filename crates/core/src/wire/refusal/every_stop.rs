//! Every stop as bytes: for each dialect, and at the status that each client is given.
//!
//! The other stops are provoked through the proxy too. `dlp_blocked` is not: nothing looks for sensitive data yet, so that
//! here is the only place where its answer can be seen.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Form, Reason, Refusal, body};
use crate::time::Timestamp;
use crate::wire::assistant::{MODEL, Saying, Wanted, speak};
use crate::wire::{Client, Dialect, Family, Manner, Manners};

const CLIENTS: [Client; 5] = [Client::ClaudeCode, Client::Codex, Client::GeminiCli, Client::VercelAi, Client::Other];
const DIALECTS: [Dialect; 6] = [
    Dialect::OpenaiChat,
    Dialect::OpenaiCompletions,
    Dialect::OpenaiResponses,
    Dialect::OpenaiEmbeddings,
    Dialect::Anthropic,
    Dialect::Gemini,
];

fn dressed(reason: Reason, form: Form, client: Client, dialect: Dialect) -> Refusal {
    let reasons = BTreeMap::from([(reason, Manner { form: Some(form), ..Manner::default() })]);
    let refusal = Refusal::new(reason, "A card number.").with("run_id", "r1").with("agent", "bot").with("step", 3);
    Manners { adapts: true, imitates_agentwall: false, reasons: &reasons }.dress(refusal, client, dialect)
}

fn stops() -> impl Iterator<Item = Reason> {
    Reason::ALL.into_iter().filter(|reason| reason.is_policy())
}

#[test]
fn as_an_error_it_has_the_shape_of_the_dialect_at_every_status() {
    for reason in stops() {
        for (client, dialect) in CLIENTS.into_iter().flat_map(|client| DIALECTS.map(|dialect| (client, dialect))) {
            let refusal = dressed(reason, Form::Error, client, dialect);
            let family = dialect.family().unwrap();
            let told: Value = serde_json::from_slice(&body(family, &refusal)).unwrap();
            let error = &told["error"];
            let message = format!("A card number. [sprag: {}, run r1]", reason.as_str());
            assert_eq!((&error["type"], &error["message"]), (&json!(reason.as_str()), &json!(message)));
            assert_eq!((&error["run_id"], &error["agent"], &error["step"]), (&json!("r1"), &json!("bot"), &json!(3)));
            assert_eq!(told["block_reason"], reason.as_str());
            match family {
                Family::Openai => {
                    assert_eq!((&error["code"], error.get("param")), (&json!(reason.code()), Some(&Value::Null)));
                }
                Family::Anthropic => {
                    assert_eq!((&error["code"], &told["type"]), (&json!(reason.code()), &json!("error")));
                }
                Family::Gemini => {
                    assert_eq!(error["code"], refusal.status, "{client:?}");
                    let status = match refusal.status {
                        400 => "INVALID_ARGUMENT",
                        401 => "UNAUTHENTICATED",
                        402 | 429 => "RESOURCE_EXHAUSTED",
                        _ => "PERMISSION_DENIED",
                    };
                    assert_eq!(error["status"], status, "{client:?}");
                    assert_eq!(error["details"][0]["reason"], reason.as_str().to_ascii_uppercase());
                    assert_eq!(error["details"][0]["metadata"]["code"], reason.code());
                }
            }
        }
    }
}

#[test]
fn sensitive_data_is_a_403_for_all_but_the_clients_that_repeat_it() {
    let status = |client| dressed(Reason::DlpBlocked, Form::Error, client, Dialect::OpenaiChat).status;
    assert_eq!(CLIENTS.map(status), [451, 400, 400, 403, 403]);
}

#[test]
fn as_the_assistant_it_speaks_wherever_somebody_does() {
    for reason in stops() {
        for (dialect, is_stream) in DIALECTS.into_iter().flat_map(|dialect| [(dialect, false), (dialect, true)]) {
            let refusal = dressed(reason, Form::Assistant, Client::Other, dialect);
            let wanted = Wanted { dialect, is_stream, with_usage: true, is_list: false };
            let fields = Map::from_iter([("sprag".to_owned(), json!({"block_reason": reason.as_str()}))]);
            let saying = Saying { id: "1", at: Timestamp(0), text: &refusal.message, fields: &fields };
            let Some(spoken) = speak(wanted, &saying).filter(|_| refusal.form == Form::Assistant) else {
                assert_eq!((dialect, refusal.form), (Dialect::OpenaiEmbeddings, Form::Error));
                assert_eq!(refusal.status, reason.error_status());
                continue;
            };
            assert_eq!(refusal.status, 200);
            assert_eq!(spoken.content_type.starts_with("text/event-stream"), is_stream);
            let text = String::from_utf8(spoken.body).unwrap();
            for part in [MODEL, &refusal.message, "\"block_reason\""] {
                assert!(text.contains(part), "{dialect:?}: {part} in {text}");
            }
        }
    }
}
