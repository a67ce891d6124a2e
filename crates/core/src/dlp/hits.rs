//! What detectors say about a text.

use super::finding::Finding;
use super::kind::{Entity, Family, Tier};
use super::options::Settings;
use super::tokens::RunEnds;
use super::view::LOOK_BACK;

/// Collects what detectors find, and from where on they cannot tell yet.
#[derive(Debug)]
pub(super) struct Hits<'s> {
    pub(super) findings: Vec<Finding>,
    pub(super) unsure_from: usize,
    /// Where the detector was called.
    pub(super) trigger: usize,
    settings: &'s Settings,
    /// What the rules for keys remember of this text.
    pub(super) run_ends: RunEnds,
}

impl<'s> Hits<'s> {
    /// With the catalogue as it is by default.
    #[cfg(test)]
    pub(super) fn new() -> Hits<'static> {
        Hits::of(&super::scan::CATALOGUE)
    }

    pub(super) fn of(settings: &'s Settings) -> Hits<'s> {
        Hits { findings: Vec::new(), unsure_from: usize::MAX, trigger: 0, settings, run_ends: RunEnds::default() }
    }

    /// Whether this kind is looked for. Asked before work that only kinds need which are off by default.
    pub(super) fn wants(&self, entity: Entity) -> bool {
        self.settings.wants(entity)
    }

    /// Whether a kind is a secret, and not only somebody's name or place.
    pub(super) fn is_secret(&self, entity: Entity) -> bool {
        let family = self.settings.kind(entity).map_or(Family::Credential, |kind| kind.family);
        !matches!(family, Family::Pii | Family::Infra)
    }

    /// Whether kinds are looked for that are off by default.
    pub(super) fn wants_optional(&self) -> bool {
        self.settings.wants_optional
    }

    /// Ends of the names of machines inside.
    pub(super) fn domains(&self) -> &'s [String] {
        &self.settings.domains
    }

    /// A value that begins more than [`LOOK_BACK`] bytes behind what led to it is not found: a stream may have let go
    /// of that by then.
    pub(super) fn found(&mut self, entity: Entity, tier: Tier, start: usize, end: usize) {
        if start < end && start <= self.trigger + LOOK_BACK && self.settings.wants(entity) {
            self.findings.push(Finding { entity, start, end, tier });
        }
    }

    /// Something may begin at `start`, and the text ends before that can be said.
    pub(super) fn unsure(&mut self, start: usize) {
        self.unsure_from = self.unsure_from.min(start);
    }
}
