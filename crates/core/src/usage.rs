//! Tokens of one call, in parts that do not overlap, whatever the provider calls them.

use serde::{Deserialize, Serialize};

/// Bytes of a token in most languages: a guess, where nobody has counted.
pub const BYTES_PER_TOKEN: u64 = 4;

/// What a call used, as the provider reported it or as Sprag counted it.
///
/// The input parts add up to the prompt: providers that report cached tokens inside the prompt (OpenAI, Gemini) and
/// those that report them beside it (Anthropic) come out the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Usage {
    /// Input tokens at the full price.
    pub input: u64,
    /// Input tokens read from a prompt cache.
    pub cache_read: u64,
    /// Input tokens written to a cache that lives five minutes.
    pub cache_write: u64,
    /// Input tokens written to a cache that lives an hour.
    pub cache_write_1h: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
    /// The part of `input` that was audio.
    pub audio_input: u64,
    /// The part of `output` that was audio.
    pub audio_output: u64,
    /// Counted by Sprag because the provider reported nothing.
    pub estimated: bool,
}

impl Usage {
    /// All input tokens, cached or not: what long-context prices look at.
    #[must_use]
    pub fn prompt_tokens(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write).saturating_add(self.cache_write_1h)
    }

    /// Input and output together.
    #[must_use]
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens().saturating_add(self.output)
    }
}
