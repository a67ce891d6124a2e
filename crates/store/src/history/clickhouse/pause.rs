//! A server that gave no answer is left alone for a while: whoever asks meanwhile hears at once what went wrong, and waits
//! for nothing.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::error::StoreError;
use crate::shards::with_lock;

/// Until when a server is left alone, and why.
pub(super) struct Pause {
    length: Duration,
    failed: Mutex<Option<(Instant, String)>>,
}

impl Pause {
    pub(super) fn of(length: Duration) -> Pause {
        Pause { length, failed: Mutex::default() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.why().is_some()
    }

    /// Asks, unless nobody is to ask now.
    pub(super) fn around<T>(&self, ask: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        if let Some(message) = self.why() {
            return Err(StoreError::Database { action: "be read", message, may_pass: true });
        }
        let answer = ask();
        let failed = answer.as_ref().err().map(|error| (Instant::now() + self.length, said(error)));
        with_lock(&self.failed, |last| *last = failed);
        answer
    }

    fn why(&self) -> Option<String> {
        let now = Instant::now();
        with_lock(&self.failed, |failed| {
            let (_, why) = failed.as_ref().filter(|(until, _)| now < *until)?;
            Some(why.clone())
        })
    }
}

fn said(error: &StoreError) -> String {
    match error {
        StoreError::Database { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> StoreError {
        StoreError::Database { action: "be read", message: "nobody answers".to_owned(), may_pass: true }
    }

    #[test]
    fn a_server_that_failed_is_not_asked_and_its_failure_is_told() {
        let pause = Pause::of(Duration::from_secs(3600));
        assert_eq!(pause.around(|| Ok(1)).unwrap(), 1);
        assert!(!pause.is_on());
        pause.around(|| Err::<(), _>(away())).unwrap_err();
        assert!(pause.is_on());
        let error = pause.around(|| -> Result<(), StoreError> { panic!("it was asked") }).unwrap_err();
        assert_eq!(error.to_string(), away().to_string());
    }

    #[test]
    fn after_the_pause_it_is_asked_again() {
        let pause = Pause::of(Duration::ZERO);
        pause.around(|| Err::<(), _>(away())).unwrap_err();
        assert_eq!(pause.around(|| Ok(2)).unwrap(), 2);
    }
}
