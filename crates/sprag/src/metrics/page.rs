//! `/metrics` as text: what calls counted, and what others keep, read now.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use sprag_core::dlp::Direction;
use sprag_core::loops::Detector;
use sprag_core::wire::Reason;
use sprag_store::outbox::Backlog;

use super::known::Known;
use super::meters::{self, Spent, UpstreamMeters};
use super::sheet::{Labels, Sheet};
use super::{ACTIONS, Counter, Metrics, gauges, links, process, read, text};
use crate::app::App;

/// How the page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format before it, which everything reads.
    Plain,
}

impl Format {
    /// The one that a client prefers, by its `accept` header.
    pub(crate) fn of(accept: &str) -> Format {
        match accept.contains("application/openmetrics-text") {
            true => Format::OpenMetrics,
            false => Format::Plain,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The page.
///
/// # Errors
/// When it cannot be written, which would be a mistake in here.
pub(crate) async fn page(app: &Arc<App>, format: Format) -> Result<String, fmt::Error> {
    let outbox = app.alerts.outbox.clone();
    let backlog = tokio::task::spawn_blocking(move || outbox.backlog()).await.ok().and_then(Result::ok);
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Everything { app: app.clone(), backlog }));
    let mut page = String::with_capacity(64 << 10);
    encode(&mut page, &registry)?;
    Ok(match format {
        Format::OpenMetrics => page,
        Format::Plain => text::plain(&page),
    })
}

/// Everything that stands on the page.
struct Everything {
    app: Arc<App>,
    /// Of alerts; none where it cannot be read.
    backlog: Option<Backlog>,
}

impl fmt::Debug for Everything {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Everything")
    }
}

impl Collector for Everything {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut sheet = Sheet(encoder);
        let by_agent = self.app.settings.load().telemetry.metrics_by_agent;
        self.app.metrics.write(&mut sheet, by_agent)?;
        gauges::write(&mut sheet, &self.app, self.backlog)?;
        links::write(&mut sheet, &self.app)?;
        process::write(&mut sheet, self.app.metrics.started)
    }
}

impl Metrics {
    fn write(&self, sheet: &mut Sheet<'_>, by_agent: bool) -> fmt::Result {
        self.write_calls(sheet)?;
        self.write_money(sheet)?;
        self.write_stops(sheet)?;
        self.write_own_time(sheet)?;
        if by_agent {
            self.write_agents(sheet)?;
        }
        Ok(())
    }

    fn write_calls(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let upstreams = used(&self.upstreams, UpstreamMeters::is_used);
        let requests = upstreams.iter().flat_map(|(name, meters)| {
            meters.requests().map(move |(dialect, ending, count)| {
                let labels: Labels<'_, 3> =
                    [("provider", name), ("dialect", dialect.name()), ("outcome", meters::ending(ending))];
                (labels, count)
            })
        });
        sheet.counters(
            "sprag_requests",
            "Requests that have ended, by provider or route, wire format and how they ended.",
            requests,
        )?;
        let of = |name| -> Labels<'_, 1> { [("provider", name)] };
        sheet.histograms(
            "sprag_request_duration_seconds",
            "From the arrival of a request to the last byte of its answer.",
            upstreams.iter().map(|(name, meters)| (of(name), meters.whole.counted())),
        )?;
        sheet.histograms(
            "sprag_upstream_first_byte_seconds",
            "From sending a request on to the first byte of the answer's body.",
            upstreams.iter().map(|(name, meters)| (of(name), meters.first_byte.counted())),
        )?;
        sheet.histograms(
            "sprag_upstream_duration_seconds",
            "From sending a request on to the last byte of its answer.",
            upstreams.iter().map(|(name, meters)| (of(name), meters.upstream.counted())),
        )
    }

    fn write_money(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let upstreams = used(&self.upstreams, UpstreamMeters::is_used);
        let spent: Vec<(&str, String, Arc<Spent>)> = upstreams
            .iter()
            .flat_map(|(name, meters)| {
                let models = used(&meters.models, Spent::is_used);
                models.into_iter().map(move |(model, spent)| (name.as_str(), model, spent))
            })
            .collect();
        let tokens = spent.iter().flat_map(|(provider, model, spent)| {
            spent.tokens().map(move |(kind, tokens)| {
                let labels: Labels<'_, 3> = [("provider", provider), ("model", model), ("kind", kind)];
                (labels, tokens)
            })
        });
        sheet.counters(
            "sprag_tokens",
            "Tokens, by kind; the kinds do not overlap. A model is called as the list of prices calls it.",
            tokens,
        )?;
        let cost = spent.iter().map(|(provider, model, spent)| {
            let labels: Labels<'_, 2> = [("provider", provider), ("model", model)];
            (labels, spent.cost_usd())
        });
        sheet.fractional_counters("sprag_cost_usd", "What calls cost, in US dollars.", cost)?;
        sheet.counter(
            "sprag_unpriced_requests",
            "Requests that used tokens of a model without a price: their cost is unknown.",
            read(&self.unpriced),
        )
    }

    fn write_stops(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        fn by_reason(counters: &[Counter]) -> impl Iterator<Item = (Labels<'static, 1>, u64)> {
            let policies = Reason::ALL.into_iter().zip(counters).filter(|(reason, _)| reason.is_policy());
            policies.map(|(reason, count)| ([("reason", reason.as_str())], read(count)))
        }
        sheet.counters("sprag_stops", "Requests that were refused or cut, by reason.", by_reason(&self.stops))?;
        sheet.counters(
            "sprag_shadow_stops",
            "Requests that rules in shadow would have refused, by reason.",
            by_reason(&self.shadow_stops),
        )?;
        let loops = Detector::ALL.into_iter().zip(&self.loops).flat_map(|(detector, row)| {
            ACTIONS.into_iter().zip(row).map(move |(action, count)| {
                let labels: Labels<'static, 2> = [("detector", detector.as_str()), ("action", action.as_str())];
                (labels, read(count))
            })
        });
        sheet.counters(
            "sprag_loop_verdicts",
            "Requests in which a loop was seen, by detector and what followed.",
            loops.filter(|(_, count)| *count > 0),
        )?;
        let findings = self.findings.all();
        let findings = findings.iter().flat_map(|(kind, findings)| {
            findings.counts().map(move |(outcome, count)| {
                let labels: Labels<'_, 2> = [("kind", kind), ("outcome", outcome)];
                (labels, count)
            })
        });
        sheet.counters(
            "sprag_dlp_findings",
            "Secrets and personal data that were found, by kind and what became of them.",
            findings,
        )
    }

    fn write_own_time(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        sheet.histogram(
            "sprag_overhead_seconds",
            "Time that Sprag adds to a request: from its last byte to the call upstream, without waiting on purpose.",
            &self.overhead.counted(),
        )?;
        sheet.histogram(
            "sprag_detection_seconds",
            "Time that the detectors of loops took.",
            &self.detection.counted(),
        )?;
        let dlp = self.dlp().map(|(direction, durations)| {
            let way = if direction == Direction::Request { "request" } else { "answer" };
            let labels: Labels<'static, 1> = [("direction", way)];
            (labels, durations.counted())
        });
        sheet.histograms("sprag_dlp_seconds", "Time that looking for secrets and personal data took.", dlp)
    }

    fn write_agents(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let agents = used(&self.agents, meters::AgentMeters::is_used);
        let of = |name| -> Labels<'_, 1> { [("agent", name)] };
        sheet.counters(
            "sprag_agent_requests",
            "Requests that have ended, by agent.",
            agents.iter().map(|(name, meters)| (of(name), read(&meters.requests))),
        )?;
        sheet.counters(
            "sprag_agent_stops",
            "Requests that were refused or cut, by agent.",
            agents.iter().map(|(name, meters)| (of(name), read(&meters.stops))),
        )?;
        let tokens = agents.iter().flat_map(|(name, meters)| {
            meters.spent.tokens().map(move |(kind, tokens)| {
                let labels: Labels<'_, 2> = [("agent", name), ("kind", kind)];
                (labels, tokens)
            })
        });
        sheet.counters("sprag_agent_tokens", "Tokens, by agent and kind.", tokens)?;
        sheet.fractional_counters(
            "sprag_agent_cost_usd",
            "What calls cost, by agent, in US dollars.",
            agents.iter().map(|(name, meters)| (of(name), meters.spent.cost_usd())),
        )
    }
}

/// The meters that have counted something.
fn used<T>(known: &Known<T>, is_used: impl Fn(&T) -> bool) -> Vec<(String, Arc<T>)> {
    known.all().into_iter().filter(|(_, meters)| is_used(meters)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_the_format_that_it_asks_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        assert_eq!(Format::of(prometheus), Format::OpenMetrics);
        for accept in ["", "*/*", "text/plain"] {
            assert_eq!(Format::of(accept), Format::Plain);
        }
    }
}
