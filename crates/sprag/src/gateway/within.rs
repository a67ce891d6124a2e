//! A bound on waiting that costs nothing where there is nothing to wait for.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use tokio::time::Instant;
use tokio::time::error::Elapsed;

/// What comes of `work`, unless it takes until `end`. When that is, is asked only once there is something to wait for: what is there
/// already, as most bodies are, needs no clock and no timer.
pub(crate) async fn within<F: Future>(end: impl FnOnce() -> Option<Instant>, work: F) -> Result<F::Output, Elapsed> {
    let mut work = pin!(work);
    if let Poll::Ready(done) = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
        return Ok(done);
    }
    match end() {
        Some(end) => tokio::time::timeout_at(end, work).await,
        None => Ok(work.await),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_is_waited_for_has_an_end() {
        assert_eq!(within(|| unreachable!("it is there"), async { 1 }).await.ok(), Some(1));
        let begun = Instant::now();
        let after = |seconds| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            seconds
        };
        let in_five = || Some(Instant::now() + Duration::from_secs(5));
        assert_eq!(within(in_five, after(4)).await.ok(), Some(4));
        assert!(within(in_five, after(6)).await.is_err());
        assert_eq!(begun.elapsed().as_secs(), 9);
        assert_eq!(within(|| None, after(6)).await.ok(), Some(6));
    }
}
