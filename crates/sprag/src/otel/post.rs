//! The connection to the collector: the same library that carries everything else, instead of a second one.
//!
//! The exporter's own asynchronous clients want a runtime where it has none; here it runs as a task of ours.

use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use opentelemetry_http::{HttpClient, HttpError};
use sprag_core::limits::TRACE_ANSWER_BYTES;

use crate::upstream::public_tls;

const CONNECT: Duration = Duration::from_secs(5);
/// For what it says besides the status.
const WORDS: Duration = Duration::from_secs(1);
/// For one try.
const ANSWER: Duration = Duration::from_secs(8);

type Connections = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Where spans are posted to.
#[derive(Debug)]
pub(super) struct Collector {
    /// They may hold a key, and say so: nothing prints them.
    headers: HeaderMap,
    /// Made with the first batch: certificates take time to load.
    connections: OnceLock<Connections>,
}

impl Collector {
    pub(super) fn new(headers: HeaderMap) -> Collector {
        Collector { headers, connections: OnceLock::new() }
    }

    async fn post(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        request.headers_mut().extend(self.headers.clone());
        let answer = self.connections()?.request(request.map(Full::new)).await?;
        let (head, body) = answer.into_parts();
        // The status says whether it has them. What it says besides must not make anybody send them again.
        let body = tokio::time::timeout(WORDS, Limited::new(body, TRACE_ANSWER_BYTES).collect()).await;
        let body = body.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
        Ok(Response::from_parts(head, body))
    }

    fn connections(&self) -> Result<&Connections, HttpError> {
        if let Some(connections) = self.connections.get() {
            return Ok(connections);
        }
        let connections = connect()?;
        Ok(self.connections.get_or_init(|| connections))
    }
}

impl HttpClient for Collector {
    fn send_bytes<'s, 'f>(
        &'s self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move { tokio::time::timeout(ANSWER, self.post(request)).await? })
    }
}

fn connect() -> Result<Connections, HttpError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    let connector = HttpsConnectorBuilder::new().with_tls_config(public_tls()?).https_or_http().enable_http1();
    let mut client = Client::builder(TokioExecutor::new());
    client.timer(TokioTimer::new()).pool_timer(TokioTimer::new()).pool_max_idle_per_host(1);
    Ok(client.build(connector.wrap_connector(tcp)))
}
