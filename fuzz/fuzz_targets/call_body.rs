//! Any bytes as a request: reading them never panics, and what is forwarded is still JSON without our fields.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sprag_core::wire::{Call, Dialect, outgoing, read_history};

const DIALECTS: [Dialect; 6] = [
    Dialect::OpenaiChat,
    Dialect::OpenaiCompletions,
    Dialect::OpenaiResponses,
    Dialect::OpenaiEmbeddings,
    Dialect::Anthropic,
    Dialect::Gemini,
];

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else { return };
    let dialect = DIALECTS[usize::from(*choice) % DIALECTS.len()];
    let Ok(call) = Call::parse(dialect, "/v1/models/m:generateContent", body) else { return };
    read_history(&call, |_| None);
    for (ask, note) in [(false, None), (call.is_stream, None), (call.is_stream, Some("a \"note\"\n"))] {
        let Some(out) = outgoing(&call, body, ask, note, Vec::new()) else { continue };
        let sent: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&out).expect("an edited body is still an object");
        assert!(!sent.contains_key("sprag_run_id") && !sent.contains_key("agentwall_agent_id"));
    }
});
