//! A stream cut anywhere gives the findings of the whole: over the labelled records beside the repository.
//!
//! They are looked for in `../shared` beside the checkout, or in `SPRAG_SHARED`; without them this says that it skips.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;
use sprag_core::dlp::{Finding, Piece, Scanner, TextStream};

/// Of each source so many records, spread over it, and of each record so many bytes.
const RECORDS: usize = 20;
const BYTES: usize = 2500;

#[test]
fn cuts_change_nothing_in_real_text() {
    let folder = std::env::var_os("SPRAG_SHARED").map_or_else(beside, PathBuf::from).join("dlp");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: no records beside the repository");
        return;
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".jsonl.gz"));
    files.sort();
    let scanner = Scanner::default();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut wrong = Vec::new();
    for file in files {
        let texts = texts(&file);
        for (id, text) in texts.iter().step_by((texts.len() / RECORDS).max(1)) {
            let text = &text.as_bytes()[..text.floor_char_boundary(BYTES)];
            let whole = scanner.scan(text, 0, true).findings;
            for most in [1, 7, 64, 1500] {
                let read = in_pieces(&scanner, text, most, &mut random);
                if read != whole {
                    let differ = |a: &[Finding], b: &[Finding]| a.iter().find(|found| !b.contains(found)).copied();
                    wrong.push(format!(
                        "{id} in pieces of {most}: {:?} {:?}",
                        differ(&whole, &read),
                        differ(&read, &whole)
                    ));
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} texts differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn beside() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared")
}

fn texts(file: &Path) -> Vec<(String, String)> {
    let lines = BufReader::new(GzDecoder::new(File::open(file).unwrap())).lines();
    let record = |line: String| {
        let record: Value = serde_json::from_str(&line).unwrap();
        (record["id"].as_str().unwrap().to_owned(), record["text"].as_str().unwrap().to_owned())
    };
    lines.map(|line| record(line.unwrap())).collect()
}

/// What a stream finds whose pieces have up to `most` bytes.
fn in_pieces(scanner: &Scanner, text: &[u8], most: usize, random: &mut u64) -> Vec<Finding> {
    let (mut stream, mut out, mut at) = (TextStream::new(b""), Vec::new(), 0);
    loop {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        let end = text.len().min(at + 1 + usize::try_from(*random % most as u64).unwrap());
        stream.push(scanner, &text[at..end], end == text.len(), &mut out);
        at = end;
        if at == text.len() {
            break;
        }
    }
    let (mut findings, mut read) = (Vec::new(), Vec::new());
    for piece in out {
        match piece {
            Piece::Plain(plain) => read.extend_from_slice(&plain),
            Piece::Found { entity, tier, value } => {
                let start = read.len();
                read.extend_from_slice(&value);
                findings.push(Finding { entity, start, end: read.len(), tier });
            }
        }
    }
    assert_eq!(read, text);
    findings
}
