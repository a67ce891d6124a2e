//! An answer's stream of events on its way to the client: secrets are taken out and placeholders put back, however the
//! text is cut.
//!
//! ```text
//! event → frame (its data) → document (its values) → plan (which continue a text, which texts are over; one reader
//! for each dialect) → field (text or arguments; holds back what is undecided) → the event, changed in place
//! ```
//!
//! An event in which nothing changes passes as it is. What is held back of a text goes out with the next event that
//! continues it, or in an event of our own before the one that ends it ([`template`]). No event is left out or moved.
//! Thinking that is signed, ids and base64 data are never touched.
//!
//! `logprobs` spell a text once more, token by token. Beside text that was changed or held back they are emptied.
//!
//! Where nothing can change, because findings are only put on record, all passes as it came and is looked at aside.

mod alike;
mod anthropic;
mod arguments;
mod array;
mod break_off;
mod chat;
mod document;
mod escape;
mod field;
mod frame;
mod gemini;
mod other;
mod placeholder;
mod plain;
mod plan;
mod responses;
mod template;
mod text;
mod watch;
mod whole;

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use self::alike::{Alike, OnlyText};
use self::array::Elements;
use self::document::{Document, Kind};
use self::field::{Content, Field, Form};
use self::frame::Frame;
use self::plan::{Calls, Part, Plan};
use self::template::Template;
use self::text::PlainText;
use self::watch::{Spot, Stopped, Watch};
use super::inspector::Inspector;
use super::policy::Direction;
use super::sighting::Sightings;
use crate::limits::STREAM_FIELDS;
use crate::wire::Dialect;

/// Looks at one stream of events.
pub struct StreamFilter {
    dialect: Dialect,
    watch: Watch,
    fields: Vec<Field>,
    calls: Calls,
    /// Choices that were said to be over.
    finished: Vec<u64>,
    /// The number of the last event as the provider counts.
    last_number: Option<u64>,
    /// Events of our own, by which later numbers are moved.
    added: u64,
    /// What is too long to be read as events.
    unread: Option<PlainText>,
    /// Of a stream that is an array.
    elements: Elements,
    /// What is known of the next event, should it be like the last.
    alike: Option<Alike>,
    /// Nothing can change: what comes passes as it is.
    is_watching: bool,
    is_stopped: bool,
}

/// How a stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// What can go out is out.
    Passed,
    /// The answer must end here. What came before the value is out; nothing of it or behind it is, or will be.
    Stopped,
}

impl StreamFilter {
    /// A filter for one answer.
    #[must_use]
    pub fn new(inspector: Inspector, dialect: Dialect) -> StreamFilter {
        StreamFilter {
            dialect,
            is_watching: !inspector.may_change(Direction::Answer),
            watch: Watch::new(inspector),
            fields: Vec::new(),
            calls: Calls::default(),
            finished: Vec::new(),
            last_number: None,
            added: 0,
            unread: None,
            elements: Elements::default(),
            alike: None,
            is_stopped: false,
        }
    }

    /// Takes one event with its blank line. Unless stopped, the event is the last of what is added to `out`; before it
    /// may stand events of our own. One without a blank line ends the stream.
    pub fn push(&mut self, event: Bytes, out: &mut Vec<Bytes>) -> Flow {
        let whole = event.clone();
        self.pass(|| whole, out, |filter, out| filter.event(event, out))
    }

    /// The stream is over: gives what is held back.
    pub fn end(&mut self, out: &mut Vec<Bytes>) -> Flow {
        self.pass(Bytes::new, out, |filter, out| {
            filter.end_all(out)?;
            filter.end_array(out)?;
            filter.plain(b"", true, out)
        })
    }

    /// Takes bytes of a stream that can no longer be cut into events; they are looked at as one text.
    pub fn push_unread(&mut self, bytes: &[u8], out: &mut Vec<Bytes>) -> Flow {
        self.pass(|| Bytes::copy_from_slice(bytes), out, |filter, out| filter.unread(bytes, out))
    }

    /// What was found.
    #[must_use]
    pub fn sightings(&self) -> &Sightings {
        &self.watch.sightings
    }

    /// The dialect of the stream; one that was none may have turned out to have the shape of another.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// How many events of our own came in between: later sequence numbers are higher by so many than the provider's.
    #[must_use]
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Does what gives the text to pass on. Where nothing can change, that is what came: `whole`.
    fn pass(
        &mut self,
        whole: impl FnOnce() -> Bytes,
        out: &mut Vec<Bytes>,
        act: impl FnOnce(&mut StreamFilter, &mut Vec<Bytes>) -> Result<(), Stopped>,
    ) -> Flow {
        if !self.is_watching {
            return self.unless_stopped(|filter| act(filter, out));
        }
        let flow = self.unless_stopped(|filter| act(filter, &mut Vec::new()));
        out.extend(Some(whole()).filter(|whole| flow == Flow::Passed && !whole.is_empty()));
        flow
    }

    fn unless_stopped(&mut self, act: impl FnOnce(&mut StreamFilter) -> Result<(), Stopped>) -> Flow {
        if !self.is_stopped && act(self).is_err() {
            self.stop();
        }
        if self.is_stopped { Flow::Stopped } else { Flow::Passed }
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.fields.clear();
        self.alike = None;
        self.unread = None;
    }

    fn event(&mut self, event: Bytes, out: &mut Vec<Bytes>) -> Result<(), Stopped> {
        if let Some(passed) = self.pass_alike(&event, out) {
            return passed;
        }
        self.alike = None;
        let frame = Frame::read(&event);
        if frame.data.is_empty() {
            if !frame.is_ended() {
                self.end_all(out)?;
            }
            let said = self.said_plainly(&event)?;
            out.push(said.map_or_else(|| event.clone(), Bytes::from));
            return Ok(());
        }
        let Some(document) = Document::read(&frame.data) else {
            if !frame.is_ended() || frame.data.trim_ascii() == b"[DONE]" {
                self.end_all(out)?;
            }
            let said = self.said_plainly(&frame.data)?;
            out.push(said.map_or_else(|| event.clone(), |data| frame.with_data(&data, false).into()));
            return Ok(());
        };
        let (edits, only) = self.look(&document, frame.name, frame.is_ended(), out)?;
        self.learn(&frame, only, &edits);
        out.push(if edits.is_empty() {
            event.clone()
        } else {
            frame.with_data(&applied(&frame.data, edits), true).into()
        });
        Ok(())
    }

    /// What must change in an event, and its text if it has only one. What must come before it is added to `out`.
    fn look(
        &mut self,
        document: &Document<'_>,
        name: Option<&[u8]>,
        is_ended: bool,
        out: &mut Vec<Bytes>,
    ) -> Result<(Vec<Edit>, Option<OnlyText>), Stopped> {
        if self.dialect == Dialect::Opaque
            && let Some(spoken) = other::spoken(document, name)
        {
            self.dialect = spoken;
            self.end_all(out)?;
        }
        self.last_number = document.number_of(0, "sequence_number").or(self.last_number);
        let mut plan = Plan::of(self.dialect, document, name, &mut self.calls);
        if !is_ended {
            plan.ends.push(plan::End::All);
        }
        let only = self.only_text(document, &plan);
        self.doubt_finish(&mut plan);
        self.begin_fields(&mut plan, out)?;
        self.end_fields(&plan, out)?;
        let mut edits = self.edits(document, &plan, name, out)?;
        self.fields.retain(|field| !plan.ends_for_good(field.key));
        if let (Some(number), Some(last)) = (document.member(0, "sequence_number"), self.last_number)
            && self.added > 0
        {
            edits.push((document.range(number), last.saturating_add(self.added).to_string().into_bytes()));
        }
        Ok((edits, only))
    }

    /// Some say in every event that the answer is over. Who goes on after that is not believed again.
    fn doubt_finish(&mut self, plan: &mut Plan) {
        let Plan { parts, ends, .. } = plan;
        ends.retain(|end| match end {
            plan::End::Finish(group) if self.finished.contains(group) => {
                parts.iter().all(|part| part.key.group != *group)
            }
            plan::End::Finish(group) => {
                if self.finished.len() < STREAM_FIELDS {
                    self.finished.push(*group);
                }
                true
            }
            _ => true,
        });
    }

    /// What begins with this event: it ends the words before it, and a call that has the same number.
    fn begin_fields(&mut self, plan: &mut Plan, out: &mut Vec<Bytes>) -> Result<(), Stopped> {
        for part in plan.parts.clone() {
            let known = self.fields.iter().position(|field| field.key == part.key);
            match known {
                None => plan.ends.push(plan::End::Talk(part.key.group)),
                Some(known) => {
                    let is_other = self.fields[known].call.zip(part.call).is_some_and(|(one, other)| one != other);
                    if is_other {
                        self.flush(known, out)?;
                        self.fields.remove(known);
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives what is held back of texts that are over and do not stand in the event.
    fn end_fields(&mut self, plan: &Plan, out: &mut Vec<Bytes>) -> Result<(), Stopped> {
        for index in 0..self.fields.len() {
            let field = &self.fields[index];
            let is_here = plan.parts.iter().any(|part| part.key == field.key);
            if !is_here && plan.ends(field.key, field.is_talk) {
                self.flush(index, out)?;
            }
        }
        Ok(())
    }

    /// Gives everything that is held back, before something that has no number.
    fn end_all(&mut self, out: &mut Vec<Bytes>) -> Result<(), Stopped> {
        self.last_number = self.last_number.map(|last| last.saturating_add(1));
        self.end_fields(&Plan { ends: vec![plan::End::All], ..Plan::default() }, out)?;
        self.fields.clear();
        Ok(())
    }

    fn flush(&mut self, index: usize, out: &mut Vec<Bytes>) -> Result<(), Stopped> {
        let Field { content, path, .. } = &mut self.fields[index];
        if !content.is_holding() {
            return Ok(());
        }
        let mut rest = Vec::new();
        let path = || path.clone();
        let mut spot = Spot { watch: &mut self.watch, path: &path, is_repeat: false };
        let result = content.push(&mut spot, b"", true, &mut rest);
        self.add_event(index, &rest, out);
        result
    }

    /// Puts in an event of our own.
    fn add_event(&mut self, index: usize, text: &[u8], out: &mut Vec<Bytes>) {
        if text.is_empty() || self.is_watching {
            return;
        }
        let template = &self.fields[index].template;
        let number = self.last_number.map(|last| last.saturating_add(self.added));
        out.push(template.event(text, number).into());
        self.added += u64::from(template.is_numbered);
    }

    /// What must change in an event, in the order of its values.
    fn edits(
        &mut self,
        document: &Document<'_>,
        plan: &Plan,
        name: Option<&[u8]>,
        out: &mut Vec<Bytes>,
    ) -> Result<Vec<Edit>, Stopped> {
        let (mut edits, mut spelled) = (Vec::new(), Vec::new());
        let (mut at, mut free_until, mut place) = (0, 0, 0);
        let scanner = self.watch.inspector.scanner.clone();
        let is_repeat = self.dialect == Dialect::OpenaiResponses;
        while at < document.nodes.len() {
            let node = &document.nodes[at];
            while plan.parts.get(place).is_some_and(|part| part.node < at) {
                place += 1;
            }
            let next_part = plan.parts.get(place).map(|part| part.node);
            if next_part == Some(at)
                && let Some(edit) = self.continued(document, plan, place, name, out)?
            {
                edits.extend(edit);
                at = node.after;
                continue;
            }
            let is_free = at < free_until;
            let has_part = next_part.is_some_and(|part| part < node.after);
            let is_protocol = !is_free && !has_part && whole::is_untouched(document, at);
            if is_protocol || plan.skips.binary_search(&at).is_ok() {
                at = node.after;
                continue;
            }
            if is_free {
                let path = || document.path(at, &scanner);
                let mut spot = Spot { watch: &mut self.watch, path: &path, is_repeat };
                let renamed = whole::renamed(document, at, &edits, &mut spot)?;
                edits.extend(renamed);
            }
            match node.kind {
                Kind::Object | Kind::Array if !is_free && document.key(at) == Some(b"logprobs") => {
                    spelled.push(at);
                    at = node.after;
                    continue;
                }
                Kind::Object | Kind::Array if !is_free && whole::is_free(document, at) => free_until = node.after,
                Kind::Number if !is_free => {}
                Kind::Text | Kind::Number => {
                    let path = || document.path(at, &scanner);
                    let mut spot = Spot { watch: &mut self.watch, path: &path, is_repeat };
                    edits.extend(whole::changed(document, at, &mut spot)?.map(|said| (document.range(at), said)));
                }
                Kind::Object | Kind::Array | Kind::Word => {}
            }
            at += 1;
        }
        let empty = if is_repeat { &b"[]"[..] } else { b"null" };
        let mut emptied = Vec::new();
        for logprobs in spelled {
            let around = document.nodes[logprobs].parent.map_or(0..0, |parent| document.range(parent));
            let first = edits.partition_point(|(range, _): &Edit| range.start < around.start);
            if edits.get(first).is_some_and(|(range, _)| range.start < around.end) {
                emptied.push((document.range(logprobs), empty.to_vec()));
            }
        }
        edits.extend(emptied);
        Ok(edits)
    }

    /// Continues a text: the edit, if the event's own value must change. None when there are too many texts, and this
    /// one is looked at by itself.
    #[expect(clippy::option_option, reason = "not continued, continued, continued with an edit")]
    fn continued(
        &mut self,
        document: &Document<'_>,
        plan: &Plan,
        place: usize,
        name: Option<&[u8]>,
        out: &mut Vec<Bytes>,
    ) -> Result<Option<Option<Edit>>, Stopped> {
        let part = &plan.parts[place];
        let Some(index) = self.field(document, part, name) else { return Ok(None) };
        let is_last = plan.parts[place + 1..].iter().all(|later| later.key != part.key);
        let is_end = is_last && plan.ends(part.key, part.is_talk);
        let text = document.text(part.node).unwrap_or_default();
        let Field { content, path, .. } = &mut self.fields[index];
        let path = || path.clone();
        let mut spot = Spot { watch: &mut self.watch, path: &path, is_repeat: false };
        let mut said = Vec::new();
        if let Err(stopped) = content.push(&mut spot, &text, is_end, &mut said) {
            self.add_event(index, &said, out);
            return Err(stopped);
        }
        if said == *text {
            return Ok(Some(None));
        }
        let mut written = Vec::new();
        escape::write(&said, &mut written);
        Ok(Some(Some((document.range(part.node), written))))
    }

    /// The text that a part continues or begins; None when there are too many.
    fn field(&mut self, document: &Document<'_>, part: &Part, name: Option<&[u8]>) -> Option<usize> {
        if let Some(known) = self.fields.iter().position(|field| field.key == part.key) {
            let call = &mut self.fields[known].call;
            *call = call.or(part.call);
            return Some(known);
        }
        if self.fields.len() >= STREAM_FIELDS {
            return None;
        }
        let template = match (self.dialect, part.form) {
            (Dialect::Anthropic, Form::Text) if part.key.name == plan::hash(b"text") => {
                Template::of_block(part.key.group, "text_delta", "text")
            }
            (Dialect::Anthropic, Form::Json) => Template::of_block(part.key.group, "input_json_delta", "partial_json"),
            _ => Template::of(document, part.node, name),
        };
        // As a rule there is one, and a list that grows by itself makes room for four.
        self.fields.reserve_exact(1);
        self.fields.push(Field {
            key: part.key,
            is_talk: part.is_talk,
            call: part.call,
            path: document.path(part.node, &self.watch.inspector.scanner),
            template,
            content: Content::new(part.form, b""),
        });
        Some(self.fields.len() - 1)
    }
}

impl fmt::Debug for StreamFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never what is held back.
        f.debug_struct("StreamFilter").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

/// Bytes that stand in the place of others.
type Edit = (Range<usize>, Vec<u8>);

/// The data with these edits, none of which reaches into another.
fn applied(data: &[u8], mut edits: Vec<Edit>) -> Vec<u8> {
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = Vec::with_capacity(data.len() + 64);
    let mut copied = 0;
    for (range, with) in edits {
        out.extend_from_slice(&data[copied..range.start]);
        out.extend_from_slice(&with);
        copied = range.end;
    }
    out.extend_from_slice(&data[copied..]);
    out
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
