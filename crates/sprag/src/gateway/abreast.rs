//! Calls go through the line side by side.
//!
//! A call runs a lot of code, most of it once, and such code is slow: a core does not keep all of it at hand until the next call. So a call makes
//! room after a stage: others that are ready come as far, and find there what the first one has brought in. A call that is alone goes on at once.
//! [What that gains](../../../../docs/performance.md#a-call) is a third of a call's time where 64 are under way.

/// Lets other calls come as far as this one.
pub(crate) async fn abreast() {
    tokio::task::yield_now().await;
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn all_calls_end_a_stage_before_one_begins_the_next() {
        let begun = Arc::new(Mutex::new(Vec::new()));
        let calls = (0..3).map(|_| {
            let begun = begun.clone();
            tokio::spawn(async move {
                for stage in 0..4 {
                    begun.lock().unwrap().push(stage);
                    abreast().await;
                }
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        assert_eq!(*begun.lock().unwrap(), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    }
}
