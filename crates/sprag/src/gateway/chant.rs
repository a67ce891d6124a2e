//! Listening to an answer while it streams, for a model that says the same over and over.

use std::sync::Arc;

use sprag_core::loops::{Chant, Finding, Mode, Rules};
use sprag_core::wire::Reply;

/// Listens to one answer.
pub(crate) struct Listener {
    rules: Arc<Rules>,
    chant: Chant,
    /// Bytes of the answer's text that were heard.
    heard: usize,
}

impl Listener {
    /// A listener, where the rules ask for one.
    pub(crate) fn new(rules: &Arc<Rules>) -> Option<Listener> {
        let is_wanted = rules.chant.common.mode != Mode::Off;
        is_wanted.then(|| Listener { rules: rules.clone(), chant: Chant::default(), heard: 0 })
    }

    /// Hears what is new in the answer; a finding when it repeats itself.
    pub(crate) fn hear(&mut self, reply: &Reply) -> Option<Finding> {
        // The last event of a Responses stream replaces the text by the whole of it.
        let new = reply.text.get(self.heard.min(reply.text.len())..).unwrap_or_default();
        self.heard = self.heard.max(reply.text.len());
        if new.is_empty() {
            return None;
        }
        self.chant.feed(new, &self.rules.chant)
    }
}
