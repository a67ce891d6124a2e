//! Where an agent stands: whether it may call, and what was set for it beside the configuration.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::time::Timestamp;

/// What is remembered of an agent. An agent without one is active.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentStanding {
    /// It may call.
    pub active: bool,
    /// What set it inactive; absent while it is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deactivated_by: Option<DeactivatedBy>,
    /// When it was last set active or inactive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Why it is inactive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What that rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Value>,
    /// What was set for its kill switch.
    #[serde(default)]
    pub kill_switch: KillSwitchChange,
    /// What was set of its policy, in the form of `[agents.NAME]` in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
}

/// What set an agent inactive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum DeactivatedBy {
    /// The kill switch: a detector with this action.
    KillSwitch,
    /// A person.
    Manual,
}

/// The kill switch of an agent: the similarity score over its last requests, and what it trips above.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KillSwitch {
    /// Whether it is on.
    pub enabled: bool,
    /// Requests that are looked at.
    pub window_size: u32,
    /// The score above which the agent is set inactive.
    pub threshold: f64,
}

/// What replaces a part of a [`KillSwitch`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KillSwitchChange {
    /// Whether it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Requests that are looked at, [`KillSwitch::WINDOWS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_size: Option<u32>,
    /// The threshold, [`KillSwitch::THRESHOLDS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
}

impl Default for AgentStanding {
    fn default() -> AgentStanding {
        AgentStanding {
            active: true,
            deactivated_by: None,
            at: None,
            reason: None,
            proof: None,
            kill_switch: KillSwitchChange::default(),
            policy: None,
        }
    }
}

impl AgentStanding {
    /// The same, active since `now`.
    #[must_use]
    pub fn activated(&self, now: Timestamp) -> AgentStanding {
        AgentStanding {
            at: Some(now),
            kill_switch: self.kill_switch,
            policy: self.policy.clone(),
            ..AgentStanding::default()
        }
    }

    /// The same, inactive since `now`.
    #[must_use]
    pub fn deactivated(
        &self,
        by: DeactivatedBy,
        reason: String,
        proof: Option<Value>,
        now: Timestamp,
    ) -> AgentStanding {
        AgentStanding {
            active: false,
            deactivated_by: Some(by),
            at: Some(now),
            reason: Some(reason),
            proof,
            kill_switch: self.kill_switch,
            policy: self.policy.clone(),
        }
    }
}

impl Default for KillSwitch {
    fn default() -> KillSwitch {
        KillSwitch { enabled: false, window_size: 20, threshold: 10.0 }
    }
}

impl KillSwitch {
    /// Window sizes that make sense.
    pub const WINDOWS: std::ops::RangeInclusive<u32> = 5..=100;
    /// Thresholds that make sense.
    pub const THRESHOLDS: std::ops::RangeInclusive<f64> = 1.0..=50.0;
}

impl KillSwitchChange {
    /// A kill switch with this change made to it.
    #[must_use]
    pub fn over(self, base: KillSwitch) -> KillSwitch {
        KillSwitch {
            enabled: self.enabled.unwrap_or(base.enabled),
            window_size: self.window_size.unwrap_or(base.window_size),
            threshold: self.threshold.unwrap_or(base.threshold),
        }
    }

    /// This change after an earlier one.
    #[must_use]
    pub fn after(self, earlier: KillSwitchChange) -> KillSwitchChange {
        KillSwitchChange {
            enabled: self.enabled.or(earlier.enabled),
            window_size: self.window_size.or(earlier.window_size),
            threshold: self.threshold.or(earlier.threshold),
        }
    }

    /// What is wrong with it.
    #[must_use]
    pub fn problem(self) -> Option<&'static str> {
        if self.window_size.is_some_and(|size| !KillSwitch::WINDOWS.contains(&size)) {
            return Some("`window_size` is a number from 5 to 100");
        }
        if self.threshold.is_some_and(|threshold| !KillSwitch::THRESHOLDS.contains(&threshold)) {
            return Some("`threshold` is a number from 1 to 50");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activating_clears_why_it_was_inactive_and_keeps_what_was_set() {
        let kill_switch = KillSwitchChange { enabled: Some(true), ..KillSwitchChange::default() };
        let policy = Some(serde_json::json!({"budget": {"daily_limit": "1.00"}}));
        let before = AgentStanding { kill_switch, policy: policy.clone(), ..AgentStanding::default() };
        let off = before.deactivated(DeactivatedBy::KillSwitch, "r".into(), Some(Value::Null), Timestamp(1));
        assert_eq!(
            (off.active, off.deactivated_by, off.kill_switch, &off.policy),
            (false, Some(DeactivatedBy::KillSwitch), kill_switch, &policy)
        );
        let on = off.activated(Timestamp(2));
        assert_eq!(on, AgentStanding { at: Some(Timestamp(2)), kill_switch, policy, ..AgentStanding::default() });
    }

    #[test]
    fn changes_are_made_key_by_key() {
        let base = KillSwitch::default();
        let first = KillSwitchChange { enabled: Some(true), threshold: Some(5.0), window_size: None };
        let second = KillSwitchChange { threshold: Some(7.0), ..KillSwitchChange::default() };
        let both = second.after(first).over(base);
        assert_eq!(both, KillSwitch { enabled: true, window_size: 20, threshold: 7.0 });
    }

    #[test]
    fn sizes_and_thresholds_have_bounds() {
        let size =
            |size| KillSwitchChange { window_size: Some(size), ..KillSwitchChange::default() }.problem().is_none();
        assert_eq!([4, 5, 100, 101].map(size), [false, true, true, false]);
        let limit =
            |limit| KillSwitchChange { threshold: Some(limit), ..KillSwitchChange::default() }.problem().is_none();
        assert_eq!([0.9, 1.0, 50.0, 50.1, f64::NAN].map(limit), [false, true, true, false, false]);
    }
}
