//! The body of a provider's answer, however it comes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::http1::Http1Body;

/// An answer's body.
pub(crate) enum AnswerBody {
    Http1(Http1Body),
    Agreed(Incoming),
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            AnswerBody::Http1(body) => Pin::new(body).poll_frame(cx),
            AnswerBody::Agreed(body) => Pin::new(body).poll_frame(cx).map_err(io::Error::other),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            AnswerBody::Http1(body) => body.is_end_stream(),
            AnswerBody::Agreed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Http1(body) => body.size_hint(),
            AnswerBody::Agreed(body) => body.size_hint(),
        }
    }
}
