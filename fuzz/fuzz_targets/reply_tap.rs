//! Any bytes as an answer in any dialect: nothing panics, and the reply stays within its bounds.
//!
//! `cargo fuzz run --dev --sanitizer none reply_tap -- -max_total_time=20`
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use sprag_core::limits;
use sprag_core::wire::{Dialect, Reply, Tap, sse};

const DIALECTS: [Dialect; 6] = [
    Dialect::OpenaiChat,
    Dialect::OpenaiCompletions,
    Dialect::OpenaiResponses,
    Dialect::OpenaiEmbeddings,
    Dialect::Anthropic,
    Dialect::Gemini,
];

// The first byte picks the dialect, so that answers on file can serve as seeds.
fuzz_target!(|input: &[u8]| {
    let Some((first, answer)) = input.split_first() else { return };
    let dialect = DIALECTS[usize::from(*first) % DIALECTS.len()];

    let mut tap = Tap::new(dialect);
    tap.json(answer);
    check(&tap.into_reply());

    let (mut splitter, mut tap) = (sse::Splitter::new(), Tap::new(dialect));
    let block = splitter.push(Bytes::copy_from_slice(answer));
    let mut start = 0;
    for end in block.ends {
        tap.event(&block.bytes[start..end]);
        start = end;
    }
    tap.event(&splitter.rest());
    check(&tap.into_reply());
});

fn check(reply: &Reply) {
    assert!(reply.text.len() <= limits::REPLY_TEXT_BYTES);
    assert!(reply.tool_calls.len() <= limits::REPLY_TOOL_CALLS);
    assert!(!(reply.complete && reply.error.is_some()));
    if let Some(usage) = reply.usage {
        assert!(usage.audio_input <= usage.input);
        assert!(usage.reasoning <= usage.output && usage.audio_output <= usage.output);
    }
}
