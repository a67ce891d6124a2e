//! Events that are like the one before but for their text: the rest of them was looked at with that one.
//!
//! What was learnt holds for the next event only. Every other event may change what a text continues, so with each of
//! them it is learnt anew or forgotten.

use std::ops::Range;

use bytes::Bytes;

use super::document::{Document, Kind};
use super::field::{Field, Key};
use super::plan::Plan;
use super::watch::{Spot, Stopped};
use super::{Edit, StreamFilter, escape, frame::Frame};
use crate::wire::{Dialect, Mold};

/// Names of texts that are read the same way whatever they say.
const READ_AS_TEXT: [&[u8]; 8] =
    [b"content", b"text", b"delta", b"partial_json", b"arguments", b"reasoning_content", b"reasoning", b"refusal"];

/// What is known of the next event, should it be like the last.
#[derive(Debug)]
pub(super) struct Alike {
    mold: Mold,
    /// The text that it continues, by its place; None for one that is never touched.
    field: Option<usize>,
}

/// The one text of an event that has no other meaning.
pub(super) struct OnlyText {
    /// Where it stands in the data.
    inside: Range<usize>,
    continues: Option<Key>,
    /// What was on record before the event.
    sightings: u64,
}

impl StreamFilter {
    /// Looks at an event that is like the one before; None when it is not.
    pub(super) fn pass_alike(&mut self, event: &Bytes, out: &mut Vec<Bytes>) -> Option<Result<(), Stopped>> {
        let alike = self.alike.as_ref()?;
        let raw = alike.mold.text(event).filter(|raw| !raw.is_empty())?;
        let Some(index) = alike.field else {
            out.push(event.clone());
            return Some(Ok(()));
        };
        let text = escape::decoded(raw);
        let Field { content, path, .. } = self.fields.get_mut(index)?;
        let path = || path.clone();
        let mut spot = Spot { watch: &mut self.watch, path: &path, is_repeat: false };
        let mut said = Vec::with_capacity(text.len());
        if let Err(stopped) = content.push(&mut spot, &text, false, &mut said) {
            self.add_event(index, &said, out);
            return Some(Err(stopped));
        }
        if said == *text {
            out.push(event.clone());
            return Some(Ok(()));
        }
        let (before, behind) = self.alike.as_ref()?.mold.around();
        let mut changed = Vec::with_capacity(before.len() + said.len() + behind.len() + 16);
        changed.extend_from_slice(before);
        escape::write(&said, &mut changed);
        changed.extend_from_slice(behind);
        out.push(changed.into());
        Some(Ok(()))
    }

    /// The text of an event that says nothing but this text, before it is looked at.
    pub(super) fn only_text(&self, document: &Document<'_>, plan: &Plan) -> Option<OnlyText> {
        let is_counted = document.member(0, "sequence_number").is_some();
        if !plan.ends.is_empty() || is_counted || self.dialect == Dialect::Opaque {
            return None;
        }
        let (node, continues) = match (plan.parts.as_slice(), plan.skips.as_slice()) {
            ([part], []) if READ_AS_TEXT.contains(&document.key(part.node)?) => (part.node, Some(part.key)),
            ([], [sealed]) => (document.filled(*sealed, "thinking")?, None),
            _ => return None,
        };
        let is_spelled = |node: usize| {
            document.key(node) == Some(b"logprobs") && matches!(document.nodes[node].kind, Kind::Object | Kind::Array)
        };
        if (0..document.nodes.len()).any(is_spelled) {
            return None;
        }
        Some(OnlyText { inside: document.range(node), continues, sightings: self.watch.sightings.total })
    }

    /// Remembers an event for the next one, if nothing in it but its text was worth a word.
    pub(super) fn learn(&mut self, frame: &Frame<'_>, only: Option<OnlyText>, edits: &[Edit]) {
        self.alike = only.and_then(|only| {
            let is_all = edits.iter().all(|(range, _)| *range == only.inside);
            let field = match only.continues {
                None => None,
                Some(key) => Some(self.fields.iter().position(|field| field.key == key)?),
            };
            let is_quiet = self.watch.sightings.total == only.sightings;
            let mold = frame.mold(only.inside).filter(|_| is_all && is_quiet)?;
            Some(Alike { mold, field })
        });
    }
}
