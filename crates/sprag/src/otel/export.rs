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
