//! A conversation put together from the lines of a session log, with a request wherever the model spoke.
//!
//! Logs hold what was said, not what was sent: the request of an answer is everything before it. An answer may be
//! spread over several lines, with results of its first calls between them.

use serde_json::value::RawValue;
use sprag_core::limits::BODY_BYTES;
use sprag_core::time::Timestamp;
use sprag_core::wire::{Dialect, Tap};

use super::{Follow, Outcome, Replay, call_of};

/// One conversation of a log.
pub(super) struct Conversation<'a> {
    replay: &'a Replay,
    dialect: Dialect,
    follow: Follow<'a>,
    items: Vec<Box<RawValue>>,
    bytes: usize,
    answer: Option<Answer>,
    now: Timestamp,
}

/// An answer that may go on.
struct Answer {
    /// The provider's id of it, where the log has one.
    id: Option<String>,
    parts: Vec<Box<RawValue>>,
    usage: Option<Box<RawValue>>,
    /// What was given to the model after its first part.
    inputs: Vec<Box<RawValue>>,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(replay: &'a Replay, dialect: Dialect) -> Conversation<'a> {
        let follow = replay.follow();
        Conversation { replay, dialect, follow, items: Vec::new(), bytes: 0, answer: None, now: super::BEGINNING }
    }

    /// Something is given to the model.
    pub(super) fn input(&mut self, item: &RawValue, at: Option<Timestamp>) {
        self.tick(at);
        match &mut self.answer {
            Some(answer) => answer.inputs.push(item.to_owned()),
            None => self.push(item.to_owned()),
        }
    }

    /// The model says something. It goes on with the answer of the same id, or where there are no ids with one that
    /// nothing came after; anything else is an answer to a request of its own.
    pub(super) fn said(&mut self, id: Option<&str>, model: Option<&str>, part: &RawValue, at: Option<Timestamp>) {
        let goes_on = self.answer.as_ref().is_some_and(|answer| match (id, &answer.id) {
            (Some(id), Some(known)) => id == known,
            _ => answer.inputs.is_empty(),
        });
        if !goes_on {
            self.end_answer();
            let call = call_of(self.dialect, model, self.items.iter().map(AsRef::as_ref).collect());
            let end = if self.follow.is_stopped() { None } else { self.replay.history(&call).map(|h| h.end) };
            self.follow.arrive(&call, end, self.now);
        }
        self.tick(at);
        let new = || Answer { id: id.map(str::to_owned), parts: Vec::new(), usage: None, inputs: Vec::new() };
        self.answer.get_or_insert_with(new).parts.push(part.to_owned());
    }

    /// What the latest answer used.
    pub(super) fn used(&mut self, usage: &RawValue) {
        if let Some(answer) = &mut self.answer {
            answer.usage = Some(usage.to_owned());
        }
    }

    /// The history is rewritten: what came before is no longer sent.
    pub(super) fn restart(&mut self) {
        self.end_answer();
        self.items.clear();
        self.bytes = 0;
    }

    pub(super) fn finish(mut self) -> Outcome {
        self.end_answer();
        self.follow.finish()
    }

    fn tick(&mut self, at: Option<Timestamp>) {
        self.now = at.unwrap_or(self.now).max(self.now);
    }

    fn end_answer(&mut self) {
        let Some(answer) = self.answer.take() else { return };
        let parts = joined(&answer.parts);
        let usage = answer.usage.as_ref().map_or("null", |usage| usage.get());
        let name = if self.dialect == Dialect::Anthropic { "content" } else { "output" };
        let mut tap = Tap::new(self.dialect);
        tap.json(format!(r#"{{"{name}":[{parts}],"usage":{usage}}}"#).as_bytes());
        self.follow.depart(self.dialect, &tap.into_reply(), true, self.now);
        if self.dialect == Dialect::Anthropic {
            let message = RawValue::from_string(format!(r#"{{"role":"assistant","content":[{parts}]}}"#));
            message.into_iter().for_each(|message| self.push(message));
        } else {
            answer.parts.into_iter().for_each(|part| self.push(part));
        }
        answer.inputs.into_iter().for_each(|item| self.push(item));
    }

    /// Keeps an item. A request that the proxy would not take could not have been sent: what is older was left out.
    fn push(&mut self, item: Box<RawValue>) {
        self.bytes += item.get().len();
        if self.bytes > BODY_BYTES {
            self.items.clear();
            self.bytes = item.get().len();
        }
        self.items.push(item);
    }
}

fn joined(parts: &[Box<RawValue>]) -> String {
    parts.iter().map(|part| part.get()).collect::<Vec<&str>>().join(",")
}

#[cfg(test)]
mod tests {
    use sprag_core::loops::{Preset, Rules};
    use sprag_core::price::Prices;

    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn an_answer_goes_on_by_its_id_also_behind_a_result() {
        let replay = Replay::new(Rules::preset(Preset::Balanced), Prices::embedded(), false);
        let mut log = Conversation::new(&replay, Dialect::Anthropic);
        let block = raw(r#"{"type":"text","text":"x"}"#);
        let input = raw(r#"{"role":"user","content":"y"}"#);
        log.input(&input, None);
        for id in ["one", "one", "two"] {
            log.said(Some(id), None, &block, None);
            log.input(&input, None);
        }
        assert_eq!(log.items.len(), 4, "question, answer and two results stand in the request of the second answer");
        assert_eq!(log.finish().total.steps, 2);
    }

    #[test]
    fn a_request_that_is_too_large_loses_what_is_older() {
        let replay = Replay::new(Rules::preset(Preset::Balanced), Prices::embedded(), false);
        let mut log = Conversation::new(&replay, Dialect::Anthropic);
        let half = raw(&format!("\"{}\"", "x".repeat(BODY_BYTES / 2 - 2)));
        log.push(half.clone());
        log.push(half.clone());
        assert_eq!((log.items.len(), log.bytes), (2, BODY_BYTES), "at the bound");
        log.push(raw("1"));
        assert_eq!((log.items.len(), log.bytes), (1, 1), "one past it");
    }
}
