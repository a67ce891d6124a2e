//! A request to a model, read as a borrowed view of its body.
//!
//! Only the top level is parsed here: the items of the conversation stay raw slices, so that the cost of reading a
//! long history is one pass over its bytes. [`super::history`] reads the items that are new.

mod top;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use self::top::{Top, raw};
use super::dialect::{STREAM_VERB, has_end};
use super::named::model_in_path;
use super::{Dialect, looks_unique};
use crate::json;
use crate::limits::FALLBACK_MODELS;

/// What a request asks for. Borrows from the body.
#[derive(Debug)]
pub struct Call<'a> {
    /// The wire format it was read as.
    pub dialect: Dialect,
    /// The model asked for: by the path where that names one, else by the body.
    pub model: Option<Cow<'a, str>>,
    /// What the body calls the model where the path names it otherwise. Providers pass over that.
    pub model_in_body: Option<Cow<'a, str>>,
    /// Models that a router may ask instead.
    pub fallback_models: Vec<Cow<'a, str>>,
    /// Whether the answer shall be a stream.
    pub is_stream: bool,
    /// The conversation: messages, input items or contents, as they stand in the body.
    pub items: Vec<&'a RawValue>,
    /// What stands beside the conversation at every step: system prompts, instructions, tools.
    pub fixed: Vec<&'a RawValue>,
    /// A prompt that is one string instead of a list: Responses `input`, legacy `prompt`.
    pub prompt: Option<&'a RawValue>,
    /// The most output tokens the caller accepts.
    pub max_output_tokens: Option<u64>,
    /// How many answers are asked for at once.
    pub choices: u32,
    /// The earlier answer that this request continues, when the history is kept by the provider.
    pub previous_id: Option<Cow<'a, str>>,
    /// The provider adds to the prompt what it keeps itself: an earlier answer, a conversation, a prompt by its id.
    pub is_continued: bool,
    /// The client's session, when the body names one.
    pub session: Option<Cow<'a, str>>,
    /// Fields that are for Sprag and not for the provider.
    pub own: OwnFields<'a>,
    /// Whether the client asked for usage in its stream, and where.
    pub stream_options: StreamOptions<'a>,
}

/// Fields of the body that are for Sprag; they are removed before forwarding.
#[derive(Debug, Default)]
pub struct OwnFields<'a> {
    /// `sprag_run_id` or `agentwall_run_id`
    pub run_id: Option<Cow<'a, str>>,
    /// `sprag_parent_run_id`
    pub parent_run_id: Option<Cow<'a, str>>,
    /// `sprag_agent` or `agentwall_agent_id`
    pub agent: Option<Cow<'a, str>>,
    /// The values to remove with their keys, in the order of the body.
    pub values: Vec<&'a RawValue>,
}

/// `stream_options` of a chat request.
#[derive(Debug, Default)]
pub struct StreamOptions<'a> {
    /// The value as it stands in the body: an object, or null.
    pub value: Option<&'a RawValue>,
    /// The value of `include_usage` inside it.
    pub include_usage: Option<&'a RawValue>,
}

impl StreamOptions<'_> {
    /// Whether the client itself asked for usage.
    #[must_use]
    pub fn asks_for_usage(&self) -> bool {
        self.include_usage.is_some_and(|v| v.get() == "true")
    }
}

/// A body that cannot be read as a request.
#[derive(Debug, thiserror::Error)]
pub enum BadBody {
    /// Not JSON, a key twice, or not an object.
    #[error("the request body is not a JSON object that can be read without doubt: {0}")]
    Json(#[from] serde_json::Error),
    /// JSON, but not an object.
    #[error("the request body must be one JSON object, beginning with '{{'")]
    NotObject,
    /// A field of ours with the wrong type.
    #[error("`{0}` must be a string")]
    NotText(&'static str),
    /// A list of models without end.
    #[error("`models` names more than {FALLBACK_MODELS} models")]
    TooManyModels,
}

impl<'a> Call<'a> {
    /// Reads the top level of `body`.
    ///
    /// `path` is as servers read it. It may name the model (Gemini, Azure deployments).
    ///
    /// # Errors
    /// When the body is not one JSON object, or has a key twice that Sprag acts on: such a body could be one prompt
    /// for Sprag and another for the model. When it names models without end.
    pub fn parse(dialect: Dialect, path: &'a str, body: &'a [u8]) -> Result<Call<'a>, BadBody> {
        // The parser would take a list for the fields in their order.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(BadBody::NotObject);
        }
        let (top, items) = Top::read(dialect, body)?;
        let own = own_fields(&top)?;
        let list = top.list(dialect);
        let prompt = if items.is_empty() { list.or(top.input) } else { None };
        let fixed = [top.system, top.instructions, top.system_instruction, top.tools, top.functions];
        let is_stream = match dialect {
            Dialect::Gemini => has_end(path, STREAM_VERB),
            _ => top.stream.is_some_and(|v| v.get() == "true"),
        };
        let mut fallback_models = fallback_models(top.models)?;
        let (model, model_in_body) = match (model_in_path(dialect, path), text(top.model)) {
            (Some(named), in_body) => (Some(named), in_body),
            (None, None) if !fallback_models.is_empty() => (Some(fallback_models.remove(0)), None),
            (None, in_body) => (in_body, None),
        };
        let is_named = |value: Option<&RawValue>| value.is_some_and(|value| value.get() != "null");
        let keeps_prompt = dialect == Dialect::OpenaiResponses && is_named(top.prompt);
        let previous_in_thread = thread_previous(top.thread);
        Ok(Call {
            dialect,
            model,
            model_in_body,
            fallback_models,
            is_continued: is_named(top.previous_response_id)
                || is_named(top.conversation)
                || previous_in_thread.is_some()
                || keeps_prompt,
            is_stream,
            items,
            fixed: fixed.into_iter().flatten().collect(),
            prompt,
            max_output_tokens: output_limit(dialect, &top),
            choices: choices(dialect, &top),
            previous_id: text(top.previous_response_id).or(previous_in_thread),
            session: metadata_session(top.metadata)
                .or_else(|| conversation_id(top.conversation))
                .or_else(|| cache_key_session(top.prompt_cache_key)),
            own,
            stream_options: stream_options(top.stream_options),
        })
    }
}

/// A raw value as text, borrowed when it holds no escapes. None when it is not a string.
fn text(value: Option<&RawValue>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let inner = value?.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    json::from_str::<Text<'_>>(value?.get()).ok().map(|t| t.0)
}

fn own_fields<'a>(top: &Top<'a>) -> Result<OwnFields<'a>, BadBody> {
    let known = [
        ("sprag_run_id", top.sprag_run_id),
        ("agentwall_run_id", top.agentwall_run_id),
        ("sprag_parent_run_id", top.sprag_parent_run_id),
        ("sprag_agent", top.sprag_agent),
        ("agentwall_agent_id", top.agentwall_agent_id),
    ];
    let mut own = OwnFields::default();
    for (name, value) in known {
        let Some(value) = value else { continue };
        own.values.push(value);
        if value.get() == "null" {
            continue;
        }
        let text = text(Some(value)).ok_or(BadBody::NotText(name))?;
        let slot = match name {
            "sprag_run_id" | "agentwall_run_id" => &mut own.run_id,
            "sprag_parent_run_id" => &mut own.parent_run_id,
            _ => &mut own.agent,
        };
        // The first name wins where a body has both.
        slot.get_or_insert(text);
    }
    own.values.sort_by_key(|v| v.get().as_ptr());
    Ok(own)
}

/// The models of a router's list, as far as they are texts.
fn fallback_models(models: Option<&RawValue>) -> Result<Vec<Cow<'_, str>>, BadBody> {
    let listed: Option<Vec<&RawValue>> = models.and_then(|raw| json::from_str(raw.get()).ok());
    let listed = listed.unwrap_or_default();
    if listed.len() > FALLBACK_MODELS {
        return Err(BadBody::TooManyModels);
    }
    Ok(listed.into_iter().filter_map(|model| text(Some(model))).collect())
}

fn thread_previous(thread: Option<&RawValue>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Thread<'a> {
        #[serde(borrow, default)]
        previous_message_id: Option<Cow<'a, str>>,
    }
    json::from_str::<Thread<'_>>(thread?.get()).ok()?.previous_message_id
}

/// The conversation that the provider keeps: `"conv_…"` or `{"id":"conv_…"}`.
fn conversation_id(conversation: Option<&RawValue>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Conversation<'a> {
        #[serde(borrow)]
        id: Cow<'a, str>,
    }
    let named = text(conversation);
    named.or_else(|| json::from_str::<Conversation<'_>>(conversation?.get()).ok().map(|c| c.id))
}

/// A cache key that names one session. Many programs send one key of their own with every conversation: that is none.
fn cache_key_session(key: Option<&RawValue>) -> Option<Cow<'_, str>> {
    text(key).filter(|key| looks_unique(key))
}

/// The most answers that Gemini gives to one question.
const MOST_CANDIDATES: u32 = 8;

/// The limit that this dialect's providers look at: one of another dialect is not kept by anybody. None where a caller
/// names one that cannot be read, for nobody knows what a provider makes of it.
fn output_limit(dialect: Dialect, top: &Top<'_>) -> Option<u64> {
    let config = gemini_config(top).unwrap_or_default();
    let (one, other) = match dialect {
        Dialect::OpenaiResponses => (top.max_output_tokens, None),
        Dialect::Gemini => (config.max_output_tokens, config.max_output_tokens_too),
        // Of two limits nobody knows which one a provider keeps.
        Dialect::OpenaiChat => (top.max_completion_tokens, top.max_tokens),
        _ => (top.max_tokens, None),
    };
    let named: Vec<&str> = [one, other].into_iter().flatten().map(RawValue::get).filter(|n| *n != "null").collect();
    let read: Option<Vec<u64>> = named.iter().map(|number| number.parse().ok()).collect();
    // Many programs take a zero for a limit that is not set. A completion of nothing only echoes.
    read?.into_iter().max().filter(|limit| *limit > 0 || dialect == Dialect::OpenaiCompletions)
}

/// How many answers are asked for; one too many rather than one too few where a number is written strangely.
fn choices(dialect: Dialect, top: &Top<'_>) -> u32 {
    let config = gemini_config(top);
    let config = match (dialect, config) {
        (Dialect::Gemini, None) => return MOST_CANDIDATES,
        (_, config) => config.unwrap_or_default(),
    };
    let (one, other) = match dialect {
        Dialect::OpenaiChat => (top.n, None),
        Dialect::OpenaiCompletions => (top.n, top.best_of),
        Dialect::Gemini => (config.candidate_count, config.candidate_count_too),
        _ => (None, None),
    };
    let number = |value: &RawValue| value.get().trim_matches('"').parse::<f64>().ok();
    // What is no number is 0, and what is too large is the largest.
    let most = [one, other].into_iter().flatten().filter_map(number).fold(1.0, f64::max);
    most.ceil() as u32
}

#[derive(Default, Deserialize)]
struct GeminiConfig<'a> {
    #[serde(borrow, default, deserialize_with = "raw", rename = "maxOutputTokens")]
    max_output_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw", rename = "max_output_tokens")]
    max_output_tokens_too: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw", rename = "candidateCount")]
    candidate_count: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw", rename = "candidate_count")]
    candidate_count_too: Option<&'a RawValue>,
}

/// None where it cannot be read, as when it says something twice.
fn gemini_config<'a>(top: &Top<'a>) -> Option<GeminiConfig<'a>> {
    match top.generation_config.map(RawValue::get) {
        None | Some("null") => Some(GeminiConfig::default()),
        Some(config) => json::from_str(config).ok(),
    }
}

fn stream_options(options: Option<&RawValue>) -> StreamOptions<'_> {
    #[derive(Deserialize)]
    struct Options<'a> {
        #[serde(borrow, default, deserialize_with = "raw")]
        include_usage: Option<&'a RawValue>,
    }
    let include_usage = options.and_then(|o| json::from_str::<Options<'_>>(o.get()).ok()?.include_usage);
    StreamOptions { value: options, include_usage }
}

/// The session that Claude Code puts into `metadata.user_id`: a JSON text, or `user_…_account_…_session_UUID`.
fn metadata_session(metadata: Option<&RawValue>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow, default)]
        user_id: Option<Cow<'a, str>>,
    }
    #[derive(Deserialize)]
    struct UserId {
        session_id: Option<String>,
    }
    let user_id = json::from_str::<Metadata<'_>>(metadata?.get()).ok()?.user_id?;
    if user_id.starts_with('{') {
        let session = json::from_str::<UserId>(&user_id).ok()?.session_id?;
        return (!session.is_empty()).then_some(Cow::Owned(session));
    }
    let (_, session) = user_id.rsplit_once("_session_")?;
    (!session.is_empty()).then(|| Cow::Owned(session.to_owned()))
}

#[cfg(test)]
#[path = "call/tests.rs"]
mod tests;
