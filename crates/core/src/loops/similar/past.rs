//! What `similar` keeps of a run, as one record of bytes and spread out.

use std::borrow::Cow;

use super::super::Mode;
use super::super::packed::{Reader, put_number};

/// The last prompts and results, spread out. Prompts are some fifteen bytes and their words, and twenty more once they
/// are answered; results are two bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Past<'a> {
    pub(super) mode: Mode,
    /// Since the latest prompt there were results, and new ones among them.
    pub(super) has_results: bool,
    pub(super) has_new_results: bool,
    /// Results seen, newest last.
    pub(super) results: Vec<u16>,
    /// Newest last.
    pub(super) prompts: Vec<Asked<'a>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    pub(super) step: u32,
    /// Since the epoch.
    pub(super) second: u32,
    pub(super) answer: Option<Answered>,
    /// Packed.
    pub(super) words: Cow<'a, [u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) exact: u32,
    pub(super) calls: u32,
    /// Its lower and its upper half.
    pub(super) simhash: [u32; 2],
    pub(super) numbers: u32,
}

/// The bits of the first byte.
const MODE: u8 = 0b11;
const HAS_RESULTS: u8 = 1 << 2;
const HAS_NEW_RESULTS: u8 = 1 << 3;

/// The mode of a record; nothing is a record that is off.
pub(super) fn mode_of(bytes: &[u8]) -> Mode {
    match Reader::new(bytes).byte() & MODE {
        0 => Mode::Off,
        1 => Mode::Shadow,
        _ => Mode::Enforce,
    }
}

impl<'a> Past<'a> {
    pub(super) fn unpack(bytes: &'a [u8]) -> Past<'a> {
        let mut reader = Reader::new(bytes);
        let head = reader.byte();
        let results = (0..reader.byte()).map(|_| reader.two()).collect();
        let mut prompts = Vec::new();
        while !reader.is_at_end() {
            let length = reader.number() as usize;
            prompts.push(Asked::unpack(Reader::new(reader.take(length))));
        }
        Past {
            mode: mode_of(bytes),
            has_results: head & HAS_RESULTS != 0,
            has_new_results: head & HAS_NEW_RESULTS != 0,
            results,
            prompts,
        }
    }

    pub(super) fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.has_results, HAS_RESULTS) | flag(self.has_new_results, HAS_NEW_RESULTS);
        bytes.push(self.mode as u8 | flags);
        bytes.push(self.results.len() as u8);
        bytes.extend(self.results.iter().flat_map(|result| result.to_le_bytes()));
        let mut record = Vec::with_capacity(128);
        for asked in &self.prompts {
            record.clear();
            asked.pack(&mut record);
            put_number(&mut bytes, record.len() as u64);
            bytes.extend_from_slice(&record);
        }
        bytes
    }
}

impl<'a> Asked<'a> {
    fn unpack(mut reader: Reader<'a>) -> Asked<'a> {
        // Above the lowest bit, which says whether there is an answer.
        let number = reader.number();
        let second = reader.four();
        let answer = (number & 1 == 1).then(|| Answered {
            exact: reader.four(),
            calls: reader.four(),
            simhash: [reader.four(), reader.four()],
            numbers: reader.four(),
        });
        Asked { step: (number >> 1) as u32, second, answer, words: Cow::Borrowed(reader.rest()) }
    }

    fn pack(&self, bytes: &mut Vec<u8>) {
        put_number(bytes, u64::from(self.step) << 1 | u64::from(self.answer.is_some()));
        bytes.extend(self.second.to_le_bytes());
        if let Some(Answered { exact, calls, simhash: [low, high], numbers }) = self.answer {
            bytes.extend([exact, calls, low, high, numbers].into_iter().flat_map(u32::to_le_bytes));
        }
        bytes.extend_from_slice(&self.words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was() {
        assert_eq!(Past::unpack(&[]), Past::default());
        let answer = Answered { exact: 1, calls: 2, simhash: [3, u32::MAX], numbers: 5 };
        let asked = |step, answer, words: usize| {
            let words = Cow::Owned(vec![7; words]);
            Asked { step, second: 1_700_000_000, answer, words }
        };
        for (mode, has_results) in [(Mode::Off, false), (Mode::Shadow, true), (Mode::Enforce, false)] {
            let past = Past {
                mode,
                has_results,
                has_new_results: !has_results,
                results: vec![1, u16::MAX],
                prompts: vec![asked(1, None, 0), asked(u32::MAX, Some(answer), 200), asked(3, None, 1)],
            };
            let bytes = past.pack();
            assert_eq!(Past::unpack(&bytes), past);
            assert_eq!(mode_of(&bytes), mode);
        }
    }
}
