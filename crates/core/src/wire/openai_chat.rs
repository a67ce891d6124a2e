//! Answers of OpenAI's chat completions, of legacy completions, and the usage of embeddings.
//!
//! Dozens of providers speak this dialect with an accent; where each keeps its reasoning, its tool calls and its
//! usage is listed with the fields.
//!
//! <https://platform.openai.com/docs/api-reference/chat/object>

use serde::Deserialize;
use serde_json::value::RawValue;

use super::draft::{Draft, Piece, bare_error};
use super::lenient::{self, List, Maybe, Raw, count};
use super::tap::Passing;
use crate::json;
use crate::usage::Usage;

/// State of a chat stream.
#[derive(Debug, Default)]
pub(super) struct Chat {
    /// A choice has finished: each chunk from then on may be the last.
    is_finishing: bool,
}

/// A whole answer, or one chunk of it: they differ in `message` and `delta` only.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    id: Raw<'a>,
    model: Raw<'a>,
    #[serde(default)]
    choices: List<Choice<'a>>,
    usage: Raw<'a>,
    #[serde(default)]
    x_groq: Maybe<XGroq<'a>>,
    error: Raw<'a>,
}

#[derive(Deserialize)]
struct XGroq<'a> {
    #[serde(borrow)]
    usage: Raw<'a>,
    error: Raw<'a>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    index: Raw<'a>,
    /// Legacy completions.
    text: Raw<'a>,
    #[serde(default)]
    delta: Maybe<Message<'a>>,
    #[serde(default)]
    message: Maybe<Message<'a>>,
    finish_reason: Raw<'a>,
    /// Moonshot.
    usage: Raw<'a>,
    /// OpenRouter.
    error: Raw<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    /// Text, or a list of parts (Mistral).
    #[serde(borrow)]
    content: Raw<'a>,
    refusal: Raw<'a>,
    /// DeepSeek, xAI, Moonshot, Z.ai.
    reasoning_content: Raw<'a>,
    /// OpenRouter, Groq, Cerebras.
    reasoning: Raw<'a>,
    #[serde(default)]
    audio: Maybe<Audio<'a>>,
    #[serde(default)]
    tool_calls: List<Call<'a>>,
    #[serde(default)]
    function_call: Maybe<Function<'a>>,
}

#[derive(Deserialize)]
struct Audio<'a> {
    #[serde(borrow)]
    transcript: Raw<'a>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Raw<'a>,
    /// Mistral: a list of text parts.
    thinking: Raw<'a>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    index: Raw<'a>,
    id: Raw<'a>,
    #[serde(default)]
    function: Maybe<Function<'a>>,
    #[serde(default)]
    custom: Maybe<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Raw<'a>,
    arguments: Raw<'a>,
    /// Of a custom tool: free text.
    input: Raw<'a>,
}

/// Reads a whole answer.
pub(super) fn json(draft: &mut Draft, body: &str) {
    let Ok(Maybe(Some(answer))) = json::from_str::<Maybe<Chunk<'_>>>(body) else { return };
    read(draft, &answer);
    draft.close_json(body);
}

impl Chat {
    /// Reads one chunk.
    pub(super) fn event(&mut self, draft: &mut Draft, name: Option<&str>, data: &str) -> Passing {
        if data.trim_ascii() == "[DONE]" {
            draft.close();
            return Passing::Last;
        }
        let Ok(Maybe(Some(chunk))) = json::from_str::<Maybe<Chunk<'_>>>(data) else { return Passing::Forward };
        let (finished, usage) = read(draft, &chunk);
        self.is_finishing |= finished;
        if name == Some("error") {
            draft.error_message(&bare_error(data).unwrap_or_else(|| "error".to_owned()));
        }
        if draft.reply.error.is_some() {
            Passing::Forward
        } else if usage && chunk.choices.0.is_empty() {
            Passing::UsageOnly
        } else if self.is_finishing {
            Passing::Hold
        } else {
            if let Some((piece, text)) = only_piece(&chunk) {
                draft.said_only(piece, Some(text), data);
            }
            Passing::Forward
        }
    }
}

/// The text of a chunk that says nothing else.
fn only_piece<'a>(chunk: &Chunk<'a>) -> Option<(Piece, &'a RawValue)> {
    let ([choice], None, None, None) = (chunk.choices.0.as_slice(), chunk.usage, &chunk.x_groq.0, chunk.error) else {
        return None;
    };
    let (message, index) = (choice.delta.0.as_ref()?, count(choice.index).unwrap_or(0));
    let is_more = [choice.text, choice.finish_reason, choice.usage, choice.error, message.refusal];
    let is_call = !message.tool_calls.0.is_empty() || message.function_call.0.is_some();
    if is_more.iter().any(Option::is_some) || is_call || message.audio.0.is_some() {
        return None;
    }
    match [message.content, message.reasoning_content, message.reasoning] {
        [Some(text), None, None] => Some((Piece::Text(index), text)),
        [None, Some(thought), None] | [None, None, Some(thought)] => Some((Piece::Reasoning, thought)),
        _ => None,
    }
}

/// Whether a choice finished, and whether there was usage.
fn read(draft: &mut Draft, chunk: &Chunk<'_>) -> (bool, bool) {
    draft.origin(chunk.id, chunk.model);
    let (mut finished, mut in_choice) = (false, None);
    for (position, choice) in chunk.choices.0.iter().enumerate() {
        let index = count(choice.index).unwrap_or(position as u64);
        if let Some(text) = lenient::text(choice.text) {
            draft.text(index, &text);
        }
        if let Some(message) = choice.delta.0.as_ref().or(choice.message.0.as_ref()) {
            read_message(draft, index, message);
        }
        finished |= draft.finish(index, choice.finish_reason);
        in_choice = in_choice.or(choice.usage);
        if let Some(error) = choice.error {
            draft.error(error);
        }
    }
    let groq = chunk.x_groq.0.as_ref();
    let usage = [chunk.usage, groq.and_then(|groq| groq.usage), in_choice].into_iter().find_map(usage);
    draft.reply.usage = usage.or(draft.reply.usage);
    if let Some(error) = chunk.error.or(groq.and_then(|groq| groq.error)) {
        draft.error(error);
    }
    (finished, usage.is_some())
}

fn read_message(draft: &mut Draft, choice: u64, message: &Message<'_>) {
    match lenient::text(message.content) {
        Some(text) => draft.text(choice, &text),
        None => {
            for part in lenient::list::<Part<'_>>(message.content) {
                draft.text(choice, &lenient::text(part.text).unwrap_or_default());
                for thought in lenient::list::<Part<'_>>(part.thinking) {
                    draft.reasoning(&lenient::text(thought.text).unwrap_or_default());
                }
            }
        }
    }
    draft.text(choice, &lenient::text(message.refusal).unwrap_or_default());
    if let Some(audio) = &message.audio.0 {
        draft.text(choice, &lenient::text(audio.transcript).unwrap_or_default());
    }
    // Some providers say the same under both names.
    let reasoning = lenient::filled(message.reasoning_content).or_else(|| lenient::text(message.reasoning));
    draft.reasoning(&reasoning.unwrap_or_default());
    for (position, call) in message.tool_calls.0.iter().enumerate() {
        read_call(draft, choice, position, call);
    }
    if let Some(function) = &message.function_call.0 {
        let key = (choice, u64::MAX);
        draft.call(key, None, function.name);
        draft.arguments(key, &lenient::text_or_json(function.arguments).unwrap_or_default());
    }
}

fn read_call(draft: &mut Draft, choice: u64, position: usize, call: &Call<'_>) {
    let Some(function) = call.function.0.as_ref().or(call.custom.0.as_ref()) else { return };
    let id = lenient::filled(call.id);
    let is_named = lenient::filled(function.name).is_some();
    // Without an index, a piece with a name of its own begins a call and any other continues the last one.
    let key = match (count(call.index), draft.last_key(choice)) {
        (Some(index), _) => (choice, index),
        (None, Some(last)) if !is_named => last,
        (None, Some(last)) if position == 0 || last.1 >= position as u64 => (choice, last.1.saturating_add(1)),
        (None, _) => (choice, position as u64),
    };
    // Gemini's endpoint numbers all parallel calls 0. A changed id alone is no new call: vLLM makes one up per piece.
    let known = draft.find(key).map(|at| &draft.reply.tool_calls[at].id);
    let is_other = is_named && id.is_some_and(|id| known.is_some_and(|known| !known.is_empty() && *known != id));
    if is_other && draft.push_call(key).is_none() {
        return;
    }
    draft.call(key, call.id, function.name);
    let arguments = lenient::text_or_json(function.arguments.or(function.input));
    draft.arguments(key, &arguments.unwrap_or_default());
}

/// Counts as each provider of this dialect names them.
#[derive(Deserialize)]
struct Counts<'a> {
    #[serde(borrow)]
    prompt_tokens: Raw<'a>,
    completion_tokens: Raw<'a>,
    total_tokens: Raw<'a>,
    #[serde(default)]
    prompt_tokens_details: Maybe<Details<'a>>,
    #[serde(default)]
    completion_tokens_details: Maybe<Details<'a>>,
    /// DeepSeek.
    prompt_cache_hit_tokens: Raw<'a>,
    /// Moonshot.
    cached_tokens: Raw<'a>,
}

#[derive(Deserialize)]
struct Details<'a> {
    #[serde(borrow)]
    cached_tokens: Raw<'a>,
    /// OpenRouter.
    cache_write_tokens: Raw<'a>,
    audio_tokens: Raw<'a>,
    reasoning_tokens: Raw<'a>,
}

fn usage(raw: Raw<'_>) -> Option<Usage> {
    let counts: Counts<'_> = lenient::object(raw)?;
    let (prompt, completion) = (count(counts.prompt_tokens), count(counts.completion_tokens));
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let (prompt, mut output) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    let (of_input, of_output) = (counts.prompt_tokens_details.0, counts.completion_tokens_details.0);
    let cached =
        [of_input.as_ref().and_then(|of| of.cached_tokens), counts.prompt_cache_hit_tokens, counts.cached_tokens];
    let cached = cached.into_iter().find_map(count).unwrap_or(0);
    let written = of_input.as_ref().and_then(|of| count(of.cache_write_tokens)).unwrap_or(0);
    let reasoning = of_output.as_ref().and_then(|of| count(of.reasoning_tokens)).unwrap_or(0);
    // xAI counts reasoning beside the completion; the total tells.
    let beside = prompt.saturating_add(output).saturating_add(reasoning);
    if reasoning > 0 && count(counts.total_tokens) == Some(beside) {
        output = output.saturating_add(reasoning);
    }
    let cache_read = cached.min(prompt);
    let cache_write = written.min(prompt - cache_read);
    let input = prompt - cache_read - cache_write;
    Some(Usage {
        input,
        cache_read,
        cache_write,
        output,
        reasoning: reasoning.min(output),
        audio_input: of_input.and_then(|of| count(of.audio_tokens)).unwrap_or(0).min(input),
        audio_output: of_output.and_then(|of| count(of.audio_tokens)).unwrap_or(0).min(output),
        ..Usage::default()
    })
}
