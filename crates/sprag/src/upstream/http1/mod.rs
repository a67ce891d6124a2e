//! HTTP/1.1 to a provider, where nothing else can be spoken ([why it is our own](../../../../../docs/decisions/0015-own-http1-client.md)).
//!
//! A call reads its answer itself: there is no task between it and the connection, and a stream that waits holds no buffer.

mod body;
mod connection;
mod framing;
mod head;
mod pool;

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use tokio::time::Instant;
use tower_service::Service;

pub(super) use self::body::Http1Body;
pub(super) use self::connection::Connector;
use self::connection::{Connection, Failed};
use self::pool::Pool;
use super::{NoAnswer, root_cause};

/// The connections to one provider.
pub(super) struct Http1 {
    connector: Connector,
    /// Where it is.
    base: Uri,
    pool: Arc<Pool>,
}

impl Http1 {
    /// Connections that wait for `longest` at most, and no more than `most` of them.
    pub(super) fn new(connector: Connector, base: Uri, longest: Duration, most: usize) -> Http1 {
        Http1 { connector, base, pool: Pool::new(longest, most) }
    }

    /// Sends a request and waits for the head of its answer. Only a request of which nothing was sent is sent again.
    pub(super) async fn send(&self, request: &Request<Bytes>, now: Instant) -> Result<Response<Http1Body>, NoAnswer> {
        while let Some(connection) = poll_fn(|cx| Poll::Ready(self.pool.take(cx, now))).await {
            match self.answer(connection, request).await {
                // It had ended while nobody looked.
                Err(Failed::Unsent(_)) => {}
                answered => return answered.map_err(no_answer),
            }
        }
        let connected = self.connector.clone().call(self.base.clone()).await;
        let io = connected.map_err(|error| NoAnswer::Unreachable(root_cause(&*error)))?;
        self.answer(Connection::new(io), request).await.map_err(no_answer)
    }

    async fn answer(
        &self,
        mut connection: Connection,
        request: &Request<Bytes>,
    ) -> Result<Response<Http1Body>, Failed> {
        let (head, read) = connection.exchange(request).await?;
        let pool = head.keeps.then(|| self.pool.clone());
        Ok(head.response.map(|()| Http1Body::new(connection, head.framing, pool, read)))
    }
}

fn no_answer(failed: Failed) -> NoAnswer {
    NoAnswer::Unreachable(failed.to_string())
}
