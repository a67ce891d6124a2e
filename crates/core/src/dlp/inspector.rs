//! What is done about the findings of one call: the scanner, the policy and the vault, together.

use std::sync::{Arc, Mutex, PoisonError};

use super::kind::{Entity, Tier};
use super::policy::{Action, Direction, DlpPolicy, Hiding};
use super::scan::Scanner;
use super::sighting::{Outcome, Sighting, Sightings, hint};
use super::vault::Vault;

/// Looks at one call, both ways.
#[derive(Clone, Debug)]
pub struct Inspector {
    /// What is looked for.
    pub scanner: Arc<Scanner>,
    /// What is done about it.
    pub policy: Arc<DlpPolicy>,
    /// What can be put back; None where nothing is hidden reversibly.
    pub vault: Option<Arc<Mutex<Vault>>>,
}

/// What becomes of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It stays.
    Keep,
    /// This stands in its place. Only letters, digits and `[]:_`, so that it needs no escapes anywhere.
    Replace(String),
    /// The call is stopped.
    Stop,
}

impl Inspector {
    /// Decides on a value that was found, and puts it on record.
    pub fn treat(
        &self,
        direction: Direction,
        entity: Entity,
        tier: Tier,
        value: &str,
        place: Place<'_>,
        sightings: &mut Sightings,
    ) -> Treatment {
        let action = match self.policy.action(entity, direction) {
            Action::StopIfSure if tier == Tier::Context => Action::Hide(Hiding::ForGood),
            Action::StopIfSure => Action::Stop,
            action => action,
        };
        self.act(action, direction, entity, value, place, sightings)
    }

    /// The same in a text that cannot be stopped: what would stop it is hidden for good.
    pub(super) fn treat_in_text(
        &self,
        direction: Direction,
        entity: Entity,
        value: &str,
        place: Place<'_>,
        sightings: &mut Sightings,
    ) -> Treatment {
        let action = match self.policy.action(entity, direction) {
            Action::Stop | Action::StopIfSure => Action::Hide(Hiding::ForGood),
            action => action,
        };
        self.act(action, direction, entity, value, place, sightings)
    }

    fn act(
        &self,
        action: Action,
        direction: Direction,
        entity: Entity,
        value: &str,
        place: Place<'_>,
        sightings: &mut Sightings,
    ) -> Treatment {
        let id = self.scanner.id(entity);
        // What the client itself has sent goes back to it.
        if direction == Direction::Answer && self.holds(entity, value) {
            return Treatment::Keep;
        }
        let (treatment, outcome) = match action {
            Action::Pass => return Treatment::Keep,
            Action::Note => (Treatment::Keep, Outcome::Logged),
            Action::Stop | Action::StopIfSure => (Treatment::Stop, Outcome::Blocked),
            Action::Hide(hiding) => match self.number(direction, hiding, entity, value) {
                Some(number) => (Treatment::Replace(format!("[{id}_{number}]")), Outcome::Covered),
                None => (Treatment::Replace(format!("[REDACTED:{id}]")), Outcome::Redacted),
            },
        };
        self.put_on_record(direction, outcome, entity, value, place, sightings);
        treatment
    }

    /// Puts a value on record that stays whatever the policy says, unless that knows nothing of its kind.
    pub(super) fn note(
        &self,
        direction: Direction,
        entity: Entity,
        value: &str,
        place: Place<'_>,
        sightings: &mut Sightings,
    ) {
        if self.policy.action(entity, direction) != Action::Pass {
            self.put_on_record(direction, Outcome::Logged, entity, value, place, sightings);
        }
    }

    fn put_on_record(
        &self,
        direction: Direction,
        outcome: Outcome,
        entity: Entity,
        value: &str,
        place: Place<'_>,
        sightings: &mut Sightings,
    ) {
        sightings.note(Sighting {
            entity: self.scanner.id(entity).to_owned(),
            direction,
            outcome,
            path: place.path.to_owned(),
            start: place.start,
            length: value.len(),
            hint: hint(value),
        });
    }

    /// Whether this value would get a number that no value had before.
    pub(super) fn is_new(&self, direction: Direction, entity: Entity, value: &str) -> bool {
        let action = self.policy.action(entity, direction);
        direction == Direction::Request
            && action == Action::Hide(Hiding::Reversible)
            && self.vault.is_some()
            && !self.holds(entity, value)
    }

    /// Whether texts that go this way can change at all: something would be hidden, stopped or put back.
    pub(super) fn may_change(&self, direction: Direction) -> bool {
        let is_acted_on = |entity: Entity| {
            let action = self.policy.action(entity, direction);
            self.scanner.looks_for(entity) && !matches!(action, Action::Note | Action::Pass)
        };
        let vault = self.vault.as_ref().filter(|_| direction == Direction::Answer);
        let puts_back = |vault: &Mutex<Vault>| !vault.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        vault.is_some_and(|vault| puts_back(vault)) || self.kinds().any(is_acted_on)
    }

    /// Whether something that goes this way can be stopped.
    #[must_use]
    pub fn may_stop(&self, direction: Direction) -> bool {
        self.kinds().any(|entity| {
            let action = self.policy.action(entity, direction);
            self.scanner.looks_for(entity) && matches!(action, Action::Stop | Action::StopIfSure)
        })
    }

    fn kinds(&self) -> impl Iterator<Item = Entity> {
        (0..=u16::MAX).map(Entity).take_while(|entity| self.scanner.kind(*entity).is_some())
    }

    fn number(&self, direction: Direction, hiding: Hiding, entity: Entity, value: &str) -> Option<u32> {
        if direction == Direction::Answer || hiding == Hiding::ForGood {
            return None;
        }
        let mut vault = self.vault.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        vault.keep(entity, value)
    }

    fn holds(&self, entity: Entity, value: &str) -> bool {
        let vault = self.vault.as_ref().map(|vault| vault.lock().unwrap_or_else(PoisonError::into_inner));
        vault.is_some_and(|vault| vault.holds(entity, value))
    }
}

/// Where a value stands.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The JSON path of its text.
    pub path: &'a str,
    /// Its first byte in that text.
    pub start: usize,
}
