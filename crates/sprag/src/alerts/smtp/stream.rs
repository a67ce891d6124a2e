//! A connection as lettre takes it, with what lettre leaves out: answers in any encoding, and no more than so many bytes
//! of them.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// More than a server says to one mail.
const ANSWER_BYTES: usize = 256 << 10;
/// What lettre waits for on a connection that a server has greeted before.
const GREETING: &[u8] = b"220 encrypted\r\n";

#[derive(Debug)]
pub(super) struct MailStream<P> {
    pipe: P,
    peer: SocketAddr,
    greeting: &'static [u8],
    read_bytes: usize,
}

impl<P> MailStream<P> {
    pub(super) fn new(pipe: P, peer: SocketAddr) -> MailStream<P> {
        MailStream { pipe, peer, greeting: b"", read_bytes: 0 }
    }

    /// On which the server has greeted already.
    pub(super) fn greeted(pipe: P, peer: SocketAddr) -> MailStream<P> {
        MailStream { greeting: GREETING, ..MailStream::new(pipe, peer) }
    }
}

impl<P: AsyncRead + Unpin> AsyncRead for MailStream<P> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.greeting.is_empty() {
            let (now, later) = self.greeting.split_at(self.greeting.len().min(buffer.remaining()));
            buffer.put_slice(now);
            self.greeting = later;
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.pipe).poll_read(cx, buffer))?;
        let read = &mut buffer.filled_mut()[before..];
        // Only codes are read. What stands behind them may be in any encoding.
        read.iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = b'?');
        let count = read.len();
        self.read_bytes += count;
        if self.read_bytes > ANSWER_BYTES {
            return Poll::Ready(Err(io::Error::other("it says more than any mail needs")));
        }
        Poll::Ready(Ok(()))
    }
}

impl<P: AsyncWrite + Unpin> AsyncWrite for MailStream<P> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.pipe).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

impl<P: AsyncRead + AsyncWrite + Send + Sync + Unpin + std::fmt::Debug> AsyncTokioStream for MailStream<P> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}
