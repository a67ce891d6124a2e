//! Scans labelled records and prints what was found, for the scorer:
//!
//! ```sh
//! cargo run --release -p sprag-core --example dlp_spans -- ../shared/dlp > spans.jsonl
//! python3 ../shared/dlp/tools/score.py --gold ../shared/dlp --pred spans.jsonl
//! ```
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for the desk")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sprag_core::dlp::{KINDS, Scanner};

fn main() {
    let scanner = Scanner::default();
    let mut out = std::io::stdout().lock();
    let folder = std::env::args().nth(1).unwrap();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".jsonl.gz"));
    files.sort();
    for file in files {
        for line in BufReader::new(GzDecoder::new(File::open(file).unwrap())).lines() {
            let record: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let text = record["text"].as_str().unwrap().as_bytes();
            let spans: Vec<Value> = scanner
                .scan(text, 0, true)
                .findings
                .iter()
                .map(|found| json!({"start": found.start, "end": found.end, "entity": KINDS[usize::from(found.entity.0)].id}))
                .collect();
            writeln!(out, "{}", json!({"id": record["id"], "spans": spans})).unwrap();
        }
    }
}
