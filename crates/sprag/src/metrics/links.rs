//! Links to other machines: what Sprag shares, or sends elsewhere. The one place where their gauges stand, in one form for
//! all of them, so that one rule of alerting holds for each.

use std::fmt;

use super::sheet::{Labels, Sheet};
use crate::app::App;

/// How a link does.
struct Link {
    /// As labels call it.
    name: &'static str,
    /// The last try succeeded; also before the first.
    is_up: bool,
    failures: u64,
}

/// The links of this process. Whoever adds one adds it here.
fn links(app: &App) -> Vec<Link> {
    let otlp = app.tracer.as_ref().map(|tracer| {
        let counts = tracer.counts();
        Link { name: "otlp", is_up: counts.is_up, failures: counts.failures }
    });
    otlp.into_iter().collect()
}

pub(super) fn write(sheet: &mut Sheet<'_>, app: &App) -> fmt::Result {
    let links = links(app);
    let of = |link: &Link| -> Labels<'static, 1> { [("link", link.name)] };
    sheet.gauges(
        "sprag_link_up",
        "1 while the link to another machine works.",
        links.iter().map(|link| (of(link), i64::from(link.is_up))),
    )?;
    sheet.counters(
        "sprag_link_failures",
        "Tries to reach another machine that failed.",
        links.iter().map(|link| (of(link), link.failures)),
    )?;
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
