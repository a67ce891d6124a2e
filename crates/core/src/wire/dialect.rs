//! The wire formats, and how a request is recognised as one of them.

use serde::{Deserialize, Serialize};

/// A provider's wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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

/// How Gemini is asked for a stream.
pub(super) const STREAM_VERB: &str = ":streamGenerateContent";
/// How paths end under which nothing is made.
const FREE: [&str; 6] =
    ["/count_tokens", ":countTokens", ":computeTokens", "/responses/input_tokens", "/moderations", "/cancel"];

impl Dialect {
    /// The dialect of a request, by method and by its path as servers read it: decoded, with single slashes.
    ///
    /// The provider does not matter: many offer the formats of others under the paths of those. Neither does the case
    /// of letters: some servers look away from it.
    #[must_use]
    pub fn of_request(method: &str, path: &str) -> Dialect {
        if method != "POST" {
            return Dialect::Opaque;
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        let known = [
            ("/chat/completions", Dialect::OpenaiChat),
            ("/completions", Dialect::OpenaiCompletions),
            ("/responses", Dialect::OpenaiResponses),
            ("/embeddings", Dialect::OpenaiEmbeddings),
            ("/v1/messages", Dialect::Anthropic),
            (":generateContent", Dialect::Gemini),
            (STREAM_VERB, Dialect::Gemini),
        ];
        known.into_iter().find(|(end, _)| has_end(path, end)).map_or(Dialect::Opaque, |(_, dialect)| dialect)
    }

    /// The shape of what comes back: that of the request, or of an answer that was made before and is fetched now.
    #[must_use]
    pub fn of_answer(method: &str, path: &str) -> Dialect {
        let path = path.strip_suffix('/').unwrap_or(path);
        let fetched = match method {
            "GET" => path.rsplit_once('/'),
            "POST" => path.strip_suffix("/cancel").and_then(|path| path.rsplit_once('/')),
            _ => None,
        };
        let known = [("/responses", Dialect::OpenaiResponses), ("/chat/completions", Dialect::OpenaiChat)];
        let found = fetched.and_then(|(of, _)| known.into_iter().find(|(end, _)| has_end(of, end)));
        found.map_or_else(|| Dialect::of_request(method, path), |(_, dialect)| dialect)
    }

    /// Whether a request that is not understood may cost money all the same: pictures, speech, batches, whatever is
    /// posted to a provider. What only counts tokens or calls something off does not.
    #[must_use]
    pub fn may_cost(method: &str, path: &str) -> bool {
        let path = path.strip_suffix('/').unwrap_or(path);
        method == "POST"
            && Dialect::of_request(method, path) == Dialect::Opaque
            && !FREE.iter().any(|end| has_end(path, end))
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

    /// Whether requests can refer to an earlier answer by its id.
    #[must_use]
    pub fn refers_to_answers(self) -> bool {
        matches!(self, Dialect::OpenaiResponses | Dialect::Anthropic)
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

/// Whether a path ends so, whatever the case of its letters.
pub(super) fn has_end(path: &str, end: &str) -> bool {
    let (path, end) = (path.as_bytes(), end.as_bytes());
    path.len() >= end.len() && path[path.len() - end.len()..].eq_ignore_ascii_case(end)
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
            ("POST", "/openai/deployments/d/Chat/Completions", OpenaiChat),
            ("POST", "/v1beta/models/g:GENERATEContent", Gemini),
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

    #[test]
    fn what_is_fetched_has_the_shape_of_what_was_made() {
        use Dialect::*;
        for (method, path, expected) in [
            ("GET", "/v1/responses/resp_1", OpenaiResponses),
            ("GET", "/openai/v1/Responses/resp_1/", OpenaiResponses),
            ("POST", "/v1/responses/resp_1/cancel", OpenaiResponses),
            ("GET", "/v1/chat/completions/chatcmpl_1", OpenaiChat),
            ("POST", "/v1/messages", Anthropic),
            ("GET", "/v1/responses/resp_1/input_items", Opaque),
            ("GET", "/v1/chat/completions", Opaque),
            ("DELETE", "/v1/responses/resp_1", Opaque),
            ("GET", "/v1/models/responses", Opaque),
        ] {
            assert_eq!(Dialect::of_answer(method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn what_is_not_understood_may_cost_unless_it_is_known_not_to() {
        for path in ["/v1/images/generations", "/v1/audio/speech", "/v1/messages/batches", "/v1/batches", "/v1/files"] {
            assert!(Dialect::may_cost("POST", path), "{path}");
            assert!(!Dialect::may_cost("GET", path), "{path}");
        }
        for path in [
            "/v1/chat/completions",
            "/v1/messages/count_tokens",
            "/v1beta/models/g:countTokens",
            "/v1/batches/b/cancel",
            "/v1/responses/input_tokens/",
        ] {
            assert!(!Dialect::may_cost("POST", path), "{path}");
        }
    }
}
