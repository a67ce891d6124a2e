//! A throw-away ClickHouse: its real engine behind a small HTTP front, in a process of its own.
//!
//! The engine is a Python package; where that is not installed, the suites that need it say so and are skipped. The data lies in
//! a folder that outlives the process, so that a test can kill it and start it again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "without its server a test has failed")]

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::port::HeldPort;

/// The variable that names a Python with the engine. Not `SPRAG_…`: the program takes those for its configuration.
const PYTHON: &str = "CHDB_PYTHON";
const FRONT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clickhouse/front.py");
const TEST_ENV: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.test-env/clickhouse/bin/python");
const PATIENCE: Duration = Duration::from_secs(120);

/// A server on a free port. It ends with the value.
pub struct ClickHouseServer {
    python: PathBuf,
    directory: PathBuf,
    credentials: Option<(String, String)>,
    is_thrown_away: bool,
    held: HeldPort,
    process: Option<Child>,
}

impl ClickHouseServer {
    /// Starts a server whose data lies in a folder. None, and a word about why, where the engine is not installed.
    ///
    /// # Panics
    /// When it is installed and does not start.
    #[must_use]
    pub fn start(directory: &Path) -> Option<ClickHouseServer> {
        ClickHouseServer::launch(directory, None, false)
    }

    /// The server that all tests of this process share; each takes a database of its own. Its data goes with the process.
    ///
    /// # Panics
    /// When it is installed and does not start.
    #[must_use]
    pub fn shared() -> Option<&'static ClickHouseServer> {
        static SHARED: OnceLock<Option<ClickHouseServer>> = OnceLock::new();
        let directory = || std::env::temp_dir().join(format!("sprag-clickhouse-{}", std::process::id()));
        SHARED.get_or_init(|| ClickHouseServer::launch(&directory(), None, true)).as_ref()
    }

    /// The same, for one user only.
    ///
    /// # Panics
    /// When it is installed and does not start.
    #[must_use]
    pub fn start_for(directory: &Path, user: &str, password: &str) -> Option<ClickHouseServer> {
        ClickHouseServer::launch(directory, Some((user.to_owned(), password.to_owned())), false)
    }

    fn launch(
        directory: &Path,
        credentials: Option<(String, String)>,
        is_thrown_away: bool,
    ) -> Option<ClickHouseServer> {
        let python = match python() {
            Ok(python) => python,
            Err(why) => {
                say(&format!("SKIPPED: {why}"));
                return None;
            }
        };
        let directory = directory.to_owned();
        let held = HeldPort::new().unwrap();
        let mut server = ClickHouseServer { python, directory, credentials, is_thrown_away, held, process: None };
        server.restart();
        Some(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.held.port
    }

    /// The address of a database in it, as `[events] clickhouse` takes it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let who = self.credentials.as_ref().map(|(user, password)| format!("{user}:{password}@")).unwrap_or_default();
        format!("http://{who}127.0.0.1:{}/{database}", self.held.port)
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts it again, on the same port and data. Waits until it answers.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.kill();
        let mut command = Command::new(&self.python);
        command.arg(FRONT).arg(&self.directory).args(["--port", &self.held.port.to_string()]);
        if let Some((user, password)) = &self.credentials {
            command.args(["--user", user, "--password", password]);
        }
        if self.is_thrown_away {
            command.arg("--throw-away");
        }
        // Its input ends with this process, and it with its input.
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.starts_with("listening "), "the front of ClickHouse did not start: {said}");
        self.process = Some(process);
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.held.port)).is_err() {
            assert!(start.elapsed() < PATIENCE, "the front of ClickHouse does not answer");
        }
    }

    /// Stops it in its tracks: connections stay open and nothing answers.
    ///
    /// # Panics
    /// When it does not run.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    ///
    /// # Panics
    /// When it does not run.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(self.process.as_ref().expect("it runs"));
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for ClickHouseServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The Python that has the engine, or why there is none.
fn python() -> Result<PathBuf, String> {
    let (python, named_by) = match std::env::var_os(PYTHON) {
        Some(python) => (PathBuf::from(python), PYTHON),
        None => (PathBuf::from(TEST_ENV), ".test-env"),
    };
    if python.exists() {
        return Ok(python);
    }
    Err(format!(
        "no ClickHouse: there is no {} ({named_by}). `scripts/test` installs it, or: python3 -m venv .test-env/clickhouse && \
         .test-env/clickhouse/bin/pip install -r crates/testkit/clickhouse/requirements.txt",
        python.display()
    ))
}

/// To the terminal, whatever the test runner does with the output of tests that pass.
fn say(words: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{words}");
}
