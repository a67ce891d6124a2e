//! Compresses a body piece by piece, so that a reader can decode each piece when it arrives.

use crate::fault::Encoding;
use bytes::Bytes;
use std::io::{Result, Write};

/// Each piece compressed and flushed; together they are one stream of the encoding.
pub(super) fn each(encoding: Encoding, pieces: Vec<Bytes>) -> Vec<Bytes> {
    // Writing to memory does not fail; if it did, the piece is sent as it is and the test sees it.
    let plain = pieces.clone();
    compress(encoding, pieces).unwrap_or(plain)
}

enum Encoder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Deflate(flate2::write::ZlibEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Br(Box<brotli::CompressorWriter<Vec<u8>>>),
}

fn compress(encoding: Encoding, pieces: Vec<Bytes>) -> Result<Vec<Bytes>> {
    let level = flate2::Compression::fast();
    let mut encoder = match encoding {
        Encoding::Gzip => Encoder::Gzip(flate2::write::GzEncoder::new(Vec::new(), level)),
        Encoding::Deflate => Encoder::Deflate(flate2::write::ZlibEncoder::new(Vec::new(), level)),
        Encoding::Zstd => Encoder::Zstd(zstd::stream::write::Encoder::new(Vec::new(), 1)?),
        Encoding::Br => Encoder::Br(Box::new(brotli::CompressorWriter::new(Vec::new(), 4096, 4, 20))),
    };
    let mut taken = 0;
    let mut out = Vec::with_capacity(pieces.len());
    for piece in pieces {
        encoder.write(&piece)?;
        out.push(Bytes::copy_from_slice(&encoder.written()[taken..]));
        taken = encoder.written().len();
    }
    let all = encoder.finish()?;
    let end = Bytes::copy_from_slice(&all[taken..]);
    // The end belongs to the last piece: the number of pieces is the number of events.
    match out.last_mut() {
        Some(last) => *last = Bytes::from([last.as_ref(), end.as_ref()].concat()),
        None => out.push(end),
    }
    Ok(out)
}

impl Encoder {
    fn write(&mut self, piece: &[u8]) -> Result<()> {
        let writer: &mut dyn Write = match self {
            Encoder::Gzip(encoder) => encoder,
            Encoder::Deflate(encoder) => encoder,
            Encoder::Zstd(encoder) => encoder,
            Encoder::Br(encoder) => encoder,
        };
        writer.write_all(piece)?;
        writer.flush()
    }

    fn written(&self) -> &[u8] {
        match self {
            Encoder::Gzip(encoder) => encoder.get_ref(),
            Encoder::Deflate(encoder) => encoder.get_ref(),
            Encoder::Zstd(encoder) => encoder.get_ref(),
            Encoder::Br(encoder) => encoder.get_ref(),
        }
    }

    fn finish(self) -> Result<Vec<u8>> {
        match self {
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Deflate(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
            Encoder::Br(encoder) => Ok(encoder.into_inner()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn each_piece_can_be_read_when_it_arrives() {
        let pieces: Vec<Bytes> = ["data: one\n\n", "data: two\n\n", "data: three\n\n"].map(Bytes::from).into();
        for encoding in Encoding::ALL {
            let packed = each(encoding, pieces.clone());
            assert_eq!(packed.len(), 3);
            assert_eq!(readable(encoding, &packed[..2].concat()), b"data: one\n\ndata: two\n\n", "{encoding:?}");
            assert_eq!(readable(encoding, &packed.concat()), pieces.concat(), "{encoding:?}");
        }
    }

    /// What comes out before the end, or before the error that an unfinished stream is.
    fn readable(encoding: Encoding, bytes: &[u8]) -> Vec<u8> {
        let mut reader: Box<dyn Read + '_> = match encoding {
            Encoding::Gzip => Box::new(flate2::read::GzDecoder::new(bytes)),
            Encoding::Deflate => Box::new(flate2::read::ZlibDecoder::new(bytes)),
            Encoding::Zstd => Box::new(zstd::stream::read::Decoder::new(bytes).unwrap()),
            Encoding::Br => Box::new(brotli::Decompressor::new(bytes, 4096)),
        };
        let mut plain = Vec::new();
        let mut buffer = [0; 512];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            plain.extend_from_slice(&buffer[..count]);
        }
        plain
    }
}
