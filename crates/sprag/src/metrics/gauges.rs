//! What others keep, read when somebody asks: runs in memory, queues, the record, alerts.

use std::fmt;
use std::sync::atomic::Ordering;

use sprag_store::outbox::Backlog;

use super::sheet::{Labels, Sheet};
use crate::app::App;

pub(super) fn write(sheet: &mut Sheet<'_>, app: &App, backlog: Option<Backlog>) -> fmt::Result {
    write_state(sheet, app)?;
    write_queues(sheet, app)?;
    write_record(sheet, app)?;
    write_alerts(sheet, app, backlog)?;
    write_configuration(sheet, app)
}

fn write_state(sheet: &mut Sheet<'_>, app: &App) -> fmt::Result {
    let counts = app.state.counts();
    sheet.gauge("sprag_requests_in_flight", "Requests under way.", counts.in_flight)?;
    sheet.gauge("sprag_runs", "Runs in memory.", counts.runs)?;
    sheet.gauge("sprag_run_clues", "Clues in memory by which requests find their run.", counts.clues)?;
    sheet.gauge("sprag_run_offers", "Clues in memory by which a run may be claimed.", counts.offers)?;
    sheet.gauge("sprag_rate_counters", "Counters of rate limits in memory.", counts.rates)?;
    let connections: [(Labels<'_, 1>, usize); 2] = [
        ([("listener", "proxy")], app.metrics.proxy_connections.load(Ordering::Relaxed)),
        ([("listener", "admin")], app.metrics.admin_connections.load(Ordering::Relaxed)),
    ];
    sheet.gauges("sprag_connections", "Connections of clients that are open, by listener.", connections)?;
    let now = app.clock.now();
    let kills = app.catalog.snapshot().kills.iter().filter(|kill| kill.is_in_force(now)).count();
    sheet.gauge("sprag_kills", "Kills and pauses that stop something now.", kills)?;
    sheet.counter(
        "sprag_detection_failures",
        "Failures of loop detection; such requests passed unchecked.",
        app.detection_failures.number(),
    )
}

fn write_queues(sheet: &mut Sheet<'_>, app: &App) -> fmt::Result {
    sheet.gauge("sprag_throttle_waiting", "Requests that wait in the throttle.", app.throttle.waiting())?;
    sheet.gauge("sprag_settling", "Calls that end on another thread.", app.settling.len())
}

fn write_record(sheet: &mut Sheet<'_>, app: &App) -> fmt::Result {
    let status = app.history.status();
    let spool = &status.spool;
    sheet.gauge("sprag_reservations", "Calls under way that money is set aside for.", spool.open_calls)?;
    sheet.counter(
        "sprag_reservations_unrecorded",
        "Calls with money set aside that went on without being on record: there was no room, or the disk took nothing.",
        spool.unopened,
    )?;
    sheet.gauge("sprag_spool_bytes", "Bytes of events on disk that wait for the database.", spool.bytes)?;
    sheet.gauge("sprag_spool_segments", "Files of events on disk that wait for the database.", spool.segments)?;
    sheet.gauge(
        "sprag_spool_held_bytes",
        "Bytes of money held in memory until the disk takes them.",
        spool.held_bytes,
    )?;
    let recorded: [(Labels<'_, 1>, u64); 4] = [
        ([("as", "whole")], spool.whole),
        ([("as", "money_only")], spool.money_only),
        ([("as", "dropped")], spool.dropped),
        ([("as", "lost")], spool.lost),
    ];
    sheet.counters("sprag_events", "Events, by how they were put on record.", recorded)?;
    sheet.counter("sprag_events_ingested", "Events that reached the database.", status.ingest.ingested)?;
    let lag = status.ingest.caught_up_at.map_or(0.0, |at| at.elapsed().as_secs_f64());
    sheet.gauge("sprag_ingest_lag_seconds", "How long ago everything recorded until then was in the database.", lag)?;
    sheet.counter(
        "sprag_lost_calls",
        "Calls that earlier processes left under way; each was charged what was set aside for it.",
        status.ingest.lost_calls,
    )?;
    let is_recording = spool.problem.is_none() && status.ingest.problem.is_none();
    sheet.gauge(
        "sprag_recording",
        "1 while events are put on record, 0 while something stands in the way.",
        i64::from(is_recording),
    )
}

fn write_alerts(sheet: &mut Sheet<'_>, app: &App, backlog: Option<Backlog>) -> fmt::Result {
    sheet.gauge("sprag_alert_queue", "Events that wait to be looked at for alerts.", app.alerts.queued())?;
    if let Some(backlog) = backlog {
        sheet.gauge("sprag_alert_outbox", "Messages of alerts that wait to be delivered.", backlog.waiting)?;
    }
    let counts = app.alerts.counts();
    let untold: [(Labels<'_, 1>, u64); 4] = [
        ([("why", "dropped")], counts.dropped),
        ([("why", "no_room")], counts.untold),
        ([("why", "delayed")], counts.delayed),
        ([("why", "given_up")], counts.given_up),
    ];
    sheet.counters("sprag_alerts_untold", "What alerts did not tell, or told later, by why.", untold)
}

fn write_configuration(sheet: &mut Sheet<'_>, app: &App) -> fmt::Result {
    let coverage = app.coverage.load();
    let uncovered = coverage.iter().filter(|surface| !surface.is_covered).count();
    sheet.gauge(
        "sprag_dlp_uncovered",
        "Ways of data on which the test of secrets let its canary through.",
        uncovered,
    )?;
    let reload = app.last_reload.load();
    let is_good = reload.as_ref().is_none_or(|reload| reload.refused.is_none());
    sheet.gauge(
        "sprag_config_reload_successful",
        "1 unless the last reload of the configuration was refused.",
        i64::from(is_good),
    )?;
    let version: Labels<'_, 1> = [("version", env!("CARGO_PKG_VERSION"))];
    sheet.gauges("sprag_build_info", "The version that runs; always 1.", [(version, 1_u64)])
}
