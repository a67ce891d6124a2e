//! The last steps of a run, packed: some 25 bytes each, and the words of the latest ones.

use super::tool_names::ToolNames;
use super::{Kind, Step};
use crate::limits::{PROGRESS_STEPS, PROGRESS_WORDED};
use crate::loops::evidence::{Action, NUMBERS, Outcome, Sketch, tool_hash};
use crate::loops::packed::{Kept, Reader, put_number, put_signed};
use crate::time::Timestamp;

/// Steps back that a wait may lie for the agent to be waiting, as bits.
const WAITING_STEPS: u8 = 0b1111;

/// Beside the place of a name: it does not tell which tool was called, which follows.
const ALONE: u8 = 0x80;

/// Steps, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// Numbers and moments are told by how far they lie behind the step before.
    steps: Kept,
    /// The words of the last steps.
    words: Kept,
    count: u8,
    /// Which of the last steps were waits, the latest lowest.
    waits: u8,
    /// Of the latest step.
    number: u32,
    second: u32,
    thread: u32,
}

/// What a step is besides its hashes, as bits.
mod flag {
    pub(super) const NATIVE: u16 = 1;
    pub(super) const BARE: u16 = 1 << 1;
    pub(super) const WAIT: u16 = 1 << 2;
    pub(super) const TELLING: u16 = 1 << 3;
    pub(super) const NOTHING: u16 = 1 << 4;
    pub(super) const SHORT: u16 = 1 << 5;
    pub(super) const WAITING: u16 = 1 << 6;
    pub(super) const DIGIT: u16 = 1 << 7;
    pub(super) const CALL: u16 = 1 << 8;
    pub(super) const NAMED: u16 = 1 << 9;
    pub(super) const FAILED: u16 = 1 << 10;
    pub(super) const COUNTED: u16 = 1 << 11;
    /// The next step is of another conversation, or of none that is kept.
    pub(super) const OTHER_THREAD: u16 = 1 << 12;
    /// The kind of the step lies above.
    pub(super) const KIND: u32 = 13;
}

impl Log {
    /// Adds a step; the oldest leaves where there are too many. `names` are those of the tools.
    pub(super) fn push(&mut self, step: &Step, names: &ToolNames) {
        let second = u32::try_from(step.at.0 / 1000).unwrap_or(0);
        let mut bytes = Vec::with_capacity(64);
        let gap = Gap {
            numbers: i64::from(step.number) - i64::from(self.number),
            seconds: i64::from(second) - i64::from(self.second),
            thread: (step.thread != self.thread).then_some(self.thread),
        };
        pack(step, &gap, names, &mut bytes);
        let is_full = usize::from(self.count) == PROGRESS_STEPS;
        append(&mut self.steps, &bytes, is_full, |reader| {
            unpack(reader, names);
        });

        bytes.clear();
        pack_words(step.action.is_native, &step.action.words, &step.outcome.words, &mut bytes);
        let is_full = usize::from(self.count) >= PROGRESS_WORDED;
        append(&mut self.words, &bytes, is_full, |reader| {
            Sketch::unpack(reader);
            Sketch::unpack(reader);
        });
        self.count = (self.count + 1).min(PROGRESS_STEPS as u8);
        self.waits = self.waits << 1 | u8::from(step.is_waiting());
        (self.number, self.second, self.thread) = (step.number, second, step.thread);
    }

    /// All steps, oldest first. Moments are known to the second.
    pub(super) fn steps(&self, names: &ToolNames) -> Vec<Step> {
        let mut steps = Vec::with_capacity(usize::from(self.count) + 1);
        let mut gaps = [Gap::default(); PROGRESS_STEPS];
        let mut reader = Reader::new(self.steps.bytes());
        for gap in gaps.iter_mut().take(usize::from(self.count)) {
            let (step, before) = unpack(&mut reader, names);
            steps.push(step);
            *gap = before;
        }
        let (mut number, mut second, mut thread) = (i64::from(self.number), i64::from(self.second), self.thread);
        for (step, gap) in steps.iter_mut().zip(gaps).rev() {
            step.number = u32::try_from(number).unwrap_or(0);
            step.at = Timestamp(second * 1000);
            step.thread = thread;
            number -= gap.numbers;
            second -= gap.seconds;
            thread = gap.thread.unwrap_or(thread);
        }
        let mut reader = Reader::new(self.words.bytes());
        let unworded = steps.len().saturating_sub(PROGRESS_WORDED);
        for step in &mut steps[unworded..] {
            step.action.words = Sketch::unpack(&mut reader);
            step.outcome.words = Sketch::unpack(&mut reader);
            step.has_words = true;
        }
        steps
    }

    /// Writes it down for another node.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.count, self.waits]);
        put_number(bytes, u64::from(self.number));
        bytes.extend(self.second.to_le_bytes());
        bytes.extend(self.thread.to_le_bytes());
        bytes.extend_from_slice(self.steps.bytes());
        bytes.extend_from_slice(self.words.bytes());
    }

    /// Reads what was written; None where it holds more than is ever kept.
    pub(super) fn read(reader: &mut Reader<'_>, names: &ToolNames) -> Option<Log> {
        let count = reader.count(PROGRESS_STEPS)?;
        let (waits, number, second, thread) = (reader.byte(), reader.small()?, reader.four(), reader.four());
        let mut log = Log { count: count as u8, waits, number, second, thread, ..Log::default() };
        let (mut bytes, mut natives) = (Vec::with_capacity(1024), [false; PROGRESS_STEPS]);
        for native in natives.iter_mut().take(count) {
            let (step, gap) = unpack(reader, names);
            if [gap.numbers, gap.seconds].iter().any(|gap| gap.unsigned_abs() > u64::from(u32::MAX)) {
                return None;
            }
            *native = step.action.is_native;
            pack(&step, &gap, names, &mut bytes);
        }
        log.steps.set(&bytes);
        bytes.clear();
        for is_native in &natives[count.saturating_sub(PROGRESS_WORDED)..count] {
            let (action, outcome) = (Sketch::unpack(reader), Sketch::unpack(reader));
            pack_words(*is_native, &action, &outcome, &mut bytes);
        }
        log.words.set(&bytes);
        Some(log)
    }

    /// Whether one of the last steps was a wait.
    pub(super) fn is_waiting(&self) -> bool {
        self.waits & WAITING_STEPS != 0
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Bytes kept beside the value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.steps.heap_bytes() + self.words.heap_bytes()
    }
}

/// How far a step lies behind the one before it, and the conversation of that one, where it is another.
#[derive(Clone, Copy, Default)]
pub(super) struct Gap {
    pub(super) numbers: i64,
    pub(super) seconds: i64,
    pub(super) thread: Option<u32>,
}

/// Writes a step down, without its words. Its own number, moment and conversation are only told by the gap.
pub(super) fn pack(step: &Step, gap: &Gap, names: &ToolNames, bytes: &mut Vec<u8>) {
    let other_thread = if gap.thread.is_some() { flag::OTHER_THREAD } else { 0 };
    bytes.extend((flags(step) | other_thread).to_le_bytes());
    put_signed(bytes, gap.numbers);
    put_signed(bytes, gap.seconds);
    bytes.extend(gap.thread.iter().flat_map(|thread| thread.to_le_bytes()));
    pack_action(&step.action, step.tool_name, names, bytes);
    pack_outcome(&step.outcome, bytes);
}

/// Writes down the words of a step. Those of a native result are only ever compared, and a sample does.
fn pack_words(is_native: bool, action: &Sketch, outcome: &Sketch, bytes: &mut Vec<u8>) {
    action.pack(bytes);
    if is_native {
        outcome.pack_sample(bytes);
    } else {
        outcome.pack(bytes);
    }
}

/// Adds a record. Where there is no room the oldest goes: what `skip` reads.
fn append(records: &mut Kept, record: &[u8], is_full: bool, skip: impl FnOnce(&mut Reader<'_>)) {
    let mut kept = Reader::new(records.bytes());
    if is_full {
        skip(&mut kept);
    }
    let gone = records.bytes().len() - kept.rest().len();
    records.shift(gone, record);
}

fn flags(step: &Step) -> u16 {
    let Step { action, outcome, .. } = step;
    let flags = [
        (action.is_native, flag::NATIVE),
        (action.is_bare, flag::BARE),
        (action.is_wait, flag::WAIT),
        (outcome.is_telling, flag::TELLING),
        (outcome.is_nothing, flag::NOTHING),
        (outcome.is_short, flag::SHORT),
        (outcome.is_waiting, flag::WAITING),
        (outcome.has_digit, flag::DIGIT),
        (action.is_call(), flag::CALL),
        (step.tool_name.is_some(), flag::NAMED),
        (outcome.failure != 0, flag::FAILED),
        (outcome.left.is_some(), flag::COUNTED),
    ];
    flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum::<u16>() | (step.kind as u16) << flag::KIND
}

fn pack_action(action: &Action, tool_name: Option<u8>, names: &ToolNames, bytes: &mut Vec<u8>) {
    bytes.extend(action.exact.to_le_bytes());
    bytes.extend(action.masked.to_le_bytes());
    bytes.extend(action.answer.to_le_bytes());
    // The name alone tells which tool it is, unless it is cut or there are several.
    let is_told = tool_name.and_then(|place| names.get(place)).is_some_and(|name| tool_hash(name) == action.tool);
    bytes.extend(tool_name.map(|place| if is_told { place } else { place | ALONE }));
    if action.is_call() && !is_told {
        bytes.extend(action.tool.to_le_bytes());
    }
}

fn pack_outcome(outcome: &Outcome, bytes: &mut Vec<u8>) {
    bytes.extend(outcome.exact.to_le_bytes());
    bytes.extend(outcome.masked.to_le_bytes());
    if outcome.failure != 0 {
        bytes.extend(outcome.failure.to_le_bytes());
    }
    if let Some(left) = outcome.left {
        put_number(bytes, u64::from(left));
    }
    if outcome.has_digit {
        let count = usize::from(outcome.number_count);
        bytes.push(count.min(NUMBERS + 1) as u8);
        // Of too many numbers none is followed.
        for number in outcome.numbers.iter().take(if count > NUMBERS { 0 } else { count }) {
            put_number(bytes, u64::from(*number));
        }
    }
}

/// Reads what was written.
pub(super) fn unpack(reader: &mut Reader<'_>, names: &ToolNames) -> (Step, Gap) {
    let flags = reader.two();
    let is = |flag: u16| flags & flag != 0;
    let (numbers, seconds) = (reader.signed(), reader.signed());
    let thread = is(flag::OTHER_THREAD).then(|| reader.four());
    let (exact, masked, answer) = (reader.four(), reader.two(), reader.two());
    let place = is(flag::NAMED).then(|| reader.byte());
    let tool = match place {
        Some(place) if place & ALONE == 0 => names.get(place).map_or(0, tool_hash),
        _ if is(flag::CALL) => reader.two(),
        _ => 0,
    };
    let action = Action {
        exact,
        masked,
        answer,
        tool,
        words: Sketch::default(),
        is_native: is(flag::NATIVE),
        is_bare: is(flag::BARE),
        is_wait: is(flag::WAIT),
    };
    let tool_name = place.map(|place| place & !ALONE);
    let mut outcome = Outcome {
        exact: reader.four(),
        masked: reader.two(),
        failure: if is(flag::FAILED) { reader.two() } else { 0 },
        left: is(flag::COUNTED).then(|| reader.number() as u32),
        is_telling: is(flag::TELLING),
        is_nothing: is(flag::NOTHING),
        is_short: is(flag::SHORT),
        is_waiting: is(flag::WAITING),
        has_digit: is(flag::DIGIT),
        ..Outcome::default()
    };
    if outcome.has_digit {
        outcome.number_count = reader.byte();
        let count = usize::from(outcome.number_count);
        for number in outcome.numbers.iter_mut().take(if count > NUMBERS { 0 } else { count }) {
            *number = reader.number() as u32;
        }
    }
    let kind = Kind::ALL[usize::from(flags >> flag::KIND)];
    let step = Step { number: 0, at: Timestamp(0), thread: 0, action, outcome, kind, tool_name, has_words: false };
    (step, Gap { numbers, seconds, thread })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn step(number: u32, calls: &[(&str, &str)], text: &str, result: &str) -> Step {
        let (action, tool) = Action::read(text, calls.iter().copied());
        Step {
            number,
            at: Timestamp(i64::from(number) * 7000),
            thread: number / 3,
            action,
            outcome: Outcome::read(std::iter::once(result), number.is_multiple_of(5)),
            kind: Kind::ALL[number as usize % 8],
            tool_name: tool.map(|_| 3),
            has_words: true,
        }
    }

    proptest! {
        #[test]
        fn steps_come_back_as_they_were(
            texts in prop::collection::vec(("[a-z ]{0,40}", "[a-z0-9 .:]{0,90}", any::<bool>()), 1..40),
        ) {
            let mut log = Log::default();
            let mut names = ToolNames::default();
            let mut all = Vec::new();
            for (number, (said, result, is_call)) in (1..).zip(&texts) {
                let call = [("grep", said.as_str())];
                let mut step = step(number, if *is_call { &call } else { &[] }, said, result);
                // Some names tell which tool it is, others do not.
                step.tool_name = step.tool_name.and_then(|_| names.place(["grep", "gr"][number as usize % 2]));
                log.push(&step, &names);
                all.push(step);
            }
            let kept = log.steps(&names);
            prop_assert_eq!(kept.len(), all.len().min(PROGRESS_STEPS));
            for (back, (kept, step)) in kept.iter().rev().zip(all.iter().rev()).enumerate() {
                prop_assert_eq!((kept.number, kept.at, kept.thread), (step.number, step.at, step.thread));
                prop_assert_eq!((kept.kind, kept.tool_name), (step.kind, step.tool_name));
                prop_assert_eq!(kept.has_words, back < PROGRESS_WORDED);
                let (mut action, mut outcome) = (step.action, step.outcome);
                if !kept.has_words {
                    (action.words, outcome.words) = Default::default();
                }
                outcome.number_count = outcome.number_count.min(NUMBERS as u8 + 1);
                if usize::from(outcome.number_count) > NUMBERS {
                    outcome.numbers = Default::default();
                }
                prop_assert_eq!(kept.action, action);
                if !step.action.is_native {
                    prop_assert_eq!(kept.outcome, outcome);
                } else if kept.has_words {
                    prop_assert!(kept.outcome.words.likeness(&step.outcome.words) > 0.99);
                }
            }
        }
    }
}
