//! One text on its way to the client: what is kept of it and what stands in the place of the rest.
//!
//! Gives cuts and not text, because the text may be written with escapes that must stay as they are.

use zeroize::Zeroizing;

use super::placeholder::{Placeholders, own_value};
use super::watch::{Spot, Stopped};
use crate::dlp::inspector::Treatment;
use crate::dlp::text_stream::{Piece, TextStream};

/// What becomes of the next bytes of the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// So many of them,
    pub(super) length: usize,
    /// have this in their place; None where they stay.
    pub(super) with: Option<Zeroizing<String>>,
}

/// Looks at one text.
#[derive(Debug)]
pub(super) struct TextFilter {
    stream: TextStream,
    placeholders: Placeholders,
    /// Where in its field the text goes on, for the record.
    at: usize,
}

/// A text without escapes.
#[derive(Debug)]
pub(super) struct PlainText {
    filter: TextFilter,
    /// What was taken and is not decided yet.
    pending: Zeroizing<Vec<u8>>,
}

impl TextFilter {
    /// A text that stands behind `context`, `at` bytes into its field.
    pub(super) fn new(context: &[u8], at: usize) -> TextFilter {
        TextFilter { stream: TextStream::new(context), placeholders: Placeholders::default(), at }
    }

    /// Takes what comes next and says what becomes of all that is decided. At the end that is everything.
    ///
    /// # Errors
    /// The call is to be stopped. The cuts then reach up to the value because of which it is.
    pub(super) fn push(
        &mut self,
        spot: &mut Spot<'_>,
        more: &[u8],
        is_end: bool,
        cuts: &mut Vec<Cut>,
    ) -> Result<(), Stopped> {
        let mut pieces = Vec::new();
        self.stream.push(&spot.watch.inspector.scanner, more, is_end, &mut pieces);
        for piece in pieces {
            match piece {
                Piece::Plain(plain) => {
                    self.placeholders.take(&spot.watch.inspector, &plain, cuts);
                    self.at += plain.len();
                }
                Piece::Found { entity, tier, value } => {
                    self.placeholders.give_up(cuts);
                    let with = match own_value(&spot.watch.inspector, &value) {
                        Some(own) => Some(own),
                        None => match spot.treat(entity, tier, &value, self.at) {
                            Treatment::Keep => None,
                            Treatment::Replace(with) => Some(Zeroizing::new(with)),
                            Treatment::Stop => return Err(Stopped),
                        },
                    };
                    cuts.push(Cut { length: value.len(), with });
                    self.at += value.len();
                }
            }
        }
        if is_end {
            self.placeholders.give_up(cuts);
        }
        Ok(())
    }

    /// Says what becomes of all that is decided, now that nothing will follow. The beginning of a placeholder stays: it
    /// is nobody's value.
    pub(super) fn break_off(&mut self, spot: &mut Spot<'_>, cuts: &mut Vec<Cut>) -> Result<(), Stopped> {
        self.stream.look_again();
        self.push(spot, b"", false, cuts)?;
        self.placeholders.give_up(cuts);
        Ok(())
    }
}

impl PlainText {
    pub(super) fn new(context: &[u8], at: usize) -> PlainText {
        PlainText { filter: TextFilter::new(context, at), pending: Zeroizing::default() }
    }

    /// Takes what comes next; what can go on is added to `out`, also when the call is to be stopped.
    pub(super) fn push(
        &mut self,
        spot: &mut Spot<'_>,
        more: &[u8],
        is_end: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Stopped> {
        self.pending.extend_from_slice(more);
        let mut cuts = Vec::new();
        let result = self.filter.push(spot, more, is_end, &mut cuts);
        self.apply(cuts, out);
        result
    }

    /// Gives what is decided; the rest will never come.
    pub(super) fn break_off(&mut self, spot: &mut Spot<'_>, out: &mut Vec<u8>) -> Result<(), Stopped> {
        let mut cuts = Vec::new();
        let result = self.filter.break_off(spot, &mut cuts);
        self.apply(cuts, out);
        result
    }

    pub(super) fn is_holding(&self) -> bool {
        !self.pending.is_empty()
    }

    fn apply(&mut self, cuts: Vec<Cut>, out: &mut Vec<u8>) {
        let mut at = 0;
        for cut in cuts {
            let end = (at + cut.length).min(self.pending.len());
            match &cut.with {
                None => out.extend_from_slice(&self.pending[at..end]),
                Some(with) => out.extend_from_slice(with.as_bytes()),
            }
            at = end;
        }
        self.pending.drain(..at);
    }
}
