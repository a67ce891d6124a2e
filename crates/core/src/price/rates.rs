//! The price of a model: rates per token, a long-context tier, and what else the list says about the model.

use jiff::civil::Date;

use crate::money::PicoPerToken;

/// One line of the price list, or one override.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Who sells it; empty for an override that holds at every provider.
    pub provider: Box<str>,
    /// The model as its provider spells it; the pattern for an override.
    pub model: Box<str>,
    /// What the model is for.
    pub mode: Mode,
    /// What a token costs.
    pub rates: Rates,
    /// What a token costs when the prompt is long.
    pub tier: Option<Tier>,
    /// The longest prompt, where the list says so.
    pub max_input_tokens: Option<u64>,
    /// The longest answer, where the list says so.
    pub max_output_tokens: Option<u64>,
    /// The day from which the provider no longer serves the model.
    pub deprecated_on: Option<Date>,
}

/// What a model is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Messages in, a message out.
    #[default]
    Chat,
    /// Text in, its continuation out.
    Completion,
    /// Served by OpenAI's Responses API only.
    Responses,
    /// Text in, vectors out.
    Embedding,
}

/// Prices of the parts of a call. A part without a price of its own is charged as input or output; a write for an hour
/// as one for five minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Input at the full price.
    pub input: PicoPerToken,
    /// Output; zero for embeddings.
    pub output: PicoPerToken,
    /// Input read from a cache.
    pub cache_read: Option<PicoPerToken>,
    /// Input written to a cache that lives five minutes.
    pub cache_write: Option<PicoPerToken>,
    /// Input written to a cache that lives an hour.
    pub cache_write_1h: Option<PicoPerToken>,
    /// Output that was reasoning.
    pub reasoning: Option<PicoPerToken>,
    /// Input that was audio.
    pub audio_input: Option<PicoPerToken>,
    /// Output that was audio.
    pub audio_output: Option<PicoPerToken>,
}

/// Prices of the whole call once its prompt is longer than a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tier {
    /// The longest prompt that is still charged at the base rates.
    pub above_tokens: u64,
    /// Input at the full price.
    pub input: Option<PicoPerToken>,
    /// Output.
    pub output: Option<PicoPerToken>,
    /// Input read from a cache.
    pub cache_read: Option<PicoPerToken>,
    /// Input written to a cache that lives five minutes.
    pub cache_write: Option<PicoPerToken>,
}

/// The most that a token can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dearest {
    pub(crate) input: PicoPerToken,
    pub(crate) output: PicoPerToken,
}

/// The rate of every part, with nothing left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Charged {
    pub(super) input: PicoPerToken,
    pub(super) output: PicoPerToken,
    pub(super) cache_read: PicoPerToken,
    pub(super) cache_write: PicoPerToken,
    pub(super) cache_write_1h: PicoPerToken,
    pub(super) reasoning: PicoPerToken,
    pub(super) audio_input: PicoPerToken,
    pub(super) audio_output: PicoPerToken,
}

impl Price {
    /// Whether a token costs nothing at all.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.rates.input.0 == 0 && self.rates.output.0 == 0
    }

    /// A price that is nowhere below this one or another, for a call of which nobody knows which one it will be.
    #[must_use]
    pub fn or_dearer(&self, other: &Price) -> Price {
        let one = |part: fn(&Charged) -> PicoPerToken| {
            let most = |price: &Price| {
                let above = price.tier.map_or(PicoPerToken(0), |tier| part(&price.rates.above(tier).charged()));
                part(&price.rates.charged()).max(above)
            };
            most(self).max(most(other))
        };
        let longest = |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, other)| one.max(other));
        // A list that names a tier beyond the longest prompt does not mean the latter.
        let prompt = |price: &Price| {
            price.max_input_tokens.filter(|most| price.tier.is_none_or(|tier| tier.above_tokens < *most))
        };
        Price {
            mode: if self.mode == Mode::Embedding { other.mode } else { self.mode },
            rates: Rates {
                input: one(|rates| rates.input),
                output: one(|rates| rates.output),
                cache_read: Some(one(|rates| rates.cache_read)),
                cache_write: Some(one(|rates| rates.cache_write)),
                cache_write_1h: Some(one(|rates| rates.cache_write_1h)),
                reasoning: Some(one(|rates| rates.reasoning)),
                audio_input: Some(one(|rates| rates.audio_input)),
                audio_output: Some(one(|rates| rates.audio_output)),
            },
            tier: None,
            max_input_tokens: longest(prompt(self), prompt(other)),
            max_output_tokens: longest(self.max_output_tokens, other.max_output_tokens),
            ..self.clone()
        }
    }

    /// What input and output cost at the full price, in a call with a prompt of `prompt_tokens`.
    pub(crate) fn at_full_price(&self, prompt_tokens: u64) -> (PicoPerToken, PicoPerToken) {
        let rates = self.charged(prompt_tokens);
        (rates.input, rates.output)
    }

    /// The dearest rates of a call with a prompt of at most `prompt_tokens`, in which audio may be heard or not.
    pub(crate) fn dearest(&self, prompt_tokens: u64, has_audio: bool) -> Dearest {
        let base = self.rates.charged().dearest(has_audio);
        let above = self.charged(prompt_tokens).dearest(has_audio);
        Dearest { input: base.input.max(above.input), output: base.output.max(above.output) }
    }

    /// The rates of a call with a prompt of `prompt_tokens`.
    pub(super) fn charged(&self, prompt_tokens: u64) -> Charged {
        match self.tier.filter(|tier| prompt_tokens > tier.above_tokens) {
            Some(tier) => self.rates.above(tier).charged(),
            None => self.rates.charged(),
        }
    }
}

impl Charged {
    fn dearest(&self, has_audio: bool) -> Dearest {
        let audio_input = if has_audio { self.audio_input } else { self.input };
        let written = self.cache_write.max(self.cache_write_1h);
        Dearest {
            input: self.input.max(self.cache_read).max(written).max(audio_input),
            output: self.output.max(self.reasoning).max(self.audio_output),
        }
    }
}

impl Rates {
    fn charged(&self) -> Charged {
        let cache_write = self.cache_write.unwrap_or(self.input);
        Charged {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read.unwrap_or(self.input),
            cache_write,
            cache_write_1h: self.cache_write_1h.unwrap_or(cache_write),
            reasoning: self.reasoning.unwrap_or(self.output),
            audio_input: self.audio_input.unwrap_or(self.input),
            audio_output: self.audio_output.unwrap_or(self.output),
        }
    }

    /// These rates with the tier's in their place; a rate that the tier does not name stays.
    ///
    /// Lists name no one-hour write above a tier. The base rate would make it cheaper than a five-minute write, so it
    /// keeps its proportion to that one. A reasoning price that is the output price follows the output price.
    fn above(&self, tier: Tier) -> Rates {
        let cache_write_1h = match (self.cache_write_1h, self.cache_write, tier.cache_write) {
            (Some(hour), Some(base), Some(above)) => Some(in_proportion(hour, base, above)),
            (hour, _, _) => hour,
        };
        Rates {
            input: tier.input.unwrap_or(self.input),
            output: tier.output.unwrap_or(self.output),
            cache_read: tier.cache_read.or(self.cache_read),
            cache_write: tier.cache_write.or(self.cache_write),
            cache_write_1h,
            reasoning: self.reasoning.filter(|reasoning| *reasoning != self.output),
            ..*self
        }
    }
}

impl Mode {
    /// The mode of this name in the price list.
    pub(super) fn named(name: &str) -> Option<Mode> {
        match name {
            "chat" => Some(Mode::Chat),
            "completion" => Some(Mode::Completion),
            "responses" => Some(Mode::Responses),
            "embedding" => Some(Mode::Embedding),
            _ => None,
        }
    }
}

/// `rate` moved as `from` moved to `to`.
fn in_proportion(rate: PicoPerToken, from: PicoPerToken, to: PicoPerToken) -> PicoPerToken {
    let moved = (u128::from(rate.0) * u128::from(to.0)).checked_div(u128::from(from.0));
    moved.map_or(to, |moved| PicoPerToken(u64::try_from(moved).unwrap_or(u64::MAX)))
}
