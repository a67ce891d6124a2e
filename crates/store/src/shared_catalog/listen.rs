//! Hears that somebody changed something. Only that: what it is stands in the log, and whoever hears nothing looks there
//! more than once a second.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::PubSub;
use redis::{Client, ErrorKind, RedisError, RedisResult};
use tokio::time::{sleep, timeout};

use super::link::{RETRY, SharedCatalog};
use super::redis_side::{CHANNEL, PATIENCE};

/// After so much silence it is asked whether anybody is there.
const SILENCE: Duration = Duration::from_secs(5);

impl SharedCatalog {
    pub(super) async fn listen_forever(self: &Arc<Self>) {
        loop {
            let heard = self.listen().await;
            self.notes.listening(false);
            if let Err(error) = heard {
                tracing::debug!(%error, "changes of other nodes are not heard of at once");
            }
            sleep(RETRY).await;
        }
    }

    async fn listen(&self) -> RedisResult<()> {
        let mut listening = self.connect_to_listen().await?;
        within(listening.subscribe(CHANNEL)).await?;
        self.notes.listening(true);
        // Something may have happened before.
        self.woken.notify_one();
        let (mut asking, mut heard) = listening.split();
        loop {
            tokio::select! {
                message = heard.next() => match message {
                    Some(_) => self.woken.notify_one(),
                    None => return Ok(()),
                },
                () = sleep(SILENCE) => drop(within(asking.ping::<redis::Value>()).await?),
            }
        }
    }

    /// In a cluster any server tells what is published on any other.
    async fn connect_to_listen(&self) -> RedisResult<PubSub> {
        let mut failed = RedisError::from((ErrorKind::InvalidClientConfig, "no server is named"));
        for url in &self.address.urls {
            match within(Client::open(url.as_str())?.get_async_pubsub()).await {
                Ok(listening) => return Ok(listening),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

async fn within<T>(work: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    let late = |_| RedisError::from((ErrorKind::Io, "no answer in time"));
    timeout(PATIENCE, work).await.map_err(late)?
}
