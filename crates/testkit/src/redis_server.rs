//! A real `redis-server` of a test's own: on a free port, in a directory that goes with it, to be killed, frozen,
//! flushed and started again.
//!
//! Nothing here knows what the program under test keeps in it. It blocks, for at most a few seconds: tests of any kind
//! can use it. Where no `redis-server` is installed, [`RedisServer::start`] says so and gives nothing. Another program that
//! takes the same options, such as `valkey-server`, is named by `SPRAG_TEST_REDIS`.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::port::HeldPort;
use crate::resp::{Answer, ask};

/// How long a server may take to answer, or to leave.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks whether it does.
const LOOK: Duration = Duration::from_millis(5);
/// Ports that are tried: another program may take one between the choice and the start.
const ATTEMPTS: u32 = 5;

/// A server. It ends when it is dropped.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    held: HeldPort,
    dir: TempDir,
    options: Vec<String>,
}

impl RedisServer {
    /// Starts a server. None, and one printed line, where none is installed.
    ///
    /// # Panics
    /// When it is installed and does not start.
    #[must_use]
    pub fn start() -> Option<RedisServer> {
        RedisServer::start_with(&[])
    }

    /// Starts a server with further options, as its command line takes them.
    ///
    /// # Panics
    /// When it is installed and does not start.
    #[must_use]
    #[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
    pub fn start_with(options: &[&str]) -> Option<RedisServer> {
        if !is_installed() {
            eprintln!("SKIPPED: there is no `redis-server`; install it with: apt-get install redis-server");
            return None;
        }
        Some(RedisServer::started(options))
    }

    /// Starts a server that copies what another one has, and waits until it has it.
    ///
    /// # Panics
    /// When it does not start, or does not get there.
    #[must_use]
    #[expect(clippy::panic, reason = "a test may end by a panic")]
    pub fn replica_of(other: &RedisServer) -> RedisServer {
        let replica = RedisServer::started(&["--replicaof", &format!("127.0.0.1 {}", other.held.port)]);
        let is_copied = || replica.info("replication").contains("master_link_status:up");
        if !holds(is_copied) {
            panic!("the replica did not get its copy:\n{}", replica.info("replication"));
        }
        replica
    }

    /// Starts servers of one cluster, which have all slots between them.
    ///
    /// # Panics
    /// When they are installed and do not find each other.
    #[must_use]
    #[expect(clippy::panic, reason = "a test may end by a panic")]
    pub fn cluster(size: u16) -> Option<Vec<RedisServer>> {
        let start = |_| RedisServer::start_with(&["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]);
        let servers: Vec<RedisServer> = (0..size).map(start).collect::<Option<_>>()?;
        let slots = 16_384_u16;
        for (at, server) in (0..size).zip(&servers) {
            let (first, last) =
                (slots / size * at, if at + 1 == size { slots - 1 } else { slots / size * (at + 1) - 1 });
            server.ask(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            server.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
        }
        for server in &servers[1..] {
            servers[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &server.held.port.to_string()]);
        }
        let is_whole = |server: &RedisServer| {
            let info = server.ask(&["CLUSTER", "INFO"]).text();
            info.contains("cluster_state:ok") && info.contains(&format!("cluster_known_nodes:{size}"))
        };
        if !holds(|| servers.iter().all(is_whole)) {
            panic!("the servers did not become a cluster: {}", servers[0].ask(&["CLUSTER", "INFO"]).text());
        }
        Some(servers)
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.held.port)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.held.address()
    }

    /// Kills it, as a crash would. What it had in memory is gone.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, on the same port and empty. To be called after [`RedisServer::kill`].
    ///
    /// # Panics
    /// When it does not start.
    #[expect(clippy::panic, reason = "a test may end by a panic")]
    pub fn restart(&mut self) {
        self.kill();
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        self.child = launch(self.held.port, self.dir.path(), &options);
        if !holds(|| self.answers()) {
            panic!("redis-server did not come back on port {}", self.held.port);
        }
    }

    /// Stops it in the middle of whatever it does: connections stay, and nothing is answered.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Empties it.
    pub fn flush(&self) {
        self.ask(&["FLUSHALL"]);
    }

    /// Makes a replica the one that is written to.
    pub fn promote(&self) {
        self.ask(&["REPLICAOF", "NO", "ONE"]);
    }

    /// Sends a command and gives the answer, over a connection of its own.
    ///
    /// # Panics
    /// When it does not answer.
    #[expect(clippy::panic, reason = "a test may end by a panic")]
    pub fn ask(&self, words: &[&str]) -> Answer {
        ask(self.address(), words).unwrap_or_else(|error| panic!("redis-server did not answer {words:?}: {error}"))
    }

    /// A section of what it tells about itself.
    #[must_use]
    pub fn info(&self, section: &str) -> String {
        self.ask(&["INFO", section]).text()
    }

    /// How often a command was called since [`RedisServer::reset_calls`], those inside scripts included.
    #[must_use]
    pub fn calls_of(&self, command: &str) -> u64 {
        let info = self.info("commandstats");
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or(0)
    }

    /// Begins to count calls anew.
    pub fn reset_calls(&self) {
        self.ask(&["CONFIG", "RESETSTAT"]);
    }

    #[expect(clippy::panic, reason = "a test may end by a panic")]
    fn started(options: &[&str]) -> RedisServer {
        for _ in 0..ATTEMPTS {
            let server = RedisServer::launched(options);
            match server {
                Ok(mut server) => {
                    if holds(|| server.answers() || server.has_left()) && !server.has_left() {
                        return server;
                    }
                }
                Err(error) => panic!("redis-server could not be started: {error}"),
            }
        }
        panic!("redis-server did not start on any of {ATTEMPTS} ports");
    }

    fn launched(options: &[&str]) -> io::Result<RedisServer> {
        let held = HeldPort::new()?;
        let dir = TempDir::new()?;
        let child = launch(held.port, dir.path(), options);
        Ok(RedisServer { child, held, dir, options: options.iter().map(|&option| option.to_owned()).collect() })
    }

    fn answers(&self) -> bool {
        ask(self.address(), &["PING"]).is_ok_and(|answer| answer.text() == "PONG")
    }

    fn has_left(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, signal));
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn program() -> OsString {
    std::env::var_os("SPRAG_TEST_REDIS").unwrap_or_else(|| "redis-server".into())
}

fn is_installed() -> bool {
    Command::new(program()).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

#[expect(clippy::panic, reason = "a test may end by a panic")]
fn launch(port: u16, dir: &Path, options: &[&str]) -> Child {
    let started = Command::new(program())
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(["--loglevel", "warning", "--enable-debug-command", "local"])
        .args(["--repl-diskless-sync-delay", "0"])
        .arg("--dir")
        .arg(dir)
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.unwrap_or_else(|error| panic!("redis-server could not be started: {error}"))
}

/// Looks again until something holds, or patience is over.
fn holds(mut look: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + PATIENCE;
    while !look() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}
