//! Streams as providers send them: nothing is lost, and what does not go on over events is not changed at all.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::dlp::inspector::Inspector;
use crate::dlp::stream::testing::*;
use crate::dlp::stream::{Flow, StreamFilter};
use crate::wire::{Dialect, Tap, sse};

const FOLDERS: [(&str, Dialect); 5] = [
    ("openai_chat", Dialect::OpenaiChat),
    ("openai_completions", Dialect::OpenaiCompletions),
    ("openai_responses", Dialect::OpenaiResponses),
    ("anthropic", Dialect::Anthropic),
    ("gemini", Dialect::Gemini),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a client makes of a stream.
fn reply(dialect: Dialect, stream: &str) -> String {
    let mut tap = Tap::new(dialect);
    for event in events(stream) {
        tap.event(&event);
    }
    format!("{:?}", tap.into_reply())
}

/// What comes out where each event is read, however much it is like the one before.
fn forgetful(inspector: Inspector, dialect: Dialect, stream: &str) -> Vec<Bytes> {
    let (mut filter, mut out) = (StreamFilter::new(inspector, dialect), Vec::new());
    for event in events(stream) {
        filter.alike = None;
        if filter.push(event, &mut out) == Flow::Stopped {
            return out;
        }
    }
    let _ = filter.end(&mut out);
    out
}

fn check(dialect: Dialect, stream: &str, name: &str) {
    let mut filter = StreamFilter::new(inspector(), dialect);
    let mut sent = Vec::new();
    for event in events(stream) {
        let mut out = Vec::new();
        assert_eq!(filter.push(event.clone(), &mut out), Flow::Passed);
        let last = out.last().unwrap();
        assert!(*last != event || last.as_ptr() == event.as_ptr(), "copied without need");
        let is_json = |event: &[u8]| serde_json::from_slice::<Value>(&sse::parse(event).data).is_ok();
        assert_eq!(is_json(last), is_json(&event), "{name}");
        sent.extend(out);
    }
    assert_eq!(filter.end(&mut sent), Flow::Passed);
    assert_eq!(filter.sightings().total, 0, "{name}");
    assert_eq!(sent, forgetful(inspector(), dialect, stream), "{name}");
    let out = String::from_utf8(sent.concat()).unwrap();
    assert_eq!(reply(dialect, &out), reply(dialect, stream), "{name}");
}

#[test]
fn a_client_reads_the_same_from_every_fixture() {
    let mut count = 0;
    for (folder, dialect) in FOLDERS {
        for file in fs::read_dir(root().join("fixtures/wire").join(folder)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "sse") {
                check(dialect, &fs::read_to_string(&path).unwrap(), &path.display().to_string());
                count += 1;
            }
        }
    }
    assert!(count >= 40, "{count}");
}

#[test]
fn events_like_the_one_before_are_treated_as_if_they_were_read() {
    let pieces = [
        "My",
        " key",
        " is sk-12",
        "34567890",
        "abcdef.",
        "\\n",
        " \\\"so\\\" ",
        "[EMAI",
        "L_1]",
        "\\ud83d",
        "\\ude00",
        "",
        "a",
        "\\",
        "x\",\"y\":\"z",
        " tom@",
        "example.org",
        " end",
    ];
    let forms = [
        (Dialect::OpenaiChat, r#"{"id":"c","choices":[{"index":0,"delta":{"content":"@"},"finish_reason":null}]}"#),
        (Dialect::OpenaiChat, r#"{"choices":[{"delta":{"content":"@"},"logprobs":{"content":[{"token":"a"}]}}]}"#),
        (Dialect::OpenaiChat, r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"@"}}]}}]}"#),
        (Dialect::OpenaiChat, r#"{"note":"sk-1234567890abcdef","choices":[{"index":0,"delta":{"content":"@"}}]}"#),
        (Dialect::Anthropic, r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"@"}}"#),
        (
            Dialect::Anthropic,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"@"}}"#,
        ),
        (Dialect::Gemini, r#"{"candidates":[{"content":{"parts":[{"text":"@"}],"role":"model"}}]}"#),
        (Dialect::OpenaiResponses, r#"{"type":"response.output_text.delta","item_id":"m","delta":"@"}"#),
    ];
    let inspectors: [fn() -> Inspector; 3] = [inspector, strict, with_vault];
    for ((dialect, form), inspector) in forms.iter().flat_map(|form| inspectors.map(|inspector| (form, inspector))) {
        let stream: String = pieces.iter().map(|piece| format!("data: {}\n\n", form.replace('@', piece))).collect();
        let (steps, filter) = steps(inspector(), *dialect, &stream);
        assert_eq!(steps.concat(), forgetful(inspector(), *dialect, &stream), "{form}");
        let total = filter.sightings().total;
        assert!(total > 0 || form.contains("thinking") || form.contains("arguments"), "{form}");
    }
}

#[test]
fn a_client_reads_the_same_from_every_capture() {
    let Ok(folder) = fs::read_dir(root().join("../shared/clients")) else {
        println!("skipped: no captures beside the checkout");
        return;
    };
    let mut count = 0;
    for file in folder.map(|file| file.unwrap().path()) {
        let mut lines = String::new();
        if file.extension().is_none_or(|extension| extension != "gz") {
            continue;
        }
        GzDecoder::new(fs::File::open(&file).unwrap()).read_to_string(&mut lines).unwrap();
        for line in lines.lines() {
            let exchange: Value = serde_json::from_str(line).unwrap();
            let request = &exchange["request"];
            let (Some(path), Some(stream)) = (request["path"].as_str(), exchange["response"]["sse"].as_str()) else {
                continue;
            };
            let path = path.split('?').next().unwrap();
            check(Dialect::of_request("POST", path), stream, &file.display().to_string());
            count += 1;
        }
    }
    println!("{count} streams");
    assert!(count > 0);
}
