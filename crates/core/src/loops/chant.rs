//! `chant`: one answer that says the same passage over and over while it streams.
//!
//! The text is read byte by byte, so it makes no difference how a stream is cut into pieces. Now and then the last
//! bytes are looked up in what came shortly before; where they are found, the distance is taken as the length of a
//! passage and every further byte is held against it. The repetition must be exact, and the passage must be prose:
//! rules of a table, white space, digits and base64 do not chant.

use memchr::memmem;

use super::{ChantRule, Detector, Finding, Mode, Proof};
use crate::limits::CHANT_PERIOD_BYTES;

/// Bytes that are looked up.
const PROBE_BYTES: usize = 32;
/// Bytes that must be heard for each lookup, on average, and how many can be saved up.
const LOOKUP_BYTES: usize = 16;
const MOST_CREDIT: usize = 1024;
/// Bytes kept, at least: a passage, and the probe before it.
const KEPT_BYTES: usize = CHANT_PERIOD_BYTES + PROBE_BYTES;

/// One answer, as far as it has been heard.
#[derive(Clone, Debug, Default)]
pub struct Chant {
    /// The end of the text, cut back now and then.
    tail: Vec<u8>,
    /// The passage's length while one repeats.
    period: Option<usize>,
    /// Bytes that the repetition covers, its first round included.
    covered: usize,
    /// Bytes until the next lookup.
    wait: usize,
    /// Bytes heard that no lookup was made for: bounds the work per byte, whatever the text.
    credit: usize,
    /// Whether the passage is prose, once that was looked at.
    is_prose: Option<bool>,
    has_tripped: bool,
}

impl Chant {
    /// Hears the next piece of the answer. Gives a finding once, when one passage has come too often.
    pub fn feed(&mut self, text: &str, rule: &ChantRule) -> Option<Finding> {
        if rule.common.mode == Mode::Off || self.has_tripped {
            return None;
        }
        for byte in text.bytes() {
            self.hear(byte);
            if let Some(period) = self.period
                && self.covered >= rule.bytes as usize
                && self.covered / period >= rule.repeats as usize
                && *self.is_prose.get_or_insert_with(|| is_prose(&self.tail[self.tail.len() - period..]))
            {
                self.has_tripped = true;
                return Some(self.finding(period, rule));
            }
        }
        None
    }

    fn hear(&mut self, byte: u8) {
        if self.tail.len() == 4 * KEPT_BYTES {
            self.tail.drain(..3 * KEPT_BYTES);
        }
        self.tail.push(byte);
        self.credit = (self.credit + 1).min(MOST_CREDIT);
        if let Some(period) = self.period {
            if self.tail[self.tail.len() - 1 - period] == byte {
                self.covered += 1;
                return;
            }
            // What breaks a repetition may itself be part of a longer one: lines of "no no no" that are all alike.
            self.period = None;
            self.wait = if self.credit >= LOOKUP_BYTES { 0 } else { PROBE_BYTES };
        }
        if self.wait > 0 {
            self.wait -= 1;
            return;
        }
        self.look_up();
    }

    fn look_up(&mut self) {
        self.wait = PROBE_BYTES;
        self.credit = self.credit.saturating_sub(LOOKUP_BYTES);
        let Some(probe_start) = self.tail.len().checked_sub(PROBE_BYTES) else { return };
        let from = probe_start.saturating_sub(CHANT_PERIOD_BYTES);
        let probe = &self.tail[probe_start..];
        // Overlaps are wanted: the occurrence need only begin before the probe. Forward is the fast way to see that
        // there is none; the last one gives the length of the passage.
        let before = &self.tail[from..self.tail.len() - 1];
        if memmem::find(before, probe).is_none() {
            return;
        }
        let Some(found) = memmem::rfind(before, probe) else { return };
        let period = probe_start - from - found;
        self.period = Some(period);
        self.is_prose = None;
        self.covered = period + PROBE_BYTES;
    }

    fn finding(&self, period: usize, rule: &ChantRule) -> Finding {
        let count = u32::try_from(self.covered / period).unwrap_or(u32::MAX);
        Finding {
            detector: Detector::Chant,
            mode: rule.common.mode,
            loop_type: "chant".into(),
            confidence: 1.0,
            score: f64::from(count),
            count,
            proof: Proof {
                summary: format!("The answer repeats one passage of {period} bytes {count} times"),
                compared: "text of the answer".into(),
                threshold: f64::from(rule.repeats),
                value: f64::from(count),
                window: format!("last {} bytes", self.covered),
                steps: Vec::new(),
            },
        }
    }
}

/// Letters, and spaces between them unless the script needs none: encoded data has no spaces, a table's rule no letters.
fn is_prose(passage: &[u8]) -> bool {
    let has_letter = passage.iter().any(u8::is_ascii_alphabetic);
    let has_space = passage.iter().any(u8::is_ascii_whitespace);
    let wide = String::from_utf8_lossy(passage).chars().any(|c| c.is_alphabetic() && !c.is_ascii());
    wide || has_letter && has_space
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::loops::Rules;

    fn rule() -> ChantRule {
        Rules::default().chant
    }

    /// Bytes heard when it trips.
    fn trips_at(text: &str) -> Option<usize> {
        let mut chant = Chant::default();
        let mut heard = 0;
        text.chars().find_map(|char| {
            heard += char.len_utf8();
            chant.feed(char.encode_utf8(&mut [0; 4]), &rule()).map(|_| heard)
        })
    }

    /// Different words, so many bytes in all.
    fn passage_of(bytes: usize) -> String {
        (0..200).map(|i| format!("w{i} ")).collect::<String>()[..bytes].to_owned()
    }

    #[test]
    fn a_passage_over_and_over_trips() {
        let verse = "The file does not exist. I will try again to open the file, since it should be there by now. ";
        let dashed = format!("{} and then once more\n", "-".repeat(60));
        let lines = format!("{}\n", "no ".repeat(27));
        let longest = passage_of(CHANT_PERIOD_BYTES);
        let table =
            [(verse, 40), ("the ", 700), ("我无法完成这个任务。", 120), (&*dashed, 60), (&*lines, 60), (&*longest, 40)];
        for (passage, times) in table {
            let text = format!("First something else. {}", passage.repeat(times));
            let at = trips_at(&text).unwrap_or_else(|| panic!("{passage:?}"));
            assert!(at >= 2000, "{passage:?} {at}");
        }
        let at = trips_at(&verse.repeat(40)).unwrap();
        assert!(at < verse.len() * 22, "not much later than the rule says: {at}");
    }

    #[test]
    fn what_is_no_chant_passes() {
        let rows: String = (0..400).map(|i| format!("| item {i} | {} | ready |\n", i * 7)).collect();
        let json: String = (0..300).map(|i| format!("{{\"id\": {i}, \"state\": \"open\"}}, ")).collect();
        let base64 = "iVBORw0KGgoAAAANSUhEUgAA".repeat(400);
        let too_long = passage_of(CHANT_PERIOD_BYTES + 1);
        let table = [
            ("ha ha ha ", 60),
            ("-", 9000),
            (" ", 9000),
            ("|---|---|\n", 900),
            ("0, ", 4000),
            ("    }\n", 900),
            (&*rows, 1),
            (&*json, 1),
            (&*base64, 1),
            (&*too_long, 40),
        ];
        for (passage, times) in table {
            assert_eq!(trips_at(&passage.repeat(times)), None, "{passage:?}");
        }
    }

    #[test]
    fn it_trips_once_and_not_at_all_when_off() {
        let text = "over and over again ".repeat(300);
        let mut chant = Chant::default();
        let finding = chant.feed(&text, &rule()).unwrap();
        assert_eq!((finding.detector, &*finding.loop_type), (Detector::Chant, "chant"));
        assert!(finding.count >= rule().repeats);
        assert_eq!(chant.feed(&text, &rule()), None);
        let mut off = rule();
        off.common.mode = Mode::Off;
        assert_eq!(Chant::default().feed(&text, &off), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut chant = Chant::default();
        for number in 0..20_000 {
            chant.feed(&format!("line {number} is new\n"), &rule());
        }
        assert!(chant.tail.capacity() <= 8 * KEPT_BYTES, "{}", chant.tail.capacity());
    }

    proptest! {
        #[test]
        fn the_pieces_make_no_difference(
            head in "[a-z ]{0,300}",
            passage in "[a-c ]{1,40}[a-z]",
            times in 0_usize..150,
            cuts in prop::collection::vec(1_usize..90, 1..40),
        ) {
            let text = format!("{head}{}", passage.repeat(times));
            let whole = Chant::default().feed(&text, &rule());
            let mut chant = Chant::default();
            let mut found = None;
            let mut rest = &*text;
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                found = found.or_else(|| chant.feed(piece, &rule()));
                rest = after;
            }
            prop_assert_eq!(found, whole);
        }
    }
}
