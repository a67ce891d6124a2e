//! Looks at recorded runs of agents with the default catalogue, and prints what would be hidden, for a person to judge:
//!
//! ```sh
//! cargo run --release -p sprag-core --example dlp_traces -- ../shared/traces > found.txt
//! ```
//!
//! A line for each finding that is new in its run: kind, run, hint (length and kinds of characters), and the text around
//! it with the value masked. Only runs that went well are looked at. Says on standard error how many of each kind.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "a tool for the desk")]

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use flate2::read::GzDecoder;
use serde_json::Value;
use sprag_core::dlp::Scanner;

/// So much is shown before and behind a value.
const AROUND: usize = 60;

fn main() {
    let scanner = Scanner::default();
    let mut out = std::io::stdout().lock();
    let (mut runs, mut bytes, mut counts) = (0, 0, BTreeMap::<String, usize>::new());
    let folder = std::env::args().nth(1).unwrap();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".jsonl.gz"));
    files.sort();
    for line in files.iter().flat_map(|file| BufReader::new(GzDecoder::new(File::open(file).unwrap())).lines()) {
        let run: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if run["class"] != "healthy" {
            continue;
        }
        runs += 1;
        let (mut texts, mut seen) = (Vec::new(), HashSet::new());
        collect(&run["messages"], &mut texts);
        for text in texts {
            bytes += text.len();
            for found in scanner.scan(text.as_bytes(), 0, true).findings {
                let (id, value) = (scanner.id(found.entity), &text.as_bytes()[found.start..found.end]);
                if seen.insert((found.entity, value.to_vec())) {
                    *counts.entry(id.to_owned()).or_default() += 1;
                    let before = shown(&text.as_bytes()[found.start.saturating_sub(AROUND)..found.start]);
                    let behind = shown(&text.as_bytes()[found.end..text.len().min(found.end + AROUND)]);
                    let run = run["run_id"].as_str().unwrap_or_default();
                    writeln!(out, "{id}\t{run}\t{}\t{before}«{}»{behind}", hint(value), masked(value)).unwrap();
                }
            }
        }
    }
    eprintln!("{runs} runs, {bytes} bytes");
    for (id, count) in counts {
        eprintln!("{count:6} {id}");
    }
}

/// All texts: contents, and the arguments of calls.
fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(all) => all.iter().for_each(|one| collect(one, texts)),
        Value::Object(all) => all.values().for_each(|one| collect(one, texts)),
        _ => {}
    }
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(['\n', '\t', '\r'], " ")
}

/// The first characters and the kinds of the others.
fn masked(value: &[u8]) -> String {
    let mask = |(place, byte): (usize, &u8)| match byte {
        _ if place < 3 => char::from(*byte),
        b'a'..=b'z' => 'a',
        b'A'..=b'Z' => 'A',
        b'0'..=b'9' => '0',
        byte => char::from(*byte),
    };
    value.iter().take(48).enumerate().map(mask).collect::<String>().replace('\n', " ")
}

fn hint(value: &[u8]) -> String {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    format!("{} bytes, {digits} digits", value.len())
}
