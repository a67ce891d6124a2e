//! How much a value looks drawn by chance rather than written by a person.
//!
//! Entropy cannot tell: it never exceeds log2 of the length, so every limit on it fails short secrets or hits long words.
//! Pairs of letters can: people write `th` and `er`, chance writes `qx` as often. A value is judged by how common its pairs
//! are on average. It does not know what the value is for.

/// How common a pair of letters is, first letter by row: 5 is as often as chance would have it, each step is twice as often.
///
/// Counted over the source and documents of this repository (1.6 million pairs).
const PAIRS: [[u8; 26]; 26] = [
    *b"04770470704877070788646461",
    *b"40006000320500600211500060",
    *b"70407107405600800617400030",
    *b"52048050620230500450200050",
    *b"73785631300768266988165660",
    *b"60004310600416700524500000",
    *b"40007003400013420352400000",
    *b"71008000600120600414300020",
    *b"51676550202768740578050305",
    *b"00002000000000200050302000",
    *b"00007000600003000040000000",
    *b"60068600702711710166611050",
    *b"74018000600141660051600000",
    *b"70577470504324740278536040",
    *b"34572640306778670856757300",
    *b"70027101500600540756700020",
    *b"00000000000200000000500000",
    *b"70469040703455720667741060",
    *b"60549006605302762079605040",
    *b"70549208702412740776603040",
    *b"26456130200658050677000000",
    *b"50007000500000300000000000",
    *b"60006006600005500642010000",
    *b"30301001100000040006000120",
    *b"01002000100004230045000000",
    *b"10005000100000200000000000",
];
/// A letter beside a digit is rare in words, and half of what chance writes.
const LETTER_BESIDE_DIGIT: u32 = 1;

/// What a value is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Makeup {
    pub(super) length: u32,
    pub(super) digits: u32,
    pub(super) lower: u32,
    pub(super) upper: u32,
    /// Neither letter nor digit.
    pub(super) others: u32,
    /// Different bytes (letters and digits; all others count as one).
    pub(super) distinct: u32,
    /// Letters that are hexadecimal digits.
    pub(super) hex_letters: u32,
    pairs: u32,
    commonness: u32,
}

/// Counts through `value` once.
pub(super) fn makeup(value: &[u8]) -> Makeup {
    let mut made = Makeup { length: u32::try_from(value.len()).unwrap_or(u32::MAX), ..Makeup::default() };
    let mut seen = 0_u64;
    let mut before = 0;
    for &byte in value {
        let (is_digit, is_letter) = (byte.is_ascii_digit(), byte.is_ascii_alphabetic());
        made.digits += u32::from(is_digit);
        made.lower += u32::from(byte.is_ascii_lowercase());
        made.upper += u32::from(byte.is_ascii_uppercase());
        made.hex_letters += u32::from(is_letter && byte.is_ascii_hexdigit());
        made.others += u32::from(!is_digit && !is_letter);
        seen |= 1 << distinct_place(byte);
        if is_letter && before_is_letter(before) {
            let [first, second] = [before, byte].map(|letter| usize::from(letter.to_ascii_lowercase() - b'a'));
            made.pairs += 1;
            made.commonness += u32::from(PAIRS[first][second] - b'0');
        } else if (is_letter && before.is_ascii_digit()) || (is_digit && before_is_letter(before)) {
            made.pairs += 1;
            made.commonness += LETTER_BESIDE_DIGIT;
        }
        before = byte;
    }
    made.distinct = seen.count_ones();
    made
}

impl Makeup {
    /// Whether the pairs are no more common than `limit` (in hundredths of a step; words of people are near 680, chance is
    /// near 230) on average.
    pub(super) fn is_rarer_than(&self, limit: u32) -> bool {
        self.pairs > 0 && self.commonness * 100 <= limit * self.pairs
    }

    pub(super) fn letters(&self) -> u32 {
        self.lower + self.upper
    }

    /// Whether all of it is hexadecimal digits, in one case.
    pub(super) fn is_hex(&self) -> bool {
        self.hex_letters == self.letters() && self.others == 0 && (self.lower == 0 || self.upper == 0)
    }
}

fn before_is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

fn distinct_place(byte: u8) -> u32 {
    match byte {
        b'a'..=b'z' => u32::from(byte - b'a'),
        b'A'..=b'Z' => u32::from(byte - b'A') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        _ => 62,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_common_and_chance_is_rare() {
        for word in ["getElementsByTagName", "internationalisation", "my-database-password", "connection_string"] {
            assert!(!makeup(word.as_bytes()).is_rarer_than(500), "{word}");
        }
        for chance in ["vbqevcpyqbhfnfdnejwfod", "bQtlFfXlrZICMLSxvRBEAm", "b373398b00849944a45ab3eb93c31de5"] {
            assert!(makeup(chance.as_bytes()).is_rarer_than(450), "{chance}");
        }
    }

    #[test]
    fn counts_what_a_value_is_made_of() {
        let made = makeup(b"aB1-aB1");
        assert_eq!((made.length, made.digits, made.lower, made.upper, made.others, made.distinct), (7, 2, 2, 2, 1, 4));
        assert!(makeup(b"00ff").is_hex() && !makeup(b"00fF").is_hex() && !makeup(b"00-f").is_hex());
        assert_eq!(makeup(b"").distinct, 0);
    }
}
