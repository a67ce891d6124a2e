//! A connection whose peer stops reading is cut. An answer holds money and memory for as long as somebody may read it.
//!
//! Only what the peer does not take from the wire counts: a stream that has nothing to say may keep silent for as long
//! as it likes. Of HTTP/2 the wire may be free while one stream of it is not read; that is not seen here.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream that fails when nothing of what is written is taken for too long.
#[derive(Debug)]
pub(super) struct WriteTimeout<S> {
    stream: S,
    longest: Duration,
    /// Goes off when the peer has taken nothing since it was set; absent while nothing waits to be taken.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S, longest: Duration) -> WriteTimeout<S> {
        WriteTimeout { stream, longest, alarm: None }
    }

    /// The same, unless it has waited for too long.
    fn bounded<T>(&mut self, cx: &mut Context<'_>, written: Poll<Result<T>>) -> Poll<Result<T>> {
        if written.is_ready() {
            self.alarm = None;
            return written;
        }
        let end = Instant::now() + self.longest;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        match alarm.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client stopped reading"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.bounded(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.bounded(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_stops_reading_is_waited_for_and_not_for_ever() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut ours = WriteTimeout::new(ours, Duration::from_secs(60));
        let begun = Instant::now();
        let reading = tokio::spawn(async move {
            // Slow, but it reads.
            for _ in 0..5 {
                tokio::time::sleep(Duration::from_secs(50)).await;
                theirs.read_exact(&mut [0; 8]).await.unwrap();
            }
            theirs
        });
        ours.write_all(&[1; 48]).await.unwrap();
        let _theirs = reading.await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 250);
        // Nothing is written for long: that is no reason.
        tokio::time::sleep(Duration::from_secs(600)).await;
        let stopped = Instant::now();
        assert_eq!(ours.write_all(&[1; 8]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(stopped.elapsed().as_secs(), 60);
    }
}
