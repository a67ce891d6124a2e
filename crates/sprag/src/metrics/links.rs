//! Links to other machines: what Sprag shares, or sends elsewhere. The one place where their gauges stand, in one form for
//! all of them, so that one rule of alerting holds for each.

use std::fmt;

use sprag_store::history::ForwardStatus;
use sprag_store::shared::{LinkStatus, Phase, RoundTrips};
use sprag_store::shared_catalog::SharedStatus;

use super::durations::Counted;
use super::sheet::{Labels, Sheet};
use crate::app::App;

/// How a link does.
struct Link {
    /// As labels call it.
    name: &'static str,
    /// The last try succeeded; also before the first.
    is_up: bool,
    /// Where they are counted.
    failures: Option<u64>,
}

/// The links of this process. Whoever adds one adds it here.
fn links(
    app: &App,
    redis: Option<&LinkStatus>,
    catalog: Option<&SharedStatus>,
    clickhouse: Option<&ForwardStatus>,
) -> Vec<Link> {
    let otlp = app.tracer.as_ref().map(|tracer| {
        let counts = tracer.counts();
        Link { name: "otlp", is_up: counts.is_up, failures: Some(counts.failures) }
    });
    let redis = redis.map(|status| Link {
        name: "redis",
        is_up: status.phase == Phase::Connected,
        failures: Some(status.failures),
    });
    let catalog =
        catalog.map(|status| Link { name: "catalog", is_up: status.is_connected, failures: Some(status.failures) });
    let clickhouse =
        clickhouse.map(|status| Link { name: "clickhouse", is_up: status.problem.is_none(), failures: None });
    [otlp, redis, catalog, clickhouse].into_iter().flatten().collect()
}

pub(super) fn write(sheet: &mut Sheet<'_>, app: &App) -> fmt::Result {
    let redis = app.link.as_ref().map(|link| link.status());
    let catalog = app.shared_catalog.get().map(|shared| shared.status());
    let clickhouse = app.history.status().shared;
    let links = links(app, redis.as_ref(), catalog.as_ref(), clickhouse.as_ref());
    let of = |link: &Link| -> Labels<'static, 1> { [("link", link.name)] };
    sheet.gauges(
        "sprag_link_up",
        "1 while the link to another machine works.",
        links.iter().map(|link| (of(link), i64::from(link.is_up))),
    )?;
    sheet.counters(
        "sprag_link_failures",
        "Tries to reach another machine that failed.",
        links.iter().filter_map(|link| Some((of(link), link.failures?))),
    )?;
    if let Some(status) = &redis {
        shared_state(sheet, status)?;
    }
    if let Some(status) = &catalog {
        shared_catalog(sheet, status)?;
    }
    if let Some(status) = &clickhouse {
        shared_history(sheet, status)?;
    }
    let Some(tracer) = &app.tracer else { return Ok(()) };
    let counts = tracer.counts();
    let spans: [(Labels<'_, 1>, u64); 3] = [
        ([("result", "exported")], counts.exported),
        ([("result", "failed")], counts.failed),
        ([("result", "dropped")], counts.dropped),
    ];
    sheet.counters("sprag_trace_spans", "Spans of traces, by what became of them.", spans)?;
    sheet.gauge("sprag_trace_queue", "Calls whose spans wait to be exported.", tracer.queued())
}

fn shared_state(sheet: &mut Sheet<'_>, status: &LinkStatus) -> fmt::Result {
    sheet.histogram(
        "sprag_shared_state_seconds",
        "How long Redis took to begin or end a call.",
        &round_trips(&status.round_trips),
    )?;
    sheet.gauge("sprag_shared_state_untold", "Ends of calls that Redis is still to be told.", status.untold as u64)?;
    sheet.counter("sprag_shared_state_lost", "Ends of calls that found no room to wait for Redis.", status.lost)
}

fn shared_catalog(sheet: &mut Sheet<'_>, status: &SharedStatus) -> fmt::Result {
    let rows: [(Labels<'_, 1>, u64); 3] = [
        ([("result", "given")], status.given),
        ([("result", "taken")], status.taken),
        ([("result", "unreadable")], status.unreadable),
    ];
    sheet.counters("sprag_shared_catalog_rows", "Kills, keys and policies shared with other nodes, as rows.", rows)?;
    sheet.gauge(
        "sprag_shared_catalog_listening",
        "1 while changes of other nodes are heard of at once.",
        u64::from(status.is_listening),
    )
}

fn shared_history(sheet: &mut Sheet<'_>, status: &ForwardStatus) -> fmt::Result {
    sheet.counter("sprag_shared_history_sent", "Events that reached ClickHouse.", status.sent)?;
    sheet.gauge("sprag_shared_history_waiting", "Events that wait for ClickHouse.", status.waiting)?;
    sheet.counter(
        "sprag_shared_history_dropped",
        "Events whose detail was given up while ClickHouse was away.",
        status.dropped,
    )
}

fn round_trips(trips: &RoundTrips) -> Counted {
    let ends = RoundTrips::BOUNDS_US.iter().map(|&bound| bound as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = ends.zip(trips.counts).collect();
    Counted { sum_seconds: trips.sum_us as f64 / 1e6, count: trips.counts.iter().sum(), buckets }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_trip_lies_in_one_bucket() {
        let mut trips = RoundTrips { sum_us: 2_500_000, ..RoundTrips::default() };
        (trips.counts[0], trips.counts[11]) = (3, 1);
        let counted = round_trips(&trips);
        assert_eq!((counted.count, counted.sum_seconds), (4, 2.5));
        assert_eq!((counted.buckets[0], counted.buckets[11]), ((0.0001, 3), (f64::INFINITY, 1)));
    }
}
