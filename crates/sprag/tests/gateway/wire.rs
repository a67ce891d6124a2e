//! Requests and answers in every dialect.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use serde_json::{Value, json};
use sprag_core::wire::Dialect;

/// The dialects that stream.
pub(crate) const STREAMING: [Dialect; 5] =
    [Dialect::OpenaiChat, Dialect::OpenaiCompletions, Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini];

/// An answer on file.
pub(crate) struct Fixture {
    pub(crate) name: String,
    pub(crate) dialect: Dialect,
    pub(crate) is_stream: bool,
    pub(crate) bytes: Bytes,
}

/// Every answer on file, in order of its path.
pub(crate) fn fixtures() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire");
    let mut found = Vec::new();
    for folder in fs::read_dir(root).unwrap() {
        let folder = folder.unwrap();
        let dialect: Dialect = serde_json::from_value(json!(folder.file_name().to_str().unwrap())).unwrap();
        for file in fs::read_dir(folder.path()).unwrap() {
            let path = file.unwrap().path();
            let is_stream = path.extension().is_some_and(|e| e == "sse");
            if is_stream || path.extension().is_some_and(|e| e == "json") {
                let name = format!("{}/{}", dialect.name(), path.file_name().unwrap().to_str().unwrap());
                found.push(Fixture { name, dialect, is_stream, bytes: fs::read(&path).unwrap().into() });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() > 50, "the fixtures are there");
    found
}

/// Where a request of this kind goes.
pub(crate) fn path(dialect: Dialect, is_stream: bool) -> &'static str {
    match dialect {
        Dialect::OpenaiChat => "/v1/chat/completions",
        Dialect::OpenaiCompletions => "/v1/completions",
        Dialect::OpenaiResponses => "/v1/responses",
        Dialect::OpenaiEmbeddings => "/v1/embeddings",
        Dialect::Anthropic => "/v1/messages",
        Dialect::Gemini if is_stream => "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        Dialect::Gemini => "/v1beta/models/gemini-2.5-flash:generateContent",
        Dialect::Opaque => "/v1/files",
    }
}

/// A request that says `text`. Usage is asked for, so that nothing needs to be changed in it.
pub(crate) fn request(dialect: Dialect, is_stream: bool, text: &str) -> Value {
    let message = json!([{"role": "user", "content": text}]);
    let mut body = match dialect {
        Dialect::OpenaiChat => json!({"model": "gpt-4o", "messages": message}),
        Dialect::OpenaiCompletions => json!({"model": "gpt-3.5-turbo-instruct", "prompt": text}),
        Dialect::OpenaiResponses => json!({"model": "gpt-4o", "input": text}),
        Dialect::OpenaiEmbeddings => json!({"model": "text-embedding-3-small", "input": text}),
        Dialect::Anthropic => json!({"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": message}),
        Dialect::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
        Dialect::Opaque => json!({}),
    };
    if is_stream && dialect != Dialect::Gemini {
        body["stream"] = json!(true);
        if matches!(dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions) {
            body["stream_options"] = json!({"include_usage": true});
        }
    }
    body
}

/// Takes the one `"sprag":{…}` field out of an answer, with its comma. None when there is none, or more than one.
pub(crate) fn without_metadata(answer: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(answer).ok()?;
    let start = text.find("\"sprag\":{\"run_id\":")?;
    let end = start + text[start..].find('}')? + 1;
    let start = if text[..start].ends_with(',') { start - 1 } else { start };
    let rest = [&text[..start], &text[end..]].concat();
    (!rest.contains("\"sprag\":{")).then(|| rest.into_bytes())
}

/// A stream without its chunks that carry usage and no choices.
pub(crate) fn without_usage_chunks(stream: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(stream).unwrap();
    let is_usage = |event: &&str| {
        let data = event.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or("").trim();
        let value: Value = serde_json::from_str(data).unwrap_or_default();
        value["usage"].is_object() && value["choices"].as_array().is_some_and(Vec::is_empty)
    };
    assert!(!text.contains('\r'), "the fixtures use line feeds here");
    text.split_inclusive("\n\n").filter(|event| !is_usage(event)).collect::<String>().into_bytes()
}
