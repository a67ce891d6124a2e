//! Where the body of an answer ends, and which of its bytes are content (RFC 9112, 6 and 7). Nothing here reads or waits.

use bytes::{Buf, Bytes};
use http::HeaderMap;

use super::head::{self, Malformed};

/// Bytes of one line of a chunk's size, with what extends it.
const SIZE_LINE_BYTES: usize = 4 << 10;
/// Bytes of all trailers.
const TRAILER_BYTES: usize = 16 << 10;

/// How much is still to come.
#[derive(Debug)]
pub(super) enum Framing {
    /// So many bytes.
    Length(u64),
    Chunked(Chunked),
    /// All until the connection is closed.
    UntilClose,
}

/// A body in chunks, read up to somewhere.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    at: At,
    size: u64,
    /// Bytes of the line that is being read.
    line: usize,
    trailers: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// Before the first digit.
    #[default]
    Size,
    Digits,
    Extension,
    SizeEnd,
    Data,
    DataCr,
    DataLf,
    Trailers,
    Over,
}

impl Framing {
    pub(super) fn is_over(&self) -> bool {
        match self {
            Framing::Length(left) => *left == 0,
            Framing::Chunked(chunked) => chunked.at == At::Over,
            Framing::UntilClose => false,
        }
    }

    /// Whether the end of the connection is the end of the body.
    pub(super) fn ends_with_connection(&self) -> bool {
        matches!(self, Framing::UntilClose)
    }

    /// Takes the first content out of what was read, a chunk at most: whoever looks at it may have seen enough. It is empty where there is none
    /// in it. What stays in `piece` once the body is over nobody has asked for.
    pub(super) fn decode(&mut self, piece: &mut Bytes) -> Result<Bytes, Malformed> {
        match self {
            Framing::UntilClose => Ok(std::mem::take(piece)),
            Framing::Length(left) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX).min(piece.len());
                *left -= most as u64;
                Ok(piece.split_to(most))
            }
            Framing::Chunked(chunked) => {
                chunked.pass_over(piece)?;
                let data = chunked.take_data(piece);
                // The end of the body mostly comes with the last of it.
                chunked.pass_over(piece)?;
                Ok(data)
            }
        }
    }

    /// What came behind a body in chunks.
    pub(super) fn take_trailers(&mut self) -> Result<Option<HeaderMap>, Malformed> {
        match self {
            Framing::Chunked(chunked) if !chunked.trailers.is_empty() => {
                head::trailers(std::mem::take(&mut chunked.trailers)).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl Chunked {
    /// The content up to the end of its chunk, where that is next.
    fn take_data(&mut self, piece: &mut Bytes) -> Bytes {
        if self.at != At::Data {
            return Bytes::new();
        }
        let most = usize::try_from(self.size).unwrap_or(usize::MAX).min(piece.len());
        self.size -= most as u64;
        if self.size == 0 {
            self.at = At::DataCr;
        }
        piece.split_to(most)
    }

    /// Reads what stands between contents, up to the next of it or to the end.
    fn pass_over(&mut self, piece: &mut Bytes) -> Result<(), Malformed> {
        let mut taken = 0;
        for byte in piece.iter().copied() {
            match self.at {
                At::Data | At::Over => break,
                At::Trailers => self.read_trailer(byte)?,
                At::DataCr | At::DataLf => self.end_data(byte)?,
                At::Size | At::Digits | At::Extension | At::SizeEnd => self.read_size(byte)?,
            }
            taken += 1;
        }
        piece.advance(taken);
        Ok(())
    }

    fn read_trailer(&mut self, byte: u8) -> Result<(), Malformed> {
        self.trailers.push(byte);
        if self.trailers.len() > TRAILER_BYTES {
            return Err(Malformed("its trailers are too long"));
        }
        if self.trailers == b"\r\n" {
            self.trailers = Vec::new();
            self.at = At::Over;
        } else if self.trailers.ends_with(b"\r\n\r\n") {
            self.at = At::Over;
        }
        Ok(())
    }

    fn read_size(&mut self, byte: u8) -> Result<(), Malformed> {
        self.line += 1;
        if self.line > SIZE_LINE_BYTES {
            return Err(Malformed("a chunk of it has too long a head"));
        }
        let digit = char::from(byte).to_digit(16).filter(|_| matches!(self.at, At::Size | At::Digits));
        self.at = match (self.at, byte) {
            (At::Size | At::Digits, _) if let Some(digit) = digit => {
                let larger = self.size.checked_mul(16).and_then(|size| size.checked_add(u64::from(digit)));
                self.size = larger.ok_or(Malformed("a chunk of it is too large"))?;
                At::Digits
            }
            (At::Digits | At::Extension, b'\r') => At::SizeEnd,
            (At::Digits, b';' | b' ' | b'\t') => At::Extension,
            (At::Extension, byte) if byte != b'\n' => At::Extension,
            (At::SizeEnd, b'\n') => {
                self.line = 0;
                if self.size == 0 { At::Trailers } else { At::Data }
            }
            _ => return Err(Malformed("a chunk of it has no size")),
        };
        Ok(())
    }

    fn end_data(&mut self, byte: u8) -> Result<(), Malformed> {
        self.at = match (self.at, byte) {
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size,
            _ => return Err(Malformed("a chunk of it is longer than it says")),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds it in pieces of a size. Gives the content, whether it is over, and what stands behind.
    fn read(framing: &mut Framing, text: &[u8], size: usize) -> Result<(Vec<u8>, bool, bool), Malformed> {
        let (mut content, mut has_more) = (Vec::new(), false);
        for piece in text.chunks(size) {
            let mut piece = Bytes::copy_from_slice(piece);
            while !framing.is_over() && !piece.is_empty() {
                content.extend_from_slice(&framing.decode(&mut piece)?);
            }
            has_more |= !piece.is_empty();
        }
        Ok((content, framing.is_over(), has_more))
    }

    fn chunked() -> Framing {
        Framing::Chunked(Chunked::default())
    }

    #[test]
    fn chunks_are_the_same_however_they_are_cut() {
        let cases: [(&str, &str, bool, bool); 8] = [
            ("5\r\nhello\r\n0\r\n\r\n", "hello", true, false),
            ("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", true, false),
            ("00a;name=value\r\n0123456789\r\n0;last\r\n\r\n", "0123456789", true, false),
            ("A \t\r\n0123456789\r\n0\r\n\r\n", "0123456789", true, false),
            ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n", true, false),
            ("1\r\na\r\n0\r\nx-sum: 7\r\n\r\n", "a", true, false),
            ("1\r\na\r\n0\r\n\r\nHTTP/1.1 200 OK", "a", true, true),
            ("5\r\nhel", "hel", false, false),
        ];
        for (text, content, is_over, has_more) in cases {
            for size in 1..=text.len() {
                let read = read(&mut chunked(), text.as_bytes(), size);
                assert_eq!(read, Ok((content.into(), is_over, has_more)), "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn chunks_come_one_by_one_and_the_end_with_the_last() {
        let (mut framing, mut piece) = (chunked(), Bytes::from_static(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"));
        assert_eq!(framing.decode(&mut piece).unwrap(), "one");
        assert!(!framing.is_over());
        assert_eq!(framing.decode(&mut piece).unwrap(), "two");
        assert!(framing.is_over() && piece.is_empty());
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        let long = format!("1;{}\r\na\r\n", "x".repeat(SIZE_LINE_BYTES));
        let trailers = format!("0\r\nx: {}\r\n\r\n", "x".repeat(TRAILER_BYTES));
        let cases = [
            "\r\n",
            "g\r\n",
            ";a\r\n",
            "-1\r\na\r\n",
            "5\nhello\r\n",
            "5\r\rhello",
            "5;\n",
            "2\r\nabc\r\n",
            "1\r\naX\n",
            "1\r\na\rX",
            "10000000000000000\r\n",
            " 1\r\na\r\n",
            &long,
            &trailers,
        ];
        for text in cases {
            for size in [1, 3, text.len()] {
                assert!(read(&mut chunked(), text.as_bytes(), size).is_err(), "{text:?} in pieces of {size}");
            }
        }
    }

    proptest::proptest! {
        /// Of letters that chunks are made of, so that more than the first byte is read.
        #[test]
        fn whatever_comes_is_read_the_same_however_it_is_cut(text in "[0-3a\\r\\n;: ]{0,40}", size in 1_usize..40) {
            let whole = read(&mut chunked(), text.as_bytes(), 100);
            let cut = read(&mut chunked(), text.as_bytes(), size);
            proptest::prop_assert_eq!(whole, cut);
        }
    }

    #[test]
    fn trailers_are_given_once() {
        let mut framing = chunked();
        read(&mut framing, b"0\r\nx-sum: 7\r\nx-other: a b\r\n\r\n", 4).unwrap();
        let trailers = framing.take_trailers().unwrap().unwrap();
        assert_eq!((&trailers["x-sum"], &trailers["x-other"]), (&"7".parse().unwrap(), &"a b".parse().unwrap()));
        assert!(framing.take_trailers().unwrap().is_none());
        let mut framing = chunked();
        read(&mut framing, b"0\r\nno trailer\r\n\r\n", 4).unwrap();
        assert!(framing.take_trailers().is_err());
    }

    #[test]
    fn a_length_ends_where_it_says() {
        let mut framing = Framing::Length(5);
        assert_eq!(read(&mut framing, b"hello", 2), Ok((b"hello".to_vec(), true, false)));
        assert_eq!(read(&mut Framing::Length(5), b"hello!", 6), Ok((b"hello".to_vec(), true, true)));
        assert_eq!(read(&mut Framing::Length(5), b"hell", 3), Ok((b"hell".to_vec(), false, false)));
        assert!(Framing::Length(0).is_over());
    }

    #[test]
    fn one_that_ends_with_its_connection_takes_everything() {
        let mut framing = Framing::UntilClose;
        assert_eq!(read(&mut framing, b"hello", 2), Ok((b"hello".to_vec(), false, false)));
        assert!(framing.ends_with_connection());
    }
}
