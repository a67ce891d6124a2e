//! One answer of the provider, free of any dialect.

use crate::fault::Fault;
use bytes::Bytes;
use serde_json::Value;
use sprag_core::usage::Usage;

/// What the provider says to one request, and how it is delivered.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The text; `None` lets the provider echo what it heard.
    pub text: Option<String>,
    /// Reasoning, in the dialect's own form.
    pub reasoning: String,
    /// A refusal in place of the text.
    pub refusal: Option<String>,
    /// Tool calls; more than one are parallel.
    pub tool_calls: Vec<ToolCall>,
    /// What is reported as used.
    pub usage: Reported,
    /// Finish reason in the dialect's own words, when it is not the usual one.
    pub finish: Option<String>,
    /// An error in place of an answer.
    pub failure: Option<Failure>,
    /// A body that is sent as it is.
    pub raw: Option<Raw>,
    /// More response headers.
    pub headers: Vec<(String, String)>,
    /// What goes wrong on the way.
    pub faults: Vec<Fault>,
    /// Characters in one delta of a stream.
    pub delta_chars: usize,
}

/// The model asks for a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Name of the tool.
    pub name: String,
    /// The arguments as JSON text, which may be broken on purpose.
    pub arguments: String,
}

/// What an answer says about its usage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reported {
    /// Made up from the sizes of request and answer.
    Counted,
    /// These numbers.
    Given(Usage),
    /// Nothing at all.
    Absent,
}

/// An error answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// HTTP status.
    pub status: u16,
    /// Message, put into the dialect's error shape.
    pub message: String,
    /// `retry-after`, in seconds.
    pub retry_after: Option<u64>,
}

/// A body sent without regard to any dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct Raw {
    /// HTTP status.
    pub status: u16,
    /// `content-type`.
    pub content_type: String,
    /// The bytes.
    pub body: Bytes,
}

impl Default for Reply {
    fn default() -> Reply {
        Reply {
            text: None,
            reasoning: String::new(),
            refusal: None,
            tool_calls: Vec::new(),
            usage: Reported::Counted,
            finish: None,
            failure: None,
            raw: None,
            headers: Vec::new(),
            faults: Vec::new(),
            delta_chars: 8,
        }
    }
}

impl Reply {
    /// Repeats what the user said, which is also the default.
    #[must_use]
    pub fn echo() -> Reply {
        Reply::default()
    }

    /// Says `text`.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Reply {
        Reply { text: Some(text.into()), ..Reply::default() }
    }

    /// Calls one tool; add parallel ones with [`Reply::and_tool`].
    #[must_use]
    pub fn tool(name: impl Into<String>, arguments: Value) -> Reply {
        Reply::text("").and_tool(name, arguments)
    }

    /// Declines, in the dialect's own form.
    #[must_use]
    pub fn refusal(text: impl Into<String>) -> Reply {
        Reply { refusal: Some(text.into()), ..Reply::text("") }
    }

    /// Fails with an error in the dialect's own shape.
    #[must_use]
    pub fn status(status: u16) -> Reply {
        let failure =
            Failure { status, message: format!("The mock was told to fail with {status}."), retry_after: None };
        Reply { failure: Some(failure), ..Reply::default() }
    }

    /// Answers with these very bytes; also the way to answer paths that no dialect knows.
    #[must_use]
    pub fn raw(status: u16, content_type: impl Into<String>, body: impl Into<Bytes>) -> Reply {
        let raw = Raw { status, content_type: content_type.into(), body: body.into() };
        Reply { raw: Some(raw), ..Reply::default() }
    }

    /// Adds a tool call.
    #[must_use]
    pub fn and_tool(mut self, name: impl Into<String>, arguments: Value) -> Reply {
        self.tool_calls.push(ToolCall { name: name.into(), arguments: arguments.to_string() });
        self
    }

    /// Adds a tool call whose arguments are any text, valid JSON or not.
    #[must_use]
    pub fn and_tool_text(mut self, name: impl Into<String>, arguments: impl Into<String>) -> Reply {
        self.tool_calls.push(ToolCall { name: name.into(), arguments: arguments.into() });
        self
    }

    /// Says `text` before the tool calls.
    #[must_use]
    pub fn saying(mut self, text: impl Into<String>) -> Reply {
        self.text = Some(text.into());
        self
    }

    /// Thinks aloud first.
    #[must_use]
    pub fn reasoning(mut self, text: impl Into<String>) -> Reply {
        self.reasoning = text.into();
        self
    }

    /// Reports these numbers as used.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Reply {
        self.usage = Reported::Given(usage);
        self
    }

    /// Reports no usage, asked or not.
    #[must_use]
    pub fn no_usage(mut self) -> Reply {
        self.usage = Reported::Absent;
        self
    }

    /// Ends with this finish reason, in the dialect's own words.
    #[must_use]
    pub fn finish(mut self, reason: impl Into<String>) -> Reply {
        self.finish = Some(reason.into());
        self
    }

    /// Sets the message of an error.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Reply {
        if let Some(failure) = &mut self.failure {
            failure.message = message.into();
        }
        self
    }

    /// Sets `retry-after` of an error.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Reply {
        if let Some(failure) = &mut self.failure {
            failure.retry_after = Some(seconds);
        }
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a fault; the first of a kind wins.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Reply {
        self.faults.push(fault);
        self
    }

    /// Sets how many characters a delta carries.
    #[must_use]
    pub fn delta_chars(mut self, chars: usize) -> Reply {
        self.delta_chars = chars.max(1);
        self
    }
}
