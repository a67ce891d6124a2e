//! What a call will cost, before it is made: what it is expected to, or what it can at most.
//!
//! Nothing is tokenized here. The upper bound rests on that no tokenizer makes more tokens than there are bytes.

use super::Reserve;
use crate::money::NanoUsd;
use crate::price::{Mode, Price};
use crate::usage::BYTES_PER_TOKEN;

/// Tokens that a provider puts around a prompt: its own words on tools, and what stands between messages.
const ADDED_TOKENS: u64 = 2048;
/// Most tokens of a picture. The dearest are those of small models, whose pictures count many times over.
const PICTURE_TOKENS: u64 = 1 << 16;
/// Tokens of a picture as they mostly are.
const USUAL_PICTURE_TOKENS: u64 = 1024;
/// The longest prompt of a model of which the price list does not say it.
const CONTEXT_TOKENS: u64 = 1_000_000;
/// The longest answer of such a model.
const ANSWER_TOKENS: u64 = 128_000;
/// An answer of which nothing is known is taken to be no longer.
const GUESSED_ANSWER_TOKENS: u64 = 4096;

/// What is known of a call before it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    /// Bytes of its prompt as it stands in the body, without what is inlined as base64.
    pub prompt_bytes: u64,
    /// Bytes inlined as base64 that are not known to be a picture. They may be text that only looks so.
    pub doubtful_bytes: u64,
    /// Pictures in it, inlined or by address. Other files have no bound: with them the call is open-ended.
    pub attachments: u32,
    /// The provider adds to the prompt what the body does not show: an earlier answer, files, the web.
    pub is_open_ended: bool,
    /// The most output tokens that the caller accepts.
    pub max_output_tokens: Option<u64>,
    /// How many answers are asked for.
    pub choices: u32,
}

/// What earlier calls of the same kind used: of the run, or of the agent with the model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Habits {
    /// Calls that are over.
    pub calls: u32,
    /// Output tokens of each, on average.
    pub output_tokens: f32,
    /// Input tokens, as if all were at the full price, per byte of the prompt.
    pub tokens_per_byte: f32,
}

/// What a call is expected to cost, in tokens and in money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Input and output tokens, for rates.
    pub tokens: u64,
    /// What is reserved.
    pub amount: NanoUsd,
    /// The part of it that is only a guess, because nothing like it was seen before.
    pub guessed: NanoUsd,
}

impl Estimate {
    /// What is reserved at least: all that is no guess.
    #[must_use]
    pub fn least(&self) -> NanoUsd {
        self.amount - self.guessed
    }
}

impl Habits {
    /// Adds a call that is over. `input_tokens` is what its input cost, in tokens at the full price; `output_tokens`
    /// are those of one answer.
    pub fn learn(&mut self, prompt_bytes: u64, input_tokens: f64, output_tokens: u64) {
        self.calls = self.calls.saturating_add(1);
        self.output_tokens += (output_tokens as f32 - self.output_tokens) / self.calls as f32;
        if prompt_bytes == 0 || !input_tokens.is_finite() {
            return;
        }
        // Caching sets in after the first calls, so the last ones weigh most.
        let seen = (input_tokens / prompt_bytes as f64) as f32;
        self.tokens_per_byte = match self.tokens_per_byte {
            0.0 => seen,
            known => known + (seen - known) / 4.0,
        };
    }
}

/// The form of packed habits. Whoever changes it takes the next number.
const FORM: u8 = 0x31;

impl Habits {
    /// The habits as bytes, the same on every machine.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let numbers = [self.calls, self.output_tokens.to_bits(), self.tokens_per_byte.to_bits()];
        std::iter::once(FORM).chain(numbers.into_iter().flat_map(u32::to_le_bytes)).collect()
    }

    /// What was packed. None for bytes of another form or length, and for numbers that no call can have used.
    #[must_use]
    pub fn unpack(bytes: &[u8]) -> Option<Habits> {
        let ([FORM, numbers @ ..], []) = bytes.split_first_chunk::<13>()? else { return None };
        let (numbers, _) = numbers.as_chunks::<4>();
        let &[calls, output_tokens, tokens_per_byte] = numbers else { return None };
        let [output_tokens, tokens_per_byte] = [output_tokens, tokens_per_byte].map(f32::from_le_bytes);
        let is_amount = |number: f32| number.is_finite() && number.is_sign_positive();
        (is_amount(output_tokens) && is_amount(tokens_per_byte)).then_some(Habits {
            calls: u32::from_le_bytes(calls),
            output_tokens,
            tokens_per_byte,
        })
    }
}

/// Estimates a call. `habits` are those of the run, or else of the agent with the model; none for the first of its kind.
#[must_use]
pub fn estimate(asked: &Asked, price: &Price, habits: Option<&Habits>, reserve: Reserve) -> Estimate {
    match (reserve, habits.filter(|habits| habits.calls > 0)) {
        (Reserve::WorstCase, _) => worst_case(asked, price),
        (Reserve::Expected, Some(habits)) => by_habit(asked, price, habits),
        (Reserve::Expected, None) => guess(asked, price),
    }
}

fn worst_case(asked: &Asked, price: &Price) -> Estimate {
    let input = most_input(asked, price);
    let output = match asked.max_output_tokens {
        Some(tokens) => tokens,
        None => price.max_output_tokens.unwrap_or(ANSWER_TOKENS),
    };
    let output = answers(asked, price, output);
    let rates = price.dearest(input, asked.attachments > 0 || asked.is_open_ended);
    let amount = covering(input, rates.input.0, output, rates.output.0);
    Estimate { tokens: input.saturating_add(output), amount, guessed: NanoUsd::ZERO }
}

fn most_input(asked: &Asked, price: &Price) -> u64 {
    // A list that names a tier beyond the longest prompt does not mean the latter.
    let longest = price.max_input_tokens.filter(|most| price.tier.is_none_or(|tier| tier.above_tokens < *most));
    if asked.is_open_ended {
        return longest.unwrap_or(CONTEXT_TOKENS);
    }
    let pictures = u64::from(asked.attachments) * PICTURE_TOKENS;
    let bytes = asked.prompt_bytes.saturating_add(asked.doubtful_bytes);
    let tokens = bytes.saturating_add(pictures).saturating_add(ADDED_TOKENS);
    longest.map_or(tokens, |longest| tokens.min(longest))
}

fn by_habit(asked: &Asked, price: &Price, habits: &Habits) -> Estimate {
    let input = match habits.tokens_per_byte {
        0.0 => usual_input(asked),
        per_byte => (asked.prompt_bytes as f64 * f64::from(per_byte)).ceil() as u64,
    };
    let most = asked.max_output_tokens.unwrap_or(u64::MAX);
    let output = answers(asked, price, (f64::from(habits.output_tokens).ceil() as u64).min(most));
    let (amount, _) = at_full_price(price, input, output);
    Estimate { tokens: input.saturating_add(output), amount, guessed: NanoUsd::ZERO }
}

fn guess(asked: &Asked, price: &Price) -> Estimate {
    let input = usual_input(asked);
    let most = price.max_output_tokens.unwrap_or(u64::MAX);
    let output = answers(asked, price, asked.max_output_tokens.unwrap_or(GUESSED_ANSWER_TOKENS).min(most));
    let (amount, guessed) = at_full_price(price, input, output);
    Estimate { tokens: input.saturating_add(output), amount, guessed }
}

fn usual_input(asked: &Asked) -> u64 {
    (asked.prompt_bytes / BYTES_PER_TOKEN).saturating_add(u64::from(asked.attachments) * USUAL_PICTURE_TOKENS)
}

/// Tokens of all answers together.
fn answers(asked: &Asked, price: &Price, tokens: u64) -> u64 {
    match price.mode {
        Mode::Embedding => 0,
        Mode::Chat | Mode::Completion | Mode::Responses => tokens.saturating_mul(u64::from(asked.choices.max(1))),
    }
}

/// What it costs, and what of that is output.
fn at_full_price(price: &Price, input: u64, output: u64) -> (NanoUsd, NanoUsd) {
    let (input_rate, output_rate) = price.at_full_price(input);
    let amount = covering(input, input_rate.0, output, output_rate.0);
    (amount, amount - covering(input, input_rate.0, 0, 0))
}

fn covering(input: u64, input_rate: u64, output: u64, output_rate: u64) -> NanoUsd {
    let [input, output] =
        [(input, input_rate), (output, output_rate)].map(|(n, rate)| u128::from(n) * u128::from(rate));
    NanoUsd::covering_pico(input.saturating_add(output))
}

#[cfg(test)]
mod tests;
