//! Addresses of Bitcoin and Ethereum.
//!
//! Bitcoin's have a checksum. Ethereum's may carry one in the case of their letters; it is not looked at.

use sha2::{Digest, Sha256};

use super::CRYPTO_WALLET;
use crate::dlp::hits::Hits;
use crate::dlp::kind::Tier;
use crate::dlp::numbers::edge;
use crate::dlp::view::View;

const BASE58: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BECH32: &[u8] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
/// Longest address of any of them (BIP 173).
const MOST: usize = 90;

/// Looks at a digit: `1…`, `3…`, the `1` of `bc1…`, the `0` of `0x…`.
pub(super) fn look(view: &View<'_>, at: usize, hits: &mut Hits) {
    let (start, is_address): (usize, fn(&[u8]) -> bool) = match (view.text[at], &view.text[..at]) {
        (b'1', [.., b'b' | b'B', b'c' | b'C']) => (at - 2, is_bech32),
        (b'1' | b'3', _) => (at, is_base58),
        (b'0', _) => (at, is_ethereum),
        _ => return,
    };
    if edge::left(view, start).is_some_and(edge::is_wordly) {
        return;
    }
    let most = view.text.len().min(start + MOST + 1);
    let length = view.text[start..most].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    if view.may_go_on(start + length) && length <= MOST {
        return hits.unsure(start);
    }
    if view.text.get(start + length) != Some(&b'_') && is_address(&view.text[start..start + length]) {
        hits.found(CRYPTO_WALLET, Tier::Proof, start, start + length);
    }
}

/// `0x` and 40 hex digits.
fn is_ethereum(text: &[u8]) -> bool {
    let [b'0', b'x', digits @ ..] = text else { return false };
    digits.len() == 40 && digits.iter().all(u8::is_ascii_hexdigit) && digits.iter().any(|digit| *digit != digits[0])
}

/// 25 bytes in base 58, of which the last four are the beginning of a hash of the others.
fn is_base58(text: &[u8]) -> bool {
    if !(25..=35).contains(&text.len()) {
        return false;
    }
    let mut bytes = [0_u8; 25];
    for character in text {
        let Some(value) = BASE58.iter().position(|one| one == character) else { return false };
        let mut carry = value;
        for byte in bytes.iter_mut().rev() {
            carry += usize::from(*byte) * 58;
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
        if carry > 0 {
            return false;
        }
    }
    let (payload, check) = bytes.split_at(21);
    matches!(payload[0], 0 | 5) && Sha256::digest(Sha256::digest(payload)).starts_with(check)
}

/// `bc1` and data whose checksum is right (BIP 173, BIP 350).
fn is_bech32(text: &[u8]) -> bool {
    let is_mixed = text.iter().any(u8::is_ascii_uppercase) && text.iter().any(u8::is_ascii_lowercase);
    if is_mixed || !(14..=MOST).contains(&text.len()) {
        return false;
    }
    // What `bc` stands for: the high bits, a zero, the low bits.
    let mut sum = [3, 3, 0, 2, 3].into_iter().fold(1, step);
    for character in &text[3..] {
        let Some(value) = BECH32.iter().position(|one| *one == character.to_ascii_lowercase()) else { return false };
        sum = step(sum, value as u32);
    }
    matches!(sum, 1 | 0x2bc8_30a3)
}

fn step(sum: u32, value: u32) -> u32 {
    const PARTS: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let top = sum >> 25;
    let shifted = ((sum & 0x01ff_ffff) << 5) ^ value;
    PARTS.iter().enumerate().fold(shifted, |sum, (bit, part)| if top >> bit & 1 == 1 { sum ^ part } else { sum })
}
