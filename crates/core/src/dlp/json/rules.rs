//! Which parts of a body are looked at, and which are never touched.
//!
//! Providers check what they signed, refer to ids, and read protocol words; a change there breaks the call. Whatever a
//! key promises is taken only when the value keeps it: an id has no spaces, base64 is base64 to its end.
//! What belongs to the caller (arguments, schemas, metadata) knows no protocol: there every text is looked at.
//! What the provider itself is to use, such as a link to a picture or the token of a server that it calls, stays and is
//! put on record.

use crate::wire::Dialect;

/// Whose words an object's keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The provider's.
    Protocol,
    /// The caller's.
    Free,
    /// Nobody knows. What is signed stays.
    Unknown,
    /// Nothing in it is touched.
    Never,
}

/// What holds for the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Look,
    Free,
    /// Free in an object; a list is looked at as what is around it.
    FreeObject,
    Never,
    /// A list of what the provider calls: tools, servers.
    Called,
    /// Meant for the provider: what is found stays.
    Given,
    /// The same if it is a link.
    Link,
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
    /// What it calls data is a text.
    pub(in super::super) const TEXT: u8 = 32;
    /// A server that the provider calls.
    pub(in super::super) const SERVER: u8 = 64;
}

/// The shortest value that is taken for encoded bytes by its key: a key or a password is shorter.
const SHORT_BASE64: usize = 256;
/// The shortest value in the caller's own data that is taken for encoded bytes by its key.
const LONG_BASE64: usize = 1024;
const ID_BYTES: usize = 4096;
const WORD_BYTES: usize = 128;

impl State {
    /// Of the body itself.
    pub(super) fn of_body(dialect: Dialect) -> State {
        if dialect == Dialect::Opaque { State::Unknown } else { State::Protocol }
    }

    /// Inside a value that this rule holds for.
    pub(super) fn inside(self, rule: Rule) -> State {
        match rule {
            Rule::Free | Rule::FreeObject => State::Free,
            Rule::Never | Rule::Logprobs => State::Never,
            _ => self,
        }
    }

    /// Whether what the provider signed can stand here.
    pub(super) fn has_seals(self) -> bool {
        matches!(self, State::Protocol | State::Unknown)
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
        State::Unknown => in_unknown(parent, key),
        State::Protocol => in_protocol(dialect, parent, key),
    }
}

/// What holds for the value of `key` in an object of a [`Rule::Called`] list.
pub(super) fn rule_of_called(key: &[u8]) -> Option<Rule> {
    match key {
        b"authorization" | b"authorization_token" | b"headers" => Some(Rule::Given),
        b"server_url" | b"url" => Some(Rule::Link),
        _ => None,
    }
}

/// Links that the provider follows, and what it calls.
fn for_provider(parent: &[u8], key: &[u8]) -> Option<Rule> {
    match key {
        b"tools" | b"mcp_servers" => Some(Rule::Called),
        b"image_url" | b"file_url" | b"fileUri" | b"file_uri" => Some(Rule::Link),
        b"url" if matches!(parent, b"image_url" | b"video_url" | b"source") => Some(Rule::Link),
        _ => None,
    }
}

fn in_unknown(parent: &[u8], key: &[u8]) -> Rule {
    match key {
        b"thought_signature" | b"thoughtSignature" | b"encrypted_content" => Rule::Never,
        b"args" | b"arguments" | b"parameters" | b"input_schema" | b"metadata" => Rule::Free,
        // Arguments of a call, or a conversation.
        b"input" => Rule::FreeObject,
        b"response" if matches!(parent, b"functionResponse" | b"function_response") => Rule::Free,
        b"data" | b"b64_json" | b"file_data" | b"image" | b"embedding" => Rule::LongBase64,
        _ => for_provider(parent, key).unwrap_or(Rule::Look),
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
        _ => for_provider(parent, key).unwrap_or(Rule::Look),
    }
}

/// Whether what is found in a text under this rule stays, and is only put on record.
pub(super) fn is_given(rule: Rule, text: &[u8]) -> bool {
    match rule {
        Rule::Given => true,
        Rule::Link => {
            let scheme = text.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            scheme > 0 && text[scheme..].starts_with(b"://") && text.iter().all(|byte| *byte > b' ')
        }
        _ => false,
    }
}

/// Whether a text under this rule is left as it is.
pub(super) fn is_exempt(rule: Rule, text: &[u8]) -> bool {
    match rule {
        Rule::Look | Rule::Free | Rule::FreeObject | Rule::Called | Rule::Given | Rule::Link => is_data_url(text),
        Rule::Never | Rule::Logprobs => true,
        Rule::Id => text.len() <= ID_BYTES && text.iter().all(|byte| *byte > b' '),
        Rule::Word => {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(byte);
            text.len() <= WORD_BYTES && text.iter().all(is_part)
        }
        Rule::Base64 => is_long_base64(text, SHORT_BASE64) || is_data_url(text),
        Rule::LongBase64 => is_long_base64(text, LONG_BASE64) || is_data_url(text),
    }
}

/// What the `type` of an object says about all of it.
pub(super) fn marks_of_type(name: &[u8]) -> u8 {
    match name {
        b"thinking" | b"reasoning" | b"reasoning.text" => marks::REASONING,
        b"redacted_thinking" | b"reasoning.encrypted" => marks::SEALED,
        b"text" => marks::TEXT,
        b"mcp" | b"url" => marks::SERVER,
        _ => 0,
    }
}

/// Whether an object with these marks is left as it is. One that names two types is not: nobody knows which holds.
pub(super) fn is_sealed(held: u8) -> bool {
    let is_signed_reasoning = held & marks::REASONING != 0 && held & marks::SIGNED != 0;
    held & marks::TWO_TYPES == 0 && (held & marks::SEALED != 0 || is_signed_reasoning)
}

/// Whether the data of an object with these marks may be a text.
pub(super) fn is_text(held: u8) -> bool {
    held & (marks::TEXT | marks::TWO_TYPES) != 0
}

/// Whether an object of a [`Rule::Called`] list with these marks is a server.
pub(super) fn is_server(held: u8) -> bool {
    held & marks::TWO_TYPES == 0 && held & marks::SERVER != 0
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
    header[..comma].strip_suffix(b";base64").is_some_and(is_mime) && is_base64(&rest[comma + 1..])
}

/// `image/svg+xml`, `audio/webm;codecs=opus`. With more digits than a MIME type has it may be anything.
fn is_mime(text: &[u8]) -> bool {
    const DIGITS: usize = 4;
    const KINDS: [&[u8]; 7] = [b"application", b"audio", b"font", b"image", b"model", b"text", b"video"];
    let Some(slash) = memchr::memchr(b'/', text) else { return false };
    let (kind, rest) = (&text[..slash], &text[slash + 1..]);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b".+-;=_".contains(byte);
    KINDS.contains(&kind)
        && rest.first().is_some_and(u8::is_ascii_alphanumeric)
        && rest.iter().all(is_part)
        && rest.iter().filter(|byte| byte.is_ascii_digit()).count() <= DIGITS
}

fn is_long_base64(text: &[u8], least: usize) -> bool {
    text.len() >= least && is_base64(text)
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
        let (shortest, short) = ("x".repeat(SHORT_BASE64), "x".repeat(SHORT_BASE64 - 1));
        let cases: &[(&[u8], &[u8], &str, bool)] = &[
            (b"", b"id", "call_1", true),
            (b"", b"tool_call_id", "call_1", true),
            (b"", b"id", "my key is", false),
            (b"", b"role", "user", true),
            (b"", b"name", "a@b.com", false),
            (b"", b"model", "claude@2026", true),
            (b"source", b"data", &shortest, true),
            (b"source", b"data", &short, false),
            (b"source", b"data", &format!("{shortest} and words"), false),
            (b"file", b"file_data", "sk-1234567890abcdef", false),
            (b"", b"b64_json", "sk-1234567890abcdef", false),
            (b"", b"data", "QUJD", false),
            (b"", b"data", &long, true),
            (b"image_url", b"url", &url, true),
            (b"image_url", b"url", "data:image/png;base64,QUJD but then words", false),
            (b"image_url", b"url", "data:image/svg+xml,<svg>", false),
            (b"image_url", b"url", "data:audio/webm;codecs=opus;base64,QUJD", true),
            (b"image_url", b"url", "data:;base64,sk-1234567890abcdef", false),
            (b"image_url", b"url", "data:key;base64,sk-1234567890abcdef", false),
            (b"image_url", b"url", "data:my/key;base64,sk-1234567890abcdef", false),
            (b"image_url", b"url", "data:image/sk-1234567890abcdef;base64,QUJD", false),
            (b"image_url", b"url", "https://x/y.png", false),
            (b"", b"text", "data:image", false),
            (b"", b"encrypted_content", "anything at all", true),
        ];
        for (parent, key, value, expected) in cases {
            let rule = rule(Dialect::OpenaiChat, State::Protocol, parent, key);
            assert_eq!(is_exempt(rule, value.as_bytes()), *expected, "{key:?} {value:.40}");
        }
        let free = rule(Dialect::OpenaiChat, State::Free, b"", b"id");
        assert!(!is_exempt(free, b"call_1"));
    }
}
