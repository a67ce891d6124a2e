//! Connections to the providers: pooled, encrypted, with time-outs.

mod answer;
mod http1;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::uri::{PathAndQuery, Scheme};
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::Instant;

pub(crate) use self::answer::AnswerBody;
use self::http1::{Connector, Http1};
use crate::config::Provider;
use crate::config::file::Http2;

/// Idle connections are dropped before most servers drop theirs.
const POOL_IDLE: Duration = Duration::from_secs(55);
const POOL_IDLE_PER_HOST: usize = 1024;
/// One client that stops reading must not use up what all streams of a connection share.
const HTTP2_STREAM_WINDOW: u32 = 256 << 10;
const HTTP2_CONNECTION_WINDOW: u32 = 64 << 20;
const KEEPALIVE: Duration = Duration::from_secs(45);

/// The connections of all providers.
#[derive(Default)]
pub struct Upstreams {
    by_provider: BTreeMap<Arc<str>, Arc<Upstream>>,
}

/// The connections of one provider.
pub struct Upstream {
    provider: Arc<Provider>,
    /// Made on first use: most presets are never called, and certificates take time to load.
    client: OnceLock<Transport>,
}

/// What is spoken with a provider.
enum Transport {
    /// HTTP/1.1, as both sides know beforehand.
    Http1(Http1),
    /// HTTP/2, or what the handshake says.
    Agreed(Client<Connector, Full<Bytes>>),
}

/// A call that got no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// No connection, or it broke before there was an answer.
    #[error("{0}")]
    Unreachable(String),
    /// Nothing came back in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

impl Upstreams {
    /// Connections for a set of providers; those of unchanged providers are kept from `old`.
    #[must_use]
    pub fn new<'a>(providers: impl Iterator<Item = &'a Arc<Provider>>, old: &Upstreams) -> Upstreams {
        let keep = |provider: &Arc<Provider>| {
            let known = old.by_provider.get(&provider.name)?;
            (*known.provider == **provider).then(|| known.clone())
        };
        let make =
            |provider: &Arc<Provider>| Arc::new(Upstream { provider: provider.clone(), client: OnceLock::new() });
        let pairs = providers.map(|provider| (provider.name.clone(), keep(provider).unwrap_or_else(|| make(provider))));
        Upstreams { by_provider: pairs.collect() }
    }

    /// The connections of a provider.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.by_provider.get(name)
    }
}

impl Upstream {
    /// Sends a request and waits for the head of its answer. A request whose bytes were sent is never sent again.
    ///
    /// # Errors
    /// When there is no answer.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<AnswerBody>, NoAnswer> {
        let transport = self.transport().map_err(|e| NoAnswer::Unreachable(format!("{e:#}")))?;
        let limit = self.provider.timeouts.first_byte;
        let now = Instant::now();
        let answer = transport.send(request, now);
        if limit.is_zero() {
            return answer.await;
        }
        tokio::time::timeout_at(now + limit, answer).await.unwrap_or(Err(NoAnswer::TimedOut(limit)))
    }

    fn transport(&self) -> Result<&Transport> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = connect(&self.provider)?;
        Ok(self.client.get_or_init(|| client))
    }
}

impl Transport {
    async fn send(&self, request: Request<Bytes>, now: Instant) -> Result<Response<AnswerBody>, NoAnswer> {
        match self {
            Transport::Http1(http1) => Ok(http1.send(&request, now).await?.map(AnswerBody::Http1)),
            Transport::Agreed(client) => {
                let answer = client.request(request.map(Full::new)).await;
                let answer = answer.map_err(|error| NoAnswer::Unreachable(root_cause(&error)))?;
                Ok(answer.map(AnswerBody::Agreed))
            }
        }
    }
}

fn connect(provider: &Provider) -> Result<Transport> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_connect_timeout(Some(provider.timeouts.connect).filter(|limit| !limit.is_zero()));
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls(provider)?).https_or_http();
    let is_plain = provider.base.scheme != Scheme::HTTPS;
    let connector = match provider.http2 {
        // Without a handshake there is nothing to agree on.
        http2 if http2 == Http2::Never || (http2 == Http2::Auto && is_plain) => {
            return Ok(Transport::Http1(http1(provider, builder.enable_http1().wrap_connector(tcp))?));
        }
        Http2::Never | Http2::Auto => builder.enable_http1().enable_http2().wrap_connector(tcp),
        Http2::PriorKnowledge => builder.enable_http2().wrap_connector(tcp),
    };
    let mut client = Client::builder(TokioExecutor::new());
    client
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_IDLE_PER_HOST)
        .http2_keep_alive_interval(KEEPALIVE)
        .http2_initial_stream_window_size(HTTP2_STREAM_WINDOW)
        .http2_initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
        .http2_only(provider.http2 == Http2::PriorKnowledge);
    Ok(Transport::Agreed(client.build(connector)))
}

fn http1(provider: &Provider, connector: Connector) -> Result<Http1> {
    let (scheme, authority) = (provider.base.scheme.clone(), provider.base.authority.clone());
    let base = Uri::builder().scheme(scheme).authority(authority).path_and_query(PathAndQuery::from_static("/"));
    Ok(Http1::new(connector, base.build()?, POOL_IDLE, POOL_IDLE_PER_HOST))
}

fn tls(provider: &Provider) -> Result<ClientConfig> {
    match &provider.ca_file {
        Some(file) => trusting(roots_in(file)?),
        None => trusting(public_roots(provider.base.scheme == Scheme::HTTPS)),
    }
}

/// Trusts whom everybody trusts, and whom the system does.
pub(crate) fn public_tls() -> Result<ClientConfig> {
    trusting(public_roots(true))
}

fn trusting(roots: RootCertStore) -> Result<ClientConfig> {
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(crypto).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The bundled roots, and those of the system where they are needed.
fn public_roots(with_system: bool) -> RootCertStore {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if with_system {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    roots
}

/// Only what stands in the file: who names a private authority does not want others to speak for it.
pub(crate) fn roots_in(file: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).with_context(|| format!("reading {}", file.display()))?;
    for certificate in certificates {
        let certificate = certificate.with_context(|| format!("reading {}", file.display()))?;
        roots.add(certificate).with_context(|| format!("trusting the certificate in {}", file.display()))?;
    }
    anyhow::ensure!(!roots.is_empty(), "{} holds no certificate", file.display());
    Ok(roots)
}

/// The innermost reason of a failure: "connection refused" rather than "client error".
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ca_file_replaces_the_public_roots() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec!["x".into()]).unwrap().self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, certificate.pem()).unwrap();
        assert_eq!(roots_in(&file).unwrap().len(), 1);
        std::fs::write(&file, "no certificate").unwrap();
        assert!(roots_in(&file).unwrap_err().to_string().contains("ca.pem"));
    }
}
