//! Sets of bytes as tables, for questions that are asked of byte after byte.

/// A set of bytes.
#[derive(Clone, Debug)]
pub(super) struct ByteSet([bool; 256]);

impl ByteSet {
    /// Letters, digits and these.
    pub(super) const fn alphanumeric_and(others: &[u8]) -> ByteSet {
        let mut set = [false; 256];
        let mut byte = 0;
        while byte < 128 {
            set[byte] = (byte as u8).is_ascii_alphanumeric();
            byte += 1;
        }
        ByteSet(set).put(others, true)
    }

    /// What is printed, blanks apart, but not these.
    pub(super) const fn graphic_but(others: &[u8]) -> ByteSet {
        let mut set = [false; 256];
        let mut byte = 0;
        while byte < 128 {
            set[byte] = (byte as u8).is_ascii_graphic();
            byte += 1;
        }
        ByteSet(set).put(others, false)
    }

    /// And what is beyond ASCII.
    pub(super) const fn and_beyond_ascii(mut self) -> ByteSet {
        let mut byte = 128;
        while byte < 256 {
            self.0[byte] = true;
            byte += 1;
        }
        self
    }

    #[inline]
    pub(super) const fn has(&self, byte: u8) -> bool {
        self.0[byte as usize]
    }

    const fn put(mut self, bytes: &[u8], is_in: bool) -> ByteSet {
        let mut at = 0;
        while at < bytes.len() {
            self.0[bytes[at] as usize] = is_in;
            at += 1;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_or_out() {
        let (word, graphic) = (ByteSet::alphanumeric_and(b"_-"), ByteSet::graphic_but(b"\"a").and_beyond_ascii());
        for byte in 0..=255_u8 {
            assert_eq!(word.has(byte), byte.is_ascii_alphanumeric() || b"_-".contains(&byte), "{byte}");
            let is_graphic = byte.is_ascii_graphic() && !b"\"a".contains(&byte) || byte >= 0x80;
            assert_eq!(graphic.has(byte), is_graphic, "{byte}");
        }
    }
}
