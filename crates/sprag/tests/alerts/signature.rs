//! Signatures of webhooks, checked by the receiver's code that the documentation shows.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::configured::Configured;
use crate::receiver::{Message, Receiver};

/// Reads cases from its input and answers each with what the shown function says.
const DRIVER: &str = "\nimport json, sys\nfor case in json.load(sys.stdin):\n    \
    print(json.dumps(is_from_sprag(case['secret'], case['signature'], case['body'].encode())))\n";

fn shown_code() -> String {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/alerts.md");
    let text = std::fs::read_to_string(docs).unwrap();
    let code = text.split("```python\n").nth(1).unwrap().split("```").next().unwrap().to_owned();
    assert!(code.contains("def is_from_sprag("), "{code}");
    code
}

/// What the shown code says to each case.
fn verdicts(cases: &Value) -> Vec<bool> {
    let mut python = Command::new("python3")
        .args(["-c", &(shown_code() + DRIVER)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(cases.to_string().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn delivered(place: &Configured, receiver: &Receiver) -> Message {
    let before = receiver.messages().len();
    assert_eq!(place.sprag.app.test_channel("ops", "anna").await.unwrap().unwrap().1, None);
    receiver.has(before + 1).await.pop().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shown_code_takes_what_sprag_signed_and_nothing_else() {
    let is_there = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("SKIPPED: there is no python3 to run the code that docs/alerts.md shows");
        return;
    }
    let receiver = Receiver::start().await;
    let text = format!(
        "[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{}\"\nsecret = \"tëst-secret\"\nallow_private = true\n",
        receiver.url("/")
    );
    let place = Configured::start(&text).await;
    let old = delivered(&place, &receiver).await;
    // The receiver has a clock of its own.
    place.set_time(&jiff::Timestamp::now().to_string());
    let fresh = delivered(&place, &receiver).await;
    let signature = fresh.header("x-sprag-signature");
    let case =
        |secret: &str, signature: &str, body: &str| json!({"secret": secret, "signature": signature, "body": body});
    let later = signature.replacen("t=1", "t=2", 1);
    let cases = [
        (true, case("tëst-secret", &signature, &fresh.body)),
        (false, case("another", &signature, &fresh.body)),
        (false, case("", &signature, &fresh.body)),
        (false, case("tëst-secret", &signature, &fresh.body.replace("test", "tost"))),
        (false, case("tëst-secret", &signature, &format!("{} ", fresh.body))),
        (false, case("tëst-secret", &later, &fresh.body)),
        (false, case("tëst-secret", &old.header("x-sprag-signature"), &old.body)),
        (false, case("tëst-secret", &old.header("x-sprag-signature"), &fresh.body)),
        (false, case("tëst-secret", "", &fresh.body)),
        (false, case("tëst-secret", "t=,v1=", &fresh.body)),
        (false, case("tëst-secret", "t=now,v1=é", &fresh.body)),
        (false, case("tëst-secret", &signature[..signature.len() - 1], &fresh.body)),
    ];
    let (expected, cases): (Vec<bool>, Vec<Value>) = cases.into_iter().unzip();
    assert_eq!(verdicts(&json!(cases)), expected);
}
