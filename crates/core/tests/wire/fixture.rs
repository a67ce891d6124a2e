//! The files in `fixtures/wire/<dialect>/`.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::{Value, json};
use sprag_core::wire::{Dialect, Passing, Reply, Tap, sse};

/// One answer on file: `<case>.json` or `<case>.sse`.
pub(crate) struct Fixture {
    pub(crate) path: PathBuf,
    pub(crate) dialect: Dialect,
    pub(crate) bytes: Vec<u8>,
}

impl Fixture {
    pub(crate) fn is_stream(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "sse")
    }

    /// What the answer must be read as; a JSON body and a stream of the same name share it.
    pub(crate) fn expected_path(&self) -> PathBuf {
        self.path.with_extension("reply.txt")
    }
}

/// Every answer on file, in order of its path.
pub(crate) fn all() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire");
    let mut fixtures = Vec::new();
    for folder in fs::read_dir(root).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let dialect = serde_json::from_value(json!(name)).expect("folders are named after dialects");
        for file in fs::read_dir(folder.path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "json" || extension == "sse") {
                fixtures.push(Fixture { dialect, bytes: fs::read(&path).unwrap(), path });
            }
        }
    }
    fixtures.sort_by(|a, b| a.path.cmp(&b.path));
    fixtures
}

/// Sends a stream through splitter and tap in the given chunks: bytes passed on, event ends, reply.
pub(crate) fn stream(dialect: Dialect, chunks: &[&[u8]]) -> (Vec<u8>, Vec<(usize, Passing)>, Reply) {
    let (mut splitter, mut tap) = (sse::Splitter::new(), Tap::new(dialect));
    let (mut passed, mut events) = (Vec::new(), Vec::new());
    for chunk in chunks {
        let block = splitter.push(Bytes::copy_from_slice(chunk));
        let mut start = 0;
        for end in block.ends {
            let passing = tap.event(&block.bytes[start..end]);
            events.push((passed.len() + end, passing));
            start = end;
        }
        passed.extend_from_slice(&block.bytes);
    }
    passed.extend_from_slice(&splitter.rest());
    (passed, events, tap.into_reply())
}

/// A reply as text that is easy to compare and to read.
pub(crate) fn render(reply: &Reply) -> String {
    let calls: Vec<Value> = reply.tool_calls.iter().map(|call| json!([call.id, call.name, call.arguments])).collect();
    // Only what is not zero: a case is about a few counts.
    let usage = reply.usage.map(|usage| match json!(usage) {
        Value::Object(counts) => counts.into_iter().filter(|(_, count)| *count != 0 && *count != false).collect(),
        other => serde_json::Map::from_iter([("usage".to_owned(), other)]),
    });
    let rows = [
        ("id", json!(reply.id)),
        ("model", json!(reply.model)),
        ("text", json!(reply.text)),
        ("text_bytes", json!(reply.text_bytes)),
        ("reasoning_bytes", json!(reply.reasoning_bytes)),
        ("tool_calls", json!(calls)),
        ("usage", json!(usage)),
        ("finish", json!(reply.finish)),
        ("error", json!(reply.error)),
        ("complete", json!(reply.complete)),
    ];
    rows.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
}
