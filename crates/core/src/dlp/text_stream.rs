//! A text that comes in pieces, read as if it were whole.
//!
//! What is settled goes on at once; what may still become part of a finding is held back, as a rule not more than the
//! word that is open. Some of what went on stays as context, so that a value is known by the words before it.
//! What a finding leads to is not decided here.

use zeroize::Zeroizing;

use super::kind::{Entity, Tier};
use super::scan::Scanner;
use super::view::{LOOK_AHEAD, LOOK_BACK};
use crate::limits::STREAM_HELD_BYTES;

/// A detector that begins to look [`LOOK_BACK`] bytes before what is held may itself look as far back.
const CONTEXT: usize = 2 * LOOK_BACK;
/// Larger pieces are taken in parts, so that the memory does not follow the piece.
const PART: usize = 32 << 10;
/// How much may gather before it is cleared away.
const PAGE: usize = 4 << 10;
/// So little may be looked at again with each piece.
const FREE_TO_RESCAN: usize = 256;

/// A part of the text, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Nothing was found here.
    Plain(Vec<u8>),
    /// This was found.
    Found {
        /// What it is.
        entity: Entity,
        /// How sure it is.
        tier: Tier,
        /// The bytes; wiped when they are dropped.
        value: Zeroizing<Vec<u8>>,
    },
}

/// Reads one text.
#[derive(Debug, Default)]
pub struct TextStream {
    /// What went on and is context, then what is held back.
    text: Zeroizing<Vec<u8>>,
    /// How much of it is context.
    from: usize,
    /// With less than this held, looking again would be a waste.
    worth_a_look: usize,
}

impl TextStream {
    /// A text that stands behind `context`: the name of the field, say.
    #[must_use]
    pub fn new(context: &[u8]) -> TextStream {
        let context = &context[context.len().saturating_sub(CONTEXT)..];
        TextStream { text: Zeroizing::new(context.to_vec()), from: context.len(), worth_a_look: 0 }
    }

    /// Takes what comes next and gives what can go on. With `is_end` that is everything.
    ///
    /// A character is never divided, unless the text itself ends inside it. At most [`STREAM_HELD_BYTES`] stay held.
    /// Detectors do not need as much; should what is undecided hang together for longer, then the older half goes on
    /// as if the text had ended: whatever can be told by then is found, and the rest stays held.
    pub fn push(&mut self, scanner: &Scanner, more: &[u8], is_end: bool, out: &mut Vec<Piece>) {
        let mut rest = more;
        loop {
            let (part, behind) = rest.split_at(rest.len().min(PART));
            self.text.extend_from_slice(part);
            rest = behind;
            self.advance(scanner, is_end && rest.is_empty(), out);
            if rest.is_empty() {
                return;
            }
        }
    }

    /// How many bytes are held back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.text.len() - self.from
    }

    /// What is held is looked at with the next piece, even if little has come since.
    pub(super) fn look_again(&mut self) {
        self.worth_a_look = 0;
    }

    fn advance(&mut self, scanner: &Scanner, is_end: bool, out: &mut Vec<Piece>) {
        if !is_end && self.held() < self.worth_a_look {
            return;
        }
        let scan = scanner.scan(&self.text, self.from, is_end);
        let settled = if is_end { self.text.len() } else { whole_characters(&self.text, self.from, scan.settled) };
        self.release(scan.findings.iter().filter(|found| found.end <= settled), settled, out);
        while self.held() > STREAM_HELD_BYTES {
            self.release_oldest(scanner, out);
        }
        let held = self.held();
        self.worth_a_look = if held > FREE_TO_RESCAN { held + held / 8 } else { 0 };
    }

    fn release_oldest(&mut self, scanner: &Scanner, out: &mut Vec<Piece>) {
        let findings = scanner.scan(&self.text, self.from, true).findings;
        let middle = whole_characters(&self.text, self.from, self.text.len() - LOOK_AHEAD / 2);
        let crossing = findings.iter().find(|found| found.start < middle && middle < found.end);
        let settled = crossing.map_or(middle, |found| found.end);
        self.release(findings.iter().filter(|found| found.end <= settled), settled, out);
    }

    /// Lets everything up to `settled` go.
    fn release<'f>(
        &mut self,
        findings: impl Iterator<Item = &'f super::Finding>,
        settled: usize,
        out: &mut Vec<Piece>,
    ) {
        let mut at = self.from;
        for found in findings {
            plain(&self.text[at..found.start], out);
            let value = Zeroizing::new(self.text[found.start..found.end].to_vec());
            out.push(Piece::Found { entity: found.entity, tier: found.tier, value });
            at = found.end;
        }
        plain(&self.text[at..settled], out);
        self.from = settled;
        // Old context goes by the page and not by the byte: what stays has to be moved.
        if self.from > CONTEXT + PAGE {
            self.text.drain(..self.from - CONTEXT);
            self.from = CONTEXT;
        }
    }
}

fn plain(bytes: &[u8], out: &mut Vec<Piece>) {
    match out.last_mut() {
        _ if bytes.is_empty() => {}
        Some(Piece::Plain(before)) => before.extend_from_slice(bytes),
        _ => out.push(Piece::Plain(bytes.to_vec())),
    }
}

/// `end`, or where the character begins that would be divided there.
fn whole_characters(text: &[u8], from: usize, end: usize) -> usize {
    let is_inside = |byte: &u8| byte & 0xc0 == 0x80;
    let is_cut = text.get(end).is_none_or(is_inside);
    let first = end.saturating_sub(3).max(from);
    match text[first..end].iter().rposition(|byte| !is_inside(byte)) {
        Some(head) if is_cut && first + head + length_of_character(text[first + head]) > end => first + head,
        _ => end,
    }
}

fn length_of_character(lead: u8) -> usize {
    match lead {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
