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
    /// The dialect of a request to a provider of `family`, by method and path.
    #[must_use]
    pub fn of_request(family: Family, method: &str, path: &str) -> Dialect {
        if method != "POST" {
            return Dialect::Opaque;
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        match family {
            Family::Openai if path.ends_with("/chat/completions") => Dialect::OpenaiChat,
            Family::Openai if path.ends_with("/completions") => Dialect::OpenaiCompletions,
            Family::Openai if path.ends_with("/responses") => Dialect::OpenaiResponses,
            Family::Openai if path.ends_with("/embeddings") => Dialect::OpenaiEmbeddings,
            Family::Anthropic if path.ends_with("/messages") => Dialect::Anthropic,
            Family::Gemini if path.ends_with(":generateContent") => Dialect::Gemini,
            Family::Gemini if path.ends_with(":streamGenerateContent") => Dialect::Gemini,
            _ => Dialect::Opaque,
        }
    }

    /// Whether the request is a call to a model, with tokens and a price.
    #[must_use]
    pub fn is_llm(self) -> bool {
        self != Dialect::Opaque
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
    fn path_and_family_decide_together() {
        use Dialect::*;
        let cases = [
            (Family::Openai, "POST", "/v1/chat/completions", OpenaiChat),
            (Family::Openai, "POST", "/openai/deployments/d/chat/completions", OpenaiChat),
            (Family::Openai, "POST", "/v1/completions", OpenaiCompletions),
            (Family::Openai, "POST", "/v1/responses", OpenaiResponses),
            (Family::Openai, "POST", "/v1/responses/", OpenaiResponses),
            (Family::Openai, "GET", "/v1/responses/resp_1", Opaque),
            (Family::Openai, "POST", "/v1/embeddings", OpenaiEmbeddings),
            (Family::Openai, "POST", "/v1/audio/speech", Opaque),
            (Family::Anthropic, "POST", "/v1/messages", Anthropic),
            (Family::Anthropic, "POST", "/v1/messages/count_tokens", Opaque),
            (Family::Anthropic, "POST", "/v1/messages/batches", Opaque),
            (Family::Gemini, "POST", "/v1beta/models/gemini-2.5-pro:generateContent", Gemini),
            (Family::Gemini, "POST", "/v1/models/g:streamGenerateContent", Gemini),
            (Family::Gemini, "POST", "/v1beta/models/g:countTokens", Opaque),
        ];
        for (family, method, path, expected) in cases {
            assert_eq!(Dialect::of_request(family, method, path), expected, "{method} {path}");
        }
    }
}
