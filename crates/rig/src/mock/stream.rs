//! The body of an answer. Each event is written by itself, as a model that emits tokens does: after an event the body has
//! nothing for one turn, so that hyper flushes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::answers::{Asked, Dialect, Script};
use super::{Counters, Shape};

pub(super) enum Body {
    Whole(Option<Bytes>),
    Stream(Box<Stream>),
}

pub(super) struct Stream {
    script: Script,
    /// Chunks after which the connection is cut.
    cut_after: Option<usize>,
    sent: usize,
    pause: Option<(Duration, Pin<Box<Sleep>>)>,
    /// An event went out and is to be flushed.
    is_resting: bool,
    counters: Arc<Counters>,
}

impl Body {
    pub(super) fn whole(bytes: Bytes) -> Body {
        Body::Whole(Some(bytes))
    }

    pub(super) fn stream(
        dialect: Dialect,
        shape: Shape,
        asked: Asked,
        seed: u32,
        is_cut: bool,
        counters: Arc<Counters>,
    ) -> Body {
        counters.in_flight.fetch_add(1, Ordering::Relaxed);
        let pause = (shape.chunk_delay_ms > 0).then(|| {
            let pause = Duration::from_millis(shape.chunk_delay_ms);
            (pause, Box::pin(tokio::time::sleep(pause)))
        });
        Body::Stream(Box::new(Stream {
            script: Script::new(dialect, asked, shape.chunks, seed),
            cut_after: is_cut.then_some(shape.chunks / 2),
            sent: 0,
            pause,
            is_resting: false,
            counters,
        }))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.counters.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Stream {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.is_resting {
            self.is_resting = false;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some((pause, sleep)) = &mut self.pause
            && self.sent > 0
        {
            std::task::ready!(sleep.as_mut().poll(cx));
            let next = sleep.deadline() + *pause;
            sleep.as_mut().reset(next.max(Instant::now()));
        }
        if self.cut_after.is_some_and(|after| self.sent > after) {
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
        }
        let Some(piece) = self.script.next() else { return Poll::Ready(None) };
        self.sent += 1;
        self.is_resting = true;
        if piece.is_chunk {
            self.counters.chunks.fetch_add(1, Ordering::Relaxed);
        }
        Poll::Ready(Some(Ok(Frame::data(piece.bytes))))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Body::Whole(bytes) => {
                Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(|b| Ok(Frame::data(b))))
            }
            Body::Stream(stream) => stream.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Stream(_) => SizeHint::default(),
        }
    }
}
