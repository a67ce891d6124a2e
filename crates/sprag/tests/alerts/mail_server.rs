//! A mail server that keeps what it is sent, with STARTTLS, with TLS from the first byte, or in the clear. It can be as
//! awkward as mail servers are.

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

impl Talk {
    /// Whom the mail was for.
    pub(crate) fn recipients(&self) -> Vec<&str> {
        let said = self.clear.iter().chain(&self.secured);
        said.filter_map(|line| line.strip_prefix("RCPT TO:<")?.strip_suffix('>')).collect()
    }
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

/// How a server behaves.
#[derive(Clone, Copy)]
pub(crate) struct Manners {
    /// The way of signing in that it offers.
    pub(crate) auth: &'static str,
    /// What it says to a recipient, by how often it was asked for one.
    pub(crate) recipient: fn(&str, usize) -> &'static [u8],
    /// What it says to the message.
    pub(crate) verdict: Verdict,
    /// What it says in the clear behind its answer to STARTTLS.
    pub(crate) injects: &'static [u8],
}

#[derive(Clone, Copy)]
pub(crate) enum Verdict {
    Says(&'static [u8]),
    HangsUp,
    /// Neither to the message nor, with `true`, to the sender.
    SaysNothing(bool),
}

impl Default for Manners {
    fn default() -> Manners {
        Manners {
            auth: "PLAIN",
            recipient: |_, _| b"250 fine\r\n",
            verdict: Verdict::Says(b"250 kept\r\n"),
            injects: b"",
        }
    }
}

impl MailServer {
    pub(crate) async fn start(way: Way) -> MailServer {
        MailServer::behaving(way, Manners::default()).await
    }

    pub(crate) async fn behaving(way: Way, manners: Manners) -> MailServer {
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
            let asked = Arc::new(Mutex::new(0));
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, kept, asked) = (acceptor.clone(), kept.clone(), asked.clone());
                tokio::spawn(async move {
                    let mut talk = Talk::default();
                    let mut server = Server { manners, asked, offers_tls: way == Way::Starttls, mail: String::new() };
                    if way == Way::Tls {
                        let Ok(secured) = acceptor.accept(socket).await else { return };
                        server.converse(secured, true, &mut talk.secured).await;
                    } else if let Some(socket) = server.converse(socket, true, &mut talk.clear).await {
                        let Ok(secured) = acceptor.accept(socket).await else { return };
                        server.offers_tls = false;
                        server.converse(secured, false, &mut talk.secured).await;
                    }
                    talk.mail = server.mail;
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

struct Server {
    manners: Manners,
    asked: Arc<Mutex<usize>>,
    offers_tls: bool,
    mail: String,
}

impl Server {
    /// Gives the connection back when the client wants it encrypted.
    async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        socket: S,
        greets: bool,
        said: &mut Vec<String>,
    ) -> Option<S> {
        let mut reader = BufReader::new(socket);
        if greets {
            reader.get_mut().write_all(b"220 mail gr\xfc\xdft\r\n").await.ok()?;
        }
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            said.push(line.trim_end().to_owned());
            let word = line.split([' ', ':']).next().unwrap_or_default().trim_end();
            let answer: Vec<u8> = match word {
                "EHLO" if self.offers_tls => b"250-mail\r\n250 STARTTLS\r\n".to_vec(),
                "EHLO" => format!("250-mail\r\n250 AUTH {}\r\n", self.manners.auth).into_bytes(),
                "STARTTLS" => {
                    let answer = [b"220 go on\r\n", self.manners.injects].concat();
                    reader.get_mut().write_all(&answer).await.ok()?;
                    return Some(reader.into_inner());
                }
                "AUTH" if line.trim_end() == "AUTH LOGIN" => {
                    for question in ["334 VXNlcm5hbWU6\r\n", "334 UGFzc3dvcmQ6\r\n"] {
                        reader.get_mut().write_all(question.as_bytes()).await.ok()?;
                        let mut line = String::new();
                        reader.read_line(&mut line).await.ok()?;
                        said.push(line.trim_end().to_owned());
                    }
                    b"235 welcome\r\n".to_vec()
                }
                "AUTH" => b"235 welcome\r\n".to_vec(),
                "MAIL" if matches!(self.manners.verdict, Verdict::SaysNothing(true)) => Vec::new(),
                "RCPT" => {
                    let mut asked = self.asked.lock().unwrap();
                    *asked += 1;
                    (self.manners.recipient)(line.trim_end(), *asked).to_vec()
                }
                "DATA" => {
                    reader.get_mut().write_all(b"354 go on\r\n").await.ok()?;
                    loop {
                        let mut line = String::new();
                        if reader.read_line(&mut line).await.ok()? == 0 || line == ".\r\n" {
                            break;
                        }
                        self.mail.push_str(&line);
                    }
                    match self.manners.verdict {
                        Verdict::Says(verdict) => verdict.to_vec(),
                        Verdict::HangsUp => return None,
                        Verdict::SaysNothing(_) => Vec::new(),
                    }
                }
                "QUIT" => {
                    reader.get_mut().write_all(b"221 bye\r\n").await.ok()?;
                    return None;
                }
                _ => b"250 fine\r\n".to_vec(),
            };
            reader.get_mut().write_all(&answer).await.ok()?;
            reader.get_mut().flush().await.ok()?;
        }
    }
}
