//! The forms of a line in the spool: a whole event, the money of one, or a call that begins.
//!
//! The short form of an event is for when there is no room: it keeps what the totals are made of and drops the rest.

use serde::{Deserialize, Serialize};
use sprag_core::event::{Ending, Event, EventKind, RunRecord};
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;

use super::open_calls::OpenCall;

/// What the totals need of an event.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Money {
    id: String,
    at: Timestamp,
    agent: AgentName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunRecord>,
    #[serde(default, skip_serializing_if = "is_zero")]
    ms: u32,
    ending: Ending,
    /// Tokens, in the order of the fields of [`Usage`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<([u64; 8], bool)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<NanoUsd>,
    #[serde(default, skip_serializing_if = "is_false")]
    unpriced: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    blocked: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum LineOut {
    Money(Money),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum LineIn {
    Event(Box<Event>),
    Money(Box<Money>),
    Open(Box<OpenCall>),
}

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    /// A request is over, or something was done.
    Event(Box<Event>),
    /// A call begins that money is set aside for.
    Open(Box<OpenCall>),
}

/// Replaces the buffer's content by the whole event and a line end. False if it cannot be written as JSON.
pub(super) fn write_event(line: &mut Vec<u8>, event: &Event) -> bool {
    line.clear();
    line.extend_from_slice(b"{\"event\":");
    let written = event.write_json(line);
    line.extend_from_slice(b"}\n");
    written
}

/// Replaces the buffer's content by the beginning of a call and a line end. False if it cannot be written as JSON.
pub(super) fn write_open(line: &mut Vec<u8>, call: &OpenCall) -> bool {
    line.clear();
    line.extend_from_slice(b"{\"open\":");
    let written = call.write_json(line).is_ok();
    line.extend_from_slice(b"}\n");
    written
}

/// Replaces the buffer's content by the event's money and a line end. False if no total depends on it. The end of a call
/// that is `open` on record always counts: without it the call would be charged what was set aside for it.
pub(super) fn write_money(line: &mut Vec<u8>, event: &Event, is_open: bool) -> bool {
    // An act counts nowhere, and what it changed is kept elsewhere too.
    if event.act.is_some() {
        return false;
    }
    if !is_open && event.run.is_none() && event.cost.is_none() && event.usage.is_none() && !event.unpriced {
        return false;
    }
    write_line(line, &LineOut::Money(Money::of(event)))
}

/// Reads a line back. An event of the short form has an empty path and provider.
pub(super) fn read_line(line: &[u8]) -> Option<Line> {
    match serde_json::from_slice(line).ok()? {
        LineIn::Event(event) => Some(Line::Event(event)),
        LineIn::Money(money) => Some(Line::Event(Box::new(money.into_event()))),
        LineIn::Open(call) => Some(Line::Open(call)),
    }
}

impl Money {
    fn of(event: &Event) -> Money {
        Money {
            id: event.id.clone(),
            at: event.at,
            agent: event.agent.clone(),
            key: event.key.clone(),
            run: event.run.clone(),
            ms: event.total_ms,
            ending: event.ending,
            usage: event.usage.map(|u| {
                let counts = [
                    u.input,
                    u.cache_read,
                    u.cache_write,
                    u.cache_write_1h,
                    u.output,
                    u.reasoning,
                    u.audio_input,
                    u.audio_output,
                ];
                (counts, u.estimated)
            }),
            cost: event.cost,
            unpriced: event.unpriced,
            blocked: event.blocked,
        }
    }

    fn into_event(self) -> Event {
        let kind = if self.usage.is_some() { EventKind::LlmCall } else { EventKind::Request };
        Event {
            agent: self.agent,
            key: self.key,
            run: self.run,
            ending: self.ending,
            total_ms: self.ms,
            usage: self.usage.map(|(counts, estimated)| {
                let [input, cache_read, cache_write, cache_write_1h, output, reasoning, audio_input, audio_output] =
                    counts;
                Usage {
                    input,
                    cache_read,
                    cache_write,
                    cache_write_1h,
                    output,
                    reasoning,
                    audio_input,
                    audio_output,
                    estimated,
                }
            }),
            cost: self.cost,
            unpriced: self.unpriced,
            blocked: self.blocked,
            ..Event::new(self.id, self.at, kind)
        }
    }
}

fn write_line(line: &mut Vec<u8>, content: &LineOut) -> bool {
    line.clear();
    let written = serde_json::to_writer(&mut *line, content).is_ok();
    line.push(b'\n');
    written
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::samples::{request, step};

    #[test]
    fn a_whole_event_comes_back_as_it_was() {
        let mut line = Vec::new();
        let event = step("1", "r", 1);
        assert!(write_event(&mut line, &event));
        assert_eq!(line.iter().filter(|&&b| b == b'\n').count(), 1);
        assert_eq!(read_line(&line), Some(Line::Event(Box::new(event))));
    }

    #[test]
    fn the_short_form_keeps_what_totals_need() {
        let mut line = Vec::new();
        let event = Event { key: Some("key-abcdefgh".into()), ..step("1", "r", 1) };
        assert!(write_event(&mut line, &event));
        let whole = line.len();
        assert!(write_money(&mut line, &event, false));
        assert!(line.len() * 2 < whole, "{} of {whole}", line.len());
        let Some(Line::Event(back)) = read_line(&line) else { panic!("no event") };
        assert_eq!(
            (back.id, back.at, back.agent, back.key, back.run, back.usage, back.cost, back.total_ms),
            (event.id, event.at, event.agent, event.key, event.run, event.usage, event.cost, event.total_ms)
        );
        assert_eq!(back.path, "");
    }

    #[test]
    fn an_event_without_run_and_money_has_no_short_form() {
        let mut line = Vec::new();
        assert!(!write_money(&mut line, &request("1"), false));
        assert!(write_money(&mut line, &Event { unpriced: true, ..request("1") }, false));
        assert!(write_money(&mut line, &request("1"), true), "unless money was set aside for it");
    }

    #[test]
    fn half_a_line_is_nothing() {
        let mut line = Vec::new();
        assert!(write_event(&mut line, &step("1", "r", 1)));
        assert_eq!(read_line(&line[..line.len() / 2]), None);
        assert_eq!(read_line(b"\n"), None);
    }
}
