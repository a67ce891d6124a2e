//! `GET /status`

use axum::Json;
use axum::extract::State;
use sprag_core::dlp::Surface;
use sprag_core::time::Timestamp;

use super::model::{DlpStatus, Recording, SharedCatalog, SharedRecording, SharedState, Status, Sums};
use crate::admin::Shared;
use crate::admin::problem::Problem;
use crate::app::App;
use crate::clock::Clock;
use crate::link::Link;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The beginning of the day in UTC.
pub(in crate::admin) fn midnight(now: Timestamp) -> Timestamp {
    Timestamp(now.0 - now.0.rem_euclid(DAY_MS))
}

/// How Sprag is, and what passed through today.
#[utoipa::path(
    get,
    path = "/status",
    operation_id = "get_status",
    tag = "status",
    responses(
        (status = 200, description = "How it is", body = Status),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn show(State(admin): State<Shared>) -> Result<Json<Status>, Problem> {
    let now = admin.app.clock.now();
    let since = midnight(now);
    let app = admin.app.clone();
    let read = admin.records.read(move |history| Ok((history.totals(since, None)?, app.budgets_used_up()?)));
    let (totals, budgets_used_up) = read.await?;
    let counts = admin.app.state.counts();
    let history = admin.app.history.status();
    let problems = admin.recording_problems();
    Ok(Json(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        proxy: admin.addresses.proxy.to_string(),
        started_at: admin.started.to_rfc3339(),
        uptime_seconds: now.since_ms(admin.started) / 1000,
        in_flight: counts.in_flight as u64,
        runs_in_memory: counts.runs as u64,
        kills: admin.kills_in_force(),
        detection_failures: admin.app.detection_failures.number(),
        lost_calls: admin.app.history.lost_calls(),
        budgets_used_up,
        dlp: dlp(&admin.app.coverage.load()),
        recording: Recording {
            ok: problems.is_empty(),
            problems,
            waiting_bytes: history.spool.bytes,
            recorded: history.spool.whole,
            money_only: history.spool.money_only,
            dropped: history.spool.dropped,
            lost: history.spool.lost,
            in_database: history.ingest.ingested,
            shared: history.shared.map(|shared| SharedRecording {
                ok: shared.problem.is_none(),
                problems: admin.behind(),
                sent: shared.sent,
                waiting: shared.waiting,
                oldest_waiting: shared.oldest_waiting.map(Timestamp::to_rfc3339),
                dropped: shared.dropped,
            }),
        },
        shared_state: admin.app.link.as_ref().map(SharedState::new),
        shared_catalog: SharedCatalog::of(&admin.app),
        today: Sums::new(since, &totals),
    }))
}

impl SharedState {
    pub(in crate::admin) fn new(link: &Link) -> SharedState {
        let status = link.status();
        SharedState {
            connected: link.is_connected(),
            since_seconds: status.since_ms / 1000,
            redis: status.address,
            calls: status.calls,
            failures: status.failures,
            not_sent: status.not_sent,
            untold_calls: status.untold as u64,
            untold_corrections: status.untold_corrections as u64,
            untold_runs: link.untold_runs().0 as u64,
            last_error: status.last_error,
        }
    }
}

impl SharedCatalog {
    /// How it is; none for a Sprag on its own.
    pub(in crate::admin) fn of(app: &App) -> Option<SharedCatalog> {
        let status = app.shared_catalog.get()?.status();
        Some(SharedCatalog {
            connected: status.is_connected,
            listening: status.is_listening,
            // The moment of a change is the machine's, whatever clock the rest goes by.
            since_seconds: Clock::Real.now().since_ms(status.since) / 1000,
            failures: status.failures,
            given_rows: status.given,
            taken_rows: status.taken,
            unreadable_rows: status.unreadable,
            last_error: status.last_error,
        })
    }
}

fn dlp(surfaces: &[Surface]) -> DlpStatus {
    let uncovered: Vec<String> = surfaces
        .iter()
        .filter(|surface| !surface.is_covered)
        .map(|surface| {
            let form = if surface.is_stream { "stream" } else { "whole" };
            format!("{:?} {:?} {form}", surface.dialect, surface.direction)
        })
        .collect();
    DlpStatus { surfaces: surfaces.len() as u64, covered: (surfaces.len() - uncovered.len()) as u64, uncovered }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight() {
        assert_eq!(midnight(Timestamp(1_700_000_000_123)).to_rfc3339(), "2023-11-14T00:00:00.000Z");
        assert_eq!(midnight(Timestamp(-1)), Timestamp(-DAY_MS));
    }
}
