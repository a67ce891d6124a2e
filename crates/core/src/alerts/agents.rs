//! What is known about agents for rules on failures and silence: when they called last, and how their calls went.

use std::collections::HashMap;

use super::error_rate::FailedCalls;
use super::now::Now;
use super::observation::Observation;
use super::rule::{AlertKind, AlertRule, AlertRules};
use crate::id::AgentName;
use crate::limits::AGENTS_WATCHED;
use crate::time::Timestamp;

/// The agents that called, and since when the calls are counted for each rule.
#[derive(Debug, Default)]
pub(super) struct Agents {
    watched: HashMap<AgentName, Watched>,
    /// One for each rule.
    counted_since: Vec<Option<Timestamp>>,
}

#[derive(Debug)]
pub(super) struct Watched {
    pub(super) last_call: Now,
    pub(super) blocked: u64,
    /// There was no room to tell its silence.
    pub(super) is_untold: bool,
    /// One for each rule, used by those about failures.
    failed: Vec<FailedCalls>,
}

impl Agents {
    /// Takes other rules. Counts of a rule that looks at the same as before go on.
    pub(super) fn set_rules(&mut self, old: &AlertRules, new: &AlertRules) {
        let is_same = |a: &AlertRule, b: &AlertRule| {
            a.name == b.name && a.kind == AlertKind::ErrorRate && b.kind == a.kind && a.error_rate == b.error_rate
        };
        let before: Vec<Option<usize>> =
            new.rules.iter().map(|rule| old.rules.iter().position(|other| is_same(rule, other))).collect();
        let since = |place: &Option<usize>| place.and_then(|place| *self.counted_since.get(place)?);
        self.counted_since = before.iter().map(since).collect();
        for watched in self.watched.values_mut().filter(|watched| !watched.failed.is_empty()) {
            let count = |place: &Option<usize>| place.and_then(|place| watched.failed.get(place).cloned());
            watched.failed = before.iter().map(|place| count(place).unwrap_or_default()).collect();
        }
    }

    /// Takes note of a request.
    pub(super) fn watch(&mut self, rules: &AlertRules, seen: &Observation, now: Now) {
        if self.watched.len() >= AGENTS_WATCHED && !self.watched.contains_key(&seen.agent) {
            let quietest = self.watched.iter().min_by_key(|(_, watched)| watched.last_call.steady);
            if let Some(agent) = quietest.map(|(agent, _)| agent.clone()) {
                self.watched.remove(&agent);
            }
        }
        let new = || Watched { last_call: now, blocked: 0, is_untold: false, failed: Vec::new() };
        let watched = self.watched.entry(seen.agent.clone()).or_insert_with(new);
        watched.last_call = now;
        watched.is_untold = false;
        watched.blocked += u64::from(seen.is_blocked);
        if !rules.rules.iter().any(|rule| rule.kind == AlertKind::ErrorRate) || seen.is_blocked {
            return;
        }
        watched.failed.resize_with(rules.rules.len(), FailedCalls::default);
        for (rule, failed) in rules.rules.iter().zip(&mut watched.failed) {
            if rule.kind == AlertKind::ErrorRate {
                failed.note(&rule.error_rate, now.steady, seen.is_failed);
            }
        }
    }

    /// Calls and failures of an agent in the window of a rule.
    pub(super) fn counts(&self, agent: &AgentName, number: usize, rule: &AlertRule, now: Now) -> (u64, u64) {
        let failed = self.watched.get(agent).and_then(|watched| watched.failed.get(number));
        failed.map_or((0, 0), |failed| failed.counts(&rule.error_rate, now.steady))
    }

    /// Whether calls were counted for as long as the window of a rule is.
    pub(super) fn is_whole(&mut self, number: usize, rule: &AlertRule, now: Now) -> bool {
        let Some(since) = self.counted_since.get_mut(number) else { return false };
        now.steady.since_ms(*since.get_or_insert(now.steady)) >= rule.error_rate.window_ms
    }

    /// What an agent was refused so far.
    pub(super) fn blocked(&self, agent: &AgentName) -> u64 {
        self.watched.get(agent).map_or(0, |watched| watched.blocked)
    }

    /// Those without a call for so long.
    pub(super) fn silent(&self, silent_ms: u64, now: Now) -> impl Iterator<Item = (&AgentName, &Watched)> {
        self.watched.iter().filter(move |(_, watched)| now.steady.since_ms(watched.last_call.steady) >= silent_ms)
    }

    /// Notes that there is no room to tell an agent's silence; whether that is new.
    pub(super) fn leave_untold(&mut self, agent: &AgentName) -> bool {
        self.watched.get_mut(agent).is_some_and(|watched| !std::mem::replace(&mut watched.is_untold, true))
    }

    pub(super) fn forget(&mut self, agent: &AgentName) {
        self.watched.remove(agent);
    }

    pub(super) fn last_call(&self, agent: &AgentName) -> Option<Timestamp> {
        self.watched.get(agent).map(|watched| watched.last_call.steady)
    }
}
