//! Bounds of everything that can grow, in one place.
//!
//! Each constant has a test at the bound and one past it, beside the code that uses it.

/// Longest run id, in characters.
pub const RUN_ID_CHARS: usize = 128;
/// Longest agent name, in bytes.
pub const AGENT_NAME_BYTES: usize = 64;
/// Largest request body, unless configured.
pub const BODY_BYTES: usize = 32 << 20;
/// Largest event of a stream that is still read; a longer one passes unread.
pub const SSE_EVENT_BYTES: usize = 8 << 20;
/// Text of an answer kept for counting and fingerprints; what is beyond is counted in bytes only.
pub const REPLY_TEXT_BYTES: usize = 256 << 10;
/// Tool calls kept of one answer.
pub const REPLY_TOOL_CALLS: usize = 128;
/// Arguments kept of one tool call.
pub const TOOL_ARGUMENT_BYTES: usize = 64 << 10;
/// Largest JSON answer that is read; a larger one passes unread.
pub const JSON_REPLY_BYTES: usize = 32 << 20;
/// Pieces of evidence looked up to find the run of one request.
pub const RUN_CLUES: usize = 48;
