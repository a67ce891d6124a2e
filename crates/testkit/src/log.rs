//! What the provider saw and how each of its answers ended, with a way to wait for it that needs no sleep.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use sprag_core::limits::{MOCK_LOG_BYTES, MOCK_LOG_REQUESTS};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Counts requests from 1.
    pub seq: u64,
    /// Method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// HTTP version.
    pub version: http::Version,
    /// All headers.
    pub headers: HeaderMap,
    /// The exact bytes of the body.
    pub body: Bytes,
    /// Counts connections from 1.
    pub connection: u64,
    /// How the answer ended, so far.
    pub ending: Ending,
}

impl Recorded {
    /// The body as JSON; null when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// One header, empty when absent or not text.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Not yet.
    Open,
    /// All of it was written.
    Completed,
    /// The client left when so many bytes of the body had been written.
    ClientLeft {
        /// Bytes of the body.
        at_byte: u64,
    },
    /// The script cut it after so many bytes of the body.
    Cut {
        /// Bytes of the body.
        at_byte: u64,
    },
    /// The client left before its request was complete, so there was no answer.
    UploadBroken,
}

/// The log at one moment.
#[derive(Clone, Debug, Default)]
pub struct LogView {
    /// The requests, oldest first; the oldest are forgotten beyond a bound.
    pub requests: VecDeque<Recorded>,
    /// Requests ever seen.
    pub total: u64,
    /// Connections that are open now.
    pub open_connections: usize,
    /// Connections ever accepted.
    pub connections: u64,
    /// Answers that have begun and not ended.
    pub open_responses: usize,
    /// Answers that clients walked away from.
    pub aborted: usize,
    /// Bytes of bodies held.
    body_bytes: usize,
}

/// The condition of [`crate::Provider::wait_for`] did not come true in time; carries the log as it was.
#[derive(Debug)]
pub struct Overdue(pub LogView);

/// The log of one provider. Clones are the same log.
#[derive(Clone, Debug)]
pub struct Log {
    view: Arc<Mutex<LogView>>,
    changes: watch::Sender<u64>,
}

impl Log {
    pub(crate) fn new() -> Log {
        Log { view: Arc::default(), changes: watch::Sender::new(0) }
    }

    /// The log as it is now.
    #[must_use]
    pub fn view(&self) -> LogView {
        self.lock().clone()
    }

    /// Waits until `condition` holds, however long that takes.
    pub async fn wait_until(&self, condition: impl Fn(&LogView) -> bool) -> LogView {
        let mut changes = self.changes.subscribe();
        loop {
            {
                let view = self.lock();
                if condition(&view) {
                    return view.clone();
                }
            }
            // The sender lives in self.
            let _ = changes.changed().await;
        }
    }

    pub(crate) fn connected(&self) -> ConnectionTicket {
        let number = self.change(|view| {
            view.open_connections += 1;
            view.connections += 1;
            view.connections
        });
        ConnectionTicket { log: self.clone(), number }
    }

    /// Numbers and keeps a request.
    pub(crate) fn record(&self, mut request: Recorded) -> u64 {
        self.change(|view| {
            view.total += 1;
            request.seq = view.total;
            if request.ending == Ending::Open {
                view.open_responses += 1;
            }
            view.body_bytes += request.body.len();
            view.requests.push_back(request);
            while view.requests.len() > MOCK_LOG_REQUESTS
                || (view.body_bytes > MOCK_LOG_BYTES && view.requests.len() > 1)
            {
                let gone = view.requests.pop_front().map_or(0, |old| old.body.len());
                view.body_bytes -= gone;
            }
            view.total
        })
    }

    pub(crate) fn answered(&self, seq: u64, ending: Ending) {
        self.change(|view| {
            // A reset may have emptied the log while this answer was on its way.
            view.open_responses = view.open_responses.saturating_sub(1);
            if matches!(ending, Ending::ClientLeft { .. }) {
                view.aborted += 1;
            }
            if let Some(request) = view.requests.iter_mut().rev().find(|request| request.seq == seq) {
                request.ending = ending;
            }
        });
    }

    /// Forgets the requests; connections and open answers go on being counted, and so do the numbers.
    pub(crate) fn clear(&self) {
        self.change(|view| {
            view.requests.clear();
            view.body_bytes = 0;
            view.aborted = 0;
        });
    }

    fn change<T>(&self, apply: impl FnOnce(&mut LogView) -> T) -> T {
        let result = apply(&mut self.lock());
        self.changes.send_modify(|version| *version += 1);
        result
    }

    fn lock(&self) -> MutexGuard<'_, LogView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a connection as open while it lives.
#[derive(Debug)]
pub(crate) struct ConnectionTicket {
    log: Log,
    pub(crate) number: u64,
}

impl Drop for ConnectionTicket {
    fn drop(&mut self) {
        self.log.change(|view| view.open_connections -= 1);
    }
}

/// Settles how an answer ended, exactly once, when the body goes.
#[derive(Debug)]
pub(crate) struct AnswerTicket {
    pub(crate) log: Log,
    pub(crate) seq: u64,
    pub(crate) bytes: u64,
    pub(crate) state: AnswerState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerState {
    Sending,
    Written,
    Cut,
}

impl Drop for AnswerTicket {
    fn drop(&mut self) {
        let ending = match self.state {
            AnswerState::Sending => Ending::ClientLeft { at_byte: self.bytes },
            AnswerState::Written => Ending::Completed,
            AnswerState::Cut => Ending::Cut { at_byte: self.bytes },
        };
        self.log.answered(self.seq, ending);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize) -> Recorded {
        Recorded {
            seq: 0,
            method: "POST".into(),
            path: "/".into(),
            version: http::Version::HTTP_11,
            headers: HeaderMap::new(),
            body: Bytes::from(vec![0; bytes]),
            connection: 1,
            ending: Ending::Completed,
        }
    }

    #[test]
    fn the_oldest_requests_are_forgotten_beyond_the_bound() {
        let log = Log::new();
        for _ in 0..MOCK_LOG_REQUESTS {
            log.record(request(0));
        }
        assert_eq!((log.view().requests.len(), log.view().requests[0].seq), (MOCK_LOG_REQUESTS, 1));
        log.record(request(0));
        let view = log.view();
        assert_eq!((view.requests.len(), view.requests[0].seq), (MOCK_LOG_REQUESTS, 2));
        assert_eq!(view.total, MOCK_LOG_REQUESTS as u64 + 1);
    }

    #[test]
    fn bodies_are_forgotten_beyond_the_bound() {
        let log = Log::new();
        log.record(request(MOCK_LOG_BYTES / 2));
        log.record(request(MOCK_LOG_BYTES / 2));
        assert_eq!(log.view().requests.len(), 2);
        log.record(request(2));
        assert_eq!(log.view().requests[0].seq, 2);
    }

    #[tokio::test]
    async fn an_answer_that_is_dropped_half_way_counts_as_aborted() {
        let log = Log::new();
        let seq = log.record(Recorded { ending: Ending::Open, ..request(3) });
        let ticket = AnswerTicket { log: log.clone(), seq, bytes: 7, state: AnswerState::Sending };
        assert_eq!(log.view().open_responses, 1);
        let waiting = log.wait_until(|view| view.aborted == 1);
        drop(ticket);
        let view = waiting.await;
        assert_eq!((view.open_responses, view.requests[0].ending), (0, Ending::ClientLeft { at_byte: 7 }));
    }
}
