//! The body of an answer, as it comes. With its last byte the connection goes back to the others.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::connection::Connection;
use super::framing::Framing;
use super::pool::Pool;

/// An answer's body. Dropped before its end, it closes its connection, so that nobody goes on answering.
pub(crate) struct Http1Body {
    /// None when the body is over.
    connection: Option<Connection>,
    framing: Framing,
    /// Where the connection goes afterwards; none where it cannot be used again.
    pool: Option<Arc<Pool>>,
    /// Read, and not given out yet.
    read: Bytes,
    /// Rare, and large.
    trailers: Option<Box<HeaderMap>>,
}

impl Http1Body {
    pub(super) fn new(connection: Connection, framing: Framing, pool: Option<Arc<Pool>>, read: Bytes) -> Http1Body {
        let mut body = Http1Body { connection: Some(connection), framing, pool, read, trailers: None };
        if body.framing.is_over() {
            body.finish();
        }
        body
    }

    /// The next content of what was read. None where there is none in it.
    fn take(&mut self) -> io::Result<Option<Bytes>> {
        let data = self.framing.decode(&mut self.read).map_err(io::Error::other)?;
        if self.framing.is_over() {
            self.trailers = self.framing.take_trailers().map_err(io::Error::other)?.map(Box::new);
            self.finish();
        }
        Ok(Some(data).filter(|data| !data.is_empty()))
    }

    /// Nothing more comes. A connection on which more came than was asked for is closed.
    fn finish(&mut self) {
        let is_clean = std::mem::take(&mut self.read).is_empty();
        if let (Some(connection), Some(pool)) = (self.connection.take(), self.pool.take().filter(|_| is_clean)) {
            pool.put(connection);
        }
    }
}

impl Body for Http1Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        loop {
            let Some(connection) = &mut this.connection else {
                return Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(*trailers))));
            };
            if this.read.is_empty() {
                match ready!(connection.poll_read(cx, Bytes::copy_from_slice)) {
                    Ok(piece) if !piece.is_empty() => this.read = piece,
                    Ok(_) if this.framing.ends_with_connection() => {
                        this.connection = None;
                        continue;
                    }
                    broken => {
                        this.connection = None;
                        let error = broken.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into());
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
            match this.take() {
                Ok(Some(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(None) => {}
                Err(error) => {
                    this.connection = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.connection.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.framing {
            Framing::Length(left) => SizeHint::with_exact(left),
            Framing::Chunked(_) | Framing::UntilClose => SizeHint::default(),
        }
    }
}
