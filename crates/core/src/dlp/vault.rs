//! What was hidden of a run and can be put back: values of the client that the provider sees as `[EMAIL_1]`.
//!
//! In memory only, overwritten when dropped, never printed.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use zeroize::Zeroizing;

use super::kind::Entity;
use crate::limits::{VAULT_BYTES, VAULT_VALUES};

/// The values of one run.
#[derive(Default)]
pub struct Vault {
    values: Vec<Entry>,
    /// Where in `values` a value stands, by its hash. Of two with the same hash the first is here.
    by_value: HashMap<u64, usize>,
    by_number: HashMap<(Entity, u32), usize>,
    /// Numbers given out, by kind: a placeholder is never used for two values.
    given: HashMap<Entity, u32>,
    hasher: RandomState,
    bytes: usize,
}

struct Entry {
    entity: Entity,
    number: u32,
    value: Zeroizing<String>,
}

/// Beyond this a number that stands in a text is no reason to count on from there: placeholders have nine digits at most.
const LAST_PASSED_OVER: u32 = 99_999_999;

impl Vault {
    /// The number of a value among those of its kind: the same each time it comes. None when the vault is full.
    pub fn keep(&mut self, entity: Entity, value: &str) -> Option<u32> {
        if let Some(known) = self.entry(entity, value) {
            return Some(known.number);
        }
        if self.values.len() >= VAULT_VALUES || self.bytes + value.len() > VAULT_BYTES {
            return None;
        }
        let given = self.given.entry(entity).or_insert(0);
        *given += 1;
        let (number, place) = (*given, self.values.len());
        self.bytes += value.len();
        self.by_value.entry(self.hasher.hash_one((entity, value))).or_insert(place);
        self.by_number.insert((entity, number), place);
        self.values.push(Entry { entity, number, value: Zeroizing::new(value.to_owned()) });
        Some(number)
    }

    /// A text says `[EMAIL_1]` by itself: unless that is a value of this vault, the number is not given out.
    pub fn pass_over(&mut self, entity: Entity, number: u32) {
        if number <= LAST_PASSED_OVER && !self.by_number.contains_key(&(entity, number)) {
            let given = self.given.entry(entity).or_insert(0);
            *given = number.max(*given);
        }
    }

    /// The value with this number.
    #[must_use]
    pub fn value(&self, entity: Entity, number: u32) -> Option<&str> {
        let place = *self.by_number.get(&(entity, number))?;
        self.values.get(place).map(|entry| entry.value.as_str())
    }

    /// Whether the client itself has sent this value.
    #[must_use]
    pub fn holds(&self, entity: Entity, value: &str) -> bool {
        self.entry(entity, value).is_some()
    }

    /// The kinds of which there are values.
    pub fn kinds(&self) -> impl Iterator<Item = Entity> {
        self.given.keys().copied().filter(|_| !self.values.is_empty())
    }

    /// Whether there is nothing to put back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Forgets everything, but for the numbers that were given out.
    pub fn clear(&mut self) {
        self.values.clear();
        self.by_value.clear();
        self.by_number.clear();
        self.bytes = 0;
    }

    fn entry(&self, entity: Entity, value: &str) -> Option<&Entry> {
        let is_it = |entry: &&Entry| entry.entity == entity && *entry.value == value;
        let first = self.values.get(*self.by_value.get(&self.hasher.hash_one((entity, value)))?);
        first.filter(is_it).or_else(|| self.values.iter().find(is_it))
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Entity = Entity(3);

    #[test]
    fn a_value_keeps_its_number_and_a_number_its_value() {
        let mut vault = Vault::default();
        assert_eq!(vault.keep(KIND, "a"), Some(1));
        assert_eq!(vault.keep(KIND, "b"), Some(2));
        assert_eq!(vault.keep(Entity(4), "a"), Some(1));
        assert_eq!(vault.keep(KIND, "a"), Some(1));
        assert_eq!((vault.value(KIND, 2), vault.value(KIND, 3)), (Some("b"), None));
        assert!(vault.holds(KIND, "b") && !vault.holds(Entity(4), "b"));
        vault.clear();
        assert!(vault.is_empty() && !vault.holds(KIND, "a") && vault.kinds().next().is_none());
        assert_eq!(vault.keep(KIND, "zebra"), Some(3), "a number is never given twice");
        assert!(!format!("{vault:?}").contains("zebra"));
    }

    #[test]
    fn a_number_that_others_use_is_not_given_out() {
        let mut vault = Vault::default();
        assert_eq!(vault.keep(KIND, "a"), Some(1));
        vault.pass_over(KIND, 1);
        assert_eq!(vault.keep(KIND, "b"), Some(2), "its own number does not count");
        vault.pass_over(KIND, 7);
        vault.pass_over(KIND, 5);
        assert_eq!((vault.keep(KIND, "c"), vault.keep(Entity(4), "c")), (Some(8), Some(1)));
        vault.pass_over(KIND, LAST_PASSED_OVER + 1);
        assert_eq!(vault.keep(KIND, "d"), Some(9));
        vault.pass_over(KIND, LAST_PASSED_OVER);
        assert_eq!(vault.keep(KIND, "e"), Some(LAST_PASSED_OVER + 1));
    }

    #[test]
    fn a_full_vault_takes_no_more_and_still_knows_what_it_has() {
        let mut vault = Vault::default();
        for number in 0..VAULT_VALUES {
            assert!(vault.keep(KIND, &number.to_string()).is_some());
        }
        assert_eq!(vault.keep(KIND, "one more"), None);
        assert_eq!(vault.keep(KIND, "7"), Some(8));

        let mut vault = Vault::default();
        assert!(vault.keep(KIND, &"x".repeat(VAULT_BYTES)).is_some());
        assert_eq!(vault.keep(KIND, "y"), None);
        assert!(Vault::default().keep(KIND, &"x".repeat(VAULT_BYTES + 1)).is_none());
    }
}
