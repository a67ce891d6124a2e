//! A provider that costs next to nothing: what is left of a measurement is the proxy's.
//!
//! It speaks OpenAI Chat and Anthropic Messages, whole and streamed, as the request asks. It does not read prompts; only
//! the flags at their two ends. It runs on a thread of its own.

mod answers;
mod stream;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use self::answers::{Asked, Dialect};
use self::stream::Body;
use crate::words::Words;

/// What answers look like.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Shape {
    /// Bytes of text in an answer that comes whole.
    #[arg(long, default_value_t = 256)]
    pub answer_bytes: usize,
    /// Chunks of text in a stream.
    #[arg(long, default_value_t = 20)]
    pub chunks: usize,
    /// Milliseconds before each chunk.
    #[arg(long, default_value_t = 0)]
    pub chunk_delay_ms: u64,
    /// Milliseconds before the head of an answer.
    #[arg(long, default_value_t = 0)]
    pub latency_ms: u64,
    /// Ask for a tool instead of saying something.
    #[arg(long)]
    pub tools: bool,
    /// Every so many requests fail with status 500; 0 is none.
    #[arg(long, default_value_t = 0)]
    pub fail_every: u64,
    /// Every so many streams are cut in the middle; 0 is none.
    #[arg(long, default_value_t = 0)]
    pub cut_every: u64,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            answer_bytes: 256,
            chunks: 20,
            chunk_delay_ms: 0,
            latency_ms: 0,
            tools: false,
            fail_every: 0,
            cut_every: 0,
        }
    }
}

/// What the mock has seen.
#[derive(Debug, Default)]
pub struct Counters {
    pub requests: AtomicU64,
    pub streams: AtomicU64,
    pub chunks: AtomicU64,
    pub in_flight: AtomicUsize,
}

struct Shared {
    shape: Mutex<Shape>,
    words: Mutex<Words>,
    counters: Arc<Counters>,
}

pub struct Mock {
    shared: Arc<Shared>,
    pub address: SocketAddr,
    thread: JoinHandle<()>,
}

impl Mock {
    /// Listens; everything else happens on a thread that lasts as long as the process.
    pub fn start(address: SocketAddr) -> Result<Mock> {
        let listener = std::net::TcpListener::bind(address)
            .with_context(|| format!("the mock cannot listen on {address}: is another measurement running?"))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            shape: Mutex::new(Shape::default()),
            words: Mutex::new(Words::new(11)),
            counters: Arc::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let served = shared.clone();
        let thread = std::thread::spawn(move || runtime.block_on(serve(listener, served)));
        Ok(Mock { shared, address, thread })
    }

    pub fn set(&self, shape: Shape) {
        *self.shared.shape.lock().unwrap_or_else(PoisonError::into_inner) = shape;
    }

    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub fn join(self) {
        let _ = self.thread.join();
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        // Out of files, or a client that left at once: the next one may have more luck.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(shared.clone(), request));
            let mut builder = hyper::server::conn::http1::Builder::new();
            // Idle connections stay: when they end is not what is measured.
            builder.header_read_timeout(None).max_buf_size(1 << 20);
            // How a connection ends is the proxy's business.
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let dialect = Dialect::of(request.uri().path());
    let Ok(body) = request.into_body().collect().await else { return Ok(whole(StatusCode::BAD_REQUEST, Bytes::new())) };
    let asked = Asked::read(&body.to_bytes());
    let shape = *shared.shape.lock().unwrap_or_else(PoisonError::into_inner);
    let counters = &shared.counters;
    let number = counters.requests.fetch_add(1, Ordering::Relaxed) + 1;
    if shape.latency_ms > 0 {
        tokio::time::sleep(Duration::from_millis(shape.latency_ms)).await;
    }
    if shape.fail_every > 0 && number.is_multiple_of(shape.fail_every) {
        return Ok(whole(StatusCode::INTERNAL_SERVER_ERROR, answers::failure(dialect)));
    }
    if !asked.is_stream {
        let bytes =
            answers::whole(dialect, &shape, number, &mut shared.words.lock().unwrap_or_else(PoisonError::into_inner));
        return Ok(whole(StatusCode::OK, bytes));
    }
    let nth = counters.streams.fetch_add(1, Ordering::Relaxed) + 1;
    let is_cut = shape.cut_every > 0 && nth.is_multiple_of(shape.cut_every);
    let seed = u32::try_from(number % 1_000_003).unwrap_or(0);
    let body = Body::stream(dialect, shape, asked, seed, is_cut, counters.clone());
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

fn whole(status: StatusCode, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::whole(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
