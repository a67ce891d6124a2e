//! `sprag scan`: the same eyes on files.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::scene::{HIDDEN, KEY, MAIL};

/// Runs `sprag scan` in a folder, with this on its standard input.
fn scan(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
    command.arg("scan").args(arguments).env_clear().env("HOME", folder).current_dir(folder);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may end without having read it.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn complaint(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one.txt"), format!("first\nkey {KEY}\n")).unwrap();
    fs::write(folder.path().join("two.txt"), format!("nothing\n{MAIL}")).unwrap();
    fs::write(folder.path().join("clean.txt"), "nothing here\n").unwrap();
    folder
}

#[test]
fn text_comes_back_redacted() {
    let folder = folder();
    let out = scan(folder.path(), &["one.txt", "two.txt"], b"");
    assert_eq!(printed(&out), format!("first\nkey {HIDDEN}\nnothing\n[REDACTED:EMAIL]"));
    for arguments in [&[][..], &["-"]] {
        let out = scan(folder.path(), arguments, format!("My API key is {KEY}").as_bytes());
        assert_eq!(printed(&out), format!("My API key is {HIDDEN}"));
        assert!(out.status.success());
    }
    let binary = [b"\xff\xfe ".as_slice(), KEY.as_bytes(), b" \xff"].concat();
    let out = scan(folder.path(), &[], &binary);
    assert_eq!(out.stdout, [b"\xff\xfe ".as_slice(), HIDDEN.as_bytes(), b" \xff"].concat());
}

#[test]
fn findings_are_told_by_their_place() {
    let folder = folder();
    let out = printed(&scan(folder.path(), &["--json", "one.txt", "two.txt"], b""));
    let seen = lines(&out);
    assert_eq!(
        seen[0],
        json!({"file": "one.txt", "line": 2, "entity": "OPENAI_KEY", "start": 10, "end": 29, "hint": "sk-1***"})
    );
    assert_eq!(
        (&seen[1]["file"], &seen[1]["line"], &seen[1]["entity"]),
        (&json!("two.txt"), &json!(2), &json!("EMAIL"))
    );
    assert!(!out.contains(KEY) && !out.contains(MAIL) && seen.len() == 2);
}

#[test]
fn the_exit_code_tells_when_asked_to() {
    let folder = folder();
    for (arguments, code) in [
        (&["clean.txt"][..], 0),
        (&["one.txt"], 0),
        (&["--fail", "clean.txt"], 0),
        (&["--fail", "one.txt"], 1),
        (&["--fail", "--json", "clean.txt", "two.txt"], 1),
    ] {
        assert_eq!(scan(folder.path(), arguments, b"").status.code(), Some(code), "{arguments:?}");
    }
}

fn sse(pieces: &[&str]) -> String {
    let event = |piece: &&str| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": null}]}))
    };
    pieces.iter().map(event).collect::<String>() + "data: [DONE]\n\n"
}

#[test]
fn records_come_back_with_spans_and_streams_redacted() {
    let folder = folder();
    let text = format!("é {KEY}.");
    let stream = sse(&["It is sk-12345", "67890abc", "def."]);
    let records = format!("{}\n\n{}\n", json!({"id": 1, "text": text}), json!({"id": "b", "sse": stream}));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(records.as_bytes()).unwrap();
    fs::write(folder.path().join("records.jsonl.gz"), encoder.finish().unwrap()).unwrap();
    let plain = scan(folder.path(), &["--jsonl"], records.as_bytes());
    let zipped = scan(folder.path(), &["--jsonl", "records.jsonl.gz"], b"");
    for out in [printed(&plain), printed(&zipped)] {
        let found = lines(&out);
        assert_eq!(found[0], json!({"id": 1, "spans": [{"start": 3, "end": 22, "entity": "OPENAI_KEY"}]}));
        let events = sprag_testkit::sse::events(found[1]["sse"].as_str().unwrap().as_bytes());
        let said: String = events
            .iter()
            .filter_map(|event| serde_json::from_str::<Value>(&event.data).ok())
            .filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
            .collect();
        assert_eq!((&found[1]["id"], said), (&json!("b"), format!("It is {HIDDEN}.")));
    }
    assert_eq!(scan(folder.path(), &["--jsonl", "--fail"], records.as_bytes()).status.code(), Some(1));
}

#[test]
fn what_cannot_be_read_is_told() {
    let folder = folder();
    let told = |arguments: &[&str], input: &str| complaint(&scan(folder.path(), arguments, input.as_bytes()));
    let missing = told(&["none.txt"], "");
    assert!(missing.contains("none.txt cannot be read"), "{missing}");
    let directory = told(&["."], "");
    assert!(directory.contains("is a folder"), "{directory}");
    let bad = told(&["--jsonl"], "{\"id\":1,\"text\":\"a\"}\n\nnot json sk-1234567890abcdef\n");
    assert!(bad.contains("line 3") && !bad.contains("1234567890"), "{bad}");
    let empty = told(&["--jsonl"], "{\"id\":1}\n");
    assert!(empty.contains("line 1") && empty.contains("`text`"), "{empty}");
}

#[test]
fn kinds_are_listed() {
    let folder = folder();
    let table = printed(&scan(folder.path(), &["--kinds"], b""));
    assert!(table.starts_with("KIND") && table.contains("OPENAI_KEY"), "{table}");
    let listed: Value = serde_json::from_str(&printed(&scan(folder.path(), &["--kinds", "--json"], b""))).unwrap();
    let of = |name: &str| listed.as_array().unwrap().iter().find(|kind| kind["entity"] == name).cloned().unwrap();
    assert!(listed.as_array().unwrap().len() >= 60);
    assert_eq!(
        (of("OPENAI_KEY")["request"].clone(), of("EMAIL")["request"].clone()),
        (json!("redact"), json!("redact, reversible"))
    );
}

const CONFIG: &str = r#"
[dlp]
allow = ["sk-1234567890abcdef"]
allow_patterns = ['[a-z]{1,64}@example\.org']
[[dlp.patterns]]
id = "STAFF_ID"
regex = '\bE-[0-9]{6}\b'
title = "Staff number"
[[dlp.patterns]]
id = "TICKET"
regex = '\bT(?P<secret>[0-9]{4})\b'
words = ["ticket"]
[agents.loose.dlp.modes]
STAFF_ID = "off"
"#;

#[test]
fn own_patterns_and_exceptions_hold() {
    let folder = folder();
    fs::write(folder.path().join("own.toml"), CONFIG).unwrap();
    let text = format!("{KEY} E-123456 anna@example.org {MAIL} ticket T1234");
    let out = printed(&scan(folder.path(), &["--config", "own.toml"], text.as_bytes()));
    assert_eq!(out, format!("{KEY} [REDACTED:STAFF_ID] anna@example.org [REDACTED:EMAIL] ticket T[REDACTED:TICKET]"));
    let out = printed(&scan(folder.path(), &["--config", "own.toml", "--agent", "loose"], b"E-123456 T1234"));
    assert_eq!(out, "E-123456 T1234", "no word before it, and not looked for by this agent");
    let table = printed(&scan(folder.path(), &["--config", "own.toml", "--kinds"], b""));
    assert!(table.contains("STAFF_ID") && table.contains("Staff number"), "own kinds are listed: {table}");
}

#[test]
fn a_pattern_that_cannot_be_used_is_told_with_its_place() {
    let folder = folder();
    for (regex, word) in [("(", "dlp.patterns[1]"), (".*", "dlp.patterns[1]"), ("", "dlp.patterns[1]")] {
        let config = format!(
            "[[dlp.patterns]]\nid = \"GOOD\"\nregex = 'G[0-9]{{4}}'\n[[dlp.patterns]]\nid = \"BAD\"\nregex = '{regex}'\n"
        );
        fs::write(folder.path().join("bad.toml"), config).unwrap();
        let told = complaint(&scan(folder.path(), &["--config", "bad.toml"], b""));
        assert!(told.contains(word) && told.contains("bad.toml:"), "{regex}: {told}");
    }
    fs::write(folder.path().join("bad.toml"), "[defaults.dlp.modes]\nOPENAI_KEYS = \"off\"\n").unwrap();
    let told = complaint(&scan(folder.path(), &["--config", "bad.toml"], b""));
    assert!(told.contains("did you mean `OPENAI_KEY`?"), "{told}");
}
