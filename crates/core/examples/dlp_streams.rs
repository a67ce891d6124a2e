//! Filters streams that hold labelled secrets cut into small pieces, for the scorer:
//!
//! ```sh
//! python3 ../shared/dlp/tools/sse_cases.py --gold ../shared/dlp --style tool --out cases.jsonl
//! cargo run --release -p sprag-core --example dlp_streams -- cases.jsonl > streams.jsonl
//! python3 ../shared/dlp/tools/score.py --gold ../shared/dlp --pred streams.jsonl
//! ```
//!
//! Every kind is hidden for good. Says on standard error how long it took.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "a tool for the desk")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use sprag_core::dlp::{DlpPolicy, Flow, Inspector, Scanner, StreamFilter};
use sprag_core::wire::Dialect;
use sprag_core::wire::sse::Splitter;

fn main() {
    let (scanner, policy) = (Arc::new(Scanner::default()), Arc::new(DlpPolicy::default()));
    let inspector = Inspector { scanner, policy, vault: None };
    let mut out = std::io::stdout().lock();
    let (mut spent, mut events, mut bytes) = (Duration::ZERO, 0, 0);
    for line in BufReader::new(File::open(std::env::args().nth(1).unwrap()).unwrap()).lines() {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let sse = case["sse"].as_str().unwrap();
        let dialect = if sse.starts_with("event:") { Dialect::Anthropic } else { Dialect::OpenaiChat };
        let block = Splitter::new().push(Bytes::copy_from_slice(sse.as_bytes()));
        let mut sent = Vec::new();
        // The fastest of three: other work on the machine is not of interest.
        let each = [(); 3].map(|()| {
            sent.clear();
            let (mut filter, mut start) = (StreamFilter::new(inspector.clone(), dialect), 0);
            let begin = Instant::now();
            for end in &block.ends {
                assert_eq!(filter.push(block.bytes.slice(start..*end), &mut sent), Flow::Passed);
                start = *end;
            }
            assert_eq!(filter.end(&mut sent), Flow::Passed);
            begin.elapsed()
        });
        spent += each.into_iter().min().unwrap();
        (events, bytes) = (events + block.ends.len(), bytes + sse.len());
        let sse = String::from_utf8(sent.concat()).unwrap();
        writeln!(out, "{}", json!({"id": case["id"], "sse": sse})).unwrap();
    }
    let each = spent.as_nanos() / (events as u128).max(1);
    eprintln!("{events} events, {bytes} bytes, {each} ns for each event");
}
