//! A collector of traces: a real HTTP server that decodes what it is sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span as Exported;
use prost::Message;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::binary::wait_until;

/// A span as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty for the first of a trace.
    pub(crate) parent: String,
    pub(crate) kind: i32,
    pub(crate) is_error: bool,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) attributes: Map<String, Value>,
}

pub(crate) const INTERNAL: i32 = 1;
pub(crate) const SERVER: i32 = 2;
pub(crate) const CLIENT: i32 = 3;

/// One post.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
    pub(crate) resource: Map<String, Value>,
    pub(crate) spans: Vec<Span>,
}

/// How a post is answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Manner {
    Takes,
    Refuses(u16),
    /// Says that all is well, in no format at all.
    Babbles,
    /// Takes them, and says much more than anybody wants to hear.
    Floods,
    /// Never answers.
    Hangs,
}

pub(crate) struct Collector {
    address: SocketAddr,
    manner: watch::Sender<Manner>,
    batches: Arc<Mutex<Vec<Batch>>>,
    serving: JoinHandle<()>,
}

type Shared = (Arc<Mutex<Vec<Batch>>>, watch::Receiver<Manner>);

impl Collector {
    pub(crate) async fn start(manner: Manner) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (manner, told) = watch::channel(manner);
        let batches: Arc<Mutex<Vec<Batch>>> = Arc::default();
        let router = Router::new().route("/v1/traces", post(take)).with_state((batches.clone(), told));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Collector { address, manner, batches, serving }
    }

    /// The lines of a configuration that send traces here.
    pub(crate) fn config(&self) -> String {
        format!("[telemetry]\notlp = \"http://{}\"\n", self.address)
    }

    pub(crate) fn be(&self, manner: Manner) {
        self.manner.send_replace(manner);
    }

    pub(crate) fn batches(&self) -> Vec<Batch> {
        self.batches.lock().unwrap().clone()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.batches().into_iter().flat_map(|batch| batch.spans).collect()
    }

    /// Waits until so many calls have arrived; gives all spans.
    pub(crate) async fn has_calls(&self, count: usize) -> Vec<Span> {
        let calls = || self.spans().iter().filter(|span| span.kind == SERVER).count();
        wait_until(|| calls() >= count, || format!("{} of {count}: {:?}", calls(), self.spans())).await;
        self.spans()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take(State((batches, manner)): State<Shared>, headers: HeaderMap, bytes: Bytes) -> (StatusCode, String) {
    let manner = *manner.borrow();
    match manner {
        Manner::Refuses(status) => return (StatusCode::from_u16(status).unwrap(), "no".to_owned()),
        Manner::Hangs => std::future::pending::<()>().await,
        Manner::Takes | Manner::Babbles | Manner::Floods => {}
    }
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(bytes.clone()).unwrap();
    let all = &request.resource_spans;
    let resource = all.first().and_then(|spans| spans.resource.as_ref()).map(|resource| read(&resource.attributes));
    let spans = all.iter().flat_map(|spans| &spans.scope_spans).flat_map(|spans| &spans.spans).map(Span::of).collect();
    batches.lock().unwrap().push(Batch { headers, bytes, resource: resource.unwrap_or_default(), spans });
    let words = match manner {
        Manner::Babbles => "<html>\u{1}fine</html>".to_owned(),
        Manner::Floods => "fine ".repeat(1 << 20),
        _ => String::new(),
    };
    (StatusCode::OK, words)
}

impl Span {
    fn of(span: &Exported) -> Span {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Span {
            name: span.name.clone(),
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            kind: span.kind,
            is_error: span.status.as_ref().is_some_and(|status| status.code == 2),
            from: span.start_time_unix_nano,
            to: span.end_time_unix_nano,
            attributes: read(&span.attributes),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Value {
        self.attributes.get(key).cloned().unwrap_or_default()
    }
}

fn read(attributes: &[KeyValue]) -> Map<String, Value> {
    attributes.iter().map(|pair| (pair.key.clone(), pair.value.as_ref().map_or(Value::Null, plain))).collect()
}

fn plain(value: &AnyValue) -> Value {
    match value.value.as_ref().unwrap() {
        Any::StringValue(text) => json!(text),
        Any::BoolValue(fact) => json!(fact),
        Any::IntValue(number) => json!(number),
        Any::DoubleValue(number) => json!(number),
        Any::ArrayValue(list) => list.values.iter().map(plain).collect(),
        other => panic!("not expected: {other:?}"),
    }
}
