//! The demo from its first line to its last.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::json;
use sprag_testkit::client;

/// Longer than any working demo needs for the next line that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

struct Demo {
    child: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
}

impl Demo {
    fn start(home: &std::path::Path) -> Demo {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sprag"))
            .args(["demo", "--no-open", "--speed", "20", "--proxy", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .env_clear()
            .env("TMPDIR", home)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Demo { child, lines, heard: Vec::new() }
    }

    /// The first line with `text` in it, of those heard or to come.
    fn hear(&mut self, text: &str) -> String {
        loop {
            if let Some(line) = self.heard.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            let line = self.lines.recv_timeout(PATIENCE);
            self.heard.push(line.unwrap_or_else(|_| panic!("no {text:?} in {:#?}", self.heard)));
        }
    }

    /// Ctrl-C, and everything that it says until its end.
    fn end(mut self) -> (Option<i32>, Vec<String>) {
        let sent = Command::new("kill").arg("-INT").arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.heard.push(line);
        }
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.heard))
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_misbehaviour_is_caught_every_healthy_agent_is_left_alone_and_nothing_stays() {
    let home = tempfile::tempdir().unwrap();
    let mut demo = Demo::start(home.path());
    let link = demo.hear("/login?token=");
    let (base, token) = link.trim().trim_start_matches("dashboard").trim().split_once("/login?token=").unwrap();
    let (base, token) = (base.to_owned(), token.to_owned());

    assert!(demo.hear("STOPPED night-shift-1").contains("the same error"));
    assert!(demo.hear("STOPPED pendulum-1").contains("repeated"));
    assert!(demo.hear("STOPPED big-spender-1").contains("of $0.50"));
    demo.hear("HIDDEN");
    demo.hear("OPENAI_API_KEY=[REDACTED:OPENAI_KEY]");
    demo.hear("OWNER=[EMAIL_1]");
    demo.hear("PAUSED payments-1");
    for healthy in ["researcher", "coder", "support"] {
        demo.hear(&format!("{healthy} finished {healthy}-1"));
    }

    // The run that waits goes on when somebody approves, and comes to its end.
    let bearer = format!("Bearer {token}");
    let approve = format!("{base}/api/v1/runs/payments/payments-1/approve");
    let approved = client::post_json(approve, &json!({})).header("authorization", &bearer).fetch().await.unwrap();
    assert_eq!(approved.status, 200, "{}", String::from_utf8_lossy(&approved.body));
    demo.hear("payments finished payments-1");

    // What was told stands on the page that it names.
    let why = demo.hear("/run?agent=night-shift&id=night-shift-1");
    let page =
        why.trim().trim_start_matches("why:").trim().replace("/run?agent=", "/api/v1/runs/").replace("&id=", "/");
    let run = client::get(page).header("authorization", &bearer).fetch().await.unwrap().json();
    assert_eq!(run["run"]["status"], "killed", "{run}");

    let (code, heard) = demo.end();
    assert_eq!(code, Some(0), "{heard:#?}");
    let stopped: Vec<_> = heard.iter().filter(|line| line.contains("STOPPED") || line.contains("PAUSED")).collect();
    for healthy in ["researcher", "coder", "support"] {
        assert!(stopped.iter().all(|line| !line.contains(healthy)), "{stopped:#?}");
    }
    assert!(heard.iter().any(|line| line.contains("would have cost")), "{heard:#?}");
    let left: Vec<PathBuf> = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, Vec::<PathBuf>::new(), "the demo leaves nothing behind");
}

#[test]
fn a_speed_that_makes_no_sense_is_refused_with_what_is_expected() {
    let dir = tempfile::tempdir().unwrap();
    for speed in ["0", "fast", "1000", "NaN"] {
        let output = crate::sprag(dir.path(), &["demo", "--speed", speed]);
        assert_eq!(output.status.code(), Some(2));
        assert!(crate::text(&output.stderr).contains("expected a number"), "{}", crate::text(&output.stderr));
    }
}
