//! Values that were cut across neighbouring texts of one message: `[{"text": "sk-1234"}, {"text": "5678…"}]`.
//!
//! Only what stands near a seam is read a second time, so the work stays in proportion.

use std::ops::Range;

use super::escape::Decoded;
use super::found::{Form, Found, Other, What};
use super::frame::TextPart;
use super::text::{Walker, whole_characters};

/// How much of a text on either side of a seam counts.
const SEAM_BYTES: usize = 4 << 10;
/// How much is joined before a new joining begins.
const JOINED_BYTES: usize = 64 << 10;

/// Texts, or parts of them, put together.
#[derive(Debug, Default)]
struct Joined {
    text: Vec<u8>,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Piece {
    /// Which text.
    index: usize,
    /// Where it stands among the joined.
    place: Range<usize>,
    /// Where it begins in its own text.
    start: usize,
}

impl Walker<'_> {
    /// Looks at the seams between texts of a list. `found_from`: what was found in that list.
    pub(super) fn look_at_seams(&mut self, buf: &[u8], texts: &[(u32, TextPart)], found_from: usize, path: &str) {
        let mut cut = Vec::new();
        for neighbours in texts.chunk_by(|(one, _), (next, _)| one + 1 == *next).filter(|run| run.len() > 1) {
            let decode = |(_, part): &(u32, TextPart)| {
                let mut decoded = Decoded::default();
                decoded.fill(b"", buf, part.content.clone());
                decoded
            };
            let decoded: Vec<Decoded> = neighbours.iter().map(decode).collect();
            let path_of = |index: usize| format!("{path}[{}].text", neighbours[index].0);
            let mut joined = Joined::default();
            for (index, one) in decoded.iter().enumerate() {
                let length = one.text.len();
                let is_long = length > 2 * SEAM_BYTES;
                joined.add(index, &one.text, 0..if is_long { SEAM_BYTES } else { length });
                if is_long || joined.text.len() > JOINED_BYTES {
                    self.look_at_joined(&joined, &decoded, path_of, &mut cut);
                    joined = Joined::default();
                    joined.add(index, &one.text, length.saturating_sub(SEAM_BYTES)..length);
                }
            }
            self.look_at_joined(&joined, &decoded, path_of, &mut cut);
        }
        if !cut.is_empty() {
            self.put_in(cut, found_from);
        }
    }

    fn look_at_joined(
        &self,
        joined: &Joined,
        decoded: &[Decoded],
        path_of: impl Fn(usize) -> String,
        cut: &mut Vec<Found>,
    ) {
        if joined.pieces.len() < 2 {
            return;
        }
        for finding in self.scanner.scan(&joined.text, 0, true).findings {
            let parts = joined.parts(finding.start..finding.end);
            let [(first, place), others @ ..] = parts.as_slice() else { continue };
            if others.is_empty() {
                continue;
            }
            let raw = |index: usize, place: &Range<usize>| {
                decoded[index].places.raw(whole_characters(&decoded[index].text, place.clone()))
            };
            let other = |(index, place): &(usize, Range<usize>)| Other {
                range: raw(*index, place),
                is_all: *place == (0..decoded[*index].text.len()),
                is_word: is_word(&decoded[*index].text[place.clone()]),
            };
            cut.push(Found {
                what: What::Finding(finding.entity, finding.tier),
                form: Form::Text,
                first: raw(*first, place),
                others: others.iter().map(other).collect(),
                level: 0,
                path: path_of(*first),
                start: place.start,
            });
        }
    }

    /// Puts what was cut beside what was found in single texts; what shares bytes with it becomes a part of it.
    fn put_in(&mut self, mut cut: Vec<Found>, found_from: usize) {
        let mut alone = self.found.split_off(found_from);
        alone.sort_by_key(|one| one.first.start);
        let at = |range: &Range<usize>| {
            let next = alone.partition_point(|one| one.first.end <= range.start);
            alone.get(next).filter(|one| one.first.start < range.end)
        };
        // A value that ends where its text ends does not take the next text's first word, nor another value.
        cut.retain(|one| {
            let is_whole = at(&one.first).is_some_and(|first| first.what == one.what);
            let is_next = |other: &Other| other.is_word || at(&other.range).is_some();
            !(is_whole && one.others.iter().all(is_next))
        });
        let places =
            |(index, one): (usize, &Found)| one.ranges().map(|range| (range.clone(), index)).collect::<Vec<_>>();
        let taken: Vec<(Range<usize>, usize)> = cut.iter().enumerate().flat_map(places).collect();
        alone.retain(|one| {
            let next = taken.partition_point(|(range, _)| range.end <= one.first.start);
            let shares = taken.get(next).is_some_and(|(range, _)| range.start < one.first.end);
            if shares {
                cut[taken[next].1].absorb(&one.first);
            }
            !shares
        });
        self.found.extend(alone.into_iter().chain(cut));
    }
}

impl Joined {
    fn add(&mut self, index: usize, text: &[u8], part: Range<usize>) {
        let start = self.text.len();
        self.text.extend_from_slice(&text[part.clone()]);
        self.pieces.push(Piece { index, place: start..self.text.len(), start: part.start });
    }

    /// The texts that a part of the joined one is made of, with the places in them.
    fn parts(&self, range: Range<usize>) -> Vec<(usize, Range<usize>)> {
        let part = |piece: &Piece| {
            let shared = range.start.max(piece.place.start)..range.end.min(piece.place.end);
            let in_text = |at: usize| at - piece.place.start + piece.start;
            (shared.start < shared.end).then(|| (piece.index, in_text(shared.start)..in_text(shared.end)))
        };
        let first = self.pieces.partition_point(|piece| piece.place.end <= range.start);
        self.pieces[first..].iter().take_while(|piece| piece.place.start < range.end).filter_map(part).collect()
    }
}

/// `please`, `Thanks`.
fn is_word(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_alphabetic) && text.iter().skip(1).all(u8::is_ascii_lowercase)
}
