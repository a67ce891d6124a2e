//! Encrypted upstreams: private authorities, HTTP/2, and certificates that nobody should trust.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use http::Version;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use sprag::config::file::Http2;
use sprag::config::{BaseUrl, Settings};
use sprag_core::event::Ending;
use sprag_core::wire::Dialect;
use sprag_testkit::{Provider, Script, client};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::sprag::Sprag;
use crate::wire::{request, without_metadata};

/// TLS before a scripted provider.
struct Front {
    address: SocketAddr,
    files: TempDir,
}

impl Front {
    /// Serves with a certificate for `name`, and offers these protocols.
    async fn start(provider: &Provider, name: &str, protocols: &[&str]) -> Front {
        let (authority_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let files = tempfile::tempdir().unwrap();
        std::fs::write(files.path().join("ca.pem"), authority.self_signed(&authority_key).unwrap().pem()).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();

        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(crypto).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = config.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, behind) = (listener.local_addr().unwrap(), provider.address());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut outside) = acceptor.accept(socket).await else { return };
                    let mut inside = TcpStream::connect(behind).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
        Front { address, files }
    }

    fn ca_file(&self) -> PathBuf {
        self.files.path().join("ca.pem")
    }

    /// Puts it in the place of every provider.
    fn stand_in(&self, settings: &mut Settings, ca_file: Option<PathBuf>) {
        for provider in settings.providers.values_mut() {
            let provider = Arc::make_mut(provider);
            provider.base = BaseUrl::parse(&format!("https://localhost:{}", self.address.port())).unwrap();
            provider.ca_file = ca_file.clone();
            provider.http2 = Http2::Auto;
        }
    }
}

async fn refusal(front: &Front, provider: &Provider, ca_file: Option<PathBuf>) -> String {
    let sprag = Sprag::start_with(provider, |settings| front.stand_in(settings, ca_file)).await;
    let call = client::post_json(sprag.url("/v1/messages"), &request(Dialect::Anthropic, true, "hi"));
    let answer = call.fetch().await.unwrap();
    assert_eq!(answer.status, 502);
    assert_eq!(sprag.settled(1).await[0].ending, Ending::UpstreamGone);
    assert_eq!(provider.log().view().total, 0, "nothing was sent");
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_authority_is_trusted_when_configured() {
    let both = &["h2", "http/1.1"][..];
    for (protocols, http2, version) in [
        (both, Http2::Auto, Version::HTTP_2),
        (&["http/1.1"], Http2::Auto, Version::HTTP_11),
        (both, Http2::Never, Version::HTTP_11),
    ] {
        let provider = Provider::start(Script::new()).unwrap();
        let front = Front::start(&provider, "localhost", protocols).await;
        let sprag = Sprag::start_with(&provider, |settings| {
            front.stand_in(settings, Some(front.ca_file()));
            settings.providers.values_mut().for_each(|provider| Arc::make_mut(provider).http2 = http2);
        })
        .await;
        for is_stream in [false, true] {
            let body = request(Dialect::OpenaiChat, is_stream, "hi");
            let answer = client::post_json(sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
            assert_eq!(answer.status, 200, "{:?}", answer.body);
            assert!(answer.broken.is_none() && without_metadata(&answer.body).is_some());
        }
        assert!(sprag.settled(2).await.iter().all(|event| event.ending == Ending::Complete));
        assert!(provider.requests().iter().all(|seen| seen.version == version), "{protocols:?}");
        assert_eq!(provider.log().view().connections, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_ends_the_stream_of_an_encrypted_upstream() {
    let provider = Provider::start(Script::new()).unwrap();
    let front = Front::start(&provider, "localhost", &["h2"]).await;
    let sprag = Sprag::start_with(&provider, |s| front.stand_in(s, Some(front.ca_file()))).await;
    let body = request(Dialect::OpenaiChat, true, "hi");
    let call = client::post_json(sprag.url("/v1/chat/completions"), &body).header("x-mock-stall", "2");
    let mut answer = call.send().await.unwrap();
    answer.read_at_least(1).await.unwrap();
    answer.abort();
    provider.wait_for(|log| log.open_responses == 0 && log.aborted == 1).await.unwrap();
    assert_eq!(sprag.settled(1).await[0].ending, Ending::ClientGone);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_that_cannot_be_trusted_are_a_clear_502() {
    let provider = Provider::start(Script::new()).unwrap();
    let front = Front::start(&provider, "localhost", &["h2", "http/1.1"]).await;
    let unknown = refusal(&front, &provider, None).await;
    assert!(unknown.contains("certificate") && unknown.contains("UnknownIssuer"), "{unknown}");
    assert!(unknown.contains("ca_file"), "it says what to do: {unknown}");

    let other = Front::start(&provider, "other.example", &["http/1.1"]).await;
    let wrong_name = refusal(&other, &provider, Some(other.ca_file())).await;
    assert!(wrong_name.contains("other.example"), "{wrong_name}");

    let missing = refusal(&front, &provider, Some(front.files.path().join("absent.pem"))).await;
    assert!(missing.contains("absent.pem"), "{missing}");
}
