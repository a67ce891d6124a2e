//! The command from its start to its end: signals are passed on, its time is watched, and when its run is killed it is ended
//! with all that it started.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal};
use serde_json::json;
use sprag_core::policy::{KillKind, KillScope};
use sprag_store::RunKey;
use tokio::time::{Instant, sleep, sleep_until};

use super::STOPPED;
use super::processes::Processes;
use super::programs::Started;
use super::signals::Caught;
use super::tally::{Stop, Tally};
use super::terminal::Terminal;
use crate::acts::KillOrder;
use crate::app::App;

/// How long a command may take to say why it was stopped, and to end by itself.
const NOTICE: Duration = Duration::from_secs(1);
/// How often is looked whether all processes are gone.
const LOOK: Duration = Duration::from_millis(20);

/// What to watch.
pub(super) struct Orders<'a> {
    pub(super) run: &'a RunKey,
    /// Seconds that the command may take.
    pub(super) timeout: Option<u64>,
    /// Seconds between SIGTERM and SIGKILL.
    pub(super) grace: u64,
}

/// How the command ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// Why Sprag ended it.
    pub(super) stopped: Option<Stop>,
}

impl Ended {
    /// As shells have it: the command's own code, or 128 and the number of a signal.
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    pub(super) fn code(&self) -> u8 {
        if self.stopped.is_some() {
            return STOPPED;
        }
        let code = self.status.code().or_else(|| self.status.signal().map(|signal| 128 + signal));
        u8::try_from(code.unwrap_or(1)).unwrap_or(u8::MAX)
    }
}

/// Waits for the command's end, or brings it about.
///
/// # Errors
/// When the command cannot be waited for.
pub(super) async fn supervise(
    app: &Arc<App>,
    started: Started,
    caught: Caught,
    tally: &Tally,
    orders: Orders<'_>,
) -> Result<Ended> {
    let Started { mut child, has_own_group } = started;
    let command = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("the command has no number")?;
    let processes = Processes { command, has_own_group };
    let terminal = Terminal::remember();
    caught.pass_on(processes);
    processes.reap_orphans()?;
    let mut ending = tokio::task::spawn_blocking(move || child.wait());
    let mut stops = tally.stops();
    let mut stopped = stops.borrow_and_update().clone();
    let mut ends_at = orders.timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut status = None;
    while stopped.is_none() && status.is_none() {
        tokio::select! {
            ended = &mut ending => status = Some(ended.context("waiting for the command")??),
            changed = stops.changed() => {
                changed.context("following the run")?;
                stopped = stops.borrow_and_update().clone();
            }
            () = until(ends_at) => {
                ends_at = None;
                let order = time_is_up(&orders);
                if app.kill(order.clone()).await.is_err() {
                    // A disk that takes no kill is no reason to go on.
                    tally.end(Stop::of(order));
                }
            }
        }
    }
    if stopped.is_some() {
        // Whoever was refused is told why, and may end in good order.
        if status.is_none()
            && let Ok(ended) = tokio::time::timeout(NOTICE, &mut ending).await
        {
            status = Some(ended.context("waiting for the command")??);
        }
        end_all(processes, Duration::from_secs(orders.grace)).await;
        if status.is_none() {
            terminal.restore();
        }
    }
    let status = match status {
        Some(status) => status,
        None => ending.await.context("waiting for the command")??,
    };
    // A kill may come with the last call of a command that is gone when it is heard of.
    stopped = stopped.or_else(|| stops.borrow_and_update().clone());
    Ok(Ended { status, stopped })
}

/// Ends everything that still runs: politely, then not.
async fn end_all(processes: Processes, grace: Duration) {
    processes.signal_all(Signal::TERM);
    // One that is stopped would not hear of it.
    processes.signal_all(Signal::CONT);
    let patience = Instant::now() + grace;
    while !processes.alive().is_empty() && Instant::now() < patience {
        sleep(LOOK).await;
    }
    // Those that are started meanwhile are found in the next round.
    let surely = Instant::now() + NOTICE;
    while !processes.alive().is_empty() && Instant::now() < surely {
        processes.signal_all(Signal::KILL);
        sleep(LOOK).await;
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

fn time_is_up(orders: &Orders<'_>) -> KillOrder {
    let seconds = orders.timeout.unwrap_or_default();
    let RunKey { agent, id } = orders.run.clone();
    let summary = format!("the command has had its {seconds} seconds");
    KillOrder {
        scope: KillScope::Run { agent, run: id },
        kind: KillKind::Kill,
        reason: "timeout".to_owned(),
        by: "sprag".to_owned(),
        expires_at: None,
        proof: Some(json!({ "summary": summary, "compared": "timeout", "threshold": seconds })),
    }
}
