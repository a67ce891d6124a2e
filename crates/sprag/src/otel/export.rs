//! From the queue to the collector, in batches. A collector that is away, slow or talks nonsense costs spans, which are
//! counted, and nothing else.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use sprag_core::limits::TRACE_BATCH;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Tracer, post};
use crate::app::App;
use crate::config::Traces;

/// How long spans wait for others to go with them.
const GATHER: Duration = Duration::from_secs(1);
/// For one batch, tries again included.
const EXPORT: Duration = Duration::from_secs(10);
/// For what is left when the program ends.
const FLUSH: Duration = Duration::from_secs(5);

impl App {
    /// Exports spans until `stop`, then what is left of them, for as long as that may take.
    pub async fn export_traces(self: Arc<Self>, stop: CancellationToken) {
        let Some(tracer) = &self.tracer else { return };
        let Some(mut queue) = tracer.receiver() else { return };
        let exporter = match exporter(&tracer.settings) {
            Ok(exporter) => exporter,
            Err(error) => return tracing::error!(%error, "traces cannot be exported"),
        };
        let exporting = async {
            while let Some(batch) = gather(&mut queue, &stop).await {
                tracer.export(&exporter, batch).await;
            }
        };
        let patience = async {
            stop.cancelled().await;
            tokio::time::sleep(FLUSH.min(self.settings.load().proxy.drain)).await;
        };
        tokio::select! {
            () = exporting => {}
            () = patience => tracing::warn!("the collector of traces did not take the last spans in time"),
        }
    }
}

impl Tracer {
    async fn export(&self, exporter: &SpanExporter, batch: Vec<SpanData>) {
        let number = batch.len() as u64;
        // The exporter's own limit does not cut off a try that is under way.
        let exported = match timeout(EXPORT, exporter.export(batch)).await {
            Ok(exported) => exported.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} seconds", EXPORT.as_secs())),
        };
        let counter = if exported.is_ok() { &self.exported } else { &self.failed };
        counter.fetch_add(number, Ordering::Relaxed);
        let was_down = self.is_down.swap(exported.is_err(), Ordering::Relaxed);
        match exported {
            Ok(()) if was_down => tracing::info!("the collector takes traces again"),
            Ok(()) => {}
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                if !was_down {
                    tracing::warn!(error, "the collector does not take traces; they are dropped until it does");
                }
            }
        }
    }
}

/// The next batch: as many as go together, or as came within a moment. None when there will be no more.
async fn gather(queue: &mut Receiver<Vec<SpanData>>, stop: &CancellationToken) -> Option<Vec<SpanData>> {
    let mut batch = tokio::select! {
        biased;
        spans = queue.recv() => spans?,
        () = stop.cancelled() => {
            queue.close();
            queue.recv().await?
        }
    };
    let end = Instant::now() + GATHER;
    while batch.len() < TRACE_BATCH {
        let more = tokio::select! {
            biased;
            more = timeout_at(end, queue.recv()) => more,
            // Whoever stops does not wait for others.
            () = stop.cancelled(), if !queue.is_closed() => {
                queue.close();
                continue;
            }
        };
        match more {
            Ok(Some(spans)) => batch.extend(spans),
            Ok(None) | Err(_) => break,
        }
    }
    Some(batch)
}

fn exporter(settings: &Traces) -> Result<SpanExporter, ExporterBuildError> {
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(post::Collector::new(settings.headers.clone()))
        .with_endpoint(settings.url.clone())
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(EXPORT)
        .build()?;
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_service_name(settings.service_name.clone()).with_attribute(version);
    exporter.set_resource(&resource.build());
    Ok(exporter)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use opentelemetry::InstrumentationScope;
    use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status};
    use opentelemetry_sdk::trace::{SpanEvents, SpanLinks};
    use tokio::sync::mpsc;

    use super::*;

    fn spans(number: usize) -> Vec<SpanData> {
        let span = SpanData {
            span_context: SpanContext::NONE,
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: "judge".into(),
            start_time: SystemTime::UNIX_EPOCH,
            end_time: SystemTime::UNIX_EPOCH,
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::default(),
        };
        vec![span; number]
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_full_at_its_bound_and_waits_for_others_below_it() {
        let (sender, mut queue) = mpsc::channel(16);
        let stop = CancellationToken::new();
        for number in [TRACE_BATCH - 1, 6, 1] {
            sender.send(spans(number)).await.unwrap();
        }
        let full = gather(&mut queue, &stop).await.unwrap();
        assert_eq!(full.len(), TRACE_BATCH - 1 + 6, "with the others of the same call");
        let begun = Instant::now();
        assert_eq!(gather(&mut queue, &stop).await.unwrap().len(), 1);
        assert_eq!(begun.elapsed(), GATHER);
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_end_nobody_waits_for_others() {
        let (sender, mut queue) = mpsc::channel(16);
        let stop = CancellationToken::new();
        sender.send(spans(2)).await.unwrap();
        stop.cancel();
        let begun = Instant::now();
        assert_eq!(gather(&mut queue, &stop).await.unwrap().len(), 2);
        assert!(gather(&mut queue, &stop).await.is_none());
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(sender.send(spans(1)).await.is_err(), "what comes later is dropped and counted");
    }
}
