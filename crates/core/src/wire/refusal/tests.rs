use serde_json::json;

use super::*;
use crate::wire::{Client, Dialect, Tap, sse};

fn stop() -> Refusal {
    let refusal = Refusal::new(Reason::LoopDetected, "The same call 5 times.\nChange it.");
    let refusal = refusal.with("run_id", "r1").with("proof", json!({"steps": [1, 2]}));
    Refusal { retry_after_seconds: Some(60), ..refusal }
}

fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn a_stop_has_the_shape_of_each_family() {
    assert_eq!(
        read(&body(Family::Openai, &stop())),
        json!({
            "error": {
                "message": "The same call 5 times.\nChange it.", "type": "loop_detected", "param": null,
                "code": "sprag_loop", "run_id": "r1", "proof": {"steps": [1, 2]},
            },
            "block_reason": "loop_detected", "retry_after_seconds": 60,
        })
    );
    assert_eq!(
        read(&body(Family::Anthropic, &stop())),
        json!({
            "type": "error",
            "error": {
                "message": "The same call 5 times.\nChange it.", "type": "loop_detected",
                "code": "sprag_loop", "run_id": "r1", "proof": {"steps": [1, 2]},
            },
            "block_reason": "loop_detected", "retry_after_seconds": 60,
        })
    );
    assert_eq!(
        read(&body(Family::Gemini, &stop())),
        json!({
            "error": {
                "code": 429, "message": "The same call 5 times.\nChange it.", "status": "RESOURCE_EXHAUSTED",
                "type": "loop_detected", "run_id": "r1", "proof": {"steps": [1, 2]},
                "details": [{
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "LOOP_DETECTED",
                    "domain": "sprag", "metadata": {"code": "sprag_loop"},
                }],
            },
            "block_reason": "loop_detected", "retry_after_seconds": 60,
        })
    );
}

#[test]
fn only_a_policy_stop_has_a_block_reason() {
    for reason in Reason::ALL {
        for family in [Family::Openai, Family::Anthropic, Family::Gemini] {
            let body = read(&body(family, &Refusal::new(reason, "m")));
            let expected = reason.is_policy().then(|| json!(reason.as_str()));
            assert_eq!(body.get("block_reason"), expected.as_ref(), "{reason:?}");
            assert_eq!(body.get("retry_after_seconds"), None);
        }
    }
    assert!(!Reason::InvalidRequest.is_policy() && !Reason::UpstreamCut.is_policy());
}

#[test]
fn reasons_have_one_word_and_one_code_each() {
    let mut codes: Vec<&str> = Reason::ALL.iter().map(|reason| reason.code()).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), Reason::ALL.len());
    for reason in Reason::ALL {
        assert!(reason.code().starts_with("sprag_"));
        assert_eq!(json!(reason), json!(reason.as_str()), "the configuration uses the same word");
    }
}

#[test]
fn statuses_are_those_of_the_contract() {
    let expected = [429, 403, 403, 429, 402, 200, 200, 429, 403, 403, 401, 400, 413, 404, 503, 503, 502, 504, 502];
    assert_eq!(Reason::ALL.map(Reason::status), expected);
}

#[test]
fn fields_cannot_replace_those_of_the_dialect() {
    let refusal = Refusal::new(Reason::RunKilled, "killed").with("message", "x").with("type", "x").with("status", "x");
    for family in [Family::Openai, Family::Anthropic, Family::Gemini] {
        let error = read(&body(family, &refusal))["error"].clone();
        assert_eq!(error["message"], "killed");
        assert_eq!(error["type"], "run_killed");
    }
    let event = stream_error(Dialect::OpenaiResponses, Client::Other, &refusal, None);
    assert_eq!(read(&sse::parse(&event).data)["type"], "error");
}

#[test]
fn the_error_of_a_stream_is_one_event_that_the_tap_understands() {
    use Dialect::*;
    for dialect in [OpenaiChat, OpenaiCompletions, OpenaiResponses, Anthropic, Gemini] {
        let bytes = stream_error(dialect, Client::Other, &stop(), Some(41));
        let block = sse::Splitter::new().push(bytes.clone().into());
        assert_eq!(block.ends, [bytes.len()], "{dialect:?}");
        let mut tap = Tap::new(dialect);
        tap.event(&bytes);
        assert_eq!(tap.reply().error.as_deref(), Some("The same call 5 times.\nChange it."), "{dialect:?}");
        assert!(!tap.reply().complete);
    }
    assert!(stream_error(Opaque, Client::Other, &stop(), None).is_empty());
}

#[test]
fn the_error_of_a_responses_stream_counts_on() {
    let event = stream_error(Dialect::OpenaiResponses, Client::Other, &stop(), Some(41));
    assert!(event.starts_with(b"event: error\ndata: {"));
    let data = read(&sse::parse(&event).data);
    assert_eq!(data["sequence_number"], 42);
    let error = &data["error"];
    assert_eq!(
        (&data["code"], &data["param"], &data["block_reason"]),
        (&json!("sprag_loop"), &Value::Null, &json!("loop_detected"))
    );
    assert_eq!(
        (&error["code"], &error["type"], &error["run_id"]),
        (&json!("sprag_loop"), &json!("loop_detected"), &json!("r1"))
    );
    assert_eq!(data["message"], error["message"]);
    let first = stream_error(Dialect::OpenaiResponses, Client::Other, &stop(), None);
    assert_eq!(read(&sse::parse(&first).data)["sequence_number"], 0);
}

#[test]
fn codex_is_told_that_its_answer_failed_for_good() {
    let event = stream_error(Dialect::OpenaiResponses, Client::Codex, &stop(), Some(41));
    assert!(event.starts_with(b"event: response.failed\ndata: {"));
    let data = read(&sse::parse(&event).data);
    assert_eq!((&data["type"], &data["sequence_number"]), (&json!("response.failed"), &json!(42)));
    let error = &data["response"]["error"];
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!("invalid_prompt"), &json!("The same call 5 times.\nChange it."))
    );
    assert_eq!((&data["block_reason"], &data["response"]["status"]), (&json!("loop_detected"), &json!("failed")));
    let mut tap = Tap::new(Dialect::OpenaiResponses);
    tap.event(&event);
    assert_eq!(tap.reply().error.as_deref(), Some("The same call 5 times.\nChange it."));

    // It may try again where only the network is at fault.
    let cut = Refusal::new(Reason::UpstreamCut, "cut");
    let event = stream_error(Dialect::OpenaiResponses, Client::Codex, &cut, None);
    assert!(event.starts_with(b"event: error\n"));
    assert!(stream_error(Dialect::OpenaiChat, Client::Codex, &stop(), None).starts_with(b"data: {"));
}

#[test]
fn a_body_begins_with_its_error() {
    for family in [Family::Openai, Family::Anthropic, Family::Gemini] {
        let bytes = body(family, &stop());
        assert!(bytes.starts_with(b"{\"error\":{"), "{family:?}");
        assert_eq!(read(&bytes)["block_reason"], "loop_detected", "{family:?}");
    }
}
