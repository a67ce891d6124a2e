//! What changes in a tool's result though nothing has happened: times, durations, ids, addresses, line numbers.
//!
//! Only results are read this way, never arguments: page 2 is not page 1. Plain counts stay: "9 passed, 1 failed" is
//! not "10 passed, 0 failed".

use crate::blocks::{BLOCK, bits, is_digit};
use crate::wire::looks_unique;

/// Shortest word that may be an id without being hexadecimal.
const ID_BYTES: usize = 16;
/// What is longer is content: an image in base64.
const LONGEST_ID_BYTES: usize = 128;
/// Shortest hexadecimal one.
const HEXADECIMAL_BYTES: usize = 6;

/// Appends `text` to `clean` without its noise, white space single, empty lines dropped.
pub(super) fn denoise(text: &str, clean: &mut String) {
    clean.reserve(text.len() + 1);
    let mut rest = text;
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest.as_bytes());
        let (line, after) = end.map_or((rest, ""), |end| (&rest[..end], &rest[end + 1..]));
        rest = after;
        let start = clean.len();
        let line = without_number(line.trim_ascii_start()).trim_ascii_end();
        if is_job(line) {
            continue;
        }
        let had_noise = denoise_line(line, clean);
        let copied = &clean[start..];
        let has_word = || copied.as_bytes().windows(2).any(|two| two.iter().all(u8::is_ascii_alphabetic));
        let length = copied.trim_ascii_end().len();
        if length == 0 || had_noise && !has_word() {
            clean.truncate(start);
        } else {
            clean.truncate(start + length);
            clean.push('\n');
        }
    }
}

/// Copies a line; true when something was left out. Only words with digits and odd white space need a look: all else
/// is copied in long pieces.
fn denoise_line(line: &str, clean: &mut String) -> bool {
    let start = clean.len();
    let bytes = line.as_bytes();
    let mut odd = Odd::new(bytes);
    // What lies between `kept` and `at` stays and is copied in one piece.
    let (mut had_noise, mut kept, mut at) = (false, 0, 0);
    while let Some(found) = odd.next(at) {
        if bytes[found].is_ascii_whitespace() {
            clean.push_str(&line[kept..found]);
            add_space(clean, start);
            at = found + 1;
            kept = at;
            continue;
        }
        let (begin, end) = word_around(bytes, at, found);
        let noise = noise_at(line, begin, end);
        at = end;
        if noise > 0 {
            had_noise = true;
            clean.push_str(&line[kept..begin]);
            drop_key(clean, start);
            kept = begin + noise;
            at = end.max(kept);
            // A single space is odd where nothing is left before it.
            while kept == at && bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                add_space(clean, start);
                (kept, at) = (kept + 1, at + 1);
            }
        }
    }
    clean.push_str(&line[kept..]);
    had_noise
}

/// A space, unless one is there or the line is still empty.
fn add_space(clean: &mut String, start: usize) {
    if clean.len() > start && !clean.ends_with(' ') {
        clean.push(' ');
    }
}

/// Finds digits, and white space other than a single space.
struct Odd<'a> {
    bytes: &'a [u8],
    block: usize,
    found: u64,
}

impl<'a> Odd<'a> {
    fn new(bytes: &'a [u8]) -> Odd<'a> {
        Odd { bytes, block: 0, found: Odd::of_block(bytes, 0) }
    }

    fn next(&mut self, at: usize) -> Option<usize> {
        let mut at = at;
        while at < self.bytes.len() {
            if at >= self.block + BLOCK {
                self.block = at;
                self.found = Odd::of_block(self.bytes, at);
            }
            let behind = self.found >> (at - self.block);
            if behind != 0 {
                return Some(at + behind.trailing_zeros() as usize);
            }
            at = self.block + BLOCK;
        }
        None
    }

    fn of_block(bytes: &[u8], block: usize) -> u64 {
        let digits = bits(bytes, block, is_digit);
        let spaces = bits(bytes, block, |byte| byte == b' ');
        let others = bits(bytes, block, |byte| (byte.wrapping_sub(b'\t') < 5) & (byte != 0x0b));
        // The first space of a block counts as odd where it may not be the only one.
        let after_space = (spaces | others) << 1 | u64::from(block > 0 && bytes[block - 1].is_ascii_whitespace());
        digits | others | spaces & after_space
    }
}

/// The word that the byte at `inside` belongs to; it does not begin before `from`.
fn word_around(bytes: &[u8], from: usize, inside: usize) -> (usize, usize) {
    let before = bytes[from..inside].iter().rev().take_while(|byte| is_word(**byte)).count();
    let after = bytes[inside..].iter().take_while(|byte| is_word(**byte)).count();
    (inside - before, inside + after)
}

/// A line without the number that a pager or a search put before it.
fn without_number(line: &str) -> &str {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 6 || clock(line.as_bytes()) > 0 || date(line.as_bytes()) > 0 {
        return line;
    }
    let rest = &line[digits..];
    match rest.as_bytes() {
        [b'\t', ..] => rest[1..].trim_ascii_start(),
        [b':' | b'-', next, ..] if !next.is_ascii_whitespace() => &rest[1..],
        _ => line,
    }
}

/// A shell's word about a job in the background: `[1] 4711`.
fn is_job(line: &str) -> bool {
    let Some((job, pid)) = line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number(job) && is_number(pid)
}

/// How many bytes at `at` are noise. The word there ends at `end`.
fn noise_at(line: &str, at: usize, end: usize) -> usize {
    let rest = &line.as_bytes()[at..];
    let word = &line[at..end];
    if rest[0].is_ascii_digit() {
        for length in [date(rest), clock(rest), duration(line, at)] {
            if length > 0 {
                return length;
            }
        }
        if word.len() > 2 && (word.starts_with("0x") || word.starts_with("0X")) {
            return word.len();
        }
        let before = &line[..at];
        // Codex numbers its results in hexadecimal: now and then without a letter.
        let is_named = || follows_pid(before) || before.ends_with("Chunk ID: ");
        if word.bytes().all(|byte| byte.is_ascii_digit()) && is_named() {
            return word.len();
        }
    }
    if word.len() < HEXADECIMAL_BYTES && rest.get(word.len()) != Some(&b'-') {
        return 0;
    }
    let group = group_end(rest);
    if group > LONGEST_ID_BYTES {
        return 0;
    }
    let id = &line[at..at + group];
    if is_hexadecimal_id(id) || id.len() >= ID_BYTES && looks_unique(id) { group } else { 0 }
}

/// Six hexadecimal digits or more, with letters among them, and further groups after `-`.
fn is_hexadecimal_id(id: &str) -> bool {
    // Most words end here, at their first letter.
    if !id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return false;
    }
    let first = id.bytes().take_while(|byte| *byte != b'-').count();
    let has_letter = id.bytes().any(|byte| byte.is_ascii_alphabetic());
    first >= HEXADECIMAL_BYTES && has_letter && has_digit(id.as_bytes())
}

/// `2026-11-15`, and the time of day after it.
fn date(text: &[u8]) -> usize {
    let is_date = text.len() >= 10
        && text[4] == b'-'
        && text[..10]
            .iter()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    if !is_date {
        return 0;
    }
    match text.get(10) {
        Some(b'T' | b' ' | b'_') => match clock(&text[11..]) {
            0 => 10,
            length => 11 + length + zone(&text[11 + length..]),
        },
        Some(byte) if byte.is_ascii_alphanumeric() => 0,
        _ => 10,
    }
}

/// `10:04:59`, with a fraction; `10:04` only where seconds or nothing of a number follow.
fn clock(text: &[u8]) -> usize {
    let two =
        |at: usize| text.get(at).is_some_and(u8::is_ascii_digit) && text.get(at + 1).is_some_and(u8::is_ascii_digit);
    let hours = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if hours == 0 || hours > 2 || text.get(hours) != Some(&b':') || !two(hours + 1) {
        return 0;
    }
    let minutes = hours + 3;
    if text.get(minutes) != Some(&b':') || !two(minutes + 1) {
        return 0;
    }
    let seconds = minutes + 3;
    match text.get(seconds) {
        Some(b'.' | b',') => seconds + 1 + text[seconds + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count(),
        Some(byte) if byte.is_ascii_digit() => 0,
        _ => seconds,
    }
}

fn zone(text: &[u8]) -> usize {
    match text {
        [b'Z', ..] => 1,
        [b'+' | b'-', rest @ ..] => 1 + rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b':').count(),
        _ => 0,
    }
}

/// `0.35s`, `12 ms`, `3 seconds`.
fn duration(line: &str, at: usize) -> usize {
    const UNITS: [&str; 14] = [
        "s",
        "ms",
        "us",
        "µs",
        "ns",
        "sec",
        "secs",
        "second",
        "seconds",
        "min",
        "mins",
        "minute",
        "minutes",
        "milliseconds",
    ];
    let rest = &line[at..];
    let number = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let space = usize::from(rest.as_bytes().get(number) == Some(&b' '));
    let unit = &rest[number + space..];
    // The sign for micro begins with the last of these.
    if !matches!(unit.as_bytes(), [b's' | b'm' | b'u' | b'n' | 0xc2, ..]) {
        return 0;
    }
    let length = unit.find(|c: char| !c.is_alphanumeric()).unwrap_or(unit.len());
    if UNITS.contains(&&unit[..length]) { number + space + length } else { 0 }
}

fn follows_pid(before: &str) -> bool {
    let mut before = before.as_bytes();
    while let [rest @ .., b' ' | b':' | b'=' | b'[' | b'(' | b'#'] = before {
        before = rest;
    }
    matches!(before, [.., b'p' | b'P', b'i' | b'I', b'd' | b'D'])
}

/// Takes back the key in front of a value that was left out: `request_id=`.
fn drop_key(clean: &mut String, start: usize) {
    let line = &clean[start..];
    let Some(before) = line.trim_ascii_end().strip_suffix(['=', ':']) else { return };
    let key = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if key.len() < before.len() {
        let keep = start + key.len();
        clean.truncate(keep);
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn has_digit(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii_digit)
}

/// Where a word ends, and whether it has a digit.
fn word(bytes: &[u8], at: usize) -> (usize, bool) {
    let (mut end, mut has_digit) = (at, false);
    while let Some(byte) = bytes.get(end).filter(|byte| is_word(**byte)) {
        has_digit |= byte.is_ascii_digit();
        end += 1;
    }
    (end, has_digit)
}

/// The end of words joined by `-`.
fn group_end(bytes: &[u8]) -> usize {
    let mut end = word(bytes, 0).0;
    while bytes.get(end) == Some(&b'-') && bytes.get(end + 1).is_some_and(|byte| is_word(*byte)) {
        end = word(bytes, end + 1).0;
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clean(text: &str) -> String {
        let mut clean = String::new();
        denoise(text, &mut clean);
        clean
    }

    /// The same byte by byte.
    fn slowly(line: &str, clean: &mut String) -> bool {
        let start = clean.len();
        let bytes = line.as_bytes();
        let (mut had_noise, mut kept, mut at) = (false, 0, 0);
        while at < bytes.len() {
            if bytes[at].is_ascii_whitespace() {
                clean.push_str(&line[kept..at]);
                add_space(clean, start);
                at += 1;
                kept = at;
            } else if is_word(bytes[at]) {
                let (end, has_digit) = word(bytes, at);
                let noise = if has_digit { noise_at(line, at, end) } else { 0 };
                if noise > 0 {
                    had_noise = true;
                    clean.push_str(&line[kept..at]);
                    drop_key(clean, start);
                    kept = at + noise;
                }
                at = end.max(kept);
            } else {
                at += 1;
            }
        }
        clean.push_str(&line[kept..]);
        had_noise
    }

    proptest! {
        #[test]
        fn nothing_is_passed_over(line in "( {1,3}|\\t|[a-z]{1,9}|[=:,_.é-]|[0-9]{1,3}|10:04:59|2026-11-15|0\\.3s|cb786b|pid |0x7f|[a-z0-9]{20}){0,40}") {
            let line = line.trim_ascii();
            let (mut a, mut b) = (String::from("x\n"), String::from("x\n"));
            prop_assert_eq!(denoise_line(line, &mut a), slowly(line, &mut b));
            prop_assert_eq!(a, b);
        }
    }

    #[test]
    fn what_changes_by_itself_is_left_out() {
        let same = [
            ("done at 2026-11-15T10:04:59.120Z", "done at 2026-11-16 23:00:01"),
            ("[10:01:47] ready", "[10:02:53] ready"),
            ("took 0.35s", "took 12 ms"),
            ("Wall time: 0.0000 seconds", "Wall time: 1.5000 seconds"),
            ("Chunk ID: cb786b\nok", "Chunk ID: 01afe3\nok"),
            ("Chunk ID: cb786b\nok", "Chunk ID: 387909\nok"),
            ("<object at 0x7f3a2b>", "<object at 0x7f3a99>"),
            ("run 0046e63f-332e-4aa1-9d1c-aabbccddeeff", "run d572dd96-4578-4aa1-9d1c-aabbccddeeff"),
            ("started, PID 4711", "started, PID 4712"),
            ("[1] 654\nok", "[1] 702\nok"),
            ("call_UaRmXddYCKK3rYmcIPETfyYV failed", "call_Ba3mXddYCKK3rYmcIP1TfyQQ failed"),
            ("   674\ttry:\n   675\t    x", "   680\ttry:\n   681\t    x"),
            ("96:def f():", "98:def f():"),
        ];
        for (a, b) in same {
            assert_eq!(clean(a), clean(b));
        }
        let line = "[2025-03-11T13:33:24Z] request_id=0046e63f-332e elapsed=4.56s\nrest";
        assert_eq!(clean(line), "rest\n", "a line of nothing but noise is none");
    }

    #[test]
    fn what_a_tool_says_stays() {
        for text in [
            "9 passed, 1 failed",
            "line 12, in <module>",
            "version 3.11.7",
            "step 9/100",
            "order #W2598324",
            "deadbeef",
            "{\"progress\": 8}",
            "naïve café ✓",
            "2 errors",
        ] {
            assert_eq!(clean(text), format!("{text}\n"));
        }
        let long = |n: usize| "a1B2c3D4".repeat(16)[..n].to_owned();
        assert_eq!(clean(&(long(LONGEST_ID_BYTES) + " x")), clean(&(long(LONGEST_ID_BYTES - 8) + " x")), "an id");
        let longer = long(LONGEST_ID_BYTES) + "e";
        assert_eq!(clean(&longer), format!("{longer}\n"), "content");
        assert_ne!(clean("10 passed, 0 failed"), clean("9 passed, 1 failed"));
    }
}
