//! Money as integers: nano-dollars for amounts, pico-dollars per token for rates.
//!
//! One dollar per million tokens is 1,000,000 pico-dollars per token, so list prices down to a millionth of a dollar
//! per million tokens are exact. What was spent is rounded in one function, [`NanoUsd::from_pico`].

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// An amount in billionths of a US dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NanoUsd(pub i64);

/// A price in trillionths of a US dollar per token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PicoPerToken(pub u64);

impl NanoUsd {
    /// Nothing.
    pub const ZERO: NanoUsd = NanoUsd(0);

    /// Rounds an amount in pico-dollars half up to nano-dollars. The only rounding of money that was spent.
    #[must_use]
    pub fn from_pico(pico: u128) -> NanoUsd {
        NanoUsd(i64::try_from((pico + 500) / 1000).unwrap_or(i64::MAX))
    }

    /// Rounds an amount in pico-dollars up, for money that is set aside.
    #[must_use]
    pub fn covering_pico(pico: u128) -> NanoUsd {
        NanoUsd(i64::try_from(pico.div_ceil(1000)).unwrap_or(i64::MAX))
    }

    /// The amount in dollars, for showing only.
    #[must_use]
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Reads a dollar amount such as `1.25`, exactly.
    ///
    /// # Errors
    /// Says what is wrong when the text is not a plain decimal of at most nine places.
    pub fn parse_usd(text: &str) -> Result<NanoUsd, BadAmount> {
        Ok(NanoUsd(parse_decimal(text, 9)?))
    }
}

impl PicoPerToken {
    /// Reads a list price in dollars per million tokens, exactly.
    ///
    /// # Errors
    /// Says what is wrong when the text is not a plain decimal of at most six places, or is negative.
    pub fn parse_usd_per_million(text: &str) -> Result<PicoPerToken, BadAmount> {
        u64::try_from(parse_decimal(text, 6)?).map(PicoPerToken).map_err(|_| BadAmount(text.to_owned()))
    }

    /// The price in dollars per million tokens, for showing only.
    #[must_use]
    pub fn as_usd_per_million(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// A text that is not an amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an amount of dollars; expected a plain number such as 0.25")]
pub struct BadAmount(String);

/// Reads a plain decimal as an integer of `places` decimal places. More places are accepted when they are zeros.
fn parse_decimal(text: &str, places: usize) -> Result<i64, BadAmount> {
    let bad = || BadAmount(text.to_owned());
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_number(whole) || !is_number(fraction) {
        return Err(bad());
    }
    let (kept, beyond) = fraction.split_at(fraction.len().min(places));
    if beyond.bytes().any(|b| b != b'0') {
        return Err(bad());
    }
    let padded = format!("{whole}{kept:0<places$}");
    let value: i64 = padded.parse().map_err(|_| bad())?;
    Ok(if negative { -value } else { value })
}

/// An amount in dollars, as it is told. Every answer tells some: it is spelled without memory of its own.
#[derive(Clone, Copy, Debug)]
pub struct Spelled {
    text: [u8; SPELLED_BYTES],
    start: usize,
    end: usize,
}

/// A sign, ten digits of dollars, a point, nine of what is left.
const SPELLED_BYTES: usize = 21;
const PLACES: usize = 9;
/// Nano-dollars of a dollar.
const NANO: u64 = 1_000_000_000;

impl NanoUsd {
    /// Dollars with at least two decimal places and no trailing zeros beyond.
    #[must_use]
    pub fn spelled(self) -> Spelled {
        let (dollars, rest) = (self.0.unsigned_abs() / NANO, self.0.unsigned_abs() % NANO);
        let mut text = [b'0'; SPELLED_BYTES];
        let point = SPELLED_BYTES - PLACES - 1;
        // With a one in front, so that no zero is left out; then the point takes its place.
        text[point..].copy_from_slice(itoa::Buffer::new().format(NANO + rest).as_bytes());
        text[point] = b'.';
        let mut end = SPELLED_BYTES;
        while end > point + 3 && text[end - 1] == b'0' {
            end -= 1;
        }
        let mut before = itoa::Buffer::new();
        let before = before.format(dollars).as_bytes();
        let mut start = point - before.len();
        text[start..point].copy_from_slice(before);
        if self.0 < 0 {
            start -= 1;
            text[start] = b'-';
        }
        Spelled { text, start, end }
    }
}

impl Spelled {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The same as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[self.start..self.end]
    }
}

impl fmt::Display for NanoUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spelled().as_str())
    }
}

impl Add for NanoUsd {
    type Output = NanoUsd;
    fn add(self, other: NanoUsd) -> NanoUsd {
        NanoUsd(self.0.saturating_add(other.0))
    }
}

impl Sub for NanoUsd {
    type Output = NanoUsd;
    fn sub(self, other: NanoUsd) -> NanoUsd {
        NanoUsd(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for NanoUsd {
    fn add_assign(&mut self, other: NanoUsd) {
        *self = *self + other;
    }
}

impl SubAssign for NanoUsd {
    fn sub_assign(&mut self, other: NanoUsd) {
        *self = *self - other;
    }
}

impl Sum for NanoUsd {
    fn sum<I: Iterator<Item = NanoUsd>>(amounts: I) -> NanoUsd {
        amounts.fold(NanoUsd::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_add_up() {
        let sum = NanoUsd::parse_usd("0.1").unwrap() + NanoUsd::parse_usd("0.2").unwrap();
        assert_eq!(sum, NanoUsd::parse_usd("0.3").unwrap());
        assert_eq!(sum.to_string(), "0.30");
    }

    #[test]
    fn reads_list_prices_exactly() {
        assert_eq!(PicoPerToken::parse_usd_per_million("2.5").unwrap(), PicoPerToken(2_500_000));
        assert_eq!(PicoPerToken::parse_usd_per_million("0.000001").unwrap(), PicoPerToken(1));
        assert_eq!(PicoPerToken::parse_usd_per_million(".05").unwrap(), PicoPerToken(50_000));
    }

    #[test]
    fn refuses_what_is_not_an_amount() {
        for text in ["", ".", "1e3", "1,5", "$1", "0.0000000001", "NaN"] {
            assert!(NanoUsd::parse_usd(text).is_err(), "{text}");
        }
        assert!(PicoPerToken::parse_usd_per_million("-1").is_err());
    }

    #[test]
    fn rounds_half_up_once() {
        assert_eq!(NanoUsd::from_pico(1_499), NanoUsd(1));
        assert_eq!(NanoUsd::from_pico(1_500), NanoUsd(2));
        assert_eq!(NanoUsd::from_pico(u128::MAX / 2), NanoUsd(i64::MAX));
    }

    #[test]
    fn covers_every_part_of_a_nano() {
        assert_eq!(NanoUsd::covering_pico(1_000), NanoUsd(1));
        assert_eq!(NanoUsd::covering_pico(1_001), NanoUsd(2));
        assert_eq!(NanoUsd::covering_pico(u128::MAX), NanoUsd(i64::MAX));
    }

    #[test]
    fn shows_dollars() {
        assert_eq!(NanoUsd(0).to_string(), "0.00");
        assert_eq!(NanoUsd(-1_230_000_000).to_string(), "-1.23");
        assert_eq!(NanoUsd(123).to_string(), "0.000000123");
        assert_eq!(NanoUsd(12_000_000_010).to_string(), "12.00000001");
        assert_eq!(NanoUsd(i64::MIN).to_string(), "-9223372036.854775808");
    }
}
