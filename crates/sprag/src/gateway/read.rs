//! The request body, whole and bounded.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sprag_core::limits::REFUSED_BODY_BYTES;
use tokio::time::Instant;

use super::within::within;

/// How long a body that is too large is still taken. A client that is cut off while it writes does not read why, and
/// tries again.
const LINGER: Duration = Duration::from_secs(10);
/// A client that sends nothing for this long while its body is still due is given up.
const BODY_IDLE: Duration = Duration::from_secs(60);

/// A body that could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    #[error("the request body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the request body stopped arriving for {} seconds", BODY_IDLE.as_secs())]
    TooSlow,
    #[error("the client went away before its request was whole")]
    Gone,
}

/// A body, whole.
pub(crate) struct Sent {
    pub(crate) body: Bytes,
    /// Some of it was still on its way when its head was here.
    pub(crate) was_awaited: bool,
}

/// Reads a body of at most `limit` bytes. One that waits to be asked for is not asked for when
/// it is too large.
pub(crate) async fn read(mut body: Incoming, limit: usize, is_expecting: bool) -> Result<Sent, Unread> {
    if body.size_hint().lower() > limit as u64 {
        dismiss(body, is_expecting).await;
        return Err(Unread::TooLarge(limit));
    }
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    let mut was_awaited = false;
    // A body of known length is over with its last byte: asking for more would only wait for another turn.
    while !body.is_end_stream() {
        let end = || {
            was_awaited = true;
            Some(Instant::now() + BODY_IDLE)
        };
        let frame = match within(end, body.frame()).await {
            Err(_) => return Err(Unread::TooSlow),
            Ok(None) => break,
            Ok(Some(frame)) => frame.map_err(|_| Unread::Gone)?,
        };
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + joined.len() + data.len() > limit {
            let _ = tokio::time::timeout(LINGER, discard(body)).await;
            return Err(Unread::TooLarge(limit));
        }
        // Most bodies come in one piece, which is then not copied.
        if first.is_empty() && joined.is_empty() {
            first = data;
            continue;
        }
        if joined.is_empty() {
            let expected = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(limit);
            joined.reserve(first.len() + data.len() + expected);
            joined.extend_from_slice(&std::mem::take(&mut first));
        }
        joined.extend_from_slice(&data);
    }
    let body = if joined.is_empty() { first } else { joined.freeze() };
    Ok(Sent { body, was_awaited })
}

/// Takes a body that nobody will read, as far as the client must be rid of it before it listens.
pub(crate) async fn dismiss(body: Incoming, is_expecting: bool) {
    if !is_expecting {
        let _ = tokio::time::timeout(LINGER, discard(body)).await;
    }
}

async fn discard(mut body: Incoming) {
    let mut taken = 0;
    while let Some(Ok(frame)) = body.frame().await {
        taken += frame.data_ref().map_or(0, Bytes::len);
        if taken > REFUSED_BODY_BYTES {
            return;
        }
    }
}
