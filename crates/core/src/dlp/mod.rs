//! Secrets and personal data in what passes between agents and models: found, named, hidden.
//!
//! [`Scanner`] looks at text and says where something stands that should not leave. It is one function of the text:
//! a stream that is scanned piece by piece gives the same findings as the whole, because the scanner also says up to
//! where it is sure ([`Scan::settled`]). What is done about a finding is decided by a [`DlpPolicy`].
//!
//! ```text
//! bytes → triggers (scan.rs) → a look around each (tokens, credentials, numbers, names) → findings → resolved
//! ```
//!
//! A detector never looks further back than [`LOOK_BACK`] bytes, nor further ahead than [`LOOK_AHEAD`].

mod allowed;
mod byte_set;
mod catalogue;
mod credentials;
mod finding;
mod hits;
mod inspector;
mod json;
mod kind;
mod names;
mod numbers;
mod options;
mod pattern;
mod policy;
mod prefilter;
mod random;
mod record;
mod redact;
mod refusal;
mod restore;
mod rules;
mod scan;
mod seen;
mod self_test;
mod sighting;
mod stream;
mod text_stream;
mod tokens;
mod vault;
mod view;

pub use catalogue::KINDS;
pub use finding::Finding;
pub use inspector::{Inspector, Place, Treatment};
pub use json::{Inspected, apply_edits, inspect_json, ranges_of};
pub use kind::{Entity, Family, Kind, Tier};
pub use options::{KindView, OptionsError, ScanOptions};
pub use pattern::{PatternError, PatternSpec};
pub use policy::{Action, Direction, DlpPolicy, Hiding, Mode};
pub use record::{for_record, holds_secret};
pub use redact::redact_text;
pub use refusal::dlp_refusal;
pub use rules::{DlpRules, FAMILIES, Profile, REVERSIBLE, Ways};
pub use scan::{Scan, Scanner};
pub use seen::Seen;
pub use self_test::{Surface, self_test};
pub use sighting::{Outcome, Sighting, Sightings, hint};
pub use stream::{Flow, StreamFilter};
pub use text_stream::{Piece, TextStream};
pub use tokens::vendor_patterns;
pub use vault::Vault;
pub use view::{LOOK_AHEAD, LOOK_BACK};
