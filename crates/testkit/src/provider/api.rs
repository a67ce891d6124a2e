//! Which API a request is for, by path and headers.

use http::{HeaderMap, Method};
use sprag_core::wire::{Dialect, Family};

/// What is being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Chat,
    Completions,
    Responses,
    Embeddings,
    Messages,
    CountTokens,
    Generate,
    StreamGenerate,
    GeminiCountTokens,
    /// The list of models, or one of them.
    Models,
    /// Nothing that a dialect knows.
    Other,
}

/// The API and the family whose shapes its answers and errors take.
pub(super) fn recognise(method: &Method, path: &str, headers: &HeaderMap) -> (Api, Family) {
    let path = path.strip_suffix('/').unwrap_or(path);
    if *method == Method::POST {
        if path.ends_with("/messages/count_tokens") {
            return (Api::CountTokens, Family::Anthropic);
        }
        if path.ends_with(":countTokens") {
            return (Api::GeminiCountTokens, Family::Gemini);
        }
        let dialect = Dialect::of_request("POST", path);
        let api = match dialect {
            Dialect::OpenaiChat => Some(Api::Chat),
            Dialect::OpenaiCompletions => Some(Api::Completions),
            Dialect::OpenaiResponses => Some(Api::Responses),
            Dialect::OpenaiEmbeddings => Some(Api::Embeddings),
            Dialect::Anthropic => Some(Api::Messages),
            Dialect::Gemini if path.ends_with(":streamGenerateContent") => Some(Api::StreamGenerate),
            Dialect::Gemini => Some(Api::Generate),
            Dialect::Opaque => None,
        };
        if let Some(found) = api.zip(dialect.family()) {
            return found;
        }
    }
    let family = family_of(path, headers);
    let is_models = path.ends_with("/models") || path.contains("/models/");
    let reads = *method == Method::GET || *method == Method::HEAD;
    (if reads && is_models { Api::Models } else { Api::Other }, family)
}

fn family_of(path: &str, headers: &HeaderMap) -> Family {
    if path.contains("/v1beta") || headers.contains_key("x-goog-api-key") {
        Family::Gemini
    } else if headers.contains_key("anthropic-version") || path.contains("/messages") {
        Family::Anthropic
    } else {
        Family::Openai
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_exist_in_three_dialects() {
        let mut headers = HeaderMap::new();
        assert_eq!(recognise(&Method::GET, "/v1/models", &headers), (Api::Models, Family::Openai));
        assert_eq!(recognise(&Method::GET, "/v1beta/models", &headers), (Api::Models, Family::Gemini));
        headers.insert("anthropic-version", http::HeaderValue::from_static("2023-06-01"));
        assert_eq!(recognise(&Method::GET, "/v1/models", &headers), (Api::Models, Family::Anthropic));
        headers.insert("x-goog-api-key", http::HeaderValue::from_static("k"));
        assert_eq!(recognise(&Method::GET, "/v1/models", &headers), (Api::Models, Family::Gemini));
        assert_eq!(
            recognise(&Method::POST, "/v1/models/g:streamGenerateContent", &headers),
            (Api::StreamGenerate, Family::Gemini)
        );
    }
}
