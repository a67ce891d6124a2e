//! Watching an answer's bytes: which of them pass now, and when the answer is over.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use sprag_core::dlp::{Flow, Sightings, StreamFilter};
use sprag_core::event::Ending;
use sprag_core::limits::JSON_REPLY_BYTES;
use sprag_core::wire::sse::{self, Block, Splitter};
use sprag_core::wire::{Dialect, JsonTail, Passing, Reply, Tap, splice};

use super::encoding::Decoder;

/// What became of bytes that were taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// They passed, or wait for more.
    Passed,
    /// The answer is over: settle it, then [`Reader::release`] what is held back.
    Closing,
    /// The upstream's body is over, and its answer was settled before.
    Over,
    /// They cannot be decoded.
    Unreadable,
    /// They hold what may not pass; nothing of it has.
    Withheld,
}

/// Watches one answer.
pub(crate) struct Reader {
    form: Form,
    tap: Tap,
    decoder: Option<Decoder>,
    /// Something is put into the answer or left out, so the client gets it decoded.
    edits: bool,
    /// Bytes still due from the upstream, when it said how many there are.
    remaining: Option<u64>,
    dialect: Dialect,
    /// Original bytes that wait for the settlement.
    waiting: Option<Bytes>,
    /// Settled: what follows passes unread.
    is_closed: bool,
    /// The upstream's body is over.
    is_over: bool,
}

enum Form {
    Events(Box<Events>),
    Json { whole: Whole, tail: JsonTail },
    Opaque,
}

/// A JSON answer as far as it is read.
#[derive(Default)]
struct Whole {
    bytes: BytesMut,
    /// It was longer than can be kept: it passes unread.
    is_oversized: bool,
}

struct Events {
    splitter: Splitter,
    /// Leave out the usage chunk that the client did not ask for.
    strip_usage: bool,
    /// Keep back the event that may be the last to carry data.
    holds: bool,
    held: Option<Bytes>,
    /// The closing event, and what stood behind it.
    closing: Option<(Bytes, Bytes)>,
    /// What stood at the very end without the blank line that ends an event.
    tail: Bytes,
    /// Looks for secrets.
    filter: Option<StreamFilter>,
}

/// How a stream goes on after some of its bytes.
#[derive(PartialEq, Eq)]
enum Went {
    On,
    /// The closing event is among them.
    ToItsEnd,
    /// They hold what may not pass.
    Nowhere,
}

impl Reader {
    /// Watches a stream of events; `holds` keeps back what may have to carry metadata.
    pub(crate) fn events(
        dialect: Dialect,
        decoder: Option<Decoder>,
        strip_usage: bool,
        holds: bool,
        filter: Option<StreamFilter>,
        length: Option<u64>,
    ) -> Reader {
        let edits = strip_usage || holds || filter.is_some();
        let events = Events {
            splitter: Splitter::default(),
            strip_usage,
            holds,
            held: None,
            closing: None,
            tail: Bytes::new(),
            filter,
        };
        Reader::new(Form::Events(Box::new(events)), dialect, decoder, edits, length)
    }

    /// Watches one JSON document.
    pub(crate) fn json(dialect: Dialect, decoder: Option<Decoder>, edits: bool, length: Option<u64>) -> Reader {
        let form = Form::Json { whole: Whole::default(), tail: JsonTail::default() };
        Reader::new(form, dialect, decoder, edits, length)
    }

    /// Lets an answer pass that is not read.
    pub(crate) fn opaque(length: Option<u64>) -> Reader {
        Reader::new(Form::Opaque, Dialect::Opaque, None, false, length)
    }

    fn new(form: Form, dialect: Dialect, decoder: Option<Decoder>, edits: bool, remaining: Option<u64>) -> Reader {
        let tap = Tap::new(dialect);
        Reader { form, tap, decoder, edits, remaining, dialect, waiting: None, is_closed: false, is_over: false }
    }

    /// The answer so far.
    pub(crate) fn reply(&self) -> &Reply {
        self.tap.reply()
    }

    /// The last sequence number of the stream, where the dialect counts its events.
    pub(crate) fn sequence_number(&self) -> Option<u64> {
        self.tap.sequence_number()
    }

    /// Whether the client gets the answer decoded, because something is put in or left out.
    pub(crate) fn edits(&self) -> bool {
        self.edits
    }

    /// Whether the answer is a stream of events.
    pub(crate) fn is_events(&self) -> bool {
        matches!(self.form, Form::Events(_))
    }

    /// Whether the answer has been settled.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Reads a whole JSON answer.
    pub(crate) fn read_whole(&mut self, plain: &[u8]) {
        self.tap.json(plain);
    }

    /// Secrets and personal data that were found in the stream so far.
    pub(crate) fn sightings(&self) -> Option<&Sightings> {
        match &self.form {
            Form::Events(events) => events.filter.as_ref().map(StreamFilter::sightings),
            Form::Json { .. } | Form::Opaque => None,
        }
    }

    /// Takes bytes from the upstream; what may pass goes to `out`.
    pub(crate) fn take(&mut self, data: Bytes, out: &mut VecDeque<Bytes>) -> Taken {
        // Nobody waits for what comes behind the end of a stream, and nobody looks at it.
        if self.is_closed && matches!(&self.form, Form::Events(events) if events.filter.is_some()) {
            return Taken::Passed;
        }
        if self.is_closed && (!self.edits || self.decoder.is_none()) {
            out.push_back(data);
            return Taken::Passed;
        }
        let is_last = count_down(&mut self.remaining, data.len());
        let plain = match self.decoder.as_mut().map(|decoder| decoder.push(&data)) {
            None => data.clone(),
            Some(Ok(plain)) => plain,
            // The client may know better what to do with it.
            Some(Err(_)) if !self.edits => {
                self.waiting = Some(data);
                return Taken::Closing;
            }
            Some(Err(_)) => return Taken::Unreadable,
        };
        if self.is_closed {
            out.push_back(plain);
            return Taken::Passed;
        }
        // A client that knows the length does not ask for more once it has it: the last bytes end the answer.
        match &mut self.form {
            Form::Opaque if is_last => {
                self.waiting = Some(data);
                return Taken::Closing;
            }
            Form::Opaque => out.push_back(data),
            Form::Json { whole, tail } => {
                whole.push(&plain);
                if is_last {
                    self.tap.json(&whole.bytes);
                }
                match (self.edits, is_last) {
                    (true, _) => out.push_back(tail.push(plain)),
                    (false, true) => self.waiting = Some(data),
                    (false, false) => out.push_back(data),
                }
                if is_last {
                    return Taken::Closing;
                }
            }
            Form::Events(events) if self.decoder.is_some() && !self.edits => {
                // Only a decoded copy is watched; the original passes.
                let went = events.take(plain, &mut self.tap, &mut VecDeque::new());
                if went == Went::ToItsEnd || is_last {
                    conclude(&mut self.tap);
                    self.waiting = Some(data);
                    return Taken::Closing;
                }
                out.push_back(data);
            }
            Form::Events(events) => {
                let went = events.take(plain, &mut self.tap, out);
                if went == Went::Nowhere {
                    return Taken::Withheld;
                }
                if went == Went::On && is_last {
                    self.waiting = out.pop_back();
                    if events.filter.is_some() && events.finish(&mut self.tap) == Went::Nowhere {
                        out.extend(self.waiting.take());
                        return Taken::Withheld;
                    }
                }
                if went == Went::ToItsEnd || is_last {
                    conclude(&mut self.tap);
                    return Taken::Closing;
                }
            }
        }
        Taken::Passed
    }

    /// The upstream's body is over.
    pub(crate) fn end(&mut self) -> Taken {
        self.is_over = true;
        if self.is_closed {
            return Taken::Over;
        }
        match &mut self.form {
            Form::Json { whole, .. } => self.tap.json(&whole.bytes),
            Form::Events(events) => {
                if events.finish(&mut self.tap) == Went::Nowhere {
                    return Taken::Withheld;
                }
                conclude(&mut self.tap);
            }
            Form::Opaque => {}
        }
        Taken::Closing
    }

    /// After settling: passes on what was held back, with `field` in it. True when nothing more will come.
    pub(crate) fn release(&mut self, field: Option<&str>, out: &mut VecDeque<Bytes>) -> bool {
        self.is_closed = true;
        let is_aside = self.is_aside();
        out.extend(self.waiting.take());
        match &mut self.form {
            Form::Events(_) if is_aside => {}
            Form::Events(events) => events.release(field, out),
            // What is not whole is not made to look so.
            Form::Json { tail, whole } if self.edits => {
                let is_sound = self.tap.reply().complete || whole.is_oversized;
                out.push_back(tail.finish(field.filter(|_| is_sound)));
            }
            Form::Json { .. } | Form::Opaque => {}
        }
        self.is_over
    }

    /// The dialect that the answer has the shape of.
    pub(crate) fn speaks(&self) -> Dialect {
        match &self.form {
            Form::Events(events) => events.filter.as_ref().map_or(self.dialect, StreamFilter::dialect),
            Form::Json { .. } | Form::Opaque => self.dialect,
        }
    }

    /// Whether an error can be said inside the answer.
    pub(crate) fn can_say_error(&self) -> bool {
        let is_between_events = matches!(&self.form, Form::Events(events) if !events.splitter.is_oversized());
        self.speaks().is_llm() && is_between_events && !self.is_aside()
    }

    /// Whether a stream is over although its answer is not, and the client can still be told.
    pub(crate) fn is_cut_short(&self, status: u16) -> bool {
        self.remaining.is_none() && self.can_say_error() && self.ending(status) == Ending::UpstreamGone
    }

    /// Passes on what was held back, because nothing better will come. Half of a secret stays back.
    pub(crate) fn give_up(&mut self, out: &mut VecDeque<Bytes>) {
        let Form::Events(events) = &mut self.form else { return };
        out.extend(events.held.take());
        let Some(filter) = &mut events.filter else { return };
        let mut passed = Vec::new();
        filter.break_off(&mut passed);
        for event in &passed {
            self.tap.event(event);
        }
        out.extend(passed);
        out.push_back(std::mem::take(&mut events.tail));
    }

    /// How an answer with this status ended, now that it is over.
    pub(crate) fn ending(&self, status: u16) -> Ending {
        let reply = self.reply();
        if status >= 400 || reply.error.is_some() {
            return Ending::UpstreamError;
        }
        match &self.form {
            Form::Opaque => Ending::Complete,
            _ if reply.complete => Ending::Complete,
            // From an event on that is too long to be read, nothing is known of the rest.
            Form::Events(events) if events.splitter.is_oversized() => Ending::Complete,
            // How such a stream ends is not known.
            Form::Events(_) if !self.dialect.is_llm() => Ending::Complete,
            Form::Events(_) => Ending::UpstreamGone,
            Form::Json { whole, .. } if whole.is_oversized => Ending::Complete,
            Form::Json { .. } => Ending::UpstreamError,
        }
    }

    /// Compressed bytes pass as they are, and a decoded copy is watched.
    fn is_aside(&self) -> bool {
        self.decoder.is_some() && !self.edits
    }
}

impl Whole {
    fn push(&mut self, more: &[u8]) {
        self.is_oversized |= self.bytes.len() + more.len() > JSON_REPLY_BYTES;
        if self.is_oversized {
            self.bytes = BytesMut::new();
        } else {
            self.bytes.extend_from_slice(more);
        }
    }
}

impl Events {
    fn take(&mut self, plain: Bytes, tap: &mut Tap, out: &mut VecDeque<Bytes>) -> Went {
        let block = self.splitter.push(plain);
        match self.filter.take() {
            Some(mut filter) => {
                let went = self.take_filtered(&mut filter, block, tap, out);
                self.filter = Some(filter);
                went
            }
            None => self.take_as_it_is(block, tap, out),
        }
    }

    fn take_as_it_is(&mut self, block: Block, tap: &mut Tap, out: &mut VecDeque<Bytes>) -> Went {
        let Block { bytes, ends } = block;
        // Events that simply pass stay together in one piece, from `from` on.
        let (mut from, mut start) = (0, 0);
        for end in ends {
            match tap.event(&bytes[start..end]) {
                Passing::UsageOnly if self.strip_usage => {
                    out.push_back(bytes.slice(from..start));
                    from = end;
                }
                Passing::Hold | Passing::UsageOnly if self.holds => {
                    out.push_back(bytes.slice(from..start));
                    out.extend(self.held.replace(bytes.slice(start..end)));
                    from = end;
                }
                Passing::Last => {
                    out.push_back(bytes.slice(from..start));
                    self.closing = Some((bytes.slice(start..end), bytes.slice(end..)));
                    return Went::ToItsEnd;
                }
                Passing::Forward | Passing::Hold | Passing::UsageOnly => {
                    if let Some(held) = self.held.take() {
                        out.push_back(bytes.slice(from..start));
                        out.push_back(held);
                        from = start;
                    }
                }
            }
            start = end;
        }
        out.push_back(bytes.slice(from..));
        Went::On
    }

    /// The tap reads what the client gets: later requests will quote that.
    fn take_filtered(
        &mut self,
        filter: &mut StreamFilter,
        block: Block,
        tap: &mut Tap,
        out: &mut VecDeque<Bytes>,
    ) -> Went {
        let Block { bytes, ends } = block;
        let (mut start, mut passed) = (0, Vec::new());
        for end in ends {
            let flow = filter.push(bytes.slice(start..end), &mut passed);
            start = end;
            for event in passed.drain(..) {
                match tap.event(&event) {
                    Passing::UsageOnly if self.strip_usage => {}
                    Passing::Hold | Passing::UsageOnly if self.holds => out.extend(self.held.replace(event)),
                    Passing::Last => {
                        self.closing = Some((event, Bytes::new()));
                        return Went::ToItsEnd;
                    }
                    Passing::Forward | Passing::Hold | Passing::UsageOnly => {
                        out.extend(self.held.take());
                        out.push_back(event);
                    }
                }
            }
            if flow == Flow::Stopped {
                return Went::Nowhere;
            }
        }
        if self.splitter.is_oversized() && start < bytes.len() {
            let flow = filter.push_unread(&bytes[start..], &mut passed);
            out.extend(passed);
            if flow == Flow::Stopped {
                return Went::Nowhere;
            }
        }
        Went::On
    }

    /// The stream is over without a closing event.
    fn finish(&mut self, tap: &mut Tap) -> Went {
        let rest = self.splitter.rest();
        let Some(filter) = &mut self.filter else {
            tap.event(&rest);
            self.tail = rest;
            return Went::On;
        };
        let mut passed = Vec::new();
        let is_stopped = (!rest.is_empty() && filter.push(rest, &mut passed) == Flow::Stopped)
            || filter.end(&mut passed) == Flow::Stopped;
        for event in &passed {
            tap.event(event);
        }
        self.tail = passed.concat().into();
        if is_stopped { Went::Nowhere } else { Went::On }
    }

    /// The metadata goes into the closing event, or into the last data event where the closing one has no room.
    fn release(&mut self, field: Option<&str>, out: &mut VecDeque<Bytes>) {
        let sign = |event: &Bytes| splice(event, sse::data_range(event)?, field?);
        let held = self.held.take();
        match self.closing.take() {
            Some((closing, rest)) => {
                let signed = sign(&closing);
                let held = if signed.is_none() { held.map(|h| sign(&h).unwrap_or(h)) } else { held };
                out.extend(held);
                out.push_back(signed.unwrap_or(closing));
                out.push_back(rest);
            }
            None => out.extend(held.map(|h| sign(&h).unwrap_or(h))),
        }
        out.push_back(std::mem::take(&mut self.tail));
        if self.filter.is_none() {
            out.push_back(self.splitter.rest());
        }
    }
}

/// Not every provider closes a stream with an event of its own.
fn conclude(tap: &mut Tap) {
    let reply = tap.reply_mut();
    reply.complete |= reply.finish.is_some() && reply.error.is_none();
}

/// True when the last of the bytes that were due has come.
fn count_down(remaining: &mut Option<u64>, taken: usize) -> bool {
    let Some(left) = remaining else { return false };
    *left = left.saturating_sub(taken as u64);
    *left == 0
}
