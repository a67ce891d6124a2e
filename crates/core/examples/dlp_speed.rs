//! How fast text is scanned, beside a plain pass and a set of regular expressions in the same run:
//!
//! ```sh
//! cargo run --release -p sprag-core --example dlp_speed -- ../shared/dlp [hostile]
//! ```
//!
//! Ordinary text and pictures are the `neg-*` records of the corpus; hostile text is made here, if asked for. Each part
//! of 64 KB counts with the best of several passes, for the machine may have other things to do. Under `scanner` the passes
//! over a part follow each other, so the processor has learned its branches; under `in turn` all other parts come
//! between, as with text that is met once. The set of regular
//! expressions has one for each format of a vendor's key and a few for the rest. It only says which of them match
//! somewhere, so it is an upper bound for what they can do; it is given less text, because it is slow.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for measuring")]

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use regex::bytes::{RegexSet, RegexSetBuilder};
use serde_json::Value;
use sprag_core::dlp::{Scanner, TextStream, vendor_patterns};

const SOURCES: [&str; 5] = ["neg-agent", "neg-docs", "neg-code", "neg-hashes", "neg-images"];
const HOSTILE: [&str; 18] = [
    "sk-",
    "eyJ",
    "/eyJ",
    "7",
    "7 ",
    "1.",
    "@",
    "a@b.",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
    "password=",
    "://",
    "a://b:c",
    "token",
    "GB82",
    "AKIA",
    "\\",
    "+1 ",
];
/// What stands beside the vendors' keys in the catalogue, in the least words.
const OTHERS: [&str; 9] = [
    r"(?i)(?:pass|pwd|secret|token|key|auth|cred|private|access|jwt|api)[a-z_]{0,20}[^a-z0-9]{1,4}\S{8,64}",
    r"(?i)(?:bearer|basic) [a-z0-9._~+/=-]{16,}",
    r"[a-z+]+://[^:/@\s]+:[^@/\s]+@",
    r"eyJ[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,64}\.[A-Za-z]{2,10}",
    r"\d(?:[ -]?\d){12,18}",
    r"\+\d(?:[ .-]?\d){7,14}",
    r"(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}",
];
/// How much text they are given.
const REGEX_TEXT: usize = 256 << 10;
/// Room for the tables of the regular expressions: enough that they do not lack it.
const REGEX_BYTES: usize = 256 << 20;

/// How often a part is timed.
const PASSES: usize = 9;

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "../shared/dlp".to_owned());
    let scanner = Scanner::default();
    let patterns: Vec<String> = vendor_patterns().into_iter().chain(OTHERS.map(str::to_owned)).collect();
    let mut builder = RegexSetBuilder::new(&patterns);
    let set = builder.unicode(false).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES).build().unwrap();
    println!("{:34} {:>8} {:>8} {:>8} {:>8} {:>9}", "GB/s", "memchr", "scanner", "in turn", "regexes", "findings");
    for source in SOURCES {
        let Some(text) = read(&folder, source) else {
            println!("{source}: absent, skipped");
            continue;
        };
        report(source, &text, &scanner, Some(&set));
    }
    let is_hostile = std::env::args().nth(2).is_some_and(|word| word == "hostile");
    for hostile in HOSTILE.iter().filter(|_| is_hostile) {
        report(
            &format!("256 KB of {hostile:?}"),
            hostile.repeat((256 << 10) / hostile.len()).as_bytes(),
            &scanner,
            None,
        );
    }
    let text = read(&folder, "neg-agent").unwrap_or_else(|| b"An ordinary message, as they come. ".repeat(1 << 16));
    let messages: Vec<&[u8]> = text.chunks(2048).take(500).collect();
    let message = best(|| messages.iter().map(|text| scanner.scan(text, 0, true).findings.len()).sum::<usize>());
    println!("a message of 2 KB: {:.2} us", micros(message) / messages.len() as f64);
    let pieces = text.len().min(256 << 10).div_ceil(16);
    let stream = best(|| {
        let (mut stream, mut out) = (TextStream::new(b""), Vec::new());
        for piece in text.chunks(16).take(pieces) {
            stream.push(&scanner, piece, false, &mut out);
            out.clear();
        }
        stream.held()
    });
    println!("a piece of 16 bytes in a stream: {:.2} us", micros(stream) / pieces as f64);
}

fn report(name: &str, text: &[u8], scanner: &Scanner, set: Option<&RegexSet>) {
    let speed = |bytes: usize, time: Duration| bytes as f64 / time.as_secs_f64() / 1e9;
    let over = |work: &dyn Fn(&[u8]) -> usize| -> Duration {
        text.chunks(64 << 10).map(|part| best(|| work(black_box(part)))).sum()
    };
    let plain = over(&|part| memchr::memchr(0xff, part).unwrap_or_default());
    let scanned = over(&|part| scanner.scan(part, 0, true).findings.len());
    let in_turn = in_turn(text, |part| scanner.scan(part, 0, true).findings.len());
    let regexes = set.map(|set| {
        let part = &text[..text.len().min(REGEX_TEXT)];
        // The first pass builds its tables.
        black_box(set.matches(part));
        speed(part.len(), best(|| set.matches(part).iter().count()))
    });
    let regexes = regexes.map_or_else(|| "-".to_owned(), |speed| format!("{speed:.4}"));
    let findings = scanner.scan(text, 0, true).findings.len();
    let [plain, scanned, in_turn] = [plain, scanned, in_turn].map(|time| speed(text.len(), time));
    println!("{name:34} {plain:8.1} {scanned:8.2} {in_turn:8.2} {regexes:>8} {findings:>9}");
}

/// The best time of each part, with the other parts between its passes.
fn in_turn(text: &[u8], work: impl Fn(&[u8]) -> usize) -> Duration {
    let parts: Vec<&[u8]> = text.chunks(64 << 10).collect();
    let mut best = vec![Duration::MAX; parts.len()];
    for _ in 0..PASSES {
        for (part, best) in parts.iter().zip(&mut best) {
            let began = Instant::now();
            black_box(work(black_box(part)));
            *best = began.elapsed().min(*best);
        }
    }
    best.iter().sum()
}

/// The texts of a source, one behind the other.
fn read(folder: &str, source: &str) -> Option<Vec<u8>> {
    let file = File::open(format!("{folder}/{source}.jsonl.gz")).ok()?;
    let mut all = Vec::new();
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let record: Value = serde_json::from_str(&line.unwrap()).unwrap();
        all.extend_from_slice(record["text"].as_str().unwrap().as_bytes());
        all.push(b'\n');
    }
    Some(all)
}

fn best<T>(mut work: impl FnMut() -> T) -> Duration {
    let mut time = |_| {
        let began = Instant::now();
        black_box(work());
        began.elapsed()
    };
    let first = time(0);
    let passes = if first.as_millis() > 200 { 0 } else { PASSES };
    (0..passes).map(&mut time).min().unwrap_or(first)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
