//! Goes through JSON and says where values end. Takes nothing that `serde_json` would not take.

use super::string::end_of_string;

/// Not to be read quickly: odd, or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Odd;

/// A place in a text of JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// Lists and objects that are being read into values.
    pub(super) depth: u8,
}

/// Lists and objects inside one another that are passed over. `serde_json` takes more.
const SKIPPED_DEPTH: u32 = u64::BITS;

/// A string as it stands in the text, without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawString<'a> {
    pub(crate) inner: &'a str,
    pub(crate) is_escaped: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Reader<'a> {
        Reader { text, at: 0, depth: 0 }
    }

    /// The first byte of what comes next.
    #[inline]
    pub(crate) fn token(&mut self) -> Result<u8, Odd> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                Some(byte) => return Ok(*byte),
                None => return Err(Odd),
            }
        }
    }

    /// Takes a byte that was looked at.
    #[inline]
    pub(crate) fn take(&mut self) {
        self.at += 1;
    }

    /// Nothing may follow.
    pub(crate) fn finish(mut self) -> Result<(), Odd> {
        if self.token().is_ok() { Err(Odd) } else { Ok(()) }
    }

    /// The string that begins here.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<RawString<'a>, Odd> {
        if self.token()? != b'"' {
            return Err(Odd);
        }
        let start = self.at + 1;
        let (end, is_escaped) = end_of_string(self.text.as_bytes(), start).ok_or(Odd)?;
        self.at = end + 1;
        Ok(RawString { inner: &self.text[start..end], is_escaped })
    }

    /// A key, and the colon behind it.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<RawString<'a>, Odd> {
        let key = self.string()?;
        if self.token()? != b':' {
            return Err(Odd);
        }
        self.take();
        Ok(key)
    }

    /// Goes into an object or a list, as `open` says. False where it is empty, and over.
    #[inline]
    pub(crate) fn enter(&mut self, open: u8) -> Result<bool, Odd> {
        if self.token()? != open {
            return Err(Odd);
        }
        self.take();
        // Both signs stand two before those that close.
        if self.token()? != open + 2 {
            return Ok(true);
        }
        self.take();
        Ok(false)
    }

    /// Behind a value of what `open` began: whether another one follows.
    #[inline]
    pub(crate) fn goes_on(&mut self, open: u8) -> Result<bool, Odd> {
        let next = self.token()?;
        self.take();
        match next {
            b',' => Ok(true),
            close if close == open + 2 => Ok(false),
            _ => Err(Odd),
        }
    }

    /// The value that begins here, as it stands in the text.
    #[inline]
    pub(crate) fn raw(&mut self) -> Result<&'a str, Odd> {
        let first = self.token()?;
        let start = self.at;
        match first {
            b'"' => {
                self.string()?;
            }
            b'{' | b'[' => self.skip_nested()?,
            _ => self.skip_plain(first)?,
        }
        Ok(&self.text[start..self.at])
    }

    /// Passes over an object or a list.
    fn skip_nested(&mut self) -> Result<(), Odd> {
        // What is open, the innermost in the lowest bit: 1 for an object.
        let (mut open, mut depth) = (0_u64, 0);
        loop {
            let first = self.token()?;
            match first {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    if self.enter(first)? {
                        if depth == SKIPPED_DEPTH {
                            return Err(Odd);
                        }
                        depth += 1;
                        open = open << 1 | u64::from(first == b'{');
                        if first == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                }
                _ => self.skip_plain(first)?,
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let is_object = open & 1 == 1;
                if self.goes_on(if is_object { b'{' } else { b'[' })? {
                    if is_object {
                        self.key()?;
                    }
                    break;
                }
                (open, depth) = (open >> 1, depth - 1);
            }
        }
    }

    /// Passes over a number or a word.
    fn skip_plain(&mut self, first: u8) -> Result<(), Odd> {
        match first {
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number().map(|_| ()),
        }
    }

    /// Takes this word.
    #[inline]
    pub(crate) fn word(&mut self, word: &str) -> Result<(), Odd> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(Odd);
        }
        self.at += word.len();
        Ok(())
    }

    /// The number that begins here, and whether it is a whole one.
    pub(crate) fn number(&mut self) -> Result<(&'a str, bool), Odd> {
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
        let whole = digits(bytes, at);
        if whole == 0 || (whole > 1 && bytes[at] == b'0') {
            return Err(Odd);
        }
        at += whole;
        let mut is_whole = true;
        if bytes.get(at) == Some(&b'.') {
            is_whole = false;
            let fraction = digits(bytes, at + 1);
            if fraction == 0 {
                return Err(Odd);
            }
            at += 1 + fraction;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            is_whole = false;
            at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let exponent = digits(bytes, at);
            if exponent == 0 {
                return Err(Odd);
            }
            at += exponent;
        }
        self.at = at;
        Ok((&self.text[start..at], is_whole))
    }
}

fn digits(bytes: &[u8], from: usize) -> usize {
    bytes.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
}
