//! An upstream's answer on its way to the client: passed on as it comes, watched on the side, settled at its end.
//!
//! The answer's account is settled *before* its last bytes are released, so that the client's next request finds
//! the run as this answer left it. Only who is killed is told at once: whatever it asks next is refused, and until its tokens are counted
//! the money that was set aside for it stays so.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as _, Frame};
use sprag_core::dlp::{Direction, dlp_refusal};
use sprag_core::event::Ending;
use sprag_core::wire::{Reason, Refusal};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};

use super::audience::Audience;
use super::body::BrokenOff;
use super::chant::Listener;
use super::killed::KillWatch;
use super::reader::{Reader, Taken};
use super::settled::Settled;
use super::ticket::{Settling, Ticket};
use crate::upstream::AnswerBody;

/// An answer under observation.
pub struct Observed {
    upstream: AnswerBody,
    reader: Reader,
    ticket: Box<Ticket>,
    audience: Audience,
    /// How the metadata of this answer is written; None when it is not.
    metadata: Option<Signature>,
    /// Bytes that may go to the client now.
    out: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    /// Ready when the call is killed.
    killed: Option<KillWatch>,
    listener: Option<Listener>,
    stage: Stage,
    patience: Patience,
    settling_in: SettlingIn,
}

/// Turns what settling found into the field that is put into the answer.
pub(crate) type Signature = Box<dyn Fn(&Settled) -> String + Send + Sync>;

/// What a stream does once for the time that it may take, and does not keep its first piece waiting for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SettlingIn {
    /// When there is nothing to pass on for the first time.
    Later,
    /// What was there is on its way to the client.
    Now,
    Done,
}

enum Stage {
    Flowing,
    /// The call is being settled elsewhere: tokens are counted that the provider did not report, or other nodes are
    /// told.
    Settling(JoinHandle<Option<Settled>>),
    /// The same for an answer that failed; then the client is told.
    Failing(JoinHandle<Option<Settled>>, Box<Refusal>),
    /// The upstream's body is over; what is left in `out` goes to the client.
    Ended,
    /// The client's connection must be cut.
    Broken(String),
}

/// How long an upstream may keep silent.
pub(crate) struct Patience {
    idle: Option<Duration>,
    deadline: Option<Instant>,
    /// Since when the upstream has been asked for more and has given nothing. A client that reads slowly does not
    /// ask, and its time does not count.
    asked: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Observed {
    pub(crate) fn new(
        upstream: AnswerBody,
        reader: Reader,
        ticket: Box<Ticket>,
        audience: Audience,
        metadata: Option<Signature>,
        patience: Patience,
        killed: Option<KillWatch>,
    ) -> Observed {
        let (out, trailers) = (VecDeque::new(), None);
        let listener = ticket.listener().filter(|_| reader.is_events());
        let settling_in = if reader.is_events() { SettlingIn::Later } else { SettlingIn::Done };
        Observed {
            upstream,
            reader,
            ticket,
            audience,
            metadata,
            out,
            trailers,
            killed,
            listener,
            stage: Stage::Flowing,
            patience,
            settling_in,
        }
    }

    pub(crate) fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        loop {
            if let Some(bytes) = this.out.pop_front() {
                if bytes.is_empty() {
                    continue;
                }
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            match &mut this.stage {
                Stage::Flowing => ready!(this.poll_upstream(cx)),
                Stage::Settling(settling) => {
                    // A panic while counting settled the ticket all the same, when it was dropped.
                    let settled = ready!(Pin::new(settling).poll(cx)).unwrap_or_default();
                    this.release(settled);
                }
                Stage::Failing(settling, refusal) => {
                    let _ = ready!(Pin::new(settling).poll(cx));
                    let refusal = refusal.clone();
                    this.break_off(&refusal);
                }
                Stage::Ended => return Poll::Ready(this.trailers.take().map(|t| Ok(Frame::trailers(t)))),
                Stage::Broken(why) => {
                    let broken = BrokenOff(std::mem::take(why));
                    this.stage = Stage::Ended;
                    return Poll::Ready(Some(Err(broken)));
                }
            }
        }
    }

    fn poll_upstream(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.settling_in == SettlingIn::Now {
            self.settling_in = SettlingIn::Done;
            self.killed = self.ticket.release_request();
        }
        // What is settled is over, and its last bytes may pass.
        if !self.reader.is_closed()
            && let Some(watch) = &mut self.killed
            && let Poll::Ready(kill) = Pin::new(watch).poll(cx)
        {
            let refusal = self.ticket.killed(&kill);
            self.fail_with(Ending::Killed, refusal);
            return Poll::Ready(());
        }
        while ready!(self.ticket.poll_money(cx)) {
            if self.is_outrunning() {
                return Poll::Ready(());
            }
        }
        match Pin::new(&mut self.upstream).poll_frame(cx) {
            Poll::Pending if self.settling_in == SettlingIn::Later => {
                // The connection writes what it has, and asks again.
                self.settling_in = SettlingIn::Now;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Pending => {
                ready!(self.patience.poll_over(cx));
                self.fail(Ending::TimedOut, "the upstream kept silent for too long");
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.patience.asked = None;
                match frame.into_data() {
                    Ok(data) => {
                        self.ticket.mark_first_byte();
                        let began = self.reader.sightings().is_some().then(std::time::Instant::now);
                        let taken = self.reader.take(data, &mut self.out);
                        if let Some(began) = began {
                            self.ticket.trail().add_answer_inspected(began);
                        }
                        let goes_on = taken == Taken::Passed;
                        if !goes_on || !(self.is_chanting() || self.is_outrunning()) {
                            self.act(taken);
                        }
                    }
                    Err(frame) => self.trailers = frame.into_trailers().ok(),
                }
            }
            Poll::Ready(None) => {
                let taken = self.reader.end();
                if taken == Taken::Closing && self.reader.is_cut_short(self.ticket.event().status) {
                    self.fail(Ending::UpstreamGone, "the upstream ended its stream before the answer was over");
                } else {
                    self.act(taken);
                }
            }
            Poll::Ready(Some(Err(_))) => self.fail(Ending::UpstreamGone, "the upstream broke off its answer"),
        }
        Poll::Ready(())
    }

    /// Cuts off an answer that repeats itself.
    fn is_chanting(&mut self) -> bool {
        let Some(finding) = self.listener.as_mut().and_then(|listener| listener.hear(self.reader.reply())) else {
            return false;
        };
        self.listener = None;
        let Some(refusal) = self.ticket.chants(finding) else { return false };
        self.fail_with(Ending::CutOff, refusal);
        true
    }

    /// Cuts off an answer that nobody pays for any more.
    fn is_outrunning(&mut self) -> bool {
        if !self.reader.is_events() {
            return false;
        }
        let Some(refusal) = self.ticket.outruns(self.reader.reply()) else { return false };
        self.fail_with(Ending::CutOff, refusal);
        true
    }

    fn act(&mut self, taken: Taken) {
        match taken {
            Taken::Passed => {}
            Taken::Closing => self.close(),
            Taken::Over => self.stage = Stage::Ended,
            Taken::Unreadable => self.fail(Ending::UpstreamGone, "the upstream's compressed answer cannot be decoded"),
            Taken::Withheld => {
                let sightings = self.reader.sightings().cloned().unwrap_or_default();
                let refusal = self.ticket.withheld(dlp_refusal(&sightings, Direction::Answer));
                self.fail_with(Ending::CutOff, refusal);
            }
        }
    }

    /// The answer is over: settles it, after counting its tokens if the provider did not.
    fn close(&mut self) {
        self.note_sightings();
        let ending = self.reader.ending(self.ticket.event().status);
        let reply = self.reader.reply();
        if ending == Ending::UpstreamError {
            // The provider's own words may quote the prompt or the key.
            self.ticket.mark_failed(ending, "the provider reported an error");
        }
        match self.ticket.settle_whole(reply, ending) {
            Settling::Done(settled) => self.release(settled),
            Settling::UnderWay(settling) => self.stage = Stage::Settling(settling),
        }
    }

    /// What was found in the answer goes on record with the call.
    fn note_sightings(&mut self) {
        if let Some(sightings) = self.reader.sightings() {
            self.ticket.add_sightings(sightings.clone());
        }
    }

    fn release(&mut self, settled: Option<Settled>) {
        let field = settled.zip(self.metadata.as_ref()).map(|(settled, signature)| signature(&settled));
        let is_over = self.reader.release(field.as_deref(), &mut self.out);
        self.stage = if is_over { Stage::Ended } else { Stage::Flowing };
    }

    /// The upstream failed in the middle: settles the call, then lets the client know.
    fn fail(&mut self, ending: Ending, why: &'static str) {
        self.ticket.mark_failed(ending, why);
        self.fail_with(ending, Refusal::new(Reason::UpstreamCut, format!("{why}; the answer is incomplete")));
    }

    fn fail_with(&mut self, ending: Ending, refusal: Refusal) {
        self.note_sightings();
        self.killed = None;
        let refusal = self.audience.put_in_stream(refusal);
        let reply = self.reader.reply();
        match self.ticket.settle_whole(reply, ending) {
            Settling::Done(_) => self.break_off(&refusal),
            // A tokenizer that must be loaded first takes a second on a busy machine, and the provider writes on meanwhile.
            Settling::UnderWay(_) if ending == Ending::Killed => self.break_off(&refusal),
            Settling::UnderWay(settling) => self.stage = Stage::Failing(settling, Box::new(refusal)),
        }
    }

    /// A stream ends in its dialect's error form; anything else is cut.
    fn break_off(&mut self, refusal: &Refusal) {
        let reply = self.reader.reply();
        self.stage = if self.reader.is_closed() && (reply.complete || reply.error.is_some()) {
            Stage::Ended
        } else if self.reader.can_say_error() && !self.reader.is_closed() {
            self.reader.give_up(&mut self.out);
            let last_words = self.audience.last_words(self.reader.speaks(), refusal, self.reader.sequence_number());
            self.out.push_back(Bytes::from(last_words));
            Stage::Ended
        } else {
            Stage::Broken(refusal.message.clone())
        };
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        // Still open: the client went away.
        self.note_sightings();
        self.ticket.settle_aside(self.reader.reply(), Ending::ClientGone);
    }
}

impl Patience {
    /// Patience that begins now. A zero is no limit.
    pub(crate) fn new(idle: Duration, deadline: Option<Instant>) -> Patience {
        Patience { idle: (!idle.is_zero()).then_some(idle), deadline, asked: None, alarm: None }
    }

    /// Ready when the upstream has been silent for too long.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let asked = *self.asked.get_or_insert_with(Instant::now);
        let idle_end = self.idle.map(|idle| asked + idle);
        let Some(end) = [idle_end, self.deadline].into_iter().flatten().min() else { return Poll::Pending };
        // One timer serves many frames: it is moved only when it goes off and was not meant to.
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        loop {
            ready!(alarm.as_mut().poll(cx));
            if end <= Instant::now() {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every stream holds these for as long as it lasts, in pieces of the sizes that the allocator gives.
    #[test]
    fn a_stream_holds_little() {
        assert!(size_of::<Ticket>() <= 2560, "a ticket takes {} bytes", size_of::<Ticket>());
        assert!(size_of::<Observed>() <= 1536, "an answer takes {} bytes", size_of::<Observed>());
    }
}
