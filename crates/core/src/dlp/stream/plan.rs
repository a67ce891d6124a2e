//! What is to be done with the values of one event: which continue a text, which texts are over.

use xxhash_rust::xxh3::xxh3_64;

use super::document::Document;
use super::field::{Form, Key};
use super::{anthropic, chat, gemini, other, responses};
use crate::limits::{EVENT_PARTS, STREAM_FIELDS};
use crate::wire::Dialect;

/// What one event says about the texts of the stream.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// In their order.
    pub(super) parts: Vec<Part>,
    pub(super) ends: Vec<End>,
    /// Values that are never touched.
    pub(super) skips: Vec<usize>,
}

/// A value that continues a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) node: usize,
    pub(super) key: Key,
    pub(super) form: Form,
    /// Words that are over when something else begins, unlike arguments.
    pub(super) is_talk: bool,
    /// A hash of the call's id, where the event names the call.
    pub(super) call: Option<u64>,
}

/// Texts that are over with this event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    All,
    /// All of a choice, item or block.
    Group(u64),
    /// The same, by a reason to finish.
    Finish(u64),
    /// All of a part of it.
    Part(u64, u64),
    Field(Key),
    /// The words of a choice, because something else begins.
    Talk(u64),
}

impl Plan {
    /// Reads an event. `calls` says which call of a choice came last.
    pub(super) fn of(dialect: Dialect, document: &Document<'_>, name: Option<&[u8]>, calls: &mut Calls) -> Plan {
        let mut plan = Plan::default();
        match dialect {
            Dialect::OpenaiChat | Dialect::OpenaiCompletions | Dialect::OpenaiEmbeddings => {
                chat::read(document, calls, &mut plan);
            }
            Dialect::OpenaiResponses => responses::read(document, name, &mut plan),
            Dialect::Anthropic => anthropic::read(document, name, &mut plan),
            Dialect::Gemini => gemini::read(document, &mut plan),
            Dialect::Opaque => other::read(document, &mut plan),
        }
        if name == Some(b"error") || document.has(0, "error") {
            plan.ends.push(End::All);
        }
        plan.parts.sort_by_key(|part| part.node);
        plan.skips.sort_unstable();
        // Nobody sends as many. What is left out is looked at by itself.
        plan.parts.truncate(EVENT_PARTS);
        if plan.ends.len() > EVENT_PARTS {
            plan.ends = vec![End::All];
        }
        plan
    }

    /// A value that continues words.
    pub(super) fn talk(&mut self, node: usize, group: u64, part: u64, name: &str) {
        let key = Key { group, part, name: hash(name.as_bytes()) };
        self.parts.push(Part { node, key, form: Form::Text, is_talk: true, call: None });
    }

    /// A value that continues arguments.
    pub(super) fn arguments(&mut self, node: usize, group: u64, part: u64, form: Form, call: Option<u64>) {
        let key = Key { group, part, name: hash(b"arguments") };
        self.parts.push(Part { node, key, form, is_talk: false, call });
    }

    /// Whether this text is over. What stands in the event itself is not ended by others that begin in it.
    pub(super) fn ends(&self, key: Key, is_talk: bool) -> bool {
        let is_here = self.parts.iter().any(|part| part.key == key);
        self.ends.iter().any(|end| match *end {
            End::All => true,
            End::Group(group) | End::Finish(group) => group == key.group,
            End::Part(group, part) => (group, part) == (key.group, key.part),
            End::Field(field) => field == key,
            End::Talk(group) => group == key.group && is_talk && !is_here,
        })
    }

    /// Whether it can be forgotten.
    pub(super) fn ends_for_good(&self, key: Key) -> bool {
        self.ends(key, false)
    }
}

/// The calls of each choice, for providers that do not number them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: Vec<(u64, u64)>,
}

impl Calls {
    pub(super) fn last(&self, choice: u64) -> Option<u64> {
        self.last.iter().find(|(of, _)| *of == choice).map(|(_, number)| *number)
    }

    /// The number of the call that a piece belongs to: without a name it continues the last one.
    pub(super) fn number(&mut self, choice: u64, given: Option<u64>, position: u64, is_named: bool) -> u64 {
        let number = match (given, self.last(choice)) {
            (Some(given), _) => given,
            (None, Some(last)) if !is_named => last,
            (None, Some(last)) if position == 0 || last >= position => last.saturating_add(1),
            (None, _) => position,
        };
        match self.last.iter().position(|(of, _)| *of == choice) {
            Some(known) => self.last[known].1 = number,
            None if self.last.len() < STREAM_FIELDS => self.last.push((choice, number)),
            None => {}
        }
        number
    }
}

pub(super) fn hash(name: &[u8]) -> u64 {
    xxh3_64(name)
}
