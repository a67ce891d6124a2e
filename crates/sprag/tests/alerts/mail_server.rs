//! A mail server that keeps what it is sent, with STARTTLS, with TLS from the first byte, or in the clear.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::binary::wait_until;

/// One conversation: what was said in the clear, what under TLS, and the mail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Talk {
    pub(crate) clear: Vec<String>,
    pub(crate) secured: Vec<String>,
    pub(crate) mail: String,
}

pub(crate) struct MailServer {
    pub(crate) address: SocketAddr,
    pub(crate) files: TempDir,
    talks: Arc<Mutex<Vec<Talk>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Clear,
    Starttls,
    Tls,
}

impl MailServer {
    pub(crate) async fn start(way: Way) -> MailServer {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let files = tempfile::tempdir().unwrap();
        std::fs::write(files.path().join("ca.pem"), certificate.pem()).unwrap();
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(crypto).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let talks: Arc<Mutex<Vec<Talk>>> = Arc::default();
        let kept = talks.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, kept) = (acceptor.clone(), kept.clone());
                tokio::spawn(async move {
                    let mut talk = Talk::default();
                    if way == Way::Tls {
                        let Ok(secured) = acceptor.accept(socket).await else { return };
                        converse(secured, true, false, &mut talk.secured, &mut talk.mail).await;
                    } else {
                        let offers = way == Way::Starttls;
                        let left = converse(socket, true, offers, &mut talk.clear, &mut talk.mail).await;
                        if let Some(socket) = left {
                            let Ok(secured) = acceptor.accept(socket).await else { return };
                            converse(secured, false, false, &mut talk.secured, &mut talk.mail).await;
                        }
                    }
                    kept.lock().unwrap().push(talk);
                });
            }
        });
        MailServer { address, files, talks }
    }

    pub(crate) async fn has(&self, count: usize) -> Vec<Talk> {
        let talks = || self.talks.lock().unwrap().clone();
        wait_until(|| talks().len() >= count, || format!("{:?}", talks())).await;
        talks()
    }
}

/// Gives the connection back when the client wants it encrypted.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    socket: S,
    greets: bool,
    offers_tls: bool,
    said: &mut Vec<String>,
    mail: &mut String,
) -> Option<S> {
    let mut reader = BufReader::new(socket);
    if greets {
        reader.get_mut().write_all(b"220 mail\r\n").await.ok()?;
    }
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        said.push(line.trim_end().to_owned());
        let answer = match line.split_whitespace().next().unwrap_or_default() {
            "EHLO" if offers_tls => "250-mail\r\n250 STARTTLS\r\n",
            "EHLO" => "250-mail\r\n250 AUTH PLAIN\r\n",
            "STARTTLS" => {
                reader.get_mut().write_all(b"220 go on\r\n").await.ok()?;
                return Some(reader.into_inner());
            }
            "AUTH" => "235 welcome\r\n",
            "DATA" => {
                reader.get_mut().write_all(b"354 go on\r\n").await.ok()?;
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).await.ok()? == 0 || line == ".\r\n" {
                        break;
                    }
                    mail.push_str(&line);
                }
                "250 kept\r\n"
            }
            "QUIT" => {
                reader.get_mut().write_all(b"221 bye\r\n").await.ok()?;
                return None;
            }
            _ => "250 fine\r\n",
        };
        reader.get_mut().write_all(answer.as_bytes()).await.ok()?;
        reader.get_mut().flush().await.ok()?;
    }
}
