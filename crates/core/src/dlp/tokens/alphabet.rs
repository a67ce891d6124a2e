//! The characters that keys are made of.

/// A set of ASCII characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dlp) struct Alphabet([u64; 2]);

pub(in crate::dlp) const DIGITS: Alphabet = of(b"0123456789");
pub(in crate::dlp) const SMALL: Alphabet = of(b"abcdefghijklmnopqrstuvwxyz");
pub(in crate::dlp) const CAPITALS: Alphabet = of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ");
pub(in crate::dlp) const LETTERS: Alphabet = SMALL.and(CAPITALS);
pub(in crate::dlp) const ALNUM: Alphabet = LETTERS.and(DIGITS);
pub(in crate::dlp) const SMALL_ALNUM: Alphabet = SMALL.and(DIGITS);
pub(in crate::dlp) const CAPITAL_ALNUM: Alphabet = CAPITALS.and(DIGITS);
/// Small letters, as vendors write it.
pub(in crate::dlp) const HEX: Alphabet = DIGITS.and(of(b"abcdef"));
pub(in crate::dlp) const ANY_HEX: Alphabet = HEX.and(of(b"ABCDEF"));
pub(in crate::dlp) const BASE32: Alphabet = CAPITALS.and(of(b"234567"));
pub(in crate::dlp) const BASE64: Alphabet = ALNUM.and(of(b"+/"));
pub(in crate::dlp) const PADDED: Alphabet = BASE64.and(of(b"="));
/// Base64 for addresses, and what generators of names give.
pub(in crate::dlp) const URL_SAFE: Alphabet = ALNUM.and(of(b"-_"));
pub(in crate::dlp) const URL_SAFE_PADDED: Alphabet = URL_SAFE.and(of(b"="));
pub(in crate::dlp) const WORD: Alphabet = ALNUM.and(of(b"_"));
pub(in crate::dlp) const DOTTED: Alphabet = URL_SAFE.and(of(b"."));
/// A UUID's.
pub(in crate::dlp) const HEX_DASH: Alphabet = ANY_HEX.and(of(b"-"));
/// Either base64, padded.
pub(in crate::dlp) const ANY_BASE64: Alphabet = PADDED.and(URL_SAFE);

impl Alphabet {
    pub(in crate::dlp) const fn has(self, byte: u8) -> bool {
        byte < 128 && self.0[(byte >> 6) as usize] >> (byte & 63) & 1 == 1
    }

    pub(in crate::dlp) const fn and(self, other: Alphabet) -> Alphabet {
        Alphabet([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }
}

/// These characters.
pub(in crate::dlp) const fn of(bytes: &[u8]) -> Alphabet {
    let (mut set, mut at) = ([0; 2], 0);
    while at < bytes.len() {
        set[(bytes[at] >> 6) as usize] |= 1 << (bytes[at] & 63);
        at += 1;
    }
    Alphabet(set)
}
