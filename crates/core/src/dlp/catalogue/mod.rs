//! Every kind that Sprag knows by itself, a file for each part.

mod ai;
mod cloud;
mod code;
mod credentials;
mod financial;
mod infra;
mod personal;
mod services;
mod vendors;

use super::kind::{Entity, Family, Kind};
use super::tokens::format::Vendor;

const PARTS: &[&[Kind]] = &[
    ai::KINDS,
    cloud::KINDS,
    code::KINDS,
    services::MESSAGING,
    services::MONEY,
    services::WATCHING,
    services::BUSINESS,
    vendors::KINDS,
    credentials::KINDS,
    financial::KINDS,
    personal::KINDS,
    infra::KINDS,
];

/// The vendors whose keys have a form of their own, in the order of their kinds: they stand first in the catalogue.
pub(super) const VENDORS: &[&[Vendor]] = &[
    ai::VENDORS,
    cloud::VENDORS,
    code::VENDORS,
    services::VENDORS[0],
    services::VENDORS[1],
    services::VENDORS[2],
    services::VENDORS[3],
];

const LENGTH: usize = {
    let (mut part, mut length) = (0, 0);
    while part < PARTS.len() {
        length += PARTS[part].len();
        part += 1;
    }
    length
};

static ALL: [Kind; LENGTH] = {
    let mut all = [row("", Family::ApiKey, "", ""); LENGTH];
    let (mut part, mut place) = (0, 0);
    while part < PARTS.len() {
        let mut at = 0;
        while at < PARTS[part].len() {
            all[place] = PARTS[part][at];
            (at, place) = (at + 1, place + 1);
        }
        part += 1;
    }
    all
};

/// The catalogue. A kind's place in it is its [`Entity`].
pub static KINDS: &[Kind] = &ALL;

pub(super) const fn row(id: &'static str, family: Family, title: &'static str, form: &'static str) -> Kind {
    Kind { id, family, title, form, is_on: true }
}

/// A kind that is looked for only when it is switched on.
const fn optional(id: &'static str, family: Family, title: &'static str, form: &'static str) -> Kind {
    Kind { id, family, title, form, is_on: false }
}

/// The entity with this name; known when compiling.
#[expect(clippy::panic, reason = "met when compiling, never when running")]
pub(super) const fn entity(id: &str) -> Entity {
    let (mut part, mut place) = (0, 0);
    while part < PARTS.len() {
        let mut at = 0;
        while at < PARTS[part].len() {
            if is_same(PARTS[part][at].id, id) {
                return Entity(place);
            }
            (at, place) = (at + 1, place + 1);
        }
        part += 1;
    }
    panic!("no such kind")
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        for (place, kind) in KINDS.iter().enumerate() {
            assert_eq!(usize::from(entity(kind.id).0), place, "{} stands twice", kind.id);
            let is_named =
                kind.id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
            assert!(is_named && !kind.id.is_empty() && !kind.title.is_empty() && !kind.form.is_empty(), "{kind:?}");
        }
    }
}
