//! The real program, as a process of its own.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sprag_core::event::Event;
use sprag_store::DataDir;
use sprag_store::history::{EventFilter, History, HistorySettings};
use sprag_testkit::Provider;

/// Longer than any working test needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running program. Dropping it kills it.
pub(crate) struct Binary {
    pub(crate) child: Child,
    pub(crate) proxy: SocketAddr,
    /// Holds the configuration, the data directory, and what the program wrote to its terminal.
    pub(crate) home: PathBuf,
}

impl Binary {
    /// Starts with its files in `home`. `more` stands in the configuration beside the usual.
    pub(crate) fn start(home: &Path, provider: &Provider, more: &str) -> Binary {
        fs::write(home.join("sprag.toml"), config(provider, home, more)).unwrap();
        let file = home.join("sprag.toml").display().to_string();
        Binary::started(home, &["--config", &file])
    }

    /// Starts in `home` without a file.
    pub(crate) fn start_bare(home: &Path) -> Binary {
        let data = home.join("data").display().to_string();
        Binary::started(home, &["--data", &data, "--proxy", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
    }

    fn started(home: &Path, arguments: &[&str]) -> Binary {
        let child = Command::new(env!("CARGO_BIN_EXE_sprag"))
            .arg("serve")
            .args(arguments)
            .current_dir(home)
            .stdout(File::create(home.join("stdout")).unwrap())
            .stderr(File::create(home.join("stderr")).unwrap())
            .env_remove("RUST_LOG")
            .spawn()
            .unwrap();
        let mut binary = Binary { child, proxy: ([127, 0, 0, 1], 0).into(), home: home.to_owned() };
        let begun = Instant::now();
        while binary.proxy.port() == 0 {
            let greeting = fs::read_to_string(home.join("stdout")).unwrap();
            // A whole line, so that the port is whole too.
            let line = greeting.split_inclusive('\n').find(|line| line.contains("proxy  ") && line.ends_with('\n'));
            if let Some(line) = line {
                binary.proxy = line.trim().rsplit('/').next().unwrap().parse().unwrap();
            }
            assert!(begun.elapsed() < PATIENCE && binary.child.try_wait().unwrap().is_none(), "{}", binary.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        binary
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.proxy)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// What it has written to standard error.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.join("stderr")).unwrap()
    }

    /// Sends a signal: `TERM`, `HUP`, `KILL`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end and gives the exit code; none when a signal ended it.
    pub(crate) async fn exit_code(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end: {}", self.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until its log contains `text` so many times.
    pub(crate) async fn says(&self, text: &str, times: usize) {
        wait_until(|| self.log().matches(text).count() >= times, || format!("no {text:?} in {}", self.log())).await;
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `condition` holds; the message says what was there instead.
pub(crate) async fn wait_until(mut condition: impl FnMut() -> bool, message: impl Fn() -> String) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "{}", message());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A configuration with the provider behind every family.
pub(crate) fn config(provider: &Provider, home: &Path, more: &str) -> String {
    let (url, data) = (provider.url(), home.join("data"));
    format!(
        "data.dir = {data:?}\nadmin.listen = \"127.0.0.1:0\"\nproxy.listen = \"127.0.0.1:0\"\n\
         providers.openai.base_url = \"{url}\"\nproviders.anthropic.base_url = \"{url}\"\n\
         providers.gemini.base_url = \"{url}\"\n{more}\n"
    )
}

/// The events in the data directory of a program that has ended.
pub(crate) fn events_of(data: &Path) -> Vec<Event> {
    let dir = Arc::new(DataDir::open(data).unwrap());
    let history = History::open_embedded(dir, HistorySettings::default()).unwrap();
    history.flush().unwrap();
    let mut events = Vec::new();
    let mut cursor = None;
    loop {
        let page = history.events(&EventFilter::default(), cursor.as_deref(), 500).unwrap();
        events.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            events.reverse();
            return events;
        }
    }
}
