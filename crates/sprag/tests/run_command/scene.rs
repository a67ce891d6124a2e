//! A provider, a data directory, and `sprag run` between a command and both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use sprag_core::event::{Event, EventKind};
use sprag_core::id::{AgentName, RunId};
use sprag_store::history::{EventFilter, History, HistorySettings, RunRow};
use sprag_store::{DataDir, RunKey};
use sprag_testkit::{Provider, Script};
use tempfile::TempDir;

/// Longer than any working test needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Scene {
    pub(crate) provider: Provider,
    pub(crate) dir: TempDir,
}

/// How a command ended, and what was printed.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene { provider: Provider::start(Script::new()).unwrap(), dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// `sprag run` with these words behind the usual ones, in an environment of its own. Also in a session of its own: whoever
    /// runs the tests may have a terminal.
    pub(crate) fn sprag(&self, words: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        command.args([env!("CARGO_BIN_EXE_sprag"), "run", "--data"]).arg(self.data());
        for name in ["openai", "anthropic", "gemini"] {
            command.args(["--provider", &format!("{name}={}", self.provider.url())]);
        }
        command.args(words).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.dir.path()).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// The same before the small agent.
    pub(crate) fn agent(&self, words: &[&str], agent: &[&str]) -> Command {
        let mut command = self.sprag(words);
        command.arg("--").arg("python3").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run_command/agent.py"));
        command.args(agent);
        command
    }

    /// The same before a shell script.
    pub(crate) fn shell(&self, words: &[&str], script: &str) -> Command {
        let mut command = self.sprag(words);
        command.args(["--", "sh", "-c", script]);
        command
    }

    /// Every event on record, the oldest first. The directory must be free.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = self.history().events(&EventFilter::default(), None, 500).unwrap().items;
        events.reverse();
        events
    }

    /// The calls among them.
    pub(crate) fn calls(&self) -> Vec<Event> {
        self.events().into_iter().filter(|event| event.kind == EventKind::LlmCall).collect()
    }

    pub(crate) fn run(&self, id: &str) -> Option<RunRow> {
        self.history().run(&RunKey { agent: AgentName::default(), id: RunId::parse(id).unwrap() }).unwrap()
    }

    fn history(&self) -> History {
        let begun = Instant::now();
        let dir = loop {
            match DataDir::open(&self.data()) {
                // A program that another test starts holds our lock too, from its fork until it is itself.
                Err(_) if begun.elapsed() < PATIENCE => std::thread::yield_now(),
                opened => break opened.unwrap(),
            }
        };
        let history = History::open_embedded(Arc::new(dir), HistorySettings::default()).unwrap();
        history.flush().unwrap();
        history
    }

    /// Waits until a file that a command makes is there and has an end.
    pub(crate) fn wait_for_file(&self, name: &str) -> String {
        wait_for(name, || fs::read_to_string(self.dir.path().join(name)).ok().filter(|text| text.ends_with('\n')))
    }
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Ended {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    finished(child)
}

/// Waits for the end of a command that was started with pipes.
pub(crate) fn finished(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Ended {
    pub(crate) fn assert_code(&self, code: i32) -> &Ended {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }

    pub(crate) fn assert_says(&self, words: &str) -> &Ended {
        assert!(self.stderr.contains(words), "`{words}` is not in: {}", self.stderr);
        self
    }

    /// What `--json` wrote to standard error.
    pub(crate) fn report(&self) -> Value {
        let start = self.stderr.find("{\n  \"").unwrap_or_else(|| panic!("no report in: {}", self.stderr));
        serde_json::from_str(&self.stderr[start..]).unwrap()
    }
}

/// Waits until there is something.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, fields)| !fields.trim_start().starts_with('Z'))
}
