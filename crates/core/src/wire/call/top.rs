//! The top level of a body: the fields that Sprag acts on, as they stand there.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::BadBody;
use crate::json::{self, Odd, Reader};
use crate::wire::Dialect;

/// The fields that Sprag acts on, of all dialects. A field that is there twice is an error of the parser.
#[derive(Default, Deserialize)]
pub(super) struct Top<'a> {
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) model: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) models: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) messages: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) contents: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) prompt: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) stream: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) stream_options: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) max_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) max_completion_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) max_output_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) n: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) best_of: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw", rename = "generationConfig", alias = "generation_config")]
    pub(super) generation_config: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) previous_response_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) thread: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) metadata: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) prompt_cache_key: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) conversation: Option<&'a RawValue>,
    // Read by the model: each may be there once.
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) system: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) instructions: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw", rename = "systemInstruction", alias = "system_instruction")]
    pub(super) system_instruction: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) tools: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) functions: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) sprag_run_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) sprag_parent_run_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) sprag_agent: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) agentwall_run_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) agentwall_agent_id: Option<&'a RawValue>,
}

impl<'a> Top<'a> {
    /// Reads a body, and the items of its conversation.
    pub(super) fn read(dialect: Dialect, body: &'a [u8]) -> Result<(Top<'a>, Vec<&'a RawValue>), BadBody> {
        let quick = std::str::from_utf8(body).map_err(|_| Odd).and_then(|text| Top::read_quickly(dialect, text));
        if let Ok(read) = quick {
            return Ok(read);
        }
        let top: Top<'a> = serde_json::from_slice(body)?;
        let items = top.list(dialect).and_then(|raw| json::from_str(raw.get()).ok()).unwrap_or_default();
        Ok((top, items))
    }

    /// The same in one pass, where nothing is odd: the items are cut apart on the way.
    fn read_quickly(dialect: Dialect, text: &'a str) -> Result<(Top<'a>, Vec<&'a RawValue>), Odd> {
        let (mut top, mut items) = (Top::default(), Vec::new());
        let mut reader = Reader::new(text);
        let mut goes_on = reader.enter(b'{')?;
        while goes_on {
            let key = reader.key()?;
            if key.is_escaped {
                return Err(Odd);
            }
            match top.field(key.inner) {
                Some(Some(_)) => return Err(Odd),
                Some(field) => {
                    let mut value = reader;
                    if key.inner == list_key(dialect) && reader.token()? == b'[' {
                        items = Vec::deserialize(&mut reader)?;
                        // Nobody asks for the raw list of items that were cut apart.
                        let is_empty = items.is_empty();
                        *field = Some(if is_empty { <&RawValue>::deserialize(&mut value)? } else { RawValue::NULL });
                    } else {
                        *field = Some(<&RawValue>::deserialize(&mut reader)?);
                    }
                }
                None => {
                    reader.raw()?;
                }
            }
            goes_on = reader.goes_on(b'{')?;
        }
        reader.finish()?;
        Ok((top, items))
    }

    /// The list that is the conversation.
    pub(super) fn list(&self, dialect: Dialect) -> Option<&'a RawValue> {
        match dialect {
            Dialect::OpenaiResponses => self.input,
            Dialect::Gemini => self.contents,
            Dialect::OpenaiCompletions => self.prompt,
            Dialect::OpenaiEmbeddings => None,
            _ => self.messages,
        }
    }

    fn field(&mut self, key: &str) -> Option<&mut Option<&'a RawValue>> {
        Some(match key {
            "model" => &mut self.model,
            "models" => &mut self.models,
            "messages" => &mut self.messages,
            "input" => &mut self.input,
            "contents" => &mut self.contents,
            "prompt" => &mut self.prompt,
            "stream" => &mut self.stream,
            "stream_options" => &mut self.stream_options,
            "max_tokens" => &mut self.max_tokens,
            "max_completion_tokens" => &mut self.max_completion_tokens,
            "max_output_tokens" => &mut self.max_output_tokens,
            "n" => &mut self.n,
            "best_of" => &mut self.best_of,
            "generationConfig" | "generation_config" => &mut self.generation_config,
            "previous_response_id" => &mut self.previous_response_id,
            "thread" => &mut self.thread,
            "metadata" => &mut self.metadata,
            "prompt_cache_key" => &mut self.prompt_cache_key,
            "conversation" => &mut self.conversation,
            "system" => &mut self.system,
            "instructions" => &mut self.instructions,
            "systemInstruction" | "system_instruction" => &mut self.system_instruction,
            "tools" => &mut self.tools,
            "functions" => &mut self.functions,
            "sprag_run_id" => &mut self.sprag_run_id,
            "sprag_parent_run_id" => &mut self.sprag_parent_run_id,
            "sprag_agent" => &mut self.sprag_agent,
            "agentwall_run_id" => &mut self.agentwall_run_id,
            "agentwall_agent_id" => &mut self.agentwall_agent_id,
            _ => return None,
        })
    }
}

/// The key of the list that is the conversation.
fn list_key(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenaiResponses => "input",
        Dialect::Gemini => "contents",
        Dialect::OpenaiCompletions => "prompt",
        Dialect::OpenaiEmbeddings => "",
        _ => "messages",
    }
}

/// Keeps `null` as a value: a field of ours that is null must be removed all the same.
pub(super) fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
