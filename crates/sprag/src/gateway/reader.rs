//! Watching an answer's bytes: which of them pass now, and when the answer is over.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
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
    /// Original bytes that wait for the settlement.
    waiting: Option<Bytes>,
    /// Settled: what follows passes unread.
    is_closed: bool,
    /// The upstream's body is over.
    is_over: bool,
}

enum Form {
    Events(Events),
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
}

impl Reader {
    /// Watches a stream of events; `holds` keeps back what may have to carry metadata.
    pub(crate) fn events(
        dialect: Dialect,
        decoder: Option<Decoder>,
        strip_usage: bool,
        holds: bool,
        length: Option<u64>,
    ) -> Reader {
        let events =
            Events { splitter: Splitter::default(), strip_usage, holds, held: None, closing: None, tail: Bytes::new() };
        Reader::new(Form::Events(events), dialect, decoder, strip_usage || holds, length)
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
        Reader { form, tap, decoder, edits, remaining, waiting: None, is_closed: false, is_over: false }
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

    /// Takes a whole JSON answer at once and gives it back decoded; None when it cannot be.
    pub(crate) fn whole(&mut self, data: &Bytes) -> Option<Bytes> {
        let plain = match &mut self.decoder {
            Some(decoder) => decoder.push(data).ok()?,
            None => data.clone(),
        };
        self.tap.json(&plain);
        Some(plain)
    }

    /// Takes bytes from the upstream; what may pass goes to `out`.
    pub(crate) fn take(&mut self, data: Bytes, out: &mut VecDeque<Bytes>) -> Taken {
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
                let is_closing = events.take(plain, &mut self.tap, &mut VecDeque::new());
                if is_closing || is_last {
                    conclude(&mut self.tap);
                    self.waiting = Some(data);
                    return Taken::Closing;
                }
                out.push_back(data);
            }
            Form::Events(events) => {
                let is_closing = events.take(plain, &mut self.tap, out);
                if !is_closing && is_last {
                    self.waiting = out.pop_back();
                }
                if is_closing || is_last {
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
                events.tail = events.splitter.rest();
                self.tap.event(&sse::parse(&events.tail));
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

    /// Whether an error can be said inside the answer.
    pub(crate) fn can_say_error(&self) -> bool {
        let is_between_events = matches!(&self.form, Form::Events(events) if !events.splitter.is_oversized());
        is_between_events && !self.is_aside()
    }

    /// Whether a stream is over although its answer is not, and the client can still be told.
    pub(crate) fn is_cut_short(&self, status: u16) -> bool {
        self.remaining.is_none() && self.can_say_error() && self.ending(status) == Ending::UpstreamGone
    }

    /// Passes on what was held back, because nothing better will come.
    pub(crate) fn give_up(&mut self, out: &mut VecDeque<Bytes>) {
        if let Form::Events(events) = &mut self.form {
            out.extend(events.held.take());
        }
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
    /// True when the closing event is among the bytes.
    fn take(&mut self, plain: Bytes, tap: &mut Tap, out: &mut VecDeque<Bytes>) -> bool {
        let Block { bytes, ends } = self.splitter.push(plain);
        // Events that simply pass stay together in one piece, from `from` on.
        let (mut from, mut start) = (0, 0);
        for end in ends {
            match tap.event(&sse::parse(&bytes[start..end])) {
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
                    return true;
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
        false
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
        out.push_back(self.splitter.rest());
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
