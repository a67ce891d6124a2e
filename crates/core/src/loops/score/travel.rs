//! The window of an agent's requests as bytes for another node, and back.

use super::{Request, ScoreWindow};
use crate::limits::SCORE_REQUESTS;
use crate::loops::packed::{Reader, bits, is_plausible, put_number, put_signed};
use crate::time::Timestamp;

impl ScoreWindow {
    /// Writes it down. Requests are told by how they differ from the one before.
    pub(in crate::loops) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.mode as u8, self.scope as u8]);
        put_number(bytes, self.requests.len() as u64);
        let mut before = Request::NONE;
        for request in &self.requests {
            request.write(&before, bytes);
            before = *request;
        }
    }

    /// Reads what was written; None where it holds more than is ever kept.
    pub(in crate::loops) fn read(reader: &mut Reader<'_>) -> Option<ScoreWindow> {
        let (mode, scope) = (reader.mode()?, reader.scope()?);
        let count = reader.count(SCORE_REQUESTS)?;
        let mut requests: Vec<Request> = Vec::with_capacity(count);
        for _ in 0..count {
            requests.push(Request::read(requests.last().unwrap_or(&Request::NONE), reader)?);
        }
        Some(ScoreWindow { mode, scope, requests })
    }
}

impl Request {
    /// Before the first one.
    const NONE: Request = Request {
        run: 0,
        at: Timestamp(0),
        prompt: 0,
        asked: 0,
        answer: None,
        step: 0,
        is_results: false,
        is_short: false,
    };

    fn write(&self, before: &Request, bytes: &mut Vec<u8>) {
        let (text, calls) = self.answer.unwrap_or_default();
        bytes.push(bits([
            self.is_results,
            self.is_short,
            self.answer.is_some(),
            calls != 0,
            self.run == before.run,
            self.prompt == before.prompt,
            self.asked == before.asked,
        ]));
        put_signed(bytes, self.at.0 - before.at.0);
        put_signed(bytes, i64::from(self.step) - i64::from(before.step));
        let mut put = |value: u64, is_told: bool| {
            if is_told {
                bytes.extend(value.to_le_bytes());
            }
        };
        put(self.run, self.run != before.run);
        put(self.prompt, self.prompt != before.prompt);
        put(self.asked, self.asked != before.asked);
        put(text, self.answer.is_some());
        put(calls, calls != 0);
    }

    fn read(before: &Request, reader: &mut Reader<'_>) -> Option<Request> {
        let flags = reader.byte();
        let is = |bit: u8| flags >> bit & 1 == 1;
        let at = Timestamp(before.at.0.checked_add(reader.signed())?);
        let step = u32::try_from(i64::from(before.step).checked_add(reader.signed())?).ok()?;
        let mut or_eight = |known: Option<u64>| known.unwrap_or_else(|| reader.eight());
        let run = or_eight(is(4).then_some(before.run));
        let prompt = or_eight(is(5).then_some(before.prompt));
        let asked = or_eight(is(6).then_some(before.asked));
        let answer = is(2).then(|| (or_eight(None), if is(3) { or_eight(None) } else { 0 }));
        let request = Request { run, at, prompt, asked, answer, step, is_results: is(0), is_short: is(1) };
        is_plausible(at).then_some(request)
    }
}
