//! Placeholders in answers that stand for a value of the client, and the values in their place.
//!
//! Models write them as they were or nearly so: in small letters, with other spaces, escaped for Markdown. Only those
//! that the run's vault knows are taken for one; any other text in brackets stays as it is.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zeroize::Zeroizing;

use super::finding::Finding;
use super::inspector::Inspector;
use super::kind::Entity;
use super::vault::Vault;
use crate::limits::PLACEHOLDER_BYTES;

/// Most digits of a number: no vault counts further.
const MOST_DIGITS: usize = 9;

/// The placeholders that a run's vault can answer to.
#[derive(Debug)]
pub(crate) struct Placeholders<'i> {
    vault: &'i Mutex<Vault>,
    kinds: Vec<(Entity, &'i str)>,
}

/// One that stands in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placeholder {
    pub(crate) entity: Entity,
    pub(crate) number: u32,
    pub(crate) range: Range<usize>,
}

impl<'i> Placeholders<'i> {
    /// None when there is nothing to put back.
    pub(crate) fn of(inspector: &'i Inspector) -> Option<Placeholders<'i>> {
        let vault = inspector.vault.as_deref()?;
        let kinds: Vec<_> = locked(vault).kinds().map(|entity| (entity, inspector.scanner.id(entity))).collect();
        (!kinds.is_empty()).then_some(Placeholders { vault, kinds })
    }

    /// Those that stand in `text` from `from` on, in their order.
    pub(crate) fn in_text(&self, text: &[u8], from: usize) -> Vec<Placeholder> {
        let brackets = memchr::memchr_iter(b'[', &text[from.min(text.len())..]);
        brackets.filter_map(|at| self.at(text, from + at)).collect()
    }

    /// The one that begins at `at`.
    pub(crate) fn at(&self, text: &[u8], at: usize) -> Option<Placeholder> {
        let open = text.get(at..)?.strip_prefix(b"[")?;
        let length = memchr::memchr(b']', &open[..open.len().min(PLACEHOLDER_BYTES - 1)])?;
        let kinds = self.kinds.iter().copied();
        let Spelled::Whole(entity, number) = spelled(&text[at..at + length + 2], kinds) else { return None };
        locked(self.vault).value(entity, number)?;
        Some(Placeholder { entity, number, range: at..at + length + 2 })
    }
}

/// Has the vault pass over the numbers that a request uses by itself: its `[EMAIL_1]` is not the value that would get
/// this name. `kinds` are those of which values may be hidden.
pub(super) fn pass_over_own(inspector: &Inspector, kinds: &BTreeSet<Entity>, text: &[u8]) {
    let Some(vault) = inspector.vault.as_deref() else { return };
    let kinds = || kinds.iter().map(|entity| (*entity, inspector.scanner.id(*entity)));
    for at in memchr::memchr_iter(b'[', text) {
        let open = &text[at..text.len().min(at + PLACEHOLDER_BYTES)];
        // Most brackets are of lists.
        let Some(end) = memchr::memchr2(b']', b'"', open).filter(|end| open[*end] == b']') else { continue };
        if let Spelled::Whole(entity, number) = spelled(&open[..=end], kinds()) {
            locked(vault).pass_over(entity, number);
        }
    }
}

/// What a text from a `[` on is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelled {
    /// A placeholder, whether the vault knows it or not.
    Whole(Entity, u32),
    /// The beginning of one.
    Open,
    /// Neither.
    Other,
}

/// Reads `[EMAIL_1]` of these kinds, in any case, with blanks for underscores and before and behind, and with
/// backslashes.
pub(super) fn spelled<'k>(text: &[u8], kinds: impl Iterator<Item = (Entity, &'k str)>) -> Spelled {
    let is_closed = text.ends_with(b"]");
    let inside = text.get(1..text.len() - usize::from(is_closed));
    let Some(inside) = inside.filter(|_| text.len() <= PLACEHOLDER_BYTES) else { return Spelled::Other };
    let name = inside.trim_ascii().iter().filter(|byte| **byte != b'\\').map(|byte| match byte {
        b' ' => '_',
        byte => char::from(byte.to_ascii_uppercase()),
    });
    let name: String = name.collect();
    let mut spelled = Spelled::Other;
    for (entity, id) in kinds {
        let is_begun = match name.strip_prefix(id).map(|rest| (rest, rest.strip_prefix('_'))) {
            None => id.starts_with(&name),
            Some((rest, None)) => rest.is_empty(),
            Some((_, Some(digits))) if digits.len() > MOST_DIGITS => false,
            Some((_, Some(digits))) if !digits.bytes().all(|byte| byte.is_ascii_digit()) => false,
            Some((_, Some(digits))) => match digits.parse() {
                Ok(number) if is_closed => return Spelled::Whole(entity, number),
                _ => true,
            },
        };
        if is_begun && !is_closed {
            spelled = Spelled::Open;
        }
    }
    spelled
}

/// The value that a placeholder of the vault stands for.
pub(super) fn value(inspector: &Inspector, entity: Entity, number: u32) -> Option<Zeroizing<String>> {
    let vault = locked(inspector.vault.as_deref()?);
    vault.value(entity, number).map(|value| Zeroizing::new(value.to_owned()))
}

/// Of findings and placeholders that share bytes one stands: a placeholder is the client's own, unless a finding takes
/// more than it. Both are in order.
pub(super) fn keep_apart(findings: &mut Vec<Finding>, known: &mut Vec<Placeholder>) {
    if known.is_empty() {
        return;
    }
    findings.retain(|finding| {
        let next = known.partition_point(|own| own.range.end < finding.end);
        known.get(next).is_none_or(|own| finding.start < own.range.start || own.range.end < finding.end)
    });
    known.retain(|own| {
        let next = findings.partition_point(|finding| finding.end <= own.range.start);
        findings.get(next).is_none_or(|finding| own.range.end <= finding.start)
    });
}

fn locked(vault: &Mutex<Vault>) -> MutexGuard<'_, Vault> {
    vault.lock().unwrap_or_else(PoisonError::into_inner)
}
