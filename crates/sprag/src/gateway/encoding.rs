//! Compressed bodies, decoded as they come.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// Encodings that Sprag reads, as it tells an upstream.
pub(crate) const READABLE: [&str; 4] = ["gzip", "br", "zstd", "deflate"];

/// Input of a whole body taken at a time.
const STEP_BYTES: usize = 16 << 10;
/// The largest window that zstd may use in HTTP, as a power of two: <https://www.rfc-editor.org/rfc/rfc9659>
const ZSTD_WINDOW_LOG: u32 = 23;

/// A body in an encoding that Sprag does not read.
#[derive(Debug, thiserror::Error)]
#[error("content-encoding `{0}` cannot be read; use gzip, br, zstd, deflate or none")]
pub(crate) struct Unreadable(String);

/// Decodes one body.
pub(crate) enum Decoder {
    Gzip(MultiGzDecoder<Decoded>),
    /// What deflate means is known with the first byte.
    Deflate(usize),
    Inflate(Inflate),
    Brotli(Box<brotli::DecompressorWriter<Decoded>>),
    Zstd(zstd::stream::write::Decoder<'static, Decoded>),
}

/// What HTTP calls deflate is zlib; some servers send it bare.
pub(crate) enum Inflate {
    Zlib(ZlibDecoder<Decoded>),
    Bare(DeflateDecoder<Decoded>),
}

/// What has been decoded and not been taken yet. A few bytes can decode to very many, so it has a bound.
pub(crate) struct Decoded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Decoder {
    /// The decoder that the headers ask for; None for a plain body. One push gives at most `limit` bytes.
    pub(crate) fn for_headers(headers: &HeaderMap, limit: usize) -> Result<Option<Decoder>, Unreadable> {
        let Some(value) = headers.get(CONTENT_ENCODING) else { return Ok(None) };
        let name = value.to_str().unwrap_or("?").trim().to_ascii_lowercase();
        let decoded = Decoded { bytes: Vec::new(), limit };
        match name.as_str() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Decoder::Gzip(MultiGzDecoder::new(decoded)))),
            "deflate" => Ok(Some(Decoder::Deflate(limit))),
            "br" => Ok(Some(Decoder::Brotli(Box::new(brotli::DecompressorWriter::new(decoded, 4096))))),
            "zstd" => zstd(decoded).map(Some).map_err(|_| Unreadable(name)),
            _ => Err(Unreadable(name)),
        }
    }

    /// Takes encoded bytes and gives back what they decode to so far.
    pub(crate) fn push(&mut self, encoded: &[u8]) -> io::Result<Bytes> {
        match self {
            Decoder::Gzip(d) => feed(d, encoded).map(|()| take(d.get_mut())),
            Decoder::Brotli(d) => feed(d, encoded).map(|()| take(d.get_mut())),
            Decoder::Zstd(d) => feed(d, encoded).map(|()| take(d.get_mut())),
            Decoder::Inflate(Inflate::Zlib(d)) => feed(d, encoded).map(|()| take(d.get_mut())),
            Decoder::Inflate(Inflate::Bare(d)) => feed(d, encoded).map(|()| take(d.get_mut())),
            Decoder::Deflate(limit) => {
                let Some(first) = encoded.first() else { return Ok(Bytes::new()) };
                *self = Decoder::Inflate(inflate(*first, *limit));
                self.push(encoded)
            }
        }
    }
}

/// Decodes a whole body, up to `limit` bytes; None beyond it.
pub(crate) fn decode_all(decoder: &mut Decoder, encoded: &[u8], limit: usize) -> io::Result<Option<Bytes>> {
    let mut whole = Vec::new();
    for step in encoded.chunks(STEP_BYTES) {
        match decoder.push(step) {
            Ok(plain) => whole.extend_from_slice(&plain),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Ok(None),
            Err(error) => return Err(error),
        }
        if whole.len() > limit {
            return Ok(None);
        }
    }
    Ok(Some(Bytes::from(whole)))
}

/// The low half of a zlib header's first byte is 8.
fn inflate(first: u8, limit: usize) -> Inflate {
    let decoded = Decoded { bytes: Vec::new(), limit };
    if first & 0x0f == 8 {
        Inflate::Zlib(ZlibDecoder::new(decoded))
    } else {
        Inflate::Bare(DeflateDecoder::new(decoded))
    }
}

fn zstd(decoded: Decoded) -> io::Result<Decoder> {
    let mut decoder = zstd::stream::write::Decoder::new(decoded)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(Decoder::Zstd(decoder))
}

fn feed(decoder: &mut impl Write, encoded: &[u8]) -> io::Result<()> {
    decoder.write_all(encoded)?;
    decoder.flush()
}

fn take(decoded: &mut Decoded) -> Bytes {
    Bytes::from(std::mem::take(&mut decoded.bytes))
}

impl Write for Decoded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;

    use super::*;

    fn encode(name: &str, text: &[u8]) -> Vec<u8> {
        match name {
            "gzip" => {
                let mut e = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
                e.write_all(text).unwrap();
                e.finish().unwrap()
            }
            "deflate" => {
                let mut e = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
                e.write_all(text).unwrap();
                e.finish().unwrap()
            }
            "bare" => {
                let mut e = flate2::write::DeflateEncoder::new(Vec::new(), Compression::fast());
                e.write_all(text).unwrap();
                e.finish().unwrap()
            }
            "br" => {
                let mut out = Vec::new();
                brotli::CompressorWriter::new(&mut out, 4096, 4, 20).write_all(text).unwrap();
                out
            }
            _ => zstd::encode_all(text, 1).unwrap(),
        }
    }

    fn decoder(name: &str) -> Decoder {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, if name == "bare" { "deflate" } else { name }.parse().unwrap());
        Decoder::for_headers(&headers, LIMIT).unwrap().unwrap()
    }

    const LIMIT: usize = 4 << 20;

    #[test]
    fn every_encoding_is_read_byte_by_byte() {
        let text = "data: {\"text\":\"grüße\"}\n\n".repeat(50);
        for name in ["gzip", "deflate", "bare", "br", "zstd"] {
            let mut decoder = decoder(name);
            let mut out = Vec::new();
            for byte in encode(name, text.as_bytes()) {
                out.extend_from_slice(&decoder.push(&[byte]).unwrap());
            }
            assert_eq!(String::from_utf8(out).unwrap(), text, "{name}");
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        for name in ["gzip", "deflate", "bare", "br", "zstd"] {
            let past = encode(name, &vec![0; LIMIT + 1]);
            assert_eq!(decode_all(&mut decoder(name), &past, LIMIT).unwrap(), None, "{name}");
            let at = encode(name, &vec![0; LIMIT]);
            assert_eq!(decode_all(&mut decoder(name), &at, LIMIT).unwrap().map(|b| b.len()), Some(LIMIT), "{name}");
        }
    }

    #[test]
    fn one_step_of_a_bomb_takes_no_more_than_the_limit() {
        let bomb = encode("zstd", &vec![0; 64 << 20]);
        assert!(bomb.len() < STEP_BYTES);
        let error = decoder("zstd").push(&bomb).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_window_larger_than_http_allows_is_not_made_room_for() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(ZSTD_WINDOW_LOG + 1).unwrap();
        encoder.write_all(b"{}").unwrap();
        assert!(decoder("zstd").push(&encoder.finish().unwrap()).is_err());
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(ZSTD_WINDOW_LOG).unwrap();
        encoder.write_all(b"{}").unwrap();
        assert_eq!(decoder("zstd").push(&encoder.finish().unwrap()).unwrap(), "{}");
    }

    #[test]
    fn an_unknown_encoding_is_named() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, "compress".parse().unwrap());
        assert!(Decoder::for_headers(&headers, LIMIT).is_err_and(|e| e.to_string().contains("compress")));
    }

    #[test]
    fn garbage_is_an_error() {
        for name in ["gzip", "zstd", "br"] {
            assert!(
                decode_all(&mut decoder(name), b"\xffthis is not compressed at all\xff\xff\xff", 1 << 20).is_err(),
                "{name}"
            );
        }
    }
}
