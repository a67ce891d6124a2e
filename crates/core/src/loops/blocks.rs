//! Which bytes of a text are of a kind, 64 at a time as the bits of a number.
//!
//! Where words end cannot be foreseen, and a wrong guess of the processor costs more than all else: bits are searched
//! without guessing.

/// Bytes of a block.
pub(super) const BLOCK: usize = 64;

/// For each of the 64 bytes from `from` on, whether it is of the kind, the first in the lowest bit. 0 behind the end.
#[inline]
pub(super) fn bits(bytes: &[u8], from: usize, is: impl Fn(u8) -> bool) -> u64 {
    let rest = bytes.get(from..).unwrap_or_default();
    if let Some(block) = rest.first_chunk::<BLOCK>() {
        return bits_of(block, is);
    }
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    bits_of(&block, is) & ((1 << rest.len()) - 1)
}

/// A letter or digit of ASCII.
#[inline]
pub(super) fn is_alphanumeric(byte: u8) -> bool {
    is_letter(byte) | is_digit(byte)
}

/// A letter of ASCII.
#[inline]
pub(super) fn is_letter(byte: u8) -> bool {
    (byte | 0x20).wrapping_sub(b'a') < 26
}

/// A digit of ASCII.
#[inline]
pub(super) fn is_digit(byte: u8) -> bool {
    byte.wrapping_sub(b'0') < 10
}

/// White space of ASCII.
#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    (byte == b' ') | ((byte.wrapping_sub(b'\t') < 5) & (byte != 0x0b))
}

/// Written such that the compiler takes many bytes at once.
#[inline]
fn bits_of(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    let mut of_kind = [0_u8; BLOCK];
    for (of_kind, byte) in of_kind.iter_mut().zip(block) {
        *of_kind = u8::from(is(*byte));
    }
    // Gathers the lowest bits of eight bytes in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = of_kind.as_chunks::<8>();
    eights.iter().rev().fold(0, |bits, eight| bits << 8 | u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_its_bit() {
        let text: Vec<u8> = (0..=255).chain(*b"tail 9").collect();
        for from in 0..=text.len() + 1 {
            let digits = bits(&text, from, is_digit);
            let words = bits(&text, from, is_alphanumeric);
            let spaces = bits(&text, from, is_space);
            for bit in 0..BLOCK {
                let byte = text.get(from + bit).copied().unwrap_or_default();
                assert_eq!(digits >> bit & 1 == 1, byte.is_ascii_digit(), "{from} {bit}");
                let is_space = byte.is_ascii_whitespace() && from + bit < text.len();
                assert_eq!(spaces >> bit & 1 == 1, is_space, "{from} {bit}");
                assert_eq!(words >> bit & 1 == 1, byte.is_ascii_alphanumeric(), "{from} {bit}");
            }
        }
    }
}
