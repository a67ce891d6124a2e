//! The last prompts of a run and what was answered: what `exact` and `oscillation` look at.

use super::bounded::push_bounded;
use super::prompt::{Answer, Prompt};
use super::{Mode, PromptScope};
use crate::limits::RUN_PROMPTS;
use crate::time::Timestamp;

/// The last prompts, newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Trail {
    steps: Vec<Footprint>,
    /// Prompts that have left.
    gone: u64,
    scope: PromptScope,
}

/// One prompt and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footprint {
    pub(super) at: Timestamp,
    pub(super) prompt: u64,
    /// 0: none yet, or one that is no evidence.
    pub(super) answer: u64,
    pub(super) step: u32,
    /// How the conversation begins, where the prompt is its first; else 0.
    opening: u32,
    pub(super) is_results: bool,
    pub(super) is_short: bool,
    pub(super) is_short_answer: bool,
}

/// From where on the trail is evidence for one detector: what it saw in another mode is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Since {
    mode: Mode,
    from: u64,
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
    /// Adds a prompt. `prompt` is None where the request repeats the prompt before.
    pub(super) fn push(&mut self, step: u32, at: Timestamp, prompt: Option<&Prompt<'_>>) -> bool {
        let footprint = match (prompt, self.steps.last()) {
            (Some(prompt), _) => Footprint {
                at,
                prompt: prompt.exact,
                answer: 0,
                step,
                opening: prompt.opening as u32,
                is_results: prompt.is_results,
                is_short: prompt.is_short,
                is_short_answer: false,
            },
            (None, Some(last)) => Footprint { at, step, answer: 0, ..*last },
            (None, None) => return false,
        };
        self.gone += u64::from(push_bounded(&mut self.steps, footprint, RUN_PROMPTS).is_some());
        true
    }

    /// The latest prompt is tried again as another step: the answer will come under that number.
    pub(super) fn retry(&mut self, step: u32) {
        if let Some(latest) = self.steps.last_mut().filter(|latest| latest.answer == 0) {
            latest.step = step;
        }
    }

    /// Notes an answer. One that says what to do next is no evidence here: the results of what it does are.
    pub(super) fn answer(&mut self, step: u32, answer: &Answer) {
        let is_to_the_letter = self.scope == PromptScope::LastUserMessage;
        let is_evidence = answer.calls == 0 && (is_to_the_letter || !answer.is_command);
        if let Some(footprint) = self.steps.iter_mut().rev().find(|footprint| footprint.step == step)
            && is_evidence
        {
            footprint.answer = answer.exact;
            footprint.is_short_answer = answer.is_short && !is_to_the_letter;
        }
    }

    /// The latest step and those before it that are evidence for a detector.
    pub(super) fn seen(&self, since: &Since) -> Option<(&Footprint, &[Footprint])> {
        let (latest, earlier) = self.steps.split_last()?;
        let from = usize::try_from(since.from.saturating_sub(self.gone)).unwrap_or(usize::MAX);
        Some((latest, earlier.get(from..).unwrap_or_default()))
    }

    /// Prompts seen under another meaning of "prompt" are no evidence.
    pub(super) fn set_scope(&mut self, scope: PromptScope) {
        if self.scope != scope {
            *self = Trail { scope, ..Trail::default() };
        }
    }

    /// The number that the next prompt will have.
    fn next(&self) -> u64 {
        self.gone + self.steps.len() as u64
    }

    /// Bytes kept beside the value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.steps.capacity() * size_of::<Footprint>()
    }
}

impl Since {
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

    fn push(trail: &mut Trail, step: u32, text: &str) {
        let turn = Turn { user_text: text.to_owned().into(), ..Turn::default() };
        let prompt = Prompt::read(&turn, PromptScope::Turn).unwrap();
        trail.push(step, Timestamp(0), Some(&prompt));
    }

    #[test]
    fn the_oldest_prompt_leaves_first() {
        let mut trail = Trail::default();
        let number = RUN_PROMPTS as u32;
        (1..=number).for_each(|step| push(&mut trail, step, "a b c"));
        assert_eq!(trail.steps[0].step, 1, "at the bound all are there");
        push(&mut trail, number + 1, "a b c");
        assert_eq!((trail.steps.len(), trail.steps[0].step), (RUN_PROMPTS, 2));
    }

    #[test]
    fn what_was_seen_in_another_mode_is_no_evidence() {
        let mut trail = Trail::default();
        let mut since = Since::default();
        for step in 1..=3 {
            since.set_mode(Mode::Shadow, &trail);
            push(&mut trail, step, "a b c");
        }
        assert_eq!(trail.seen(&since).unwrap().1.len(), 2);
        since.set_mode(Mode::Enforce, &trail);
        push(&mut trail, 4, "a b c");
        assert!(trail.seen(&since).unwrap().1.is_empty());
        since.set_mode(Mode::Enforce, &trail);
        push(&mut trail, 5, "a b c");
        assert_eq!(trail.seen(&since).unwrap().1.len(), 1);
    }
}
