//! The providers that need no configuration.
//!
//! A preset's base URL is the bare host, so a client that swaps `https://api.groq.com` for `http://sprag/groq` and
//! keeps the rest of its URL is right, whatever that rest is. `/NAME/v1/…` is right too, for every preset: where the
//! OpenAI-shaped API does not live under `/v1`, `rewrite` says where.

use sprag_core::wire::Family;
use sprag_core::wire::Family::{Anthropic, Gemini, Openai};

/// What is known about a provider.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name in paths and in `[providers.NAME]`.
    pub name: &'static str,
    /// Stands before the path; none where everyone has one of their own.
    pub base_url: Option<&'static str>,
    /// Its wire format.
    pub family: Family,
    /// Where a key goes, as `auth` in the configuration.
    pub auth: &'static str,
    /// Whether to ask for usage in chat streams. Others refuse the field, or report usage unasked.
    pub stream_usage: bool,
    /// Paths that live elsewhere on its own host.
    pub rewrite: &'static [(&'static str, &'static str)],
    /// Where users usually keep the key. Never read unless the configuration says so.
    pub key_variable: Option<&'static str>,
}

/// Every preset.
pub const PRESETS: [Preset; 20] = [
    chat("openai", "https://api.openai.com", "OPENAI_API_KEY").with_usage(),
    Preset {
        family: Anthropic,
        auth: "x-api-key",
        ..chat("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY")
    },
    Preset {
        family: Gemini,
        auth: "x-goog-api-key",
        ..chat("gemini", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY")
    },
    chat("mistral", "https://api.mistral.ai", "MISTRAL_API_KEY"),
    chat("groq", "https://api.groq.com", "GROQ_API_KEY").with_usage().at(&[("/v1", "/openai/v1")]),
    chat("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY").with_usage(),
    chat("xai", "https://api.x.ai", "XAI_API_KEY").with_usage(),
    chat("cohere", "https://api.cohere.ai", "COHERE_API_KEY").at(&[("/v1", "/compatibility/v1")]),
    chat("together", "https://api.together.xyz", "TOGETHER_API_KEY").with_usage(),
    chat("fireworks", "https://api.fireworks.ai", "FIREWORKS_API_KEY").with_usage().at(&[("/v1", "/inference/v1")]),
    // Its other endpoints do live under /v1.
    chat("perplexity", "https://api.perplexity.ai", "PERPLEXITY_API_KEY")
        .at(&[("/v1/chat/completions", "/chat/completions")]),
    chat("openrouter", "https://openrouter.ai", "OPENROUTER_API_KEY").with_usage().at(&[("/v1", "/api/v1")]),
    chat("cerebras", "https://api.cerebras.ai", "CEREBRAS_API_KEY").with_usage(),
    chat("moonshot", "https://api.moonshot.ai", "MOONSHOT_API_KEY"),
    chat("zai", "https://api.z.ai", "ZAI_API_KEY").at(&[("/v1", "/api/paas/v4")]),
    chat("minimax", "https://api.minimax.io", "MINIMAX_API_KEY"),
    local("ollama", "http://127.0.0.1:11434"),
    local("vllm", "http://127.0.0.1:8000"),
    local("lmstudio", "http://127.0.0.1:1234"),
    Preset {
        base_url: None,
        auth: "api-key",
        ..chat("azure", "", "AZURE_OPENAI_API_KEY").with_usage().at(&[("/v1", "/openai/v1")])
    },
];

/// The preset of that name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Whether a first path segment means something else than a provider.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    const WORDS: [&str; 11] = [
        "agents",
        "api",
        "healthz",
        "livez",
        "readyz",
        "metrics",
        "sprag",
        "upload",
        "download",
        "static",
        "well-known",
    ];
    let is_version = name.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    is_version || WORDS.contains(&name)
}

impl Preset {
    /// Whether the preset's `rewrite` holds for a base URL with this host. Elsewhere (a test server, a company
    /// gateway) the path stays as the client sent it.
    #[must_use]
    pub fn is_at_home(&self, host: &str) -> bool {
        match self.base_url {
            Some(url) => url.split_once("://").is_some_and(|(_, own)| own == host),
            None => host.ends_with(".azure.com"),
        }
    }

    const fn with_usage(self) -> Preset {
        Preset { stream_usage: true, ..self }
    }

    const fn at(self, rewrite: &'static [(&'static str, &'static str)]) -> Preset {
        Preset { rewrite, ..self }
    }
}

const fn chat(name: &'static str, base_url: &'static str, key_variable: &'static str) -> Preset {
    Preset {
        name,
        base_url: Some(base_url),
        family: Openai,
        auth: "bearer",
        stream_usage: false,
        rewrite: &[],
        key_variable: Some(key_variable),
    }
}

const fn local(name: &'static str, base_url: &'static str) -> Preset {
    Preset { stream_usage: true, key_variable: None, ..chat(name, base_url, "") }
}

#[cfg(test)]
mod tests;
