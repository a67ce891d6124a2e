//! The record of a run's progress as bytes for another node, and back.

use super::{CALL_IDS, Oddities, PENDING, Pending, State, Thread, measured};
use crate::limits::PROGRESS_THREADS;
use crate::loops::evidence::{Action, Sketch};
use crate::loops::packed::{Reader, bits, put_number};
use crate::loops::progress::log::Log;
use crate::loops::progress::tool_names::ToolNames;

impl State {
    /// Writes it down.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.mode as u8);
        bytes.push(bits([self.has_new_work, self.oddities.is_some()]));
        put_number(bytes, u64::from(self.items));
        self.tool_names.write(bytes);
        self.steps.write(bytes);
        put_number(bytes, self.threads.len() as u64);
        self.threads.iter().for_each(|thread| thread.write(bytes));
        put_number(bytes, self.pending.len() as u64);
        self.pending.iter().for_each(|pending| pending.write(bytes));
        if let Some(oddities) = &self.oddities {
            oddities.write(bytes);
        }
    }

    /// Reads what was written; None where it holds more than is ever kept.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<State> {
        let mode = reader.mode()?;
        let flags = reader.byte();
        let items = reader.small()?;
        let tool_names = ToolNames::read(reader)?;
        let steps = Log::read(reader, &tool_names)?;
        let mut state = State { mode, items, tool_names, steps, has_new_work: flags & 1 == 1, ..State::default() };
        let threads = (0..reader.count(PROGRESS_THREADS)?).map(|_| Thread::read(reader)).collect::<Option<Vec<_>>>()?;
        state.threads.change(|list| *list = threads);
        let pending = (0..reader.count(PENDING)?).map(|_| Pending::read(reader)).collect::<Option<Vec<_>>>()?;
        state.pending.change(|list| *list = pending);
        if flags >> 1 & 1 == 1 {
            state.oddities = Some(Box::new(Oddities::read(reader)?));
        }
        Some(state)
    }
}

impl Oddities {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(bits([self.asked.is_some(), self.replaced.is_some()]));
        put_number(bytes, u64::from(self.asked_again));
        put_number(bytes, u64::from(self.compactions));
        bytes.extend([self.asked, self.replaced].into_iter().flatten().flat_map(u32::to_le_bytes));
    }

    fn read(reader: &mut Reader<'_>) -> Option<Oddities> {
        let flags = reader.byte();
        let (asked_again, compactions) = (reader.small()?, reader.small()?);
        let asked = (flags & 1 == 1).then(|| reader.four());
        let replaced = (flags >> 1 & 1 == 1).then(|| reader.four());
        Some(Oddities { asked, asked_again, compactions, replaced })
    }
}

impl Thread {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.key.to_le_bytes());
        put_number(bytes, u64::from(self.number) << 1 | u64::from(self.is_told));
        put_measured(self.text_bytes, self.text, bytes);
        put_number(bytes, u64::from(self.items));
        put_number(bytes, u64::from(self.since));
        if self.since > 0 {
            put_number(bytes, u64::from(self.missing_from));
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Thread> {
        let key = reader.four();
        let number = reader.number();
        let (text_bytes, text) = read_measured(reader)?;
        let is_told = number & 1 == 1;
        let (items, since) = (reader.small()?, reader.small()?);
        let missing_from = if since > 0 { reader.small()? } else { 0 };
        let number = u32::try_from(number >> 1).ok()?;
        Some(Thread { key, number, text_bytes, text, is_told, items, since, missing_from })
    }
}

impl Pending {
    fn write(&self, bytes: &mut Vec<u8>) {
        let Action { exact, masked, answer, tool, words, is_native, is_bare, is_wait } = self.action;
        let is_known = self.call_ids.map(|id| id != 0);
        bytes.push(bits([is_native, is_bare, is_wait, self.tool_name.is_some()]) | bits(is_known) << 4);
        put_number(bytes, u64::from(self.number));
        bytes.extend(self.thread.to_le_bytes());
        bytes.extend(exact.to_le_bytes());
        bytes.extend([masked, answer, tool].into_iter().flat_map(u16::to_le_bytes));
        bytes.extend(self.tool_name);
        bytes.extend(self.call_ids.into_iter().filter(|id| *id != 0).flat_map(u32::to_le_bytes));
        put_measured(self.text_bytes, self.text, bytes);
        words.pack_whole(bytes);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Pending> {
        let flags = reader.byte();
        let is = |bit: usize| flags >> bit & 1 == 1;
        let (number, thread) = (reader.small()?, reader.four());
        let mut action = Action {
            exact: reader.four(),
            masked: reader.two(),
            answer: reader.two(),
            tool: reader.two(),
            words: Sketch::default(),
            is_native: is(0),
            is_bare: is(1),
            is_wait: is(2),
        };
        let tool_name = is(3).then(|| reader.byte());
        let mut call_ids = [0; CALL_IDS];
        for (_, id) in call_ids.iter_mut().enumerate().filter(|(at, _)| is(4 + at)) {
            *id = reader.four();
        }
        let (text_bytes, text) = read_measured(reader)?;
        action.words = Sketch::unpack(reader);
        Some(Pending { number, thread, action, tool_name, call_ids, text_bytes, text })
    }
}

/// The length of a text and its hash, which for no text is always the same.
fn put_measured(text_bytes: u32, text: u32, bytes: &mut Vec<u8>) {
    put_number(bytes, u64::from(text_bytes));
    if text_bytes > 0 {
        bytes.extend(text.to_le_bytes());
    }
}

fn read_measured(reader: &mut Reader<'_>) -> Option<(u32, u32)> {
    match reader.small()? {
        0 => Some(measured("")),
        text_bytes => Some((text_bytes, reader.four())),
    }
}
