//! What an answer said, put together on the side while its bytes pass.

use crate::usage::Usage;

/// One answer, as far as it has been seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The provider's id of the answer; later requests may refer to it.
    pub id: Option<String>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// Visible text of all choices, cut at [`crate::limits::REPLY_TEXT_BYTES`]. Refusals count as text.
    pub text: String,
    /// Bytes of visible text, also beyond what `text` keeps.
    pub text_bytes: u64,
    /// Bytes of reasoning text that was streamed or returned in the clear.
    pub reasoning_bytes: u64,
    /// Calls the model asked for, in order of appearance, cut at [`crate::limits::REPLY_TOOL_CALLS`].
    pub tool_calls: Vec<ToolCall>,
    /// Tokens as the provider reported them. Anthropic reports the input at the start: then `output` still grows.
    pub usage: Option<Usage>,
    /// The provider's own word for why it stopped: `stop`, `tool_calls`, `end_turn`, `MAX_TOKENS`.
    pub finish: Option<String>,
    /// The provider's message when the answer is an error, or an error came in the middle of a stream.
    pub error: Option<String>,
    /// The answer is whole: a JSON body was read to its end, or a stream had its closing event.
    pub complete: bool,
}

/// A tool call inside an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The provider's id; empty where the dialect has none.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Arguments as JSON text, cut at [`crate::limits::TOOL_ARGUMENT_BYTES`].
    pub arguments: String,
}
