//! Reading JSON quickly, and writing it by hand where every call does.
//!
//! Bodies are read for a few of their fields, and most of their bytes are strings that stay as they are. So reading is
//! finding where values end: `from_str` does that many bytes at a time, for any type that borrows from its text. It
//! reads what ordinary bodies are made of. Whatever is odd (escapes in keys, fractions, great depth, anything wrong) is
//! left to `serde_json`, which has the last word and tells what was wrong.

mod deserialize;
mod reader;
mod string;
mod write;

use serde::Deserialize;

pub(crate) use self::reader::{Odd, RawString, Reader};
pub(crate) use self::string::{end_of_string, unescaped};
pub(crate) use self::write::put_flag;
pub use self::write::{put_number, put_text};

/// As [`serde_json::from_str`].
///
/// # Errors
/// Those of `serde_json`.
pub(crate) fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    quickly(text).or_else(|Odd| serde_json::from_str(text))
}

/// As [`serde_json::from_slice`].
///
/// # Errors
/// Those of `serde_json`.
pub(crate) fn from_slice<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    match std::str::from_utf8(bytes) {
        Ok(text) => from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    }
}

fn quickly<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Odd> {
    let mut reader = Reader::new(text);
    let value = T::deserialize(&mut reader)?;
    reader.finish()?;
    Ok(value)
}

#[cfg(test)]
mod tests;
