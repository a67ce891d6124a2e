//! What belongs to the protocol, and what only carries its names.

use serde_json::json;

use crate::dlp::stream::testing::*;
use crate::wire::Dialect::{Anthropic, OpenaiChat};

#[test]
fn a_name_of_the_protocol_exempts_only_what_looks_like_it() {
    let words = format!("my key is {KEY}");
    for value in [
        json!({"role": words}),
        json!({"id": words}),
        json!({"name": {"inside": KEY}}),
        json!({"type": [KEY]}),
        json!({"model": {"more": [{"text": KEY}]}}),
        json!({"status": {"id": {"message": words}}}),
        json!({"obfuscation": words}),
        json!({"item": {"type": "thinking", "thinking": KEY}}),
        json!({"item": {"type": "thinking", "thinking": KEY, "signature": ""}}),
    ] {
        let sse = format!("data: {value}\n\n");
        assert_eq!(filtered(inspector(), OpenaiChat, &sse), sse.replace(KEY, HIDDEN));
    }
}

#[test]
fn what_is_signed_or_sealed_is_exempt_in_any_form() {
    let words = format!("my key is {KEY}");
    for value in [
        json!({"signature": words}),
        json!({"thoughtSignature": [KEY]}),
        json!({"encrypted_content": {"a": KEY}}),
        json!({"cache_control": {"type": "ephemeral", "more": words}}),
        json!({"id": KEY, "call_id": KEY, "model": KEY, "role": KEY, "obfuscation": KEY}),
        json!({"createTime": "2026-01-02T03:04:05.678901Z"}),
        json!({"item": {"type": "thinking", "thinking": KEY, "signature": "s"}}),
        json!({"item": {"type": "redacted_thinking", "data": KEY}}),
    ] {
        let sse = format!("data: {value}\n\n");
        for dialect in [OpenaiChat, Anthropic] {
            assert_eq!(filtered(inspector(), dialect, &sse), sse);
        }
    }
}
