//! One text of a stream that goes on over several events.

use super::arguments::Arguments;
use super::template::Template;
use super::text::PlainText;
use super::watch::{Spot, Stopped};

/// Which text of the stream it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// The choice, output item, content block or candidate.
    pub(super) group: u64,
    /// The tool call or content part in it.
    pub(super) part: u64,
    /// What it is, as a hash of its name.
    pub(super) name: u64,
}

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is.
    Text,
    /// As JSON, if it is.
    Json,
}

/// Such a text.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) key: Key,
    /// Words that are over when something else begins, unlike arguments.
    pub(super) is_talk: bool,
    /// A hash of the id of the call whose arguments these are.
    pub(super) call: Option<u64>,
    pub(super) path: String,
    /// An event to put the rest into.
    pub(super) template: Template,
    pub(super) content: Content,
}

/// A text as far as it is read.
#[derive(Debug)]
pub(super) enum Content {
    Text(PlainText),
    Json(Box<Arguments>),
}

impl Content {
    /// A text that stands behind `context`.
    pub(super) fn new(form: Form, context: &[u8]) -> Content {
        match form {
            Form::Text => Content::Text(PlainText::new(context, 0)),
            Form::Json => Content::Json(Box::new(Arguments::new())),
        }
    }

    /// Takes what comes next; what can go on is added to `out`, also when the call is to be stopped.
    pub(super) fn push(
        &mut self,
        spot: &mut Spot<'_>,
        more: &[u8],
        is_end: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Stopped> {
        match self {
            Content::Text(text) => text.push(spot, more, is_end, out),
            Content::Json(arguments) => arguments.push(spot, more, is_end, out),
        }
    }

    /// Gives what is decided; the rest will never come.
    pub(super) fn break_off(&mut self, spot: &mut Spot<'_>, out: &mut Vec<u8>) -> Result<(), Stopped> {
        match self {
            Content::Text(text) => text.break_off(spot, out),
            Content::Json(arguments) => arguments.break_off(spot, out),
        }
    }

    /// Whether something of it is held back.
    pub(super) fn is_holding(&self) -> bool {
        match self {
            Content::Text(text) => text.is_holding(),
            Content::Json(arguments) => arguments.is_holding(),
        }
    }
}
