//! What is kept of a run to judge its progress: its last steps, its conversations, and answers not yet sent back.

mod merge;
mod travel;

use xxhash_rust::xxh3::xxh3_64;

use super::evidence::{Observation, StepEvidence};
use super::finding::{asked_again, compacted, stuck};
use super::judge::{Judgement, judge, kind_of};
use super::log::Log;
use super::tool_names::ToolNames;
use super::{Kind, Seen, Step};
use crate::limits::{PROGRESS_STEPS, PROGRESS_THREADS};
use crate::loops::attempts::Outcome as Before;
use crate::loops::bounded::{Few, push_bounded};
use crate::loops::evidence::{Action, Outcome, TELLING_BYTES};
use crate::loops::packed::narrow;
use crate::loops::seen_steps::SeenSteps;
use crate::loops::{Arrival, Departure, Mode, ProgressRule, ToolResult, Turn};

/// Answers that wait for the request that carries on.
const PENDING: usize = 4;
/// Calls of an answer that are known again by their ids.
const CALL_IDS: usize = 4;
/// A history of fewer items is not worth rewriting.
const COMPACTED_ITEMS: u32 = 6;

/// The record of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// What was seen in shadow is no evidence for enforcement.
    mode: Mode,
    steps: Log,
    threads: Few<Thread>,
    /// Oldest first.
    pending: Few<Pending>,
    tool_names: ToolNames,
    /// Few runs have any.
    oddities: Option<Box<Oddities>>,
    /// Items of the last request.
    items: u32,
    has_new_work: bool,
}

/// What a run does that does not simply go on.
#[derive(Clone, Copy, Debug, Default)]
struct Oddities {
    /// The conversation asked last, and how often it was asked again after an answer.
    asked: Option<u32>,
    asked_again: u32,
    /// Rewritings of the history without new work in between.
    compactions: u32,
    /// The conversation that the last of them seemed to replace.
    replaced: Option<u32>,
}

/// A conversation.
#[derive(Clone, Copy, Debug)]
struct Thread {
    key: u32,
    /// Its last request.
    number: u32,
    /// The text of its last request, where that was one text.
    text_bytes: u32,
    text: u32,
    /// Its last request told what the model had said: the next one will too, and needs no kept answer.
    is_told: bool,
    /// Items of its last request.
    items: u32,
    /// Its steps of an earlier number are no evidence for now: what came between is only known to another node. 0 where
    /// nothing is missing.
    since: u32,
    /// Its last request before what is missing.
    missing_from: u32,
}

/// An answer that no request has carried back yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u32,
    thread: u32,
    action: Action,
    tool_name: Option<u8>,
    call_ids: [u32; CALL_IDS],
    /// The answer's text, to be found again at the end of a transcript.
    text_bytes: u32,
    text: u32,
}

impl State {
    /// Looks at a request; `before` is what became of an earlier one with the same conversation.
    /// `shared` are the steps that this node has heard of, where others work on the run too.
    pub(crate) fn arrive(
        &mut self,
        arrival: &Arrival<'_>,
        before: Option<Before>,
        rule: &ProgressRule,
        shared: Option<&SeenSteps>,
    ) -> Seen {
        if self.mode != rule.common.mode {
            *self = State { mode: rule.common.mode, ..State::default() };
        }
        let mut observation = match before {
            Some(before) => self.ask_again(arrival, before),
            None => self.go_on(arrival, shared),
        };
        let mut seen = self.weigh(&mut observation, arrival.step, rule);
        seen.evidence = Some(StepEvidence::pack(&observation, arrival.step, &self.tool_names));
        seen
    }

    /// Judges what a request showed, and says of its step how it resembles those before it. Nothing else is looked at,
    /// so that a record of it is judged the same way.
    pub(super) fn weigh(&mut self, seen: &mut Observation, request: u32, rule: &ProgressRule) -> Seen {
        let (again, compactions) = (seen.asked_again, seen.compactions);
        if again > 0 {
            let finding = (again >= rule.asked_again).then(|| asked_again(again, request, rule));
            return Seen::new(finding, f64::from(again) / f64::from(rule.asked_again));
        }
        let rewritten = f64::from(compactions) / f64::from(rule.compactions);
        let is_churn = compactions > 0 && compactions >= rule.compactions;
        let compaction = is_churn.then(|| compacted(compactions, request.saturating_sub(1), rule));
        let Some(step) = &mut seen.step else {
            return if compactions > 0 { Seen::new(compaction, rewritten) } else { Seen::default() };
        };
        let kept = self.steps.steps(&self.tool_names);
        let (found, level) = {
            let since = self.thread(step.thread).map_or(0, |thread| thread.since);
            let past = window(&kept, step, since, rule);
            step.kind = kind_of(step, &past, rule);
            let mut steps = past;
            steps.push(step);
            let Judgement { stuck: found, level } = judge(&steps, rule);
            (found.map(|found| stuck(&found, &steps, &self.tool_names, rule)), level)
        };
        self.has_new_work |= step.action.is_call() && !kept.iter().any(|old| old.action.exact == step.action.exact);
        self.steps.push(step, &self.tool_names);
        Seen::new(found.or(compaction), level.max(rewritten))
    }

    /// The place of a tool's name that is on record.
    pub(super) fn place_tool(&mut self, name: &str) -> Option<u8> {
        self.tool_names.place(name)
    }

    /// Keeps an answer. Gives the hash of its trimmed text, where that was worked out.
    pub(crate) fn depart(&mut self, departure: &Departure<'_>) -> Option<u64> {
        let reply = departure.reply;
        if !departure.is_answered {
            return None;
        }
        let asked = self.threads.iter().find(|thread| thread.number == departure.step && !thread.is_told);
        let thread = asked.map(|thread| thread.key)?;
        let calls = reply.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str()));
        let text = reply.text.trim_ascii();
        let hash = xxh3_64(text.as_bytes());
        let (action, tool) = Action::read_hashed(&reply.text, hash, calls);
        let tool_name = tool.and_then(|name| self.tool_names.place(name));
        let mut call_ids = [0; CALL_IDS];
        for (slot, call) in call_ids.iter_mut().zip(&reply.tool_calls) {
            *slot = id_hash(&call.id);
        }
        let (text_bytes, text) = (u32::try_from(text.len()).unwrap_or(u32::MAX), narrow(hash));
        let number = departure.step;
        let answered = Pending { number, thread, action, tool_name, call_ids, text_bytes, text };
        self.pending.change(|pending| {
            pending.retain(|pending| pending.number != number);
            push_bounded(pending, answered, PENDING);
        });
        Some(hash)
    }

    /// Whether one of the last steps was a wait.
    pub(crate) fn is_waiting(&self) -> bool {
        self.steps.is_waiting()
    }

    /// Bytes kept beside the value itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.steps.heap_bytes()
            + size_of_val(&self.threads[..])
            + size_of_val(&self.pending[..])
            + self.tool_names.heap_bytes()
            + self.oddities.as_ref().map_or(0, |_| size_of::<Oddities>())
    }

    /// Steps, conversations and tool names that are kept.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        (self.steps.len(), self.threads.len(), self.tool_names.len())
    }

    /// A request that carries a conversation on, or begins one.
    fn go_on(&mut self, arrival: &Arrival<'_>, shared: Option<&SeenSteps>) -> Observation {
        let turn = arrival.turn;
        let answered = self.answered(turn);
        let key = answered.filter(|_| turn.said.is_none()).map_or(narrow(turn.opening), |pending| pending.thread);
        if let Some(used) = answered {
            // Older answers of the conversation have been carried back by now.
            let is_newer = |pending: &Pending| pending.thread != used.thread || pending.number >= used.number;
            self.pending.change(|pending| pending.retain(is_newer));
        }
        let thread = self.thread(key).copied();
        let is_broken = shared.is_some_and(|seen| !goes_on(arrival, thread.as_ref(), seen));
        // A conversation that another node knows is none that begins.
        let compactions = if is_broken { 0 } else { self.note_compaction(turn, key) };
        let mut step = self.finish(arrival, thread, answered, key);
        self.note_thread(key, arrival);
        if is_broken {
            // A kept answer may not be the one that was carried back.
            step = step.filter(|_| turn.said.is_some());
            let since = arrival.step.saturating_sub(1);
            if let Some(step) = &mut step {
                step.number = since;
            }
            let missing_from = match thread {
                Some(thread) if thread.since > 0 => thread.missing_from,
                Some(thread) => thread.number,
                None => 0,
            };
            self.threads.change(|threads| {
                let broken = threads.iter_mut().filter(|thread| thread.key == key);
                broken.for_each(|thread| (thread.since, thread.missing_from) = (since, missing_from));
            });
        }
        Observation { step, compactions, ..Observation::default() }
    }

    /// The same conversation again. Where the earlier request was not answered that is a retry; where it was, the
    /// client wants another answer, which only means something when it never ends.
    fn ask_again(&mut self, arrival: &Arrival<'_>, before: Before) -> Observation {
        self.note_thread(narrow(arrival.turn.opening), arrival);
        if before != Before::Answered {
            return Observation { is_retry: true, ..Observation::default() };
        }
        let end = arrival.end.map(narrow);
        let known = self.oddities.get_or_insert_default();
        if known.asked != end {
            (known.asked, known.asked_again) = (end, 0);
        }
        known.asked_again = known.asked_again.saturating_add(1);
        Observation { asked_again: known.asked_again, ..Observation::default() }
    }

    /// The kept answer that a request without history carries on.
    fn answered(&self, turn: &Turn<'_>) -> Option<Pending> {
        let mut newest_first = self.pending.iter().rev();
        if turn.said.is_some() {
            return None;
        }
        if !turn.results.is_empty() {
            let answers = |result: &ToolResult<'_>, pending: &Pending| {
                !result.call_id.is_empty() && pending.call_ids.contains(&id_hash(&result.call_id))
            };
            return newest_first.find(|pending| turn.results.iter().any(|result| answers(result, pending))).copied();
        }
        let carries =
            |pending: &Pending| self.thread(pending.thread).is_some_and(|thread| carries(turn, thread, pending));
        newest_first
            .find(|pending| turn.is_continued || pending.thread == narrow(turn.opening) || carries(pending))
            .copied()
    }

    /// The step that this request finishes, if it finishes one.
    fn finish(
        &mut self,
        arrival: &Arrival<'_>,
        thread: Option<Thread>,
        answered: Option<Pending>,
        key: u32,
    ) -> Option<Step> {
        let turn = arrival.turn;
        let (action, tool_name, number, outcome);
        if let Some(said) = &turn.said {
            let calls = said.calls.iter().map(|call| (call.name.as_ref(), call.arguments.as_ref()));
            let (read, tool) = Action::read(&said.text, calls);
            tool_name = tool.and_then(|name| self.tool_names.place(name));
            number = thread.map_or(arrival.step.saturating_sub(1), |thread| thread.number);
            (action, outcome) = (read, read_outcome(turn, &turn.user_text));
        } else {
            let pending = answered?;
            let text = if turn.results.is_empty() && !turn.is_continued {
                {
                    let new = gained(turn, &thread?)?;
                    behind(new, &pending).unwrap_or(new)
                }
            } else {
                &turn.user_text
            };
            (action, tool_name, number) = (pending.action, pending.tool_name, pending.number);
            outcome = read_outcome(turn, text);
        }
        let kind = Kind::New;
        Some(Step { number, at: arrival.now, thread: key, action, outcome, kind, tool_name, has_words: true })
    }

    fn thread(&self, key: u32) -> Option<&Thread> {
        self.threads.iter().find(|thread| thread.key == key)
    }

    fn note_thread(&mut self, key: u32, arrival: &Arrival<'_>) {
        let turn = arrival.turn;
        let is_text = turn.said.is_none() && turn.results.is_empty();
        let (text_bytes, text) = match is_text {
            true => (u32::try_from(turn.user_text.len()).unwrap_or(u32::MAX), narrow(turn.user_text_hash())),
            false => measured(""),
        };
        let is_told = turn.said.is_some();
        if is_told && !self.pending.is_empty() {
            self.pending.change(|pending| pending.retain(|pending| pending.thread != key));
        }
        let items = u32::try_from(turn.items).unwrap_or(u32::MAX);
        let (since, missing_from) = self.thread(key).map_or((0, 0), |thread| (thread.since, thread.missing_from));
        let latest = Thread { key, number: arrival.step, text_bytes, text, is_told, items, since, missing_from };
        self.threads.change(|threads| {
            threads.retain(|thread| thread.key != key);
            push_bounded(threads, latest, PROGRESS_THREADS);
        });
        self.items = items;
    }

    /// A conversation that begins anew and much shorter than the last request was: the history was rewritten. Gives
    /// how often that happened without new work in between, and 0 where it did not happen.
    fn note_compaction(&mut self, turn: &Turn<'_>, key: u32) -> u32 {
        let items = u32::try_from(turn.items).unwrap_or(u32::MAX);
        let is_known = self.threads.iter().any(|thread| thread.key == key);
        if let Some(known) = self.oddities.as_mut().filter(|known| is_known && known.replaced == Some(key)) {
            // It goes on: the other one was a conversation beside it.
            (known.compactions, known.replaced) = (0, None);
        }
        if is_known || turn.is_continued || self.items < COMPACTED_ITEMS || items > self.items / 2 {
            return 0;
        }
        let known = self.oddities.get_or_insert_default();
        known.compactions = if self.has_new_work { 0 } else { known.compactions.saturating_add(1) };
        self.has_new_work = false;
        known.replaced = self.threads.last().map(|thread| thread.key);
        known.compactions
    }
}

/// Whether a request follows upon the last one that this node knows of its conversation, where others work on the run
/// too. One that is under way elsewhere may be of another conversation: what the model answered here tells.
fn goes_on(arrival: &Arrival<'_>, thread: Option<&Thread>, seen: &SeenSteps) -> bool {
    let turn = arrival.turn;
    let Some(thread) = thread else { return seen.has_all_before(arrival.step) };
    if seen.has_all_between(thread.number, arrival.step) {
        return true;
    }
    match turn.said {
        Some(_) => turn.items - turn.new_items.min(turn.items) == thread.items as usize,
        None => turn.results.iter().any(|result| !result.call_id.is_empty()),
    }
}

/// The steps of one conversation that are looked at; those before `since` are not.
fn window<'s>(kept: &'s [Step], latest: &Step, since: u32, rule: &ProgressRule) -> Vec<&'s Step> {
    let (window, now) = (rule.common.window, latest.at);
    let most = if window.requests == 0 { PROGRESS_STEPS } else { window.requests as usize };
    let is_recent = |step: &&Step| window.seconds == 0 || now.since_ms(step.at) <= u64::from(window.seconds) * 1000;
    let of_thread = kept.iter().rev().filter(|step| step.thread == latest.thread && step.number >= since);
    let mut steps: Vec<&Step> = of_thread.take(most.saturating_sub(1)).filter(is_recent).collect();
    steps.reverse();
    steps
}

/// What a text has gained. None where it does not continue the earlier one.
fn gained<'t>(turn: &'t Turn<'_>, thread: &Thread) -> Option<&'t str> {
    let (before, new) = turn.user_text.split_at_checked(thread.text_bytes as usize)?;
    let goes_on = thread.text_bytes > 0 && !new.is_empty() && measured(before).1 == thread.text;
    goes_on.then(|| new.trim_ascii_start())
}

/// What stands behind the answer, where a text begins with it.
fn behind<'t>(new: &'t str, answered: &Pending) -> Option<&'t str> {
    let (said, rest) = new.split_at_checked(answered.text_bytes as usize)?;
    (!said.is_empty() && measured(said).1 == answered.text).then_some(rest)
}

/// Whether a text is an earlier one with its answer behind it: a transcript that grows.
fn carries(turn: &Turn<'_>, thread: &Thread, answered: &Pending) -> bool {
    gained(turn, thread).is_some_and(|new| behind(new, answered).is_some())
}

/// Results in the order of the calls that they answer: clients send them in any.
fn read_outcome(turn: &Turn<'_>, user_text: &str) -> Outcome {
    let calls = turn.said.as_ref().map_or(&[][..], |said| &said.calls);
    let mut results: Vec<&ToolResult<'_>> = turn.results.iter().collect();
    if results.len() > 1 {
        results.sort_by_cached_key(|result| {
            let call = calls.iter().find(|call| !call.id.is_empty() && call.id == result.call_id);
            let name = call.map_or((result.name.as_ref(), ""), |call| (call.name.as_ref(), call.arguments.as_ref()));
            (xxh3_64(name.0.as_bytes()), xxh3_64(name.1.as_bytes()), xxh3_64(result.text.as_bytes()))
        });
    }
    let is_error = results.iter().any(|result| result.is_error);
    let mut outcome =
        Outcome::read(results.iter().map(|result| result.text.as_ref()).chain(std::iter::once(user_text)), is_error);
    // What a client adds to every result does not make "ok" say more.
    let is_short = results.iter().map(|result| result.text.len()).sum::<usize>() < TELLING_BYTES;
    outcome.is_telling &= results.is_empty() || !is_short || outcome.failure != 0;
    outcome
}

/// How long a text is, and its hash.
fn measured(text: &str) -> (u32, u32) {
    (u32::try_from(text.len()).unwrap_or(u32::MAX), narrow(xxh3_64(text.as_bytes())))
}

fn id_hash(id: &str) -> u32 {
    if id.is_empty() { 0 } else { narrow(xxh3_64(id.as_bytes())) }
}
