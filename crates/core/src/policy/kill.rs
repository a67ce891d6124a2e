//! Kill records: what is stopped, why, by whom, and until when.

use serde::{Deserialize, Serialize};

use super::kept_proof::KeptProof;
use super::scope::KillScope;
use crate::id::{AgentName, RunId};
use crate::limits::KILL_REASON_BYTES;
use crate::time::Timestamp;

/// One decision to stop something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kill {
    /// Unique and ordered by time.
    pub id: String,
    /// What is stopped.
    pub scope: KillScope,
    /// For good, or until somebody approves.
    #[serde(default)]
    pub kind: KillKind,
    /// Why, as errors and pages say it: `loop_detected`, `step_limit`, or a person's words.
    pub reason: String,
    /// Who: a person, or `sprag` itself.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<KeptProof>,
}

/// Whether a stop is final.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum KillKind {
    /// Until a person approves.
    Pause,
    /// For good.
    #[default]
    Kill,
}

impl Kill {
    /// Whether it stops anything at this moment.
    #[must_use]
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether it makes `other`, of the same scope, superfluous: it is no weaker and ends no earlier.
    #[must_use]
    pub fn covers(&self, other: &Kill) -> bool {
        let ends_no_earlier = match (self.expires_at, other.expires_at) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(others)) => own >= others,
        };
        self.is_in_force(other.at) && self.kind >= other.kind && ends_no_earlier
    }

    /// The same, put in the place of `known`, of the same scope, so that neither lets go early: while `known` is in
    /// force, the stronger kind and the later end of the two hold. A kill for an hour over a pause without end is thus a
    /// kill without end, and so is a pause without end over a kill for an hour.
    #[must_use]
    pub fn in_place_of(self, known: &Kill) -> Kill {
        if !known.is_in_force(self.at) {
            return self;
        }
        let expires_at = self.expires_at.zip(known.expires_at).map(|(own, earlier)| own.max(earlier));
        Kill { kind: self.kind.max(known.kind), expires_at, ..self }
    }

    /// The run that it stops, where it stops one.
    #[must_use]
    pub fn run(&self) -> Option<(&AgentName, &RunId)> {
        match &self.scope {
            KillScope::Run { agent, run } => Some((agent, run)),
            _ => None,
        }
    }
}

/// A reason as it is kept: of bounded length, on one line.
#[must_use]
pub fn bounded_reason(text: &str) -> String {
    let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line[..line.floor_char_boundary(KILL_REASON_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kill(kind: KillKind, at: i64, end: Option<i64>) -> Kill {
        Kill {
            id: format!("k{at}"),
            scope: KillScope::Everything,
            kind,
            reason: String::new(),
            by: String::new(),
            at: Timestamp(at),
            expires_at: end.map(Timestamp),
            proof: None,
        }
    }

    #[test]
    fn the_stronger_and_longer_one_covers_the_other() {
        let (final_, pause) = (kill(KillKind::Kill, 0, None), kill(KillKind::Pause, 0, None));
        let short = kill(KillKind::Kill, 0, Some(5));
        assert!(final_.covers(&pause) && final_.covers(&short) && final_.covers(&final_));
        assert!(!pause.covers(&final_) && !short.covers(&final_));
        assert!(!short.covers(&kill(KillKind::Pause, 5, Some(5))), "it is over");
        assert!(short.is_in_force(Timestamp(4)) && !short.is_in_force(Timestamp(5)));
    }

    #[test]
    fn one_in_the_place_of_another_lets_go_no_earlier_and_is_no_weaker() {
        use KillKind::{Kill as Final, Pause};
        for (known, new, expected) in [
            ((Pause, None), (Final, Some(9)), (Final, None)),
            ((Final, Some(9)), (Pause, None), (Final, None)),
            ((Final, Some(9)), (Pause, Some(20)), (Final, Some(20))),
            ((Pause, Some(20)), (Final, Some(9)), (Final, Some(20))),
            ((Pause, None), (Final, None), (Final, None)),
            // What is over holds nobody.
            ((Final, Some(5)), (Pause, None), (Pause, None)),
            ((Final, Some(5)), (Pause, Some(9)), (Pause, Some(9))),
        ] {
            let merged = kill(new.0, 5, new.1).in_place_of(&kill(known.0, 0, known.1));
            assert_eq!((merged.kind, merged.expires_at.map(|end| end.0)), expected, "{new:?} over {known:?}");
            assert_eq!(merged.id, "k5", "it is the new one in all else");
        }
    }

    #[test]
    fn reasons_are_bounded_and_on_one_line() {
        assert_eq!(bounded_reason(" a\nb "), "a b");
        assert_eq!(bounded_reason(&"é".repeat(KILL_REASON_BYTES)).len(), KILL_REASON_BYTES);
        assert_eq!(bounded_reason(&"x".repeat(KILL_REASON_BYTES + 1)).len(), KILL_REASON_BYTES);
    }
}
