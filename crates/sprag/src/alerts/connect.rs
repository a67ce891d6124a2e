//! Connections to where channels lead: to the address that was checked, encrypted by the name.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Failure;
use super::address::Checked;
use crate::upstream::roots_in;

/// Something that bytes go through both ways.
pub(super) trait Pipe: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Pipe for T {}

/// For one of several addresses.
const CONNECT: Duration = Duration::from_secs(4);

/// A connection to the first of the addresses that takes one.
pub(super) async fn connect(checked: &Checked) -> Result<TcpStream, Failure> {
    let mut said = String::new();
    for address in checked.addresses() {
        match tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => said = error.to_string(),
            Err(_) => said = format!("not within {} seconds", CONNECT.as_secs()),
        }
    }
    Err(Failure::MayPass(format!("no connection: {said}")))
}

/// The same, encrypted.
pub(super) async fn encrypt<P: Pipe>(pipe: P, host: &str, ca_file: Option<&Path>) -> Result<TlsStream<P>, Failure> {
    let config = tls(ca_file)?;
    let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(name).map_err(|_| Failure::Final("the host is no name for TLS".to_owned()))?;
    let secured = TlsConnector::from(config).connect(name, pipe).await;
    secured.map_err(|error| Failure::MayPass(format!("no encrypted connection: {error}")))
}

fn tls(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, Failure> {
    static PUBLIC: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    let cannot = |error: &dyn std::fmt::Display| Failure::MayPass(format!("TLS cannot be set up: {error}"));
    let made = |roots: RootCertStore| {
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(crypto).with_safe_default_protocol_versions();
        config
            .map(|config| Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
            .map_err(|error| cannot(&error))
    };
    if let Some(file) = ca_file {
        return made(roots_in(file).map_err(|error| cannot(&format!("{error:#}")))?);
    }
    if let Some(config) = PUBLIC.get() {
        return Ok(config.clone());
    }
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = made(roots)?;
    Ok(PUBLIC.get_or_init(|| config).clone())
}
