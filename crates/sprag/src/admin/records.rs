//! Reading the history for the API and the pages: off the runtime, a few at once, and not behind what just happened.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use sprag_core::limits::ADMIN_READS;
use sprag_store::StoreError;
use sprag_store::history::History;
use tokio::sync::{Mutex, Semaphore};

use super::problem::Problem;

/// The history as the admin side reads it.
pub(super) struct Records {
    history: Arc<History>,
    reads: Arc<Semaphore>,
    catching_up: Arc<Mutex<()>>,
}

/// A page shows what there is rather than wait longer for the last events. Without any pending this takes no time.
const CATCH_UP: Duration = Duration::from_secs(2);

impl Records {
    pub(super) fn new(history: Arc<History>) -> Records {
        Records { history, reads: Arc::new(Semaphore::new(ADMIN_READS)), catching_up: Arc::default() }
    }

    /// Asks the history something, after what was recorded before has reached it.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&History) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.catch_up().await;
        self.read_recorded(ask).await
    }

    /// The same for what follows on an earlier question: it need not know what came meanwhile.
    pub(super) async fn read_recorded<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&History) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        // The semaphore is never closed.
        let permit = self.reads.clone().acquire_owned().await;
        let history = self.history.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            ask(&history)
        });
        match asked.await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "reading the history failed; see the log")),
        }
    }

    /// Waits a little for recorded events to become readable. One flush at a time; a failing one shows elsewhere.
    async fn catch_up(&self) {
        let (history, catching_up) = (self.history.clone(), self.catching_up.clone());
        let flush = async move {
            let turn = catching_up.lock_owned().await;
            tokio::task::spawn_blocking(move || {
                let _turn = turn;
                history.flush().is_ok()
            })
            .await
        };
        let _ = tokio::time::timeout(CATCH_UP, flush).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use sprag_store::DataDir;
    use sprag_store::history::HistorySettings;

    use super::*;

    #[tokio::test]
    async fn so_many_read_at_once_and_the_next_one_waits() {
        let dir = tempfile::tempdir().unwrap();
        let data = Arc::new(DataDir::open(dir.path()).unwrap());
        let history = History::open_embedded(data, HistorySettings::default()).unwrap();
        let records = Arc::new(Records::new(Arc::new(history)));
        let (began, beginnings) = channel();
        let mut readings = Vec::new();
        for _ in 0..ADMIN_READS {
            let (records, began) = (records.clone(), began.clone());
            let (end, ended) = channel::<()>();
            let reading = tokio::spawn(async move {
                let read = records.read(move |_| {
                    began.send(()).unwrap();
                    Ok(ended.recv().is_ok())
                });
                read.await.map_err(|problem| problem.detail)
            });
            readings.push((reading, end));
        }
        let all_began = tokio::task::spawn_blocking(move || (0..ADMIN_READS).all(|_| beginnings.recv().is_ok()));
        assert!(all_began.await.unwrap(), "as many as may read do");
        assert!(records.reads.try_acquire().is_err(), "one more has to wait");
        for (reading, end) in readings {
            end.send(()).unwrap();
            assert_eq!(reading.await.unwrap(), Ok(true));
        }
        assert!(records.read(|history| history.agent_names(1)).await.is_ok());
    }
}
