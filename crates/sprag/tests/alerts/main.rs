//! Alerts from a loop in the proxy to real servers: HTTP receivers and mail servers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../gateway/binary.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod binary;
mod budgets;
mod burst;
#[path = "../harness/configured.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod configured;
mod crash;
mod crowd;
mod full_disk;
mod in_line;
mod links;
mod mail;
mod mail_server;
mod outage;
mod receiver;
mod refused;
mod reload;
mod seen;
mod setup;
mod signature;
mod speed;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
mod wire_form;

use serde_json::json;
use sprag_testkit::client::{self, Call};

/// Repeated prompts are refused, one by one, and nothing else follows.
const REJECTING: &str = "detection.progress.mode = \"off\"\ndetection.exact.action = \"reject\"\n\
    defaults.run_limits.max_steps = 0\ndefaults.run_limits.timeout_seconds = 0\n";

/// A call that repeats itself when it is sent again.
fn same_call(base: &str, run: &str) -> Call {
    call_of(base, "bot", run)
}

fn call_of(base: &str, agent: &str, run: &str) -> Call {
    let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "try again"}]});
    client::post_json(format!("{base}/v1/chat/completions"), &body)
        .header("x-sprag-run-id", run)
        .header("x-sprag-agent", agent)
}

/// Repeats a call until it is refused as a loop.
async fn loop_until_refused(base: &str, run: &str) {
    loop_of(base, "bot", run).await;
}

/// The same by another agent.
async fn loop_of(base: &str, agent: &str, run: &str) {
    for _ in 0..50 {
        if call_of(base, agent, run).fetch().await.unwrap().header("x-sprag-blocked") == "loop_detected" {
            return;
        }
    }
    panic!("no loop was found");
}
