//! Everything that one agent may do, with nothing left open.

use std::sync::Arc;

use super::agent::KillSwitch;
use super::budget::Budget;
use super::hours::Hours;
use super::models::Models;
use super::rate::RateRule;
use super::run_limits::RunLimits;
use crate::dlp::DlpRules;
use crate::loops::{Action, Mode, Rules};

/// The policy of an agent: configuration and what was set over it, put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// How far its runs may go.
    pub run_limits: RunLimits,
    /// Its kill switch.
    pub kill_switch: KillSwitch,
    /// How its loops are detected, before its kill switch.
    pub rules: Arc<Rules>,
    /// When it may call.
    pub hours: Hours,
    /// What it may ask.
    pub models: Models,
    /// How often, in the order in which the rules are asked.
    pub rate_limits: Arc<[RateRule]>,
    /// What it may spend.
    pub budget: Budget,
    /// What is done about secrets and personal data.
    pub dlp: Arc<DlpRules>,
}

impl Policy {
    /// The rules of detection with the kill switch in them.
    #[must_use]
    pub fn rules_in_force(&self) -> Arc<Rules> {
        let score = &self.rules.score.common;
        match self.kill_switch.enabled {
            true => Arc::new(self.rules.with_kill_switch(self.kill_switch.window_size, self.kill_switch.threshold)),
            // Nothing deactivates an agent whose switch is off, whatever the preset says.
            false if score.mode == Mode::Enforce && score.action == Action::DeactivateAgent => {
                let mut rules = Rules::clone(&self.rules);
                rules.score.common.mode = Mode::Off;
                Arc::new(rules)
            }
            false => self.rules.clone(),
        }
    }
}
