//! Which parts of a body are looked at, and which are never touched.
//!
//! Providers check what they signed, refer to ids, and read protocol words; a change there breaks the call. Whatever a
//! key promises is taken only when the value keeps it: an id has no spaces, base64 is base64 to its end.
//! What belongs to the caller (arguments, schemas, metadata) knows no protocol: there every text is looked at.

use crate::wire::Dialect;

/// Whose words an object's keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The provider's.
    Protocol,
    /// The caller's.
    Free,
    /// Nothing in it is touched.
    Never,
}

/// What holds for the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Look,
    Free,
    Never,
    /// Refers to something.
    Id,
    /// A word of the protocol.
    Word,
    /// A picture, a sound, a document.
    Base64,
    /// The same only when it is long.
    LongBase64,
    /// The answer's text once more, token by token.
    Logprobs,
}

/// Marks of an object that decide about all of it once it is read.
pub(super) mod marks {
    pub(in super::super) const TYPE: u8 = 1;
    pub(in super::super) const TWO_TYPES: u8 = 2;
    pub(in super::super) const SIGNED: u8 = 4;
    /// It is reasoning, and untouched when signed.
    pub(in super::super) const REASONING: u8 = 8;
    /// It is untouched as it is.
    pub(in super::super) const SEALED: u8 = 16;
}

/// The shortest value in the caller's own data that is taken for encoded bytes by its key.
const LONG_BASE64: usize = 1024;
const ID_BYTES: usize = 4096;
const WORD_BYTES: usize = 128;

impl State {
    /// Of the body itself.
    pub(super) fn of_body(dialect: Dialect) -> State {
        if dialect == Dialect::Opaque { State::Free } else { State::Protocol }
    }

    /// Inside a value that this rule holds for.
    pub(super) fn inside(self, rule: Rule) -> State {
        match rule {
            Rule::Free => State::Free,
            Rule::Never | Rule::Logprobs => State::Never,
            _ => self,
        }
    }
}

/// What holds for the value of `key` in an object that is itself the value of `parent`.
pub(super) fn rule(dialect: Dialect, state: State, parent: &[u8], key: &[u8]) -> Rule {
    match state {
        State::Never => Rule::Never,
        State::Free => match key {
            b"data" | b"b64_json" | b"file_data" | b"image" | b"embedding" => Rule::LongBase64,
            _ => Rule::Look,
        },
        State::Protocol => in_protocol(dialect, parent, key),
    }
}

fn in_protocol(dialect: Dialect, parent: &[u8], key: &[u8]) -> Rule {
    match key {
        b"text" | b"content" => Rule::Look,
        b"cache_control"
        | b"cacheControl"
        | b"signature"
        | b"thought_signature"
        | b"thoughtSignature"
        | b"encrypted_content"
        | b"encrypted_index"
        | b"embedding"
        | b"usage"
        | b"usageMetadata"
        | b"seed"
        | b"created"
        | b"created_at"
        | b"logit_bias"
        | b"sprag_run_id"
        | b"sprag_parent_run_id"
        | b"sprag_agent"
        | b"agentwall_run_id"
        | b"agentwall_agent_id" => Rule::Never,
        b"metadata"
        | b"client_metadata"
        | b"args"
        | b"arguments"
        | b"parameters"
        | b"input_schema"
        | b"schema"
        | b"parametersJsonSchema"
        | b"responseSchema"
        | b"responseJsonSchema"
        | b"variables" => Rule::Free,
        b"input" if dialect == Dialect::Anthropic => Rule::Free,
        b"response" if dialect == Dialect::Gemini => Rule::Free,
        b"logprobs" | b"logprobsResult" => Rule::Logprobs,
        b"model" | b"id" | b"responseId" | b"prompt_cache_key" | b"system_fingerprint" => Rule::Id,
        b"role" | b"type" | b"name" | b"object" | b"status" | b"finish_reason" | b"stop_reason" | b"finishReason"
        | b"service_tier" | b"media_type" | b"mime_type" | b"mimeType" | b"modelVersion" | b"format" | b"detail"
        | b"effort" | b"phase" => Rule::Word,
        b"b64_json" | b"file_data" => Rule::Base64,
        b"data" if matches!(parent, b"source" | b"inlineData" | b"inline_data" | b"input_audio" | b"audio") => {
            Rule::Base64
        }
        b"data" | b"result" => Rule::LongBase64,
        _ if key.ends_with(b"_id") => Rule::Id,
        _ => Rule::Look,
    }
}

/// Whether a text under this rule is left as it is.
pub(super) fn is_exempt(rule: Rule, text: &[u8]) -> bool {
    match rule {
        Rule::Look | Rule::Free => is_data_url(text),
        Rule::Never | Rule::Logprobs => true,
        Rule::Id => text.len() <= ID_BYTES && text.iter().all(|byte| *byte > b' '),
        Rule::Word => {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(byte);
            text.len() <= WORD_BYTES && text.iter().all(is_part)
        }
        Rule::Base64 => is_base64(text) || is_data_url(text),
        Rule::LongBase64 => (text.len() >= LONG_BASE64 && is_base64(text)) || is_data_url(text),
    }
}

/// What the `type` of an object says about all of it.
pub(super) fn marks_of_type(name: &[u8]) -> u8 {
    match name {
        b"thinking" | b"reasoning" | b"reasoning.text" => marks::REASONING,
        b"redacted_thinking" | b"reasoning.encrypted" => marks::SEALED,
        _ => 0,
    }
}

/// Whether an object with these marks is left as it is. One that names two types is not: nobody knows which holds.
pub(super) fn is_sealed(held: u8) -> bool {
    let is_signed_reasoning = held & marks::REASONING != 0 && held & marks::SIGNED != 0;
    held & marks::TWO_TYPES == 0 && (held & marks::SEALED != 0 || is_signed_reasoning)
}

/// Whether the value of this key signs the object around it.
pub(super) fn is_signature(key: &[u8]) -> bool {
    matches!(key, b"signature" | b"thought_signature" | b"thoughtSignature" | b"encrypted_content")
}

/// `data:image/png;base64,…`, to its end.
fn is_data_url(text: &[u8]) -> bool {
    const HEADER_BYTES: usize = 256;
    let Some(rest) = text.strip_prefix(b"data:") else { return false };
    let header = &rest[..rest.len().min(HEADER_BYTES)];
    let Some(comma) = memchr::memchr(b',', header) else { return false };
    header[..comma].ends_with(b";base64") && is_base64(&rest[comma + 1..])
}

fn is_base64(text: &[u8]) -> bool {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() | matches!(byte, b'+' | b'/' | b'-' | b'_');
    // Whole blocks without an early end: the compiler makes vectors of that.
    padding <= 2
        && text[..text.len() - padding].chunks(64).all(|block| block.iter().fold(true, |all, byte| all & is_part(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_only_for_what_it_promises() {
        let long = "QUJD".repeat(300);
        let url = format!("data:image/png;base64,{long}");
        let cases: [(&[u8], &[u8], &str, bool); 16] = [
            (b"", b"id", "call_1", true),
            (b"", b"tool_call_id", "call_1", true),
            (b"", b"id", "my key is", false),
            (b"", b"role", "user", true),
            (b"", b"name", "a@b.com", false),
            (b"", b"model", "claude@2026", true),
            (b"source", b"data", "QUJD", true),
            (b"source", b"data", "QUJD and words", false),
            (b"", b"data", "QUJD", false),
            (b"", b"data", &long, true),
            (b"image_url", b"url", &url, true),
            (b"image_url", b"url", "data:image/png;base64,QUJD but then words", false),
            (b"image_url", b"url", "data:image/svg+xml,<svg>", false),
            (b"image_url", b"url", "https://x/y.png", false),
            (b"", b"text", "data:image", false),
            (b"", b"encrypted_content", "anything at all", true),
        ];
        for (parent, key, value, expected) in cases {
            let rule = rule(Dialect::OpenaiChat, State::Protocol, parent, key);
            assert_eq!(is_exempt(rule, value.as_bytes()), expected, "{key:?} {value:.40}");
        }
        let free = rule(Dialect::OpenaiChat, State::Free, b"", b"id");
        assert!(!is_exempt(free, b"call_1"));
    }
}
