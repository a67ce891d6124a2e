//! Answers of Google's Gemini API.
//!
//! A stream has no closing event: the answer is whole when a finish reason was seen. Without `alt=sse` a stream is a
//! JSON array of the same chunks.
//!
//! <https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse>

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use super::draft::Draft;
use super::lenient::{self, List, Maybe, Raw, count};
use super::tap::Passing;
use crate::json;
use crate::usage::Usage;

/// State of an answer.
#[derive(Debug, Default)]
pub(super) struct Generate {
    /// A finish reason was seen: each event from then on may be the last.
    is_finishing: bool,
    counts: Counts,
    /// Calls seen; the dialect does not number them.
    calls: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    prompt: Option<u64>,
    cached: Option<u64>,
    tool_prompt: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
    audio_prompt: Option<u64>,
    audio_cached: Option<u64>,
    audio_output: Option<u64>,
}

/// A whole answer, or one chunk of it: they have the same form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow)]
    response_id: Raw<'a>,
    model_version: Raw<'a>,
    #[serde(default)]
    candidates: List<Candidate<'a>>,
    #[serde(default)]
    prompt_feedback: Maybe<Feedback<'a>>,
    #[serde(default)]
    usage_metadata: Maybe<Reported<'a>>,
    error: Raw<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow)]
    block_reason: Raw<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    index: Raw<'a>,
    #[serde(default)]
    content: Maybe<Content<'a>>,
    finish_reason: Raw<'a>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: List<Part<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Raw<'a>,
    thought: Raw<'a>,
    #[serde(default)]
    function_call: Maybe<FunctionCall<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FunctionCall<'a> {
    #[serde(borrow)]
    id: Raw<'a>,
    name: Raw<'a>,
    args: Raw<'a>,
    /// Arguments of a call begun in an earlier chunk.
    partial_args: Raw<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reported<'a> {
    #[serde(borrow)]
    prompt_token_count: Raw<'a>,
    cached_content_token_count: Raw<'a>,
    tool_use_prompt_token_count: Raw<'a>,
    candidates_token_count: Raw<'a>,
    thoughts_token_count: Raw<'a>,
    #[serde(default)]
    prompt_tokens_details: List<Modality<'a>>,
    #[serde(default)]
    cache_tokens_details: List<Modality<'a>>,
    #[serde(default)]
    candidates_tokens_details: List<Modality<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Modality<'a> {
    #[serde(borrow)]
    modality: Raw<'a>,
    token_count: Raw<'a>,
}

impl Generate {
    /// Reads a whole answer, or a stream in the form of a JSON array.
    pub(super) fn json(&mut self, draft: &mut Draft, body: &str) {
        if body.trim_ascii_start().starts_with('[') {
            // What was read before a broken end counts, so the result does not matter.
            let chunks = Chunks { generate: self, draft: &mut *draft };
            let _ = serde_json::Deserializer::from_str(body).deserialize_seq(chunks);
            return;
        }
        let Ok(Maybe(Some(chunk))) = json::from_str::<Maybe<Chunk<'_>>>(body) else { return };
        self.read(draft, &chunk);
        draft.close_json(body);
    }

    /// Reads one event.
    pub(super) fn event(&mut self, draft: &mut Draft, data: &str) -> Passing {
        let Ok(Maybe(Some(chunk))) = json::from_str::<Maybe<Chunk<'_>>>(data) else { return Passing::Forward };
        self.read(draft, &chunk);
        if self.is_finishing && draft.reply.error.is_none() { Passing::Hold } else { Passing::Forward }
    }

    fn read(&mut self, draft: &mut Draft, chunk: &Chunk<'_>) {
        draft.origin(chunk.response_id, chunk.model_version);
        for (position, candidate) in chunk.candidates.0.iter().enumerate() {
            let index = count(candidate.index).unwrap_or(position as u64);
            for part in candidate.content.0.iter().flat_map(|content| &content.parts.0) {
                self.read_part(draft, index, part);
            }
            self.is_finishing |= draft.finish(index, candidate.finish_reason);
        }
        if let Some(feedback) = &chunk.prompt_feedback.0 {
            self.is_finishing |= draft.finish(0, feedback.block_reason);
        }
        if let Some(reported) = &chunk.usage_metadata.0 {
            self.count(draft, reported);
        }
        if let Some(error) = chunk.error {
            draft.error(error);
        }
        draft.reply.complete = self.is_finishing && draft.reply.error.is_none();
    }

    fn read_part(&mut self, draft: &mut Draft, candidate: u64, part: &Part<'_>) {
        let text = lenient::text(part.text).unwrap_or_default();
        if part.thought.is_some_and(|thought| thought.get() == "true") {
            draft.reasoning(&text);
        } else {
            draft.text(candidate, &text);
        }
        let Some(call) = &part.function_call.0 else { return };
        if lenient::filled(call.name).is_none() {
            if let (Some(key), Some(more)) = (draft.last_key(candidate), call.partial_args) {
                draft.arguments(key, &lenient::compact(more.get()));
            }
            return;
        }
        let key = (candidate, self.calls);
        self.calls += 1;
        draft.call(key, call.id, call.name);
        let arguments = lenient::text_or_json(call.args.or(call.partial_args));
        draft.set_arguments(key, arguments.as_deref().unwrap_or("{}"));
    }

    /// Takes over what is reported; what is not keeps its value.
    fn count(&mut self, draft: &mut Draft, reported: &Reported<'_>) {
        let old = self.counts;
        self.counts = Counts {
            prompt: count(reported.prompt_token_count).or(old.prompt),
            cached: count(reported.cached_content_token_count).or(old.cached),
            tool_prompt: count(reported.tool_use_prompt_token_count).or(old.tool_prompt),
            candidates: count(reported.candidates_token_count).or(old.candidates),
            thoughts: count(reported.thoughts_token_count).or(old.thoughts),
            audio_prompt: audio(&reported.prompt_tokens_details).or(old.audio_prompt),
            audio_cached: audio(&reported.cache_tokens_details).or(old.audio_cached),
            audio_output: audio(&reported.candidates_tokens_details).or(old.audio_output),
        };
        if self.counts != Counts::default() {
            draft.reply.usage = Some(self.counts.usage());
        }
    }
}

impl Counts {
    fn usage(&self) -> Usage {
        let prompt = self.prompt.unwrap_or(0);
        let cache_read = self.cached.unwrap_or(0).min(prompt);
        let input = (prompt - cache_read).saturating_add(self.tool_prompt.unwrap_or(0));
        let reasoning = self.thoughts.unwrap_or(0);
        let output = self.candidates.unwrap_or(0).saturating_add(reasoning);
        let audio_input = self.audio_prompt.unwrap_or(0).saturating_sub(self.audio_cached.unwrap_or(0));
        Usage {
            input,
            cache_read,
            output,
            reasoning,
            audio_input: audio_input.min(input),
            audio_output: self.audio_output.unwrap_or(0).min(output),
            ..Usage::default()
        }
    }
}

fn audio(details: &List<Modality<'_>>) -> Option<u64> {
    let audio = details.0.iter().find(|of| lenient::text(of.modality).as_deref() == Some("AUDIO"))?;
    count(audio.token_count)
}

/// Reads the chunks of an array one by one, without keeping them.
struct Chunks<'a> {
    generate: &'a mut Generate,
    draft: &'a mut Draft,
}

impl<'de> Visitor<'de> for Chunks<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of chunks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(chunk) = seq.next_element::<Maybe<Chunk<'de>>>()? {
            if let Some(chunk) = &chunk.0 {
                self.generate.read(self.draft, chunk);
            }
        }
        Ok(())
    }
}
