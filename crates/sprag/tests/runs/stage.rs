//! A provider that answers each request with the bytes that the test sent along with it, and a client to send them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sprag::clock::Clock;
use sprag::config::{BaseUrl, Settings};
use sprag_testkit::{Provider, Script, client};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::sprag::Sprag;

/// The header that tells which answer a request gets.
const PLAY: &str = "x-play";

/// One answer.
#[derive(Clone, Debug)]
pub(crate) struct Play {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
    /// Bytes of one piece; 0 for the whole at once, with its length told ahead.
    pub(crate) piece: usize,
    /// The body breaks off after its pieces, once this opens.
    pub(crate) cut: Option<watch::Receiver<bool>>,
    /// Nothing is answered before this opens.
    pub(crate) gate: Option<watch::Receiver<bool>>,
}

/// A Sprag before its stage.
pub(crate) struct Stage {
    pub(crate) sprag: Sprag,
    plays: Plays,
    next: AtomicUsize,
    _provider: Provider,
}

#[derive(Clone, Default)]
struct Plays {
    waiting: Arc<Mutex<HashMap<String, Play>>>,
    /// Requests that came so far, and what they were.
    seen: Arc<watch::Sender<usize>>,
    bodies: Arc<Mutex<Vec<Bytes>>>,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) run: String,
    pub(crate) step: u32,
    pub(crate) headers: http::HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Play {
    pub(crate) fn json(body: &Value) -> Play {
        let body = Bytes::from(body.to_string());
        Play { status: 200, content_type: "application/json", body, piece: 0, cut: None, gate: None }
    }

    pub(crate) fn sse(body: impl Into<Bytes>) -> Play {
        let body = body.into();
        Play { status: 200, content_type: "text/event-stream", body, piece: 512, cut: None, gate: None }
    }

    pub(crate) fn failure(status: u16) -> Play {
        Play { status, ..Play::json(&serde_json::json!({"error": {"message": "no", "type": "x"}})) }
    }

    pub(crate) fn piece(mut self, bytes: usize) -> Play {
        self.piece = bytes;
        self
    }

    pub(crate) fn cut(mut self, gate: &watch::Sender<bool>) -> Play {
        self.cut = Some(gate.subscribe());
        self
    }

    pub(crate) fn held(mut self, gate: &watch::Sender<bool>) -> Play {
        self.gate = Some(gate.subscribe());
        self
    }
}

impl Stage {
    pub(crate) async fn start() -> Stage {
        Stage::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Settings)) -> Stage {
        Stage::start_at(Clock::Real, change).await
    }

    /// The same with a clock of the test's own.
    pub(crate) async fn start_at(clock: Clock, change: impl FnOnce(&mut Settings)) -> Stage {
        let plays = Plays::default();
        let url = serve(plays.clone()).await;
        let provider = Provider::start(Script::new()).unwrap();
        let sprag = Sprag::start_at(&provider, clock, |settings| {
            for provider in settings.providers.values_mut() {
                Arc::make_mut(provider).base = BaseUrl::parse(&url).unwrap();
            }
            change(settings);
        })
        .await;
        Stage { sprag, plays, next: AtomicUsize::new(0), _provider: provider }
    }

    /// Asks with the key `k1`.
    pub(crate) async fn ask(&self, path: &str, body: &Value, play: Play) -> Said {
        self.ask_with(path, &[("authorization", "Bearer k1")], body, play).await
    }

    pub(crate) async fn ask_with(&self, path: &str, headers: &[(&str, &str)], body: &Value, play: Play) -> Said {
        self.call(path, headers, body, play).fetch().await.map(Said::of).unwrap()
    }

    /// A request that is not sent yet.
    pub(crate) fn call(&self, path: &str, headers: &[(&str, &str)], body: &Value, play: Play) -> client::Call {
        let key = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        self.plays.waiting.lock().unwrap().insert(key.clone(), play);
        let call = client::post_json(self.sprag.url(path), body).header(PLAY, &key);
        headers.iter().fold(call, |call, (name, value)| call.header(name, value))
    }

    /// Waits until so many requests have reached the provider.
    pub(crate) async fn reached(&self, requests: usize) {
        self.plays.seen.subscribe().wait_for(|seen| *seen >= requests).await.unwrap();
    }

    /// The body of the last request that reached the provider.
    pub(crate) fn last_body(&self) -> Value {
        serde_json::from_slice(self.plays.bodies.lock().unwrap().last().unwrap()).unwrap()
    }
}

impl Said {
    pub(crate) fn of(whole: client::Whole) -> Said {
        Said {
            status: whole.status.as_u16(),
            run: whole.headers.get("x-sprag-run-id").map(text).unwrap_or_default(),
            step: whole.header("x-sprag-step").parse().unwrap_or(0),
            headers: whole.headers,
            bytes: whole.body,
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    /// The run and the step, for comparing.
    pub(crate) fn place(&self) -> (&str, u32) {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.bytes));
        (&self.run, self.step)
    }
}

fn text(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

async fn serve(plays: Plays) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let plays = plays.clone();
            let service = service_fn(move |request| answer(plays.clone(), request));
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

async fn answer(
    plays: Plays,
    request: Request<Incoming>,
) -> Result<Response<BoxBody<Bytes, std::io::Error>>, Infallible> {
    let key = request.headers()[PLAY].to_str().unwrap().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    plays.bodies.lock().unwrap().push(body);
    let mut play = plays.waiting.lock().unwrap().remove(&key).unwrap();
    plays.seen.send_modify(|seen| *seen += 1);
    if let Some(gate) = &mut play.gate {
        drop(gate.wait_for(|open| *open).await);
    }
    let response = Response::builder().status(play.status).header("content-type", play.content_type);
    let body = if play.piece == 0 {
        http_body_util::Full::new(play.body).map_err(|never| match never {}).boxed()
    } else {
        let pieces: Vec<Bytes> = play.body.chunks(play.piece).map(Bytes::copy_from_slice).collect();
        let cut = futures_util::stream::iter(play.cut).then(|mut gate| async move {
            drop(gate.wait_for(|open| *open).await);
            Err(std::io::Error::other("cut"))
        });
        let pieces = futures_util::stream::iter(pieces).map(|piece| Ok(Frame::data(piece)));
        BodyExt::boxed(StreamBody::new(pieces.chain(cut)))
    };
    Ok(response.body(body).unwrap())
}
