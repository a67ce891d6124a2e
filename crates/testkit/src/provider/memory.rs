//! The answers that a later request may continue: `previous_response_id` and Anthropic's threads.

use sprag_core::limits::{MOCK_ANSWER_IDS, MOCK_OPENING_BYTES};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is remembered of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answered {
    /// How often the model had spoken, this answer included.
    pub(super) turns: usize,
    /// How what was said to it began; courses are set there.
    pub(super) said: String,
    /// The first tool that was declared; a thread does not declare its tools again.
    pub(super) tool: Option<String>,
    /// Somebody has continued it.
    pub(super) continued: bool,
}

#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    answers: HashMap<String, Answered>,
    order: VecDeque<String>,
}

impl Memory {
    pub(super) fn keep(&self, id: String, mut answer: Answered) {
        let end = (0..=MOCK_OPENING_BYTES.min(answer.said.len())).rev().find(|at| answer.said.is_char_boundary(*at));
        answer.said.truncate(end.unwrap_or(0));
        let mut shelf = self.lock();
        if shelf.answers.insert(id.clone(), answer).is_none() {
            shelf.order.push_back(id);
        }
        if shelf.order.len() > MOCK_ANSWER_IDS
            && let Some(oldest) = shelf.order.pop_front()
        {
            shelf.answers.remove(&oldest);
        }
    }

    pub(super) fn recall(&self, id: &str) -> Option<Answered> {
        self.lock().answers.get(id).cloned()
    }

    /// Notes that somebody has continued the answer.
    pub(super) fn mark_continued(&self, id: &str) {
        if let Some(answer) = self.lock().answers.get_mut(id) {
            answer.continued = true;
        }
    }

    pub(super) fn clear(&self) {
        *self.lock() = Shelf::default();
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_answer_is_forgotten_beyond_the_bound() {
        let memory = Memory::default();
        for number in 0..MOCK_ANSWER_IDS {
            memory.keep(format!("a{number}"), Answered::default());
        }
        assert!(memory.recall("a0").is_some());
        memory.keep("one more".into(), Answered::default());
        assert!(memory.recall("a0").is_none());
        assert!(memory.recall("a1").is_some_and(|answer| !answer.continued));
        memory.mark_continued("a1");
        assert!(memory.recall("a1").is_some_and(|answer| answer.continued));
    }

    #[test]
    fn only_the_opening_is_kept() {
        let memory = Memory::default();
        let said = |bytes: usize| Answered { said: "é".repeat(bytes / 2), ..Answered::default() };
        memory.keep("at".into(), said(MOCK_OPENING_BYTES));
        memory.keep("past".into(), said(MOCK_OPENING_BYTES + 2));
        assert_eq!(memory.recall("at"), Some(said(MOCK_OPENING_BYTES)));
        assert_eq!(memory.recall("past"), Some(said(MOCK_OPENING_BYTES)));
    }
}
