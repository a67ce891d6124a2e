//! The way to Redis: one connection that all calls share, a time limit for each call, and a breaker.
//!
//! The connection is made in the background, never by a call. When calls fail several times in a row, or the connection
//! breaks, none is sent any more; once a second a new connection is tried, and when Redis answers on it, calls go again.
//! A refusal by a script is an answer: it does not open the breaker.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, IntoConnectionInfo, RedisError, ServerErrorKind, Value};
use sprag_core::time::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::scripts::{BEGIN, END, Script};
use super::{Address, Away, LinkStatus, Phase, RoundTrips};
use crate::shards::with_lock;

/// Failures in a row after which no call is sent.
const FAILURES: u32 = 3;
/// How long a connection may take to come about.
const CONNECTING: Duration = Duration::from_secs(1);
/// Written at each new connection, and gone at once.
const TRIAL_KEY: &str = "sprag:2:{trial}";
const TRIAL_MS: u32 = 1000;
/// How a Redis answers that takes no writes, for now or because it is no longer the one to ask.
const TAKES_NOTHING: [&str; 6] = ["OOM", "MISCONF", "NOREPLICAS", "BUSY", "READONLY", "MASTERDOWN"];
/// How a Redis before 7 begins to tell of an error in a script.
const IN_SCRIPT: &str = "Error running script";

/// The link, as all clones of it share it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) address: Address,
    pub(super) timeout: Duration,
    connection: Mutex<Option<Connection>>,
    phase: watch::Sender<(Phase, Instant)>,
    failures_in_a_row: AtomicU32,
    /// Wakes whoever looks after the link.
    wake: Arc<Notify>,
    calls: AtomicU64,
    failures: AtomicU64,
    not_sent: AtomicU64,
    last_error: Mutex<Option<String>>,
    round_trips: Mutex<RoundTrips>,
    /// The time that Redis told when it was connected to, in milliseconds, and when that was.
    told_time: Mutex<Option<(i64, Instant)>>,
}

#[derive(Clone)]
enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

impl Link {
    pub(super) fn new(address: Address, timeout: Duration, wake: Arc<Notify>) -> Link {
        Link {
            address,
            timeout,
            connection: Mutex::default(),
            phase: watch::Sender::new((Phase::Connecting, Instant::now())),
            failures_in_a_row: AtomicU32::new(0),
            wake,
            calls: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            not_sent: AtomicU64::new(0),
            last_error: Mutex::default(),
            round_trips: Mutex::default(),
            told_time: Mutex::default(),
        }
    }

    /// Calls a script. `place` is a key, which decides where it runs in a cluster.
    pub(super) async fn call(&self, script: &Script, place: &str, arguments: &[Vec<u8>]) -> Result<Value, Away> {
        let connection = match self.phase() {
            Phase::Connected => with_lock(&self.connection, |connection| connection.clone()),
            Phase::Connecting | Phase::Away => None,
        };
        let Some(mut connection) = connection else {
            self.not_sent.fetch_add(1, Ordering::Relaxed);
            return Err(if self.phase() == Phase::Connecting { Away::Connecting } else { Away::Open });
        };
        self.calls.fetch_add(1, Ordering::Relaxed);
        let started = Instant::now();
        let answer = timeout(self.timeout, run(&mut connection, script, place, arguments)).await;
        self.note_round_trip(started.elapsed());
        match answer {
            Ok(Ok(value)) => {
                self.failures_in_a_row.store(0, Ordering::Relaxed);
                Ok(value)
            }
            Ok(Err(error)) => {
                let told = self.tell(&error);
                if is_away(&error) {
                    self.fail(&told, is_broken(&error));
                } else {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                    with_lock(&self.last_error, |last| *last = Some(told.clone()));
                }
                Err(Away::Failed(told))
            }
            Err(_) => {
                let away = Away::Slow { timeout_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX) };
                self.fail(&away.to_string(), false);
                Err(away)
            }
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.borrow().0
    }

    /// Waits for another phase than this one.
    pub(super) async fn changed(&self, seen: Phase) -> Phase {
        let mut phases = self.phase.subscribe();
        let other = phases.wait_for(|(phase, _)| *phase != seen).await.map(|phase| phase.0);
        // The sender lives in self, so the channel cannot close while we wait.
        other.unwrap_or(seen)
    }

    /// Connects anew where the link is down. To be called every second, and when woken.
    pub(super) async fn look_after(&self) {
        if self.phase() == Phase::Connected {
            return;
        }
        let connected = timeout(CONNECTING, connect(&self.address)).await;
        match connected {
            Ok(Ok(mut connection)) => {
                let told = ask_time(&mut connection).await;
                with_lock(&self.told_time, |time| *time = told.map(|ms| (ms, Instant::now())).or(*time));
                with_lock(&self.connection, |current| *current = Some(connection));
                self.failures_in_a_row.store(0, Ordering::Relaxed);
                tracing::info!(redis = %self.address, "connected to the shared state");
                self.enter(Phase::Connected);
            }
            Ok(Err(error)) => {
                let told = self.tell(&error);
                with_lock(&self.last_error, |last| *last = Some(told));
            }
            Err(_) => {
                let told = format!("no connection within {} s", CONNECTING.as_secs());
                with_lock(&self.last_error, |last| *last = Some(told));
            }
        }
    }

    /// The time of Redis, by what it told when it was connected to.
    pub(super) fn time(&self) -> Option<Timestamp> {
        let (ms, at) = with_lock(&self.told_time, |time| *time)?;
        Some(Timestamp(ms.saturating_add(i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX))))
    }

    pub(super) fn status(&self) -> LinkStatus {
        let (phase, since) = *self.phase.borrow();
        LinkStatus {
            phase,
            since_ms: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
            address: self.address.to_string(),
            calls: self.calls.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            not_sent: self.not_sent.load(Ordering::Relaxed),
            last_error: with_lock(&self.last_error, |last| last.clone()),
            round_trips: with_lock(&self.round_trips, |round_trips| *round_trips),
            ..LinkStatus::default()
        }
    }

    fn fail(&self, told: &str, is_broken: bool) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        with_lock(&self.last_error, |last| *last = Some(told.to_owned()));
        let in_a_row = self.failures_in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
        if (is_broken || in_a_row >= FAILURES) && self.phase() == Phase::Connected {
            tracing::warn!(redis = %self.address, error = told, "the shared state does not answer; this node is on its own");
            with_lock(&self.connection, |connection| *connection = None);
            self.enter(Phase::Away);
            self.wake.notify_one();
        }
    }

    fn enter(&self, phase: Phase) {
        self.phase.send_if_modified(|current| {
            let is_new = current.0 != phase;
            if is_new {
                *current = (phase, Instant::now());
            }
            is_new
        });
    }

    fn note_round_trip(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let place = RoundTrips::BOUNDS_US.iter().position(|bound| us <= *bound).unwrap_or(RoundTrips::BOUNDS_US.len());
        with_lock(&self.round_trips, |round_trips| {
            round_trips.counts[place] += 1;
            round_trips.sum_us = round_trips.sum_us.saturating_add(us);
        });
    }

    /// An error in words. Addresses in it are shown without a password.
    fn tell(&self, error: &RedisError) -> String {
        let told = error.to_string();
        let shown = self.address.to_string();
        self.address.urls.iter().fold(told, |told, url| told.replace(url, &shown))
    }
}

async fn connect(address: &Address) -> Result<Connection, RedisError> {
    let tcp = || TcpSettings::default().set_nodelay(true);
    let mut connection = match address.is_cluster() {
        true => {
            let builder = ClusterClient::builder(address.urls.iter().map(String::as_str));
            let client = builder.tcp_settings(tcp()).connection_timeout(CONNECTING).retries(3).build()?;
            Connection::Cluster(client.get_async_connection().await?)
        }
        false => {
            let url = address.urls.first().map(String::as_str).unwrap_or_default();
            let client = Client::open(url.into_connection_info()?.set_tcp_settings(tcp()))?;
            // Calls have a limit of their own.
            let config =
                AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECTING)).set_response_timeout(None);
            Connection::One(client.get_multiplexed_async_connection_with_config(&config).await?)
        }
    };
    // Something is written: a Redis that is full, or cannot save, answers everything else.
    let mut trial = redis::cmd("SET");
    trial.arg(TRIAL_KEY).arg(1).arg("PX").arg(TRIAL_MS);
    connection.send(&trial).await?;
    connection.send(redis::cmd("DEL").arg(TRIAL_KEY)).await?;
    // A script that Redis does not know by its hash is sent once more, behind what was sent after it. Whoever may not load scripts ahead may
    // still call them.
    for script in [&*BEGIN, &*END] {
        match connection.send(redis::cmd("SCRIPT").arg("LOAD").arg(&script.text)).await {
            Err(error) if is_away(&error) => return Err(error),
            Err(error) => tracing::debug!(%error, "scripts cannot be loaded ahead"),
            Ok(_) => {}
        }
    }
    Ok(connection)
}

/// What time it is there, in milliseconds; a Redis that does not tell it does everything else.
async fn ask_time(connection: &mut Connection) -> Option<i64> {
    const TIME: &str = "local time = redis.call('TIME') return time[1] * 1000 + math.floor(time[2] / 1000)";
    let mut asked = redis::cmd("EVAL");
    asked.arg(TIME).arg(1).arg(TRIAL_KEY);
    match timeout(CONNECTING, connection.send(&asked)).await {
        Ok(Ok(Value::Int(ms))) => Some(ms),
        other => {
            tracing::debug!(?other, "redis does not tell the time");
            None
        }
    }
}

/// Calls a script by its hash; one that Redis does not know is sent whole.
async fn run(
    connection: &mut Connection,
    script: &Script,
    place: &str,
    arguments: &[Vec<u8>],
) -> Result<Value, RedisError> {
    let command = |name: &str, what: &str| {
        let mut command = redis::cmd(name);
        command.arg(what).arg(1).arg(place).arg(arguments);
        command
    };
    match connection.send(&command("EVALSHA", &script.hash)).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            connection.send(&command("EVAL", &script.text)).await
        }
        answer => answer,
    }
}

impl Connection {
    async fn send(&mut self, command: &Cmd) -> Result<Value, RedisError> {
        let answer = match self {
            Connection::One(connection) => connection.req_packed_command(command).await,
            Connection::Cluster(connection) => connection.req_packed_command(command).await,
        };
        answer?.extract_error()
    }
}

/// Whether it is Redis that is away, rather than one call that is refused.
fn is_away(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly, TryAgain};
    let is_down = matches!(
        error.kind(),
        ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | Moved | ReadOnly | TryAgain)
            | ErrorKind::ClusterConnectionNotFound
            | ErrorKind::AuthenticationFailed
            | ErrorKind::Io
    );
    is_down || error.is_io_error() || error.is_timeout() || error.is_connection_dropped() || is_broken(error)
}

/// Whether nothing can come of this connection any more. A server that takes no writes is not the one to ask.
fn is_broken(error: &RedisError) -> bool {
    let takes_nothing = code_of(error).is_some_and(|code| TAKES_NOTHING.contains(&code));
    takes_nothing || error.is_unrecoverable_error() || error.is_connection_dropped()
}

/// The code of an error; for one in a script that of the command that failed, which older servers tell inside the text:
/// `ERR Error running script (…): @user_script:7: @user_script: 7: -OOM command not allowed`.
fn code_of(error: &RedisError) -> Option<&str> {
    let of_command = |detail: &'_ str| -> Option<usize> {
        let at = detail.find(": -").filter(|_| detail.starts_with(IN_SCRIPT))?;
        Some(at + ": -".len())
    };
    match error.detail().and_then(|detail| Some((detail, of_command(detail)?))) {
        Some((detail, at)) => detail[at..].split_ascii_whitespace().next(),
        None => error.code(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> RedisError {
        let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        answer.extract_error().unwrap_err()
    }

    #[test]
    fn a_server_that_takes_nothing_is_away_and_one_refusal_is_not() {
        let in_script = "ERR Error running script (call to f_2dc6): @user_script:1: @user_script: 1: -";
        for (line, expected) in [
            ("OOM command not allowed when used memory > 'maxmemory'. script: 2dc6, on @user_script:1.", true),
            ("READONLY You can't write against a read only replica. script: 2dc6, on @user_script:1.", true),
            (&format!("{in_script}OOM command not allowed when used memory > 'maxmemory'."), true),
            (&format!("{in_script}READONLY You can't write against a read only replica."), true),
            (&format!("{in_script}WRONGTYPE Operation against a key holding the wrong kind of value"), false),
            (
                "ERR Error running script (call to f_2dc6): @user_script:9: user_script:9: SPRAG: the key x is odd",
                false,
            ),
            ("ERR user_script:9: SPRAG: the key x does not hold what it should: -OOM script: 2dc6", false),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", false),
        ] {
            let error = error(line);
            assert_eq!((is_broken(&error), is_away(&error)), (expected, expected), "{line}: {error:?}");
        }
    }
}
