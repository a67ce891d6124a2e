//! An accept loop with what an open port needs: a bound on connections, a time for headers, a way to drain.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulConnection;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::awake::{Stage, stay_awake};
use super::closing;
use super::one_timer::OneTimer;
use super::write_timeout::WriteTimeout;

/// Bounds of one listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections open at once; further ones wait in the system's queue.
    pub max_connections: usize,
    /// Largest request head.
    pub max_header_bytes: usize,
    /// Time for a client to send the head of a request.
    pub header_read_timeout: Duration,
    /// Grace for answers under way once draining begins.
    pub drain: Duration,
}

/// How many connections are open, for whoever asks.
pub type Connections = Arc<AtomicUsize>;

/// After a failed accept (out of file descriptors, say) the loop breathes before it tries again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The smallest read buffer that hyper takes.
const MIN_HEADER_BYTES: usize = 8 << 10;
/// How long a client may take nothing of what is written to it.
const STALLED: Duration = Duration::from_secs(600);
/// How long a connection without a request stays open once draining begins: one may be on its way, and whoever has sent it
/// cannot know whether it was done.
const LAST_REQUEST: Duration = Duration::from_secs(1);
/// How every connection of HTTP/2 begins.
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HTTP2_STREAMS: u32 = 256;
const HTTP2_PING: Duration = Duration::from_secs(30);

/// A connection, counted for as long as it is there.
struct Counted(Connections);

/// How a listener stops.
#[derive(Clone)]
struct Stop {
    /// Nothing new; what is under way finishes.
    drain: CancellationToken,
    /// At once.
    cut: CancellationToken,
    /// Everything that runs for a connection.
    tasks: TaskTracker,
}

/// What a connection has asked for.
#[derive(Default)]
struct Asking {
    has_asked: AtomicBool,
    is_draining: AtomicBool,
    /// A request came while draining.
    last: Notify,
    /// What it waits for.
    stage: Arc<Stage>,
}

/// Where a connection is told something from outside.
#[derive(Clone, Copy)]
struct Orders<'a> {
    stop: &'a Stop,
    asking: &'a Asking,
    asked_by: Instant,
}

/// What it is told.
enum Told {
    Drain,
    Cut,
}

/// Serves connections until `shutdown`, then lets the answers under way finish. True when all of them did; the others
/// were cut, and nothing of them runs any more.
pub async fn listen<H, F, B>(
    listener: TcpListener,
    limits: Limits,
    connections: Connections,
    shutdown: CancellationToken,
    handle: H,
) -> bool
where
    H: Fn(SocketAddr, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Error: std::error::Error + Send + Sync, Data: Send> + Send + Unpin + 'static,
{
    let stop = Stop { drain: shutdown.clone(), cut: CancellationToken::new(), tasks: TaskTracker::new() };
    let slots = Arc::new(Semaphore::new(limits.max_connections));
    loop {
        let slot = tokio::select! {
            slot = slots.clone().acquire_owned() => slot,
            () = shutdown.cancelled() => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // As it is: a future inside another one would take its room twice, for as long as the connection lasts.
        let held = (slot, Counted::new(&connections));
        stop.tasks.spawn(serve(stream, peer, limits, stop.clone(), handle.clone(), held));
    }
    closing::close(listener, |stream, peer| {
        let (slots, counted) = (slots.clone(), Counted::new(&connections));
        let (stop, handle) = (stop.clone(), handle.clone());
        // One too many waits here as it did in the system's queue.
        stop.tasks.clone().spawn(async move {
            let slot = tokio::select! {
                slot = slots.acquire_owned() => slot,
                () = stop.cut.cancelled() => return,
            };
            serve(stream, peer, limits, stop, handle, (slot, counted)).await;
        });
    })
    .await;
    stop.tasks.close();
    let is_drained = tokio::time::timeout(limits.drain, stop.tasks.wait()).await.is_ok();
    stop.cut.cancel();
    stop.tasks.wait().await;
    is_drained
}

/// Serves a connection, and holds something for as long as that takes.
async fn serve<H, F, B, G>(stream: TcpStream, peer: SocketAddr, limits: Limits, stop: Stop, handle: H, held: G)
where
    H: Fn(SocketAddr, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Error: std::error::Error + Send + Sync, Data: Send> + Send + Unpin + 'static,
{
    let _held = held;
    let _ = stream.set_nodelay(true);
    let asking = Arc::new(Asking::default());
    let asked = asking.clone();
    let service = service_fn(move |request| {
        asked.has_asked.store(true, Ordering::Relaxed);
        if asked.is_draining.load(Ordering::Relaxed) {
            asked.last.notify_one();
        }
        let stage = asked.stage.clone();
        stage.asked();
        // Given back with the head of the answer: the connection may go on with its body for long.
        Box::pin(handle(peer, request)).map(|answer| Ok::<_, Infallible>(answer.map(|body| stage.answers(body))))
    });
    let orders = Orders { stop: &stop, asking: &asking, asked_by: Instant::now() + limits.header_read_timeout };
    // A connection goes on many times for each request, and is told something from outside once: what may tell it
    // is asked only after it woke up.
    let mut told = FuturesUnordered::new();
    told.push(orders.next(false).boxed());
    let is_http1 = tokio::select! {
        biased;
        is_http1 = begins_as_http1(&stream) => is_http1,
        _ = told.next() => return,
    };
    let stream = TokioIo::new(WriteTimeout::new(stream, STALLED));
    let ended = if is_http1 {
        let mut http1 = http1::Builder::new();
        http1
            .timer(OneTimer::default())
            .header_read_timeout(limits.header_read_timeout)
            .max_buf_size(limits.max_header_bytes.max(MIN_HEADER_BYTES));
        let connection = pin!(http1.serve_connection(stream, service));
        attend(connection, told, orders).await.map_err(|error| error.to_string())
    } else {
        either_version(stream, service, limits, told, orders).await
    };
    // Clients hang up in the middle all the time; what that means for a call is settled by its ticket.
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended early");
    }
}

/// Serves a connection of which nobody knows yet which version it has. On its own and no part of [`serve`]: few connections
/// need the room that this takes.
fn either_version<'a, S, B>(
    stream: TokioIo<WriteTimeout<TcpStream>>,
    service: S,
    limits: Limits,
    told: FuturesUnordered<BoxFuture<'a, Told>>,
    orders: Orders<'a>,
) -> BoxFuture<'a, Result<(), String>>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send + 'static> + Send + 'a,
    B: Body<Error: std::error::Error + Send + Sync, Data: Send> + Send + Unpin + 'static,
{
    let attended = async move {
        let mut either = auto::Builder::new(orders.stop.clone());
        either
            .http1()
            .timer(OneTimer::default())
            .header_read_timeout(limits.header_read_timeout)
            .max_buf_size(limits.max_header_bytes.max(MIN_HEADER_BYTES));
        either
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(HTTP2_STREAMS)
            .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
            .keep_alive_interval(Some(HTTP2_PING));
        let connection = pin!(either.serve_connection(stream, service));
        attend(connection, told, orders).await.map_err(|error| error.to_string())
    };
    attended.boxed()
}

/// Whether the first bytes of a connection rule HTTP/2 out. They stay where they are: what looks at both versions keeps them
/// in a buffer that then grows, and stays as large for as long as the connection lasts.
async fn begins_as_http1(stream: &TcpStream) -> bool {
    let mut first = [0; HTTP2_PREFACE.len()];
    let peeked = stream.peek(&mut first).await.unwrap_or(0);
    peeked == 0 || first[..peeked] != HTTP2_PREFACE[..peeked]
}

/// Goes on with a connection until it ends, and tells it what comes from outside.
async fn attend<'a, C: GracefulConnection>(
    mut connection: Pin<&mut C>,
    mut told: FuturesUnordered<BoxFuture<'a, Told>>,
    orders: Orders<'a>,
) -> Result<(), C::Error> {
    stay_awake(&orders.asking.stage, |cx| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                return Poll::Ready(ended);
            }
            match told.poll_next_unpin(cx) {
                Poll::Ready(Some(Told::Drain)) => {
                    connection.as_mut().graceful_shutdown();
                    told.push(orders.next(true).boxed());
                }
                Poll::Ready(Some(Told::Cut)) => return Poll::Ready(Ok(())),
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
}

impl Orders<'_> {
    /// Waits for what a connection is told next.
    async fn next(self, is_last: bool) -> Told {
        let Orders { stop, asking, asked_by } = self;
        // The time for headers begins only when the version of HTTP is known, so silence before that is bounded here.
        let silence = async {
            tokio::time::sleep_until(asked_by).await;
            if asking.has_asked.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let draining = async {
            stop.drain.cancelled().await;
            asking.is_draining.store(true, Ordering::Relaxed);
            let _ = tokio::time::timeout(LAST_REQUEST, asking.last.notified()).await;
        };
        tokio::select! {
            () = draining, if !is_last => Told::Drain,
            () = stop.cut.cancelled() => Told::Cut,
            () = silence => Told::Cut,
        }
    }
}

impl Counted {
    fn new(connections: &Connections) -> Counted {
        connections.fetch_add(1, Ordering::Relaxed);
        Counted(connections.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Executor<F> for Stop {
    /// Runs a stream of an HTTP/2 connection, which may outlive the connection's own task.
    fn execute(&self, stream: F) {
        let cut = self.cut.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                _ = stream => {}
                () = cut.cancelled() => {}
            }
        });
    }
}
