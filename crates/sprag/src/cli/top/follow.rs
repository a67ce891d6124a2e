//! Asks Sprag again and again, and passes on what is ordered.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use anyhow::Result;
use http::Method;
use serde_json::json;

use crate::admin::api::model::{EventRecord, Listing, RunSummary, Status};
use crate::cli::client::Asking;

/// Runs that are looked at.
const RUNS: &str = "100";
/// Stops that are looked at.
const STOPS: &str = "20";
/// Answers that may wait for the screen.
const WAITING: usize = 4;

/// What one look saw.
pub(super) struct Reading {
    pub(super) status: Status,
    pub(super) runs: Vec<RunSummary>,
    pub(super) stops: Vec<EventRecord>,
}

/// Something to be done to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) what: &'static str,
    pub(super) agent: String,
    pub(super) run: String,
}

/// The thread that asks. It ends when its owner does.
pub(super) struct Follower {
    pub(super) news: Receiver<Result<Reading>>,
    orders: Sender<Order>,
}

impl Follower {
    pub(super) fn start(asking: Asking, every: Duration) -> Follower {
        let (orders, ordered) = channel();
        let (tell, news) = sync_channel(WAITING);
        std::thread::spawn(move || follow(&asking, every, &ordered, &tell));
        Follower { news, orders }
    }

    pub(super) fn order(&self, order: Order) {
        // The thread is there as long as its owner is; if not, the next look says so.
        let _ = self.orders.send(order);
    }
}

fn follow(asking: &Asking, every: Duration, ordered: &Receiver<Order>, tell: &SyncSender<Result<Reading>>) {
    loop {
        let done = match ordered.recv_timeout(every) {
            Ok(order) => obey(asking, &order),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if tell.send(done.and_then(|()| read(asking))).is_err() {
            return;
        }
    }
}

fn obey(asking: &Asking, order: &Order) -> Result<()> {
    let reason = json!({"reason": "by hand, in sprag top"});
    let body = if order.what == "kill" { reason } else { json!({}) };
    asking.order(Method::POST, &["runs", &order.agent, &order.run, order.what], &body).map(|_| ())
}

/// One look.
///
/// # Errors
/// When nobody answers, or not as hoped.
pub(super) fn read(asking: &Asking) -> Result<Reading> {
    let status = asking.get(&["status"], &[])?.read()?;
    let runs: Listing<RunSummary> = asking.get(&["runs"], &[("limit", Some(RUNS))])?.read()?;
    let stops: Listing<EventRecord> =
        asking.get(&["events"], &[("blocked", Some("true")), ("limit", Some(STOPS))])?.read()?;
    Ok(Reading { status, runs: runs.items, stops: stops.items })
}
