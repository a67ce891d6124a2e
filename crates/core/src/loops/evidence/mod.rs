//! What a step leaves behind: what the model asked for, and what came back. A few hundred bytes, no text.

mod action;
mod noise;
mod result;
mod runs;
mod sketch;
mod text_call;

pub(crate) use self::action::Action;
pub(crate) use self::result::{NUMBERS, Outcome, TELLING_BYTES};
use self::sketch::Gathered;
pub(crate) use self::sketch::Sketch;

/// Bytes at each end of a longer text that are looked at.
const TEXT_END_BYTES: usize = 24 << 10;

/// The parts of a text that are looked at: all of it, or its two ends.
fn ends(text: &str) -> [&str; 2] {
    if text.len() <= 2 * TEXT_END_BYTES {
        return [text, ""];
    }
    let head = text.floor_char_boundary(TEXT_END_BYTES);
    let tail = text.ceil_char_boundary(text.len() - TEXT_END_BYTES);
    [&text[..head], &text[tail..]]
}

/// A hash that is never 0: 0 stands for nothing. The steps of one run are few, so that 32 bits tell them apart.
fn hash(bytes: &[u8]) -> u32 {
    upper_half(xxhash_rust::xxh3::xxh3_64(bytes))
}

/// The same of bytes that were hashed already.
fn upper_half(hash: u64) -> u32 {
    ((hash >> 32) as u32).max(1)
}

/// The tool of a call by its name.
pub(crate) fn tool_hash(name: &str) -> u16 {
    short_hash(name.as_bytes())
}

/// The same in 16 bits, for what only counts where something else is the same too.
fn short_hash(bytes: &[u8]) -> u16 {
    shortened(hash(bytes))
}

/// The same of bytes that were hashed already.
fn shortened(hash: u32) -> u16 {
    (hash as u16).max(1)
}
