//! Keys without a prefix whose first run tells: so many digits, so many hexadecimal digits, a capital of three.

use super::format::Format;
use super::index::count_formats;
use crate::dlp::catalogue::VENDORS;
use crate::dlp::kind::Entity;
use crate::dlp::prefilter::TokenStart;

/// Formats that are reached by [`may_begin`].
pub(super) static FORMATS: &[(Entity, &Format)] = &LIST;

const LIST: [(Entity, &Format); count_formats(true)] = {
    let mut list: [(Entity, &Format); count_formats(true)] = [(Entity(0), &FIRST); count_formats(true)];
    let (mut table, mut place, mut length) = (0, 0, 0);
    while table < VENDORS.len() {
        let mut at = 0;
        while at < VENDORS[table].len() {
            let formats = VENDORS[table][at].formats;
            let mut one = 0;
            while one < formats.len() {
                if formats[one].prefixes.is_empty() && formats[one].mark.is_none() {
                    list[length] = (Entity(place), &formats[one]);
                    length += 1;
                }
                one += 1;
            }
            (at, place) = (at + 1, place + 1);
        }
        table += 1;
    }
    list
};

const FIRST: Format = super::format::bare();

/// Hexadecimal digits before what tells.
const HEX_DIGITS: usize = 32;
/// Most digits before what tells.
const MOST_DIGITS: usize = 17;
/// Where the first full stop of Discord's tokens stands.
const DISCORD: std::ops::RangeInclusive<usize> = 23..=28;

const HEX: u8 = 1;
const DISCORD_FIRST: u8 = 2;
const DISCORD_SECOND: u8 = 4;

/// What a byte may be in a key's beginning.
static PARTS: [u8; 256] = {
    let mut parts = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        parts[byte] = match byte as u8 {
            b'0'..=b'9' => HEX | DISCORD_SECOND,
            b'a'..=b'f' => HEX,
            b'M'..=b'O' => DISCORD_FIRST | DISCORD_SECOND,
            b'A'..=b'Z' | b'j' | b'z' => DISCORD_SECOND,
            _ => 0,
        };
        byte += 1;
    }
    parts
};

/// Whether one of them could begin with these bytes: all have at least eight digits, of whatever kind, or are Discord's.
/// Some of the bytes tell enough.
#[inline]
pub(super) fn may_begin_with(first: TokenStart) -> bool {
    let [a, b, _, c, _, d, _, e] = first.map(|byte| PARTS[usize::from(byte)]);
    (a & b & c & d & e & HEX) | (a & DISCORD_FIRST & (b >> 1)) != 0
}

/// Whether one of them could begin so: digits or small hexadecimal digits and a sign behind them; or, for Discord, a
/// number in base64 and a full stop. Hashes are frequent and have no such sign.
#[inline]
pub(super) fn may_begin(first: &[u8]) -> bool {
    let Some(four) = first.first_chunk::<4>() else { return false };
    let [a, b, c, d] = four.map(|byte| PARTS[usize::from(byte)]);
    if (a & b & c & d & HEX) | (a & DISCORD_FIRST & (b >> 1)) == 0 {
        return false;
    }
    if matches!(four[0], b'M'..=b'O') {
        return first.get(DISCORD).is_none_or(|six| six.contains(&b'.'));
    }
    first.get(HEX_DIGITS).is_none_or(|sign| matches!(sign, b'-' | b'.')) || is_sign_behind_digits(first)
}

fn is_sign_behind_digits(first: &[u8]) -> bool {
    let digits = first.iter().take(MOST_DIGITS).take_while(|byte| byte.is_ascii_digit()).count();
    first.get(digits).is_none_or(|sign| matches!(sign, b':' | b'|'))
}

#[cfg(test)]
mod tests {
    use super::super::format::Part;
    use super::*;

    #[test]
    fn every_format_may_begin_and_hashes_may_not() {
        for (entity, format) in FORMATS {
            for is_longest in [false, true] {
                let mut text = Vec::new();
                for part in format.parts() {
                    match *part {
                        Part::Text(sign) => text.extend_from_slice(sign.as_bytes()),
                        Part::Run { of, least, most } => {
                            let length = if is_longest && most < 100 { most } else { least };
                            text.extend((0..128).filter(|byte| of.has(*byte)).cycle().take(length));
                        }
                    }
                }
                assert!(text.first_chunk().is_some_and(|first| may_begin_with(*first)), "{entity:?}: {text:?}");
                assert!((4..=text.len()).all(|cut| may_begin(&text[..cut])), "{entity:?}: {text:?}");
                text.extend_from_slice(&[b' '; 40]);
                assert!(may_begin(&text), "{entity:?}: {text:?}");
            }
        }
        let others =
            ["0a1b2c3d4e5f60718293a4b5c6d7e8f901234567", "12345678", "NOTE_THAT_THIS_IS_ONLY_A_NAME", "deadbeef"];
        for other in others {
            assert!(!may_begin(format!("{other} and then some more words").as_bytes()), "{other}");
        }
    }
}
