//! The last prompts of a run and what was answered: what `exact` and `oscillation` look at.

mod merge;

use super::packed::{Kept, Reader, bits, is_plausible, narrow, put_number, put_signed};
use super::prompt::{Answer, Prompt};
use super::seen_steps::SeenSteps;
use super::{Mode, PromptScope};
use crate::limits::RUN_PROMPTS;
use crate::time::Timestamp;

/// The last prompts, newest last. They lie packed: some ten bytes each.
#[derive(Clone, Debug, Default)]
pub(super) struct Trail {
    packed: Kept,
    count: u8,
    scope: PromptScope,
    /// Prompts that have left.
    gone: u32,
}

/// One prompt and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footprint {
    /// Of the earlier ones, to the second.
    pub(super) at: Timestamp,
    pub(super) step: u32,
    pub(super) prompt: u32,
    /// 0: none yet, or one that is no evidence.
    pub(super) answer: u32,
    /// How the conversation begins, where the prompt is its first; else 0.
    opening: u16,
    pub(super) is_results: bool,
    pub(super) is_short: bool,
    pub(super) is_short_answer: bool,
}

/// From where on the trail is evidence for one detector: what it saw in another mode is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Since {
    mode: Mode,
    from: u32,
}

impl Footprint {
    /// The same prompt. What begins a conversation is the same only where the conversations begin alike: one document
    /// may be given to several agents with different instructions.
    pub(super) fn is_same(&self, other: &Footprint) -> bool {
        let begins_alike = self.opening == 0 || other.opening == 0 || self.opening == other.opening;
        self.prompt == other.prompt && self.is_results == other.is_results && begins_alike
    }
}

impl Trail {
    /// Adds a prompt, and lets the oldest go where there are more than `most`. Gives all that are kept, the new one
    /// last. `prompt` is None where the request repeats the prompt before.
    pub(super) fn push(
        &mut self,
        step: u32,
        at: Timestamp,
        prompt: Option<&Prompt<'_>>,
        most: usize,
    ) -> Option<Vec<Footprint>> {
        let mut steps = self.unpack();
        let footprint = match (prompt, steps.last()) {
            (Some(prompt), _) => Footprint {
                at,
                step,
                prompt: narrow(prompt.exact),
                answer: 0,
                opening: if prompt.opening == 0 { 0 } else { (narrow(prompt.opening) as u16).max(1) },
                is_results: prompt.is_results,
                is_short: prompt.is_short,
                is_short_answer: false,
            },
            (None, Some(last)) => Footprint { at, step, answer: 0, is_short_answer: false, ..*last },
            (None, None) => return None,
        };
        steps.push(footprint);
        let gone = steps.len().saturating_sub(most.clamp(1, RUN_PROMPTS));
        steps.drain(..gone);
        self.gone = self.gone.saturating_add(gone as u32);
        self.pack(&steps);
        Some(steps)
    }

    /// The latest prompt is tried again as another step: the answer will come under that number.
    pub(super) fn retry(&mut self, step: u32) {
        let mut steps = self.unpack();
        if let Some(latest) = steps.last_mut().filter(|latest| latest.answer == 0) {
            latest.step = step;
            self.pack(&steps);
        }
    }

    /// Notes an answer. One that says what to do next is no evidence here: the results of what it does are.
    pub(super) fn answer(&mut self, step: u32, answer: &Answer) {
        let is_to_the_letter = self.scope == PromptScope::LastUserMessage;
        if answer.exact == 0 || answer.calls != 0 || answer.is_command && !is_to_the_letter {
            return;
        }
        let mut steps = self.unpack();
        if let Some(footprint) = steps.iter_mut().rev().find(|footprint| footprint.step == step) {
            footprint.answer = narrow(answer.exact).max(1);
            footprint.is_short_answer = answer.is_short && !is_to_the_letter;
            self.pack(&steps);
        }
    }

    /// The latest of the kept steps and those before it that are evidence for a detector.
    pub(super) fn seen<'s>(&self, steps: &'s [Footprint], since: &Since) -> Option<(&'s Footprint, &'s [Footprint])> {
        let (latest, earlier) = steps.split_last()?;
        let from = since.from.saturating_sub(self.gone) as usize;
        Some((latest, earlier.get(from..).unwrap_or_default()))
    }

    /// Prompts seen under another meaning of "prompt" are no evidence.
    pub(super) fn set_scope(&mut self, scope: PromptScope) {
        if self.scope != scope {
            *self = Trail { scope, ..Trail::default() };
        }
    }

    /// Writes it down for another node.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.scope as u8, self.count]);
        put_number(bytes, u64::from(self.gone));
        bytes.extend_from_slice(self.packed.bytes());
    }

    /// Reads what was written; None where it holds more than is ever kept, or a moment that never was.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Trail> {
        let scope = reader.scope()?;
        let count = reader.count(RUN_PROMPTS)?;
        let mut trail = Trail { scope, gone: reader.small()?, ..Trail::default() };
        let steps = read_footprints(reader, count);
        trail.pack(&steps);
        steps.iter().all(|step| is_plausible(step.at)).then_some(trail)
    }

    /// The number that the next prompt will have.
    fn next(&self) -> u32 {
        self.gone.saturating_add(u32::from(self.count))
    }

    /// Bytes kept beside the value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.packed.heap_bytes()
    }

    fn pack(&mut self, steps: &[Footprint]) {
        let mut bytes = Vec::with_capacity(16 * steps.len());
        let (mut step, mut second) = (0, 0);
        for footprint in steps {
            bytes.push(bits([
                footprint.is_results,
                footprint.is_short,
                footprint.is_short_answer,
                footprint.opening != 0,
                footprint.answer != 0,
            ]));
            let now = footprint.at.0.div_euclid(1000);
            put_signed(&mut bytes, i64::from(footprint.step) - step);
            put_signed(&mut bytes, now - second);
            (step, second) = (i64::from(footprint.step), now);
            bytes.extend(footprint.prompt.to_le_bytes());
            if footprint.opening != 0 {
                bytes.extend(footprint.opening.to_le_bytes());
            }
            if footprint.answer != 0 {
                bytes.extend(footprint.answer.to_le_bytes());
            }
        }
        self.packed.set(&bytes);
        self.count = steps.len() as u8;
    }

    fn unpack(&self) -> Vec<Footprint> {
        read_footprints(&mut Reader::new(self.packed.bytes()), usize::from(self.count))
    }
}

/// Of the earlier prompts those that lead up to the latest one with no step between them that is only known elsewhere.
pub(super) fn unbroken<'s>(
    latest: &Footprint,
    earlier: &'s [Footprint],
    shared: Option<&SeenSteps>,
) -> &'s [Footprint] {
    let Some(seen) = shared else { return earlier };
    let mut after = latest.step;
    let row = earlier.iter().rev().take_while(|before| {
        let follows = seen.has_all_between(before.step, after);
        after = before.step;
        follows
    });
    &earlier[earlier.len() - row.count()..]
}

fn read_footprints(reader: &mut Reader<'_>, count: usize) -> Vec<Footprint> {
    let (mut step, mut second) = (0_i64, 0_i64);
    let mut steps = Vec::with_capacity(count + 1);
    for _ in 0..count {
        let flags = reader.byte();
        let is = |bit: u8| flags >> bit & 1 == 1;
        step = step.saturating_add(reader.signed());
        second = second.saturating_add(reader.signed());
        steps.push(Footprint {
            at: Timestamp(second.saturating_mul(1000)),
            step: u32::try_from(step).unwrap_or(0),
            prompt: reader.four(),
            opening: if is(3) { reader.two() } else { 0 },
            answer: if is(4) { reader.four() } else { 0 },
            is_results: is(0),
            is_short: is(1),
            is_short_answer: is(2),
        });
    }
    steps
}

impl Since {
    /// Writes it down for another node.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.mode as u8);
        put_number(bytes, u64::from(self.from));
    }

    /// Reads what was written.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Since> {
        Some(Since { mode: reader.mode()?, from: reader.small()? })
    }

    /// Begins anew where the mode is another. To be called before the prompt is added.
    pub(super) fn set_mode(&mut self, mode: Mode, trail: &Trail) {
        if self.mode != mode {
            *self = Since { mode, from: trail.next() };
        } else {
            // The trail may have been emptied.
            self.from = self.from.min(trail.next());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::Turn;

    fn push(trail: &mut Trail, step: u32, text: &str) -> Vec<Footprint> {
        let turn = Turn { user_text: text.to_owned().into(), opening: 7, ..Turn::default() };
        let prompt = Prompt::read(&turn, PromptScope::Turn).unwrap();
        trail.push(step, Timestamp(i64::from(step) * 1000), Some(&prompt), RUN_PROMPTS).unwrap()
    }

    #[test]
    fn the_oldest_prompt_leaves_first() {
        let mut trail = Trail::default();
        let number = RUN_PROMPTS as u32;
        (1..=number).for_each(|step| drop(push(&mut trail, step, "a b c")));
        assert_eq!(trail.unpack()[0].step, 1, "at the bound all are there");
        let kept = push(&mut trail, number + 1, "a b c");
        assert_eq!((kept.len(), kept[0].step), (RUN_PROMPTS, 2));
    }

    #[test]
    fn prompts_come_back_as_they_were() {
        let mut trail = Trail::default();
        let answer = |text: &str| Answer::of_reply(&crate::wire::Reply { text: text.into(), ..Default::default() });
        push(&mut trail, 1, "a b c");
        trail.answer(1, &answer("yes"));
        push(&mut trail, 300, "d");
        trail.retry(301);
        let mut kept = push(&mut trail, 302, "a b c");
        assert_eq!(trail.unpack(), kept);
        assert_eq!(
            kept.iter().map(|one| (one.step, one.at.0)).collect::<Vec<_>>(),
            [(1, 1000), (301, 300_000), (302, 302_000)]
        );
        assert!(kept[0].is_short_answer && kept[0].answer != 0 && kept[0].is_same(&kept[2]));
        assert!(kept[1].is_short && kept[1].answer == 0 && !kept[1].is_same(&kept[2]));
        trail.answer(302, &answer("Nothing is left to do here."));
        kept[2].answer = trail.unpack()[2].answer;
        assert_ne!(kept[2].answer, 0);
        assert_eq!(trail.unpack(), kept);
    }

    #[test]
    fn what_was_seen_in_another_mode_is_no_evidence() {
        let mut trail = Trail::default();
        let mut since = Since::default();
        let mut kept = Vec::new();
        for step in 1..=3 {
            since.set_mode(Mode::Shadow, &trail);
            kept = push(&mut trail, step, "a b c");
        }
        assert_eq!(trail.seen(&kept, &since).unwrap().1.len(), 2);
        since.set_mode(Mode::Enforce, &trail);
        kept = push(&mut trail, 4, "a b c");
        assert!(trail.seen(&kept, &since).unwrap().1.is_empty());
        since.set_mode(Mode::Enforce, &trail);
        kept = push(&mut trail, 5, "a b c");
        assert_eq!(trail.seen(&kept, &since).unwrap().1.len(), 1);
    }
}
