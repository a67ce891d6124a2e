//! A place in a text. Never what stands there.

use super::kind::{Entity, Tier};

/// Something that was found, by where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub entity: Entity,
    /// First byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
    /// How sure it is.
    pub tier: Tier,
}
