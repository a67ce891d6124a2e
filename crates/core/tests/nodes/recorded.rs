//! Runs on record: those in the repository, and the many real ones beside it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use sprag_core::time::Timestamp;
use sprag_core::wire::{Call, Dialect, Reply, Tap, read_history};

/// When the first request of every run arrives.
const BEGINNING: i64 = 1_770_000_000_000;
/// Between two requests, where the record does not say.
const STEP_MS: i64 = 2000;

/// One of so many real runs is followed each time.
pub(crate) const SAMPLE: usize = 40;

/// A run, its messages stored once.
#[derive(Deserialize)]
pub(crate) struct Run {
    pub(crate) run_id: String,
    pub(crate) class: Option<String>,
    shape: Option<String>,
    messages: Vec<Value>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    prefix_len: Option<usize>,
    req: Option<Vec<usize>>,
    resp: Option<usize>,
    t: Option<f64>,
}

/// One request and its answer.
pub(crate) struct Exchange {
    body: String,
    pub(crate) reply: Reply,
    pub(crate) is_answered: bool,
    pub(crate) now: Timestamp,
}

impl Run {
    pub(crate) fn is_healthy(&self) -> bool {
        self.class.as_deref() == Some("healthy")
    }

    /// All of it, one request after the other.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        let mut now = BEGINNING;
        let exchange = |step: &Step| {
            let request: Vec<&Value> = match (step.prefix_len, &step.req) {
                (Some(length), _) => self.messages[..length].iter().collect(),
                (None, request) => request.iter().flatten().map(|at| &self.messages[*at]).collect(),
            };
            let messages = if self.shape.as_deref() == Some("scratchpad") {
                let text: String = request.iter().map(|message| text(message)).collect();
                serde_json::json!([{"role": "user", "content": text}])
            } else {
                serde_json::json!(request)
            };
            let answer = step.prefix_len.or(step.resp).and_then(|at| self.messages.get(at));
            let mut tap = Tap::new(Dialect::OpenaiChat);
            if let Some(answer) = answer {
                tap.json(serde_json::json!({"choices": [{"index": 0, "message": answer}]}).to_string().as_bytes());
            }
            let at = Timestamp(now);
            now = step.t.map_or(now + STEP_MS, |t| BEGINNING + (t * 1e3) as i64).max(now);
            let body = serde_json::json!({"model": "m", "messages": messages}).to_string();
            Exchange { body, reply: tap.into_reply(), is_answered: answer.is_some(), now: at }
        };
        self.steps.iter().map(exchange).collect()
    }
}

impl Exchange {
    /// Lets somebody see the request, and the hash of its conversation.
    pub(crate) fn with_call<T>(&self, look: impl FnOnce(&Call<'_>, Option<u64>) -> T) -> T {
        let call = Call::parse(Dialect::OpenaiChat, "/v1/chat/completions", self.body.as_bytes()).unwrap();
        let end = read_history(&call, |_| None).map(|history| history.end);
        look(&call, end)
    }
}

/// The runs of the repository.
pub(crate) fn fixtures() -> Vec<Run> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/replay/traces.jsonl");
    lines(File::open(path).unwrap()).collect()
}

/// Every so many runs of each source beside the repository; None where there are none.
pub(crate) fn beside(every: usize) -> Option<Vec<Run>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("SPRAG_SHARED").map_or_else(beside, PathBuf::from).join("traces");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).ok()?.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".jsonl.gz"));
    files.sort();
    let runs = |path: PathBuf| lines(GzDecoder::new(File::open(path).unwrap())).step_by(every);
    Some(files.into_iter().flat_map(runs).collect())
}

fn lines(file: impl Read) -> impl Iterator<Item = Run> {
    BufReader::new(file).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

/// The text of a message, its parts end to end.
fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
