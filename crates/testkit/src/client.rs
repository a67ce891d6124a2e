//! A small HTTP client that shows answers as they came: exact bytes, piece by piece, and how they ended.
//!
//! It never follows, retries, decompresses or pools. One [`Session`] is one connection; dropping it, or an [`Answer`]
//! that owns it, closes the connection at once.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

type Upload = http_body_util::combinators::BoxBody<Bytes, Infallible>;

/// Why there was no answer, or no end of it.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Call {
    method: Method,
    url: String,
    headers: HeaderMap,
    body: Vec<Bytes>,
    chunked: bool,
    http2: bool,
}

/// One connection.
#[derive(Debug)]
pub struct Session {
    sender: Sender,
    _closer: Arc<Closer>,
}

/// An answer whose body is still coming.
#[derive(Debug)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// HTTP version.
    pub version: Version,
    /// Trailer fields, once the body has ended.
    pub trailers: Option<HeaderMap>,
    body: Incoming,
    started: Instant,
    _closer: Arc<Closer>,
}

/// An answer that has come to its end, good or bad.
#[derive(Debug)]
pub struct Whole {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Trailer fields.
    pub trailers: Option<HeaderMap>,
    /// The exact bytes of the body.
    pub body: Bytes,
    /// The pieces in which it came, and when, counted from the sending of the request.
    pub pieces: Vec<(Duration, Bytes)>,
    /// What broke the body off, if something did.
    pub broken: Option<String>,
}

#[derive(Debug)]
enum Sender {
    One(http1::SendRequest<Upload>),
    Two(http2::SendRequest<Upload>),
}

/// Ends the task that drives the connection, and with it the connection.
#[derive(Debug)]
struct Closer(AbortHandle);

impl Drop for Closer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A GET request.
pub fn get(url: impl Into<String>) -> Call {
    let url = url.into();
    Call { method: Method::GET, url, headers: HeaderMap::new(), body: Vec::new(), chunked: false, http2: false }
}

/// A POST request with these very bytes; JSON unless a header says otherwise.
pub fn post(url: impl Into<String>, body: impl Into<Bytes>) -> Call {
    let json = HeaderValue::from_static("application/json");
    let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, json)]);
    Call { method: Method::POST, headers, body: vec![body.into()], ..get(url) }
}

/// A POST request with a JSON body.
pub fn post_json(url: impl Into<String>, body: &Value) -> Call {
    post(url, body.to_string())
}

/// Writes `bytes` to a fresh connection as they are and reads until the other side closes.
///
/// # Errors
/// Those of the socket.
pub async fn raw(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(bytes).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer)
}

impl Call {
    /// Another method.
    #[must_use]
    pub fn method(mut self, method: Method) -> Call {
        self.method = method;
        self
    }

    /// Adds a header; one that is not valid is left out.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Call {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            if name == http::header::CONTENT_TYPE {
                self.headers.remove(&name);
            }
            self.headers.append(name, value);
        }
        self
    }

    /// Sends the body in these pieces, chunked, without a length.
    #[must_use]
    pub fn pieces(mut self, pieces: impl IntoIterator<Item = Bytes>) -> Call {
        self.body = pieces.into_iter().collect();
        self.chunked = true;
        self
    }

    /// Speaks HTTP/2 without negotiation.
    #[must_use]
    pub fn http2(mut self) -> Call {
        self.http2 = true;
        self
    }

    /// Sends it on a connection of its own.
    ///
    /// # Errors
    /// When there is no connection, or no response head.
    pub async fn send(self) -> Result<Answer, Failure> {
        Session::open(&self.url, self.http2).await?.send(self).await
    }

    /// Sends it and reads the answer to its end.
    ///
    /// # Errors
    /// As [`Call::send`]; a body that breaks off is reported in [`Whole::broken`].
    pub async fn fetch(self) -> Result<Whole, Failure> {
        Ok(self.send().await?.whole().await)
    }

    fn request(self) -> Result<Request<Upload>, Failure> {
        let uri: Uri = self.url.parse()?;
        let target =
            if self.http2 { self.url.as_str() } else { uri.path_and_query().map_or("/", |path| path.as_str()) };
        let mut request = Request::builder().method(self.method).uri(target);
        if let Some(headers) = request.headers_mut() {
            if !self.http2 && !self.headers.contains_key(http::header::HOST) {
                let host = uri.authority().map_or("localhost", |authority| authority.as_str());
                headers.insert(http::header::HOST, HeaderValue::from_str(host)?);
            }
            headers.extend(self.headers);
        }
        let body = match self.chunked {
            true => {
                let frames = self.body.into_iter().map(|piece| Ok(Frame::data(piece)));
                BodyExt::boxed(StreamBody::new(futures_util::stream::iter(frames)))
            }
            false => http_body_util::Full::new(self.body.into_iter().next().unwrap_or_default()).boxed(),
        };
        Ok(request.body(body)?)
    }
}

impl Session {
    /// Connects to the host of `url`.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn open(url: &str, http2: bool) -> Result<Session, Failure> {
        let uri: Uri = url.parse()?;
        let host = uri.host().ok_or("the address has no host")?;
        let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await?;
        stream.set_nodelay(true)?;
        let io = TokioIo::new(stream);
        let (sender, task) = if http2 {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
            (Sender::Two(sender), tokio::spawn(async move { drop(connection.await) }))
        } else {
            let (sender, connection) = http1::handshake(io).await?;
            (Sender::One(sender), tokio::spawn(async move { drop(connection.await) }))
        };
        Ok(Session { sender, _closer: Arc::new(Closer(task.abort_handle())) })
    }

    /// Sends a request on this connection. Read the answer to its end before the next one.
    ///
    /// # Errors
    /// When the connection ends before a response head.
    pub async fn send(&mut self, call: Call) -> Result<Answer, Failure> {
        let started = Instant::now();
        let request = call.request()?;
        let response = match &mut self.sender {
            Sender::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        let (parts, body) = response.into_parts();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            version: parts.version,
            trailers: None,
            body,
            started,
            _closer: Arc::clone(&self._closer),
        })
    }
}

impl Answer {
    /// The next piece of the body; nothing at its end.
    ///
    /// # Errors
    /// When the body breaks off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while let Some(frame) = self.body.frame().await {
            match frame?.into_data() {
                Ok(data) => return Ok(Some(data)),
                Err(other) => self.trailers = other.into_trailers().ok(),
            }
        }
        Ok(None)
    }

    /// Reads until at least so many bytes have come, or the end.
    ///
    /// # Errors
    /// When the body breaks off.
    pub async fn read_at_least(&mut self, bytes: usize) -> Result<Bytes, Failure> {
        let mut read = BytesMut::new();
        while read.len() < bytes {
            let Some(piece) = self.next().await? else { break };
            read.extend_from_slice(&piece);
        }
        Ok(read.freeze())
    }

    /// Reads to the end.
    pub async fn whole(mut self) -> Whole {
        let mut pieces = Vec::new();
        let mut body = BytesMut::new();
        let broken = loop {
            match self.next().await {
                Ok(Some(piece)) => {
                    body.extend_from_slice(&piece);
                    pieces.push((self.started.elapsed(), piece));
                }
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        let Answer { status, headers, trailers, .. } = self;
        Whole { status, headers, trailers, body: body.freeze(), pieces, broken }
    }

    /// Goes away in the middle of the answer: the connection is closed.
    pub fn abort(self) {
        self._closer.0.abort();
    }
}

impl Whole {
    /// The body as JSON; null when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The body as server-sent events.
    #[must_use]
    pub fn events(&self) -> Vec<crate::sse::SseEvent> {
        crate::sse::events(&self.body)
    }

    /// One header, empty when absent or not text.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}
