//! The wire formats, and how a request is recognised as one of them.

use serde::{Deserialize, Serialize};

/// A provider's wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `POST /v1/chat/completions`
    OpenaiChat,
    /// `POST /v1/completions`
    OpenaiCompletions,
    /// `POST /v1/responses`
    OpenaiResponses,
    /// `POST /v1/embeddings`
    OpenaiEmbeddings,
    /// `POST /v1/messages`
    Anthropic,
    /// `POST /v1beta/models/NAME:generateContent` and `:streamGenerateContent`
    Gemini,
    /// Anything else: forwarded unchanged, counted and recorded, not read.
    Opaque,
}

/// The family of an API: decides the shape of errors where the request itself is not an LLM call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// OpenAI and everything shaped like it.
    Openai,
    /// Anthropic.
    Anthropic,
    /// Google Gemini.
    Gemini,
}

impl Dialect {
    /// The dialect of a request, by method and path.
    ///
    /// The provider does not matter: many offer the formats of others under the paths of those.
    #[must_use]
    pub fn of_request(method: &str, path: &str) -> Dialect {
        if method != "POST" {
            return Dialect::Opaque;
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.ends_with("/chat/completions") {
            Dialect::OpenaiChat
        } else if path.ends_with("/completions") {
            Dialect::OpenaiCompletions
        } else if path.ends_with("/responses") {
            Dialect::OpenaiResponses
        } else if path.ends_with("/embeddings") {
            Dialect::OpenaiEmbeddings
        } else if path.ends_with("/v1/messages") {
            Dialect::Anthropic
        } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
            Dialect::Gemini
        } else {
            Dialect::Opaque
        }
    }

    /// The family whose error shape an SDK of this dialect understands; None where the dialect does not tell.
    #[must_use]
    pub fn family(self) -> Option<Family> {
        match self {
            Dialect::Anthropic => Some(Family::Anthropic),
            Dialect::Gemini => Some(Family::Gemini),
            Dialect::Opaque => None,
            _ => Some(Family::Openai),
        }
    }

    /// Whether the request is a call to a model, with tokens and a price.
    #[must_use]
    pub fn is_llm(self) -> bool {
        self != Dialect::Opaque
    }

    /// Whether answers are the words of an assistant.
    #[must_use]
    pub fn has_assistant(self) -> bool {
        !matches!(self, Dialect::OpenaiEmbeddings | Dialect::Opaque)
    }

    /// The name that events and logs carry.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dialect::OpenaiChat => "openai_chat",
            Dialect::OpenaiCompletions => "openai_completions",
            Dialect::OpenaiResponses => "openai_responses",
            Dialect::OpenaiEmbeddings => "openai_embeddings",
            Dialect::Anthropic => "anthropic",
            Dialect::Gemini => "gemini",
            Dialect::Opaque => "opaque",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_and_path_decide() {
        use Dialect::*;
        let cases = [
            ("POST", "/v1/chat/completions", OpenaiChat),
            ("POST", "/openai/deployments/d/chat/completions", OpenaiChat),
            ("POST", "/v1/completions", OpenaiCompletions),
            ("POST", "/v1/responses", OpenaiResponses),
            ("POST", "/v1/responses/", OpenaiResponses),
            ("GET", "/v1/responses/resp_1", Opaque),
            ("POST", "/v1/responses/resp_1/cancel", Opaque),
            ("POST", "/v1/embeddings", OpenaiEmbeddings),
            ("POST", "/v1/audio/speech", Opaque),
            ("POST", "/v1/messages", Anthropic),
            ("POST", "/v1/threads/t/messages", Opaque),
            ("POST", "/v1/messages/count_tokens", Opaque),
            ("POST", "/v1/messages/batches", Opaque),
            ("POST", "/v1beta/models/gemini-2.5-pro:generateContent", Gemini),
            ("POST", "/v1/models/g:streamGenerateContent", Gemini),
            ("POST", "/v1beta/models/g:countTokens", Opaque),
        ];
        for (method, path, expected) in cases {
            assert_eq!(Dialect::of_request(method, path), expected, "{method} {path}");
        }
    }
}
