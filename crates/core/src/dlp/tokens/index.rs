//! Which formats begin with the bytes at a place: a hash of three bytes, built when compiling.

use super::format::Format;
use super::{jwt, key_files};
use crate::dlp::catalogue::{VENDORS, entity};
use crate::dlp::hits::Hits;
use crate::dlp::kind::Entity;
use crate::dlp::prefilter::TokenStart;
use crate::dlp::view::View;

/// A prefix, and what it begins.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// The first three bytes.
    key: u32,
    /// The fourth, which tells nearly all others apart; zero if the prefix is shorter.
    fourth: u8,
    /// The next entry with the same hash.
    next: u16,
    pub(super) prefix: &'static str,
    pub(super) what: What,
}

/// What a prefix begins.
#[derive(Clone, Copy)]
pub(super) enum What {
    Format { entity: Entity, format: &'static Format },
    Own(Look),
}

/// Looks at a place where its prefix stands, and says itself what is found and what is open.
pub(super) type Look = fn(&View<'_>, usize, &mut Hits);

/// What is no row of the table.
const OWN: &[(&str, Look)] = &[
    ("eyJ", jwt::look),
    ("eyA", jwt::look),
    ("ewo", jwt::look),
    ("ew0", jwt::look),
    ("ZXlK", jwt::look_at_base64),
    ("LS0tLS1CRUdJTi", key_files::look_at_base64),
    ("Private-Lines:", key_files::look_at_putty),
];

const SLOTS: usize = 2048;
const BEGINNINGS: usize = 1 << 13;
const NONE: u16 = u16::MAX;
const COUNT: usize = count();

struct Index {
    heads: [u16; SLOTS],
    entries: [Entry; COUNT],
}

static INDEX: Index = build();

/// What all prefixes with one hash have in common in their first eight bytes. The hash is of the first three.
#[derive(Clone, Copy)]
struct Common {
    /// The bits that they agree in.
    mask: u64,
    bits: u64,
}

/// Agrees with nothing: no token has a zero byte.
const NOTHING: Common = Common { mask: u64::MAX, bits: 0 };

/// For each hash its place in the list. Both are small enough to stay near the processor.
struct Commons {
    places: [u16; BEGINNINGS],
    list: [Common; COUNT + 1],
}

static COMMONS: Commons = {
    let mut commons = Commons { places: [0; BEGINNINGS], list: [NOTHING; COUNT + 1] };
    let (mut at, mut length) = (0, 1);
    while at < COUNT {
        let entry = &INDEX.entries[at];
        let new = first_eight(entry);
        let place = &mut commons.places[beginning(entry.key)];
        if *place == 0 {
            *place = length as u16;
            commons.list[length] = new;
            length += 1;
        } else {
            let known = &mut commons.list[*place as usize];
            known.mask &= new.mask & !(known.bits ^ new.bits);
            known.bits &= known.mask;
        }
        at += 1;
    }
    commons
};

const fn first_eight(entry: &Entry) -> Common {
    let (mut bits, mut length) = ((entry.key as u64) << 40, 3);
    while length < 8 && length < entry.prefix.len() {
        bits |= (entry.prefix.as_bytes()[length] as u64) << (56 - 8 * length);
        length += 1;
    }
    Common { mask: u64::MAX << (64 - 8 * length), bits }
}

/// What may begin here; the prefixes stand there whole.
pub(super) fn at(rest: &[u8]) -> impl Iterator<Item = &'static Entry> {
    let key = match *rest {
        [a, b, c, ..] => key_of(a, b, c),
        _ => 0,
    };
    let fourth = rest.get(3).copied().unwrap_or(0);
    chain(key)
        .filter(move |entry| entry.fourth == 0 || (entry.fourth == fourth && rest.starts_with(entry.prefix.as_bytes())))
}

/// Whether a prefix may begin with these bytes: without a branch, and nearly always right.
#[inline]
pub(super) fn may_have(first: TokenStart) -> bool {
    let first = u64::from_be_bytes(first);
    let place = COMMONS.places[beginning((first >> 40) as u32)];
    let common = COMMONS.list[usize::from(place)];
    first & common.mask == common.bits
}

impl Entry {
    pub(super) fn is_address_of(&self, wanted: Entity) -> bool {
        matches!(self.what, What::Format { entity, format } if entity == wanted && format.is_address)
    }
}

/// How many formats of the table have no prefix, and no mark if `is_unmarked`.
pub(super) const fn count_formats(is_unmarked: bool) -> usize {
    let (mut table, mut count) = (0, 0);
    while table < VENDORS.len() {
        let mut at = 0;
        while at < VENDORS[table].len() {
            let formats = VENDORS[table][at].formats;
            let mut one = 0;
            while one < formats.len() {
                if formats[one].prefixes.is_empty() && formats[one].mark.is_none() == is_unmarked {
                    count += 1;
                }
                one += 1;
            }
            at += 1;
        }
        table += 1;
    }
    count
}

fn chain(key: u32) -> impl Iterator<Item = &'static Entry> {
    let mut next = INDEX.heads[slot(key)];
    std::iter::from_fn(move || {
        let entry = INDEX.entries.get(usize::from(next))?;
        next = entry.next;
        Some(entry)
    })
    .filter(move |entry| entry.key == key)
}

const fn key_of(a: u8, b: u8, c: u8) -> u32 {
    (a as u32) << 16 | (b as u32) << 8 | c as u32
}

const fn beginning(key: u32) -> usize {
    (key.wrapping_mul(0x9E37_79B1) >> 19) as usize % BEGINNINGS
}

const fn slot(key: u32) -> usize {
    (key.wrapping_mul(0x9E37_79B1) >> 21) as usize % SLOTS
}

/// How many entries a format's prefix has: one for each third byte, if the prefix has only two.
const fn count_of(prefix: &str, format: &Format) -> usize {
    if prefix.len() > 2 {
        return 1;
    }
    let (mut byte, mut count) = (0, 0);
    while byte < 128 {
        count += format.follows(byte) as usize;
        byte += 1;
    }
    count
}

const fn count_in(format: &Format) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < format.prefixes.len() {
        count += count_of(format.prefixes[at], format);
        at += 1;
    }
    count
}

const fn count() -> usize {
    let mut count = OWN.len() + count_in(&key_files::NATS_SEED);
    let mut table = 0;
    while table < VENDORS.len() {
        let mut at = 0;
        while at < VENDORS[table].len() {
            let mut one = 0;
            while one < VENDORS[table][at].formats.len() {
                count += count_in(&VENDORS[table][at].formats[one]);
                one += 1;
            }
            at += 1;
        }
        table += 1;
    }
    count
}

const fn build() -> Index {
    let none = Entry { key: 0, fourth: 0, next: NONE, prefix: "", what: What::Own(jwt::look) };
    let mut index = Index { heads: [NONE; SLOTS], entries: [none; COUNT] };
    let mut length = 0;
    let mut own = 0;
    while own < OWN.len() {
        let (prefix, look) = OWN[own];
        let bytes = prefix.as_bytes();
        add(&mut index, &mut length, key_of(bytes[0], bytes[1], bytes[2]), prefix, What::Own(look));
        own += 1;
    }
    add_format(&mut index, &mut length, entity("PRIVATE_KEY"), &key_files::NATS_SEED);
    let (mut table, mut place) = (0, 0);
    while table < VENDORS.len() {
        let mut at = 0;
        while at < VENDORS[table].len() {
            let formats = VENDORS[table][at].formats;
            let mut one = 0;
            while one < formats.len() {
                add_format(&mut index, &mut length, Entity(place), &formats[one]);
                one += 1;
            }
            (at, place) = (at + 1, place + 1);
        }
        table += 1;
    }
    index
}

const fn add_format(index: &mut Index, length: &mut usize, entity: Entity, format: &'static Format) {
    let mut at = 0;
    while at < format.prefixes.len() {
        let prefix = format.prefixes[at];
        let bytes = prefix.as_bytes();
        let what = What::Format { entity, format };
        if bytes.len() > 2 {
            add(index, length, key_of(bytes[0], bytes[1], bytes[2]), prefix, what);
        } else {
            let mut third = 0;
            while third < 128 {
                if format.follows(third) {
                    add(index, length, key_of(bytes[0], bytes[1], third), prefix, what);
                }
                third += 1;
            }
        }
        at += 1;
    }
}

const fn add(index: &mut Index, length: &mut usize, key: u32, prefix: &'static str, what: What) {
    let head = &mut index.heads[slot(key)];
    let fourth = if prefix.len() > 3 { prefix.as_bytes()[3] } else { 0 };
    index.entries[*length] = Entry { key, fourth, next: *head, prefix, what };
    *head = *length as u16;
    *length += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dlp::prefilter::TOKEN_RUN;
    use crate::dlp::tokens::MARKS;
    use crate::dlp::tokens::format::Part;

    /// Which bytes a key may have at each of its places, as short as it can be.
    fn shortest(prefix: &str, format: &Format) -> Vec<Vec<u8>> {
        let mut places: Vec<Vec<u8>> = prefix.bytes().map(|byte| vec![byte]).collect();
        for part in format.parts() {
            match *part {
                Part::Text(sign) => places.extend(sign.bytes().map(|byte| vec![byte])),
                Part::Run { of, least, .. } => {
                    places.extend(vec![(0..128).filter(|byte| of.has(*byte)).collect::<Vec<u8>>(); least]);
                }
            }
        }
        places
    }

    #[test]
    fn every_prefix_is_met_by_a_run_or_by_a_mark() {
        for entry in &INDEX.entries {
            let What::Format { format, .. } = entry.what else { continue };
            let places = shortest(entry.prefix, format);
            let is_run = places.len() >= TOKEN_RUN && places[..TOKEN_RUN].iter().flatten().all(|byte| *byte >= b'+');
            let has_mark = MARKS.iter().any(|mark| entry.prefix.starts_with(mark));
            assert!(is_run || has_mark, "{} is too short, or a byte of it ends the run", entry.prefix);
        }
        let (own, _) = OWN.iter().min_by_key(|(prefix, _)| if prefix.len() > 4 { prefix.len() } else { 99 }).unwrap();
        assert!(own.len() >= TOKEN_RUN, "{own}");
    }
}
