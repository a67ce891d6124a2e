//! Places that bytes and their neighbours tell, as bit operations on masks.
//!
//! Which bytes a text has is not to be guessed, and neither is how many places a block leads to: a processor that guesses wrong loses the
//! time that a block takes. So places are put into lists, and lists are made shorter, without a branch that depends on the text.

use fearless_simd::{Simd, dispatch};

use super::masks::{BLOCK, Masks, masks_at};
use super::windows::WindowTables;
use super::{ADDRESS_DIGITS, MayBe, NUMBER_DIGITS, NUMBER_WITHIN, STRETCH, TokenStart, WordSearch};
use crate::dlp::view::View;

const BLOCKS: usize = STRETCH / BLOCK;
/// An address has a full stop in so many bytes.
const DOT_WITHIN: u32 = 4;
/// So many places of a block are listed at once.
const AT_ONCE: usize = 4;
/// Places that are listed before the rest of a stretch has to wait. Ordinary text has fewer.
const MOST_PLACES: usize = 256;

/// Where something may begin in a stretch of text, from its start. Whether a word really begins there remains to be asked: only the bytes
/// next to it were looked at. It takes time to clear, so there is one for all stretches.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) tokens: List,
    pub(super) numbers: List,
    /// Windows of words that are searched for.
    pub(super) windows: List,
    /// `@`, and two letters and two digits. They are rare.
    pub(super) others: List,
    /// Of the stretch, and of the block behind it.
    masks: [Masks; BLOCKS + 1],
}

impl Places {
    pub(super) fn new() -> Places {
        let [tokens, numbers, windows, others] = [(); 4].map(|()| List::new());
        Places { tokens, numbers, windows, others, masks: [Masks::default(); BLOCKS + 1] }
    }

    /// Looks from `start` to `end`, and says how far the lists go.
    pub(super) fn find(
        &mut self,
        view: &View<'_>,
        start: usize,
        end: usize,
        words: &WordSearch,
        may_be: &MayBe<impl Fn(TokenStart) -> bool, impl Fn(&View<'_>, usize, u64) -> bool>,
    ) -> usize {
        dispatch!(words.level, simd => self.find_with(simd, view, start, end, words, may_be))
    }

    #[inline(always)]
    fn find_with<S: Simd>(
        &mut self,
        simd: S,
        view: &View<'_>,
        start: usize,
        end: usize,
        words: &WordSearch,
        may_be: &MayBe<impl Fn(TokenStart) -> bool, impl Fn(&View<'_>, usize, u64) -> bool>,
    ) -> usize {
        let blocks = (end - start).div_ceil(BLOCK).min(BLOCKS);
        // Masks go through memory, all of them before the first is used: kept in registers, some compilers take them apart.
        let tables = WindowTables::load(simd, &words.windows);
        for (block, masks) in self.masks[..=blocks].iter_mut().enumerate() {
            *masks = masks_at(simd, view.text, start + block * BLOCK, &tables);
        }
        let end = self.list(view.text, start, end, blocks);
        self.tokens.keep(
            #[inline(always)]
            |place| {
                let first = view.text.get(start + place..).and_then(|rest| rest.first_chunk());
                first.is_some_and(|first| (may_be.token)(*first))
            },
        );
        let masks = &self.masks;
        self.numbers.keep(
            #[inline(always)]
            |place| {
                let count = bits_from(masks, |masks| masks.digit, place, NUMBER_WITHIN as u32).count_ones();
                let is_address =
                    (count >= ADDRESS_DIGITS) & (bits_from(masks, |masks| masks.dot, place, DOT_WITHIN) != 0);
                (count >= NUMBER_DIGITS) | is_address | view.may_go_on(start + place + NUMBER_WITHIN)
            },
        );
        self.numbers.keep(
            #[inline(always)]
            |place| {
                let bits = bits_from(masks, |masks| masks.digit, place, NUMBER_WITHIN as u32);
                (may_be.number)(view, start + place, bits) | view.may_go_on(start + place + NUMBER_WITHIN)
            },
        );
        self.windows.keep(
            #[inline(always)]
            |place| words.may_be_at(view.text, start + place),
        );
        end
    }

    /// All places of these blocks, and how far they go.
    #[inline(always)]
    fn list(&mut self, text: &[u8], start: usize, end: usize, blocks: usize) -> usize {
        let Places { tokens, numbers, windows, others, masks } = self;
        (tokens.count, numbers.count, windows.count, others.count) = (0, 0, 0, 0);
        let mut before = Before::of(text, start);
        for block in 0..blocks {
            let (here, next, at) = (&masks[block], &masks[block + 1], start + block * BLOCK);
            if tokens.is_full() | numbers.is_full() | windows.is_full() | others.is_full() {
                return at;
            }
            // The last block of a text may be a part of one.
            let inside = if end - at < BLOCK { (1 << (end - at)) - 1 } else { u64::MAX };
            let word = here.letter | here.digit;
            // Behind an escape such as `\n` a word may begin as well.
            let begins = word & inside & (!(word << 1 | before.word) | here.backslash << 2 | before.backslash);
            let letters = here.letter & ahead(here.letter, next.letter, 1);
            let countries = begins & letters & ahead(here.digit, next.digit, 2) & ahead(here.digit, next.digit, 3);
            let rare = here.sign & inside | countries;
            if rare != 0 {
                others.add(rare, block);
            }
            tokens.add(begins & long_runs(here.run, next.run), block);
            numbers.add(begins & here.digit, block);
            windows.add(here.window, block);
            before = Before { word: word >> 63, backslash: here.backslash >> 62 };
        }
        end
    }
}

/// The bits of `count` bytes from a place on.
#[inline(always)]
fn bits_from(masks: &[Masks; BLOCKS + 1], of: impl Fn(&Masks) -> u64, place: usize, count: u32) -> u64 {
    let (block, bit) = (place / BLOCK % BLOCKS, place % BLOCK);
    (of(&masks[block]) >> bit | of(&masks[block + 1]) << 1 << (BLOCK - 1 - bit)) & ((1 << count) - 1)
}

/// Places in a stretch, in their order.
#[derive(Debug)]
pub(super) struct List {
    places: [u16; MOST_PLACES + BLOCK + AT_ONCE],
    count: usize,
}

impl List {
    fn new() -> List {
        List { places: [0; MOST_PLACES + BLOCK + AT_ONCE], count: 0 }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.places[..self.count].iter().map(|place| usize::from(*place))
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.count > MOST_PLACES
    }

    /// Adds those of a block. Most have no more than are listed at once; what is too many is written over.
    #[inline(always)]
    fn add(&mut self, mut bits: u64, block: usize) {
        let mut at = self.count;
        self.count += bits.count_ones() as usize;
        while let Some(room) = self.places.get_mut(at..at + AT_ONCE) {
            for place in room {
                *place = (block * BLOCK) as u16 + bits.trailing_zeros() as u16;
                bits &= bits.wrapping_sub(1);
            }
            at += AT_ONCE;
            if bits == 0 {
                break;
            }
        }
    }

    /// Keeps those that are worth it.
    #[inline(always)]
    fn keep(&mut self, is_worth_it: impl Fn(usize) -> bool) {
        let mut kept = 0;
        for at in 0..self.count.min(self.places.len()) {
            let place = self.places[at];
            self.places[kept] = place;
            kept += usize::from(is_worth_it(usize::from(place)));
        }
        self.count = kept;
    }
}

/// What the block before ends in, as the lowest bits of this one.
struct Before {
    word: u64,
    backslash: u64,
}

impl Before {
    fn of(text: &[u8], start: usize) -> Before {
        let byte = |back: usize| start.checked_sub(back).map(|at| text[at]);
        let is_backslash = |back| u64::from(byte(back) == Some(b'\\'));
        Before {
            word: u64::from(byte(1).is_some_and(|byte| byte.is_ascii_alphanumeric())),
            backslash: is_backslash(2) | is_backslash(1) << 1,
        }
    }
}

/// The mask as it is seen from `by` bytes further back.
#[inline(always)]
fn ahead(here: u64, next: u64, by: u32) -> u64 {
    here >> by | next << (64 - by)
}

/// Where 14 set bits follow.
#[inline(always)]
fn long_runs(here: u64, next: u64) -> u64 {
    const { assert!(super::TOKEN_RUN == 14, "the shifts below make 14") };
    let one = u128::from(here) | u128::from(next) << 64;
    let two = one & one >> 1;
    let four = two & two >> 2;
    let eight = four & four >> 4;
    (eight & eight >> 6) as u64
}
