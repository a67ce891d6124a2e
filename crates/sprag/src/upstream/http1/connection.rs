//! One connection: a request goes out, the head of its answer comes in.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower_service::Service;

use super::head::{self, Head, Malformed};

/// What is read at once. It lies on the stack: a stream that waits takes no memory for it.
const READ_BYTES: usize = 16 << 10;
/// The longest head of an answer.
const HEAD_BYTES: usize = 64 << 10;
/// Heads before the one that counts, such as `100 Continue`.
const INTERIM_HEADS: usize = 16;

/// How a provider is reached.
pub(in crate::upstream) type Connector = HttpsConnector<HttpConnector>;

/// A connection to the provider. One with TLS takes much more room.
pub(super) enum Connection {
    Plain(TcpStream),
    Tls(Box<TokioIo<<Connector as Service<Uri>>::Response>>),
}

/// An exchange that came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// Nothing of the request was sent.
    #[error("{0}")]
    Unsent(io::Error),
    #[error("{0}")]
    Broken(io::Error),
    #[error("connection closed before message completed")]
    Closed,
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl Connection {
    pub(super) fn new(io: <Connector as Service<Uri>>::Response) -> Connection {
        match io {
            MaybeHttpsStream::Http(tcp) => Connection::Plain(tcp.into_inner()),
            tls @ MaybeHttpsStream::Https(_) => Connection::Tls(Box::new(TokioIo::new(tls))),
        }
    }

    /// Sends a request and waits for the head of its answer. Gives it with what came of the body.
    ///
    /// An answer may come before the whole request is sent: then that is given, and the connection is of no more use.
    pub(super) async fn exchange(&mut self, request: &Request<Bytes>) -> Result<(Head, Bytes), Failed> {
        let mut sending = Sending::new(request);
        let (mut seen, mut interim) = (Vec::new(), 0);
        poll_fn(|cx| {
            sending.poll(self, cx)?;
            loop {
                let come = match self.poll_read(cx, |piece| {
                    seen.extend_from_slice(piece);
                    piece.len()
                }) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(come) => come.unwrap_or(0),
                };
                if come == 0 {
                    // Whoever stops taking a request may have said why before.
                    return Poll::Ready(Err(sending.failed.take().map_or(Failed::Closed, Failed::Broken)));
                }
                while let Some((head, rest)) = whole_head(&mut seen, request)? {
                    if !head.response.status().is_informational() {
                        let keeps = head.keeps && sending.is_done();
                        return Poll::Ready(Ok((Head { keeps, ..head }, rest)));
                    }
                    interim += 1;
                    if head.response.status() == StatusCode::SWITCHING_PROTOCOLS {
                        return Poll::Ready(Err(Malformed("it changes to another protocol").into()));
                    }
                    if interim > INTERIM_HEADS {
                        return Poll::Ready(Err(Malformed("too much is said before it").into()));
                    }
                    seen = rest.into();
                }
                if seen.len() > HEAD_BYTES {
                    return Poll::Ready(Err(Malformed("its head is too long").into()));
                }
            }
        })
        .await
    }

    /// Reads what is there, and gives it to `take`. Gives what that makes of it; of nothing where the connection is over.
    pub(super) fn poll_read<T>(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&[u8]) -> T) -> Poll<io::Result<T>> {
        let mut room = [const { MaybeUninit::<u8>::uninit() }; READ_BYTES];
        let mut piece = ReadBuf::uninit(&mut room);
        ready!(match self {
            Connection::Plain(tcp) => Pin::new(tcp).poll_read(cx, &mut piece),
            Connection::Tls(tls) => Pin::new(tls).poll_read(cx, &mut piece),
        })?;
        Poll::Ready(Ok(take(piece.filled())))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            Connection::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, pieces),
            Connection::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, pieces),
        }
    }

    /// With TLS, what was written may still lie here.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Connection::Plain(_) => Poll::Ready(Ok(())),
            Connection::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    /// Whether nobody has said anything on it, nor ended it.
    pub(super) fn is_quiet(&mut self, cx: &mut Context<'_>) -> bool {
        self.poll_read(cx, |_| ()).is_pending()
    }
}

/// The head that `seen` begins with, and what follows it.
fn whole_head(seen: &mut Vec<u8>, request: &Request<Bytes>) -> Result<Option<(Head, Bytes)>, Malformed> {
    if seen.is_empty() {
        return Ok(None);
    }
    let mut text = Bytes::from(std::mem::take(seen));
    match head::parse(&text, request.method())? {
        Some(head) => {
            let rest = text.split_off(head.length);
            Ok(Some((head, rest)))
        }
        None => {
            // Nobody else has it, so it is not copied.
            *seen = text.into();
            Ok(None)
        }
    }
}

/// A request on its way.
struct Sending {
    head: Bytes,
    body: Bytes,
    has_begun: bool,
    /// All of it has left the connection.
    is_flushed: bool,
    /// Why it can go no further.
    failed: Option<io::Error>,
}

impl Sending {
    fn new(request: &Request<Bytes>) -> Sending {
        let (head, body) = (Bytes::from(head::encode(request)), request.body().clone());
        Sending { head, body, has_begun: false, is_flushed: false, failed: None }
    }

    fn is_done(&self) -> bool {
        self.is_flushed && self.failed.is_none()
    }

    /// Sends as much as the connection takes. Fails where it takes nothing at all: what broke later may have been answered.
    fn poll(&mut self, connection: &mut Connection, cx: &mut Context<'_>) -> Result<(), Failed> {
        if self.is_flushed || self.failed.is_some() {
            return Ok(());
        }
        match self.poll_send(connection, cx) {
            Poll::Ready(Err(error)) if !self.has_begun => return Err(Failed::Unsent(error)),
            Poll::Ready(Err(error)) => self.failed = Some(error),
            Poll::Ready(Ok(())) => self.is_flushed = true,
            Poll::Pending => {}
        }
        Ok(())
    }

    fn poll_send(&mut self, connection: &mut Connection, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !(self.head.is_empty() && self.body.is_empty()) {
            let pieces = [IoSlice::new(&self.head), IoSlice::new(&self.body)];
            let sent = ready!(connection.poll_write(cx, &pieces))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.has_begun = true;
            let of_head = sent.min(self.head.len());
            self.head.advance(of_head);
            self.body.advance(sent - of_head);
        }
        connection.poll_flush(cx)
    }
}
