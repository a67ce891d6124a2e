//! Answers of OpenAI's Responses API.
//!
//! A stream says everything several times: in deltas, in the `done` form of each part and item, and in the closing
//! event. Deltas are what is left when a stream is cut; the closing event, where it carries the output, wins.
//!
//! <https://platform.openai.com/docs/api-reference/responses-streaming>

use serde::Deserialize;

use super::draft::Draft;
use super::lenient::{self, List, Maybe, Raw, count};
use super::tap::Passing;
use crate::json;
use crate::limits;
use crate::usage::Usage;

/// State of a Responses stream.
#[derive(Debug, Default)]
pub(super) struct Responses {
    sequence_number: Option<u64>,
    /// Output items whose text came in deltas, so that their `done` form says nothing new.
    streamed: Vec<u64>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Raw<'a>,
    sequence_number: Raw<'a>,
    #[serde(default)]
    response: Maybe<Response<'a>>,
    output_index: Raw<'a>,
    #[serde(default)]
    item: Maybe<Item<'a>>,
    delta: Raw<'a>,
    message: Raw<'a>,
    error: Raw<'a>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    id: Raw<'a>,
    model: Raw<'a>,
    status: Raw<'a>,
    #[serde(default)]
    incomplete_details: Maybe<Incomplete<'a>>,
    error: Raw<'a>,
    #[serde(default)]
    output: List<Item<'a>>,
    usage: Raw<'a>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Raw<'a>,
}

/// One output item: a message, reasoning, or a call of some kind.
#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    r#type: Raw<'a>,
    id: Raw<'a>,
    call_id: Raw<'a>,
    name: Raw<'a>,
    #[serde(default)]
    content: List<Part<'a>>,
    #[serde(default)]
    summary: List<Part<'a>>,
    arguments: Raw<'a>,
    input: Raw<'a>,
    action: Raw<'a>,
    operation: Raw<'a>,
    queries: Raw<'a>,
    code: Raw<'a>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Raw<'a>,
    refusal: Raw<'a>,
}

/// Reads a whole answer.
pub(super) fn json(draft: &mut Draft, body: &str) {
    let Ok(Maybe(Some(response))) = json::from_str::<Maybe<Response<'_>>>(body) else { return };
    read_final(draft, &response);
    draft.close_json(body);
}

impl Responses {
    pub(super) fn sequence_number(&self) -> Option<u64> {
        self.sequence_number
    }

    /// Reads one event.
    pub(super) fn event(&mut self, draft: &mut Draft, name: Option<&str>, data: &str) -> Passing {
        let Ok(Maybe(Some(event))) = json::from_str::<Maybe<Event<'_>>>(data) else { return Passing::Forward };
        self.sequence_number = count(event.sequence_number).or(self.sequence_number);
        let kind = lenient::text(event.r#type);
        let kind = if name == Some("error") { name } else { kind.as_deref().or(name) };
        let kind = kind.unwrap_or_default();
        let index = count(event.output_index).unwrap_or(0);
        let delta = || lenient::text(event.delta).unwrap_or_default();
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.mark_streamed(index);
                draft.text(index, &delta());
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.mark_streamed(index);
                draft.reasoning(&delta());
            }
            "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta"
            | "response.mcp_call_arguments.delta"
            | "response.code_interpreter_call_code.delta" => draft.arguments((index, 0), &delta()),
            "response.output_item.added" | "response.output_item.done" => {
                if let Some(item) = &event.item.0 {
                    self.read_streamed_item(draft, index, item, kind.ends_with(".done"));
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                if let Some(response) = &event.response.0 {
                    read_final(draft, response);
                }
                if kind == "response.failed" && draft.reply.error.is_none() {
                    draft.error_message("response failed");
                }
                draft.close();
                return Passing::Last;
            }
            "error" => match event.error {
                Some(error) => draft.error(error),
                None => draft.error_message(&lenient::filled(event.message).unwrap_or("error".into())),
            },
            _ => {
                if let Some(response) = &event.response.0 {
                    draft.origin(response.id, response.model);
                }
                if let Some(error) = event.error {
                    draft.error(error);
                }
            }
        }
        Passing::Forward
    }

    fn read_streamed_item(&mut self, draft: &mut Draft, index: u64, item: &Item<'_>, is_done: bool) {
        if is_call(item) {
            read_call(draft, index, item);
        } else if is_done && !self.streamed.contains(&index) {
            read_words(draft, index, item);
        }
    }

    fn mark_streamed(&mut self, index: u64) {
        if self.streamed.last() != Some(&index)
            && self.streamed.len() < limits::REPLY_LIST_ITEMS
            && !self.streamed.contains(&index)
        {
            self.streamed.push(index);
        }
    }
}

/// A whole response: the body of a JSON answer, or of the closing event.
fn read_final(draft: &mut Draft, response: &Response<'_>) {
    draft.origin(response.id, response.model);
    // Some backends leave the output of the closing event empty.
    if !response.output.0.is_empty() {
        draft.restart();
        for (index, item) in response.output.0.iter().enumerate() {
            if is_call(item) {
                read_call(draft, index as u64, item);
            } else {
                read_words(draft, index as u64, item);
            }
        }
    }
    let reason = response.incomplete_details.0.as_ref().and_then(|details| details.reason);
    draft.finish(0, reason.or(response.status));
    draft.reply.usage = usage(response.usage).or(draft.reply.usage);
    if let Some(error) = response.error {
        draft.error(error);
    }
}

/// Functions, custom tools and all built-in tools: `web_search_call`, `code_interpreter_call` and so on.
fn is_call(item: &Item<'_>) -> bool {
    lenient::text(item.r#type).is_some_and(|kind| kind.ends_with("_call"))
}

fn read_call(draft: &mut Draft, index: u64, item: &Item<'_>) {
    let key = (index, 0);
    draft.call(key, item.call_id.or(item.id), item.name.or(item.r#type));
    let given = [item.arguments, item.input, item.action, item.operation, item.queries, item.code];
    let arguments = given.into_iter().find_map(lenient::text_or_json).unwrap_or_default();
    if !arguments.is_empty() {
        draft.set_arguments(key, &arguments);
    }
}

fn read_words(draft: &mut Draft, index: u64, item: &Item<'_>) {
    let is_reasoning = lenient::text(item.r#type).is_some_and(|kind| kind == "reasoning");
    for part in item.summary.0.iter().chain(&item.content.0) {
        let text = lenient::text(part.text).or_else(|| lenient::text(part.refusal)).unwrap_or_default();
        if is_reasoning {
            draft.reasoning(&text);
        } else {
            draft.text(index, &text);
        }
    }
}

#[derive(Deserialize)]
struct Counts<'a> {
    #[serde(borrow)]
    input_tokens: Raw<'a>,
    output_tokens: Raw<'a>,
    #[serde(default)]
    input_tokens_details: Maybe<Details<'a>>,
    #[serde(default)]
    output_tokens_details: Maybe<Details<'a>>,
}

#[derive(Deserialize)]
struct Details<'a> {
    #[serde(borrow)]
    cached_tokens: Raw<'a>,
    reasoning_tokens: Raw<'a>,
    audio_tokens: Raw<'a>,
}

fn usage(raw: Raw<'_>) -> Option<Usage> {
    let counts: Counts<'_> = lenient::object(raw)?;
    let (input, output) = (count(counts.input_tokens), count(counts.output_tokens));
    if input.is_none() && output.is_none() {
        return None;
    }
    let (prompt, output) = (input.unwrap_or(0), output.unwrap_or(0));
    let (of_input, of_output) = (counts.input_tokens_details.0, counts.output_tokens_details.0);
    let cache_read = of_input.as_ref().and_then(|of| count(of.cached_tokens)).unwrap_or(0).min(prompt);
    let input = prompt - cache_read;
    Some(Usage {
        input,
        cache_read,
        output,
        reasoning: of_output.as_ref().and_then(|of| count(of.reasoning_tokens)).unwrap_or(0).min(output),
        audio_input: of_input.and_then(|of| count(of.audio_tokens)).unwrap_or(0).min(input),
        audio_output: of_output.and_then(|of| count(of.audio_tokens)).unwrap_or(0).min(output),
        ..Usage::default()
    })
}
