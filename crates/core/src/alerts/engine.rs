//! When something is told: once, then counted for a cooldown, told again while it lasts, and told when it is over.

use std::collections::HashMap;
use std::sync::Arc;

use super::alert::{Alert, AlertState, Occurrence};
use super::error_rate::{FailedCalls, is_too_high};
use super::observation::{Observation, Signal};
use super::rule::{AlertKind, AlertRule, AlertRules};
use crate::id::AgentName;
use crate::limits::{AGENTS_WATCHED, ALERT_SUBJECTS};
use crate::money::NanoUsd;
use crate::time::Timestamp;

/// What is known about what was told. It belongs to one task.
#[derive(Debug, Default)]
pub struct Engine {
    rules: Arc<AlertRules>,
    /// By rule and subject.
    standings: HashMap<(String, String), Standing>,
    agents: HashMap<AgentName, Watched>,
}

/// Where one subject of one rule stands.
#[derive(Debug, Default)]
struct Standing {
    /// It happened, or lasts.
    is_open: bool,
    /// Its end was told.
    is_told_over: bool,
    last_told: Option<Timestamp>,
    touched: Timestamp,
    suppressed: u64,
    /// What the agent had been refused before this began.
    blocked_before: u64,
    latest: Occurrence,
}

#[derive(Debug, Default)]
struct Watched {
    last_call: Timestamp,
    blocked: u64,
    /// One for each rule, used by those about failures.
    failed: Vec<FailedCalls>,
}

impl Engine {
    /// Takes other rules. What was told stays known; calls are counted anew.
    pub fn set_rules(&mut self, rules: Arc<AlertRules>) {
        self.standings.retain(|(rule, _), _| rules.rules.iter().any(|known| known.name == *rule));
        self.agents.values_mut().for_each(|watched| watched.failed.clear());
        self.rules = rules;
    }

    /// Remembers an alert that was told before a restart, so that its cooldown goes on.
    pub fn restore(&mut self, alert: &Alert, at: Timestamp) {
        let standing = Standing {
            is_open: alert.state != AlertState::Recovered,
            is_told_over: alert.state == AlertState::Recovered,
            last_told: Some(at),
            touched: at,
            latest: alert.occurrence.clone(),
            ..Standing::default()
        };
        self.standings.insert((alert.rule.clone(), alert.subject.clone()), standing);
    }

    /// Takes note of an event; `run_cost` is what its run has cost so far. Gives what is to be told at once.
    pub fn observe(&mut self, seen: &Observation, now: Timestamp, run_cost: Option<NanoUsd>) -> Vec<Alert> {
        let rules = self.rules.clone();
        if seen.is_request {
            self.watch(&rules, seen, now);
        }
        let blocked = self.agents.get(&seen.agent).map_or(0, |watched| watched.blocked);
        let mut alerts = Vec::new();
        for (number, rule) in rules.rules.iter().enumerate().filter(|(_, rule)| rule.covers(seen.agent.as_str())) {
            match rule.kind {
                AlertKind::ErrorRate if seen.is_request => {
                    alerts.extend(self.judge_failures(&rules, number, &seen.agent, now));
                }
                AlertKind::AgentDown if seen.is_request => self.end(rule, seen.agent.as_str(), now),
                AlertKind::KillSwitch if seen.is_activated => self.end(rule, seen.agent.as_str(), now),
                _ => {}
            }
            for signal in seen.signals.iter().filter(|signal| signal.kind == rule.kind) {
                let occurrence = occurrence(seen, signal).costing(run_cost.or(seen.cost));
                let before = blocked - u64::from(seen.is_blocked).min(blocked);
                alerts.extend(self.fire(&rules, rule, &signal.subject, occurrence, (before, blocked), now));
            }
        }
        alerts
    }

    /// Lets time pass. Gives what is to be told now: digests, repetitions, ends, and agents that are silent.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Alert> {
        let rules = self.rules.clone();
        let mut alerts = Vec::new();
        for (number, rule) in rules.rules.iter().enumerate() {
            match rule.kind {
                AlertKind::AgentDown => alerts.extend(self.find_silent(&rules, rule, now)),
                AlertKind::ErrorRate => self.end_old_failures(rule, number, now),
                _ => {}
            }
        }
        let mut gone = Vec::new();
        for ((name, subject), standing) in &mut self.standings {
            let Some(rule) = rules.rules.iter().find(|rule| rule.name == *name) else { continue };
            if rules.is_quiet(rule, now) {
                continue;
            }
            match standing.next(rule, now) {
                Next::Nothing => {}
                Next::Forget => gone.push((name.clone(), subject.clone())),
                Next::Tell(state) => alerts.push(standing.tell(rule, subject, state, now)),
            }
        }
        gone.iter().for_each(|key| drop(self.standings.remove(key)));
        alerts.sort_by(|a, b| (&a.rule, &a.subject).cmp(&(&b.rule, &b.subject)));
        alerts
    }

    fn watch(&mut self, rules: &AlertRules, seen: &Observation, now: Timestamp) {
        if self.agents.len() >= AGENTS_WATCHED && !self.agents.contains_key(&seen.agent) {
            let quietest = self.agents.iter().min_by_key(|(_, watched)| watched.last_call);
            if let Some(agent) = quietest.map(|(agent, _)| agent.clone()) {
                self.agents.remove(&agent);
            }
        }
        let watched = self.agents.entry(seen.agent.clone()).or_default();
        watched.last_call = now;
        watched.blocked += u64::from(seen.is_blocked);
        if !rules.rules.iter().any(|rule| rule.kind == AlertKind::ErrorRate) || seen.is_blocked {
            return;
        }
        watched.failed.resize_with(rules.rules.len(), FailedCalls::default);
        for (rule, failed) in rules.rules.iter().zip(&mut watched.failed) {
            if rule.kind == AlertKind::ErrorRate {
                failed.note(&rule.error_rate, now, seen.is_failed);
            }
        }
    }

    fn judge_failures(
        &mut self,
        rules: &AlertRules,
        number: usize,
        agent: &AgentName,
        now: Timestamp,
    ) -> Option<Alert> {
        let rule = &rules.rules[number];
        let watched = self.agents.get(agent)?;
        let (calls, failed) = watched.failed.get(number)?.counts(&rule.error_rate, now);
        let blocked = watched.blocked;
        if !is_too_high(&rule.error_rate, (calls, failed)) {
            self.end(rule, agent.as_str(), now);
            return None;
        }
        let minutes = rule.error_rate.window_ms / 60_000;
        let occurrence = Occurrence {
            agent: agent.to_string(),
            reason: format!("{failed} of {calls} calls failed"),
            score: Some((failed * 100) as f64 / calls.max(1) as f64),
            threshold: Some(f64::from(rule.error_rate.percent)),
            window: Some(format!("last {minutes} minutes")),
            ..Occurrence::default()
        };
        self.fire(rules, rule, agent.as_str(), occurrence, (blocked, blocked), now)
    }

    /// Failures leave the window without any further call, too.
    fn end_old_failures(&mut self, rule: &AlertRule, number: usize, now: Timestamp) {
        for ((name, subject), standing) in &mut self.standings {
            if *name != rule.name || !standing.is_open {
                continue;
            }
            let watched = AgentName::parse(subject).ok().and_then(|agent| self.agents.get(&agent));
            let counts = watched.and_then(|watched| Some(watched.failed.get(number)?.counts(&rule.error_rate, now)));
            if !counts.is_some_and(|counts| is_too_high(&rule.error_rate, counts)) {
                standing.is_open = false;
            }
        }
    }

    fn find_silent(&mut self, rules: &AlertRules, rule: &AlertRule, now: Timestamp) -> Vec<Alert> {
        let is_silent = |(agent, watched): &(&AgentName, &Watched)| {
            rule.covers(agent.as_str()) && now.since_ms(watched.last_call) >= rule.silent_ms
        };
        let is_open = |agent: &AgentName| {
            let key = (rule.name.clone(), agent.to_string());
            self.standings.get(&key).is_some_and(|standing| standing.is_open)
        };
        let silent: Vec<(AgentName, Timestamp, u64)> = (self.agents.iter().filter(is_silent))
            .filter(|(agent, _)| !is_open(agent))
            .map(|(agent, watched)| (agent.clone(), watched.last_call, watched.blocked))
            .collect();
        let mut alerts = Vec::new();
        for (agent, last_call, blocked) in silent {
            let occurrence = Occurrence {
                agent: agent.to_string(),
                reason: format!("no call since {}", last_call.to_rfc3339()),
                score: Some((now.since_ms(last_call) / 60_000) as f64),
                threshold: Some((rule.silent_ms / 60_000) as f64),
                window: Some("minutes without a call".to_owned()),
                ..Occurrence::default()
            };
            alerts.extend(self.fire(rules, rule, agent.as_str(), occurrence, (blocked, blocked), now));
        }
        alerts
    }

    /// It happened, or lasts. `blocked` is what the agent had been refused before, and now.
    fn fire(
        &mut self,
        rules: &AlertRules,
        rule: &AlertRule,
        subject: &str,
        occurrence: Occurrence,
        blocked: (u64, u64),
        now: Timestamp,
    ) -> Option<Alert> {
        let key = (rule.name.clone(), subject.to_owned());
        if self.standings.len() >= ALERT_SUBJECTS && !self.standings.contains_key(&key) {
            self.forget_oldest();
        }
        let is_quiet = rules.is_quiet(rule, now);
        let standing =
            self.standings.entry(key).or_insert_with(|| Standing { blocked_before: blocked.0, ..Standing::default() });
        let blocked_requests = blocked.1.saturating_sub(standing.blocked_before);
        standing.latest = Occurrence { blocked_requests, ..occurrence };
        standing.touched = now;
        let lasts = standing.is_open && matches!(rule.kind, AlertKind::ErrorRate | AlertKind::AgentDown);
        if lasts {
            return None;
        }
        standing.is_open = true;
        standing.is_told_over = false;
        if is_quiet || !standing.is_cool(rule, now) {
            standing.suppressed += 1;
            return None;
        }
        Some(standing.tell(rule, subject, AlertState::Firing, now))
    }

    fn end(&mut self, rule: &AlertRule, subject: &str, now: Timestamp) {
        if let Some(standing) = self.standings.get_mut(&(rule.name.clone(), subject.to_owned())) {
            standing.is_open = false;
            standing.touched = now;
        }
    }

    fn forget_oldest(&mut self) {
        let oldest = self.standings.iter().min_by_key(|(_, standing)| standing.touched);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.standings.remove(&key);
        }
    }
}

enum Next {
    Nothing,
    Tell(AlertState),
    Forget,
}

impl Standing {
    fn is_cool(&self, rule: &AlertRule, now: Timestamp) -> bool {
        self.last_told.is_none_or(|told| now.since_ms(told) >= rule.cooldown_ms)
    }

    /// What follows from time alone.
    fn next(&mut self, rule: &AlertRule, now: Timestamp) -> Next {
        let is_cool = self.is_cool(rule, now);
        if self.suppressed > 0 {
            // What quiet hours held back was never told at all.
            let state = if self.last_told.is_some() { AlertState::Digest } else { AlertState::Firing };
            return if is_cool { Next::Tell(state) } else { Next::Nothing };
        }
        if rule.kind.lasts() && self.is_open {
            let is_due = |every: u64| self.last_told.is_some_and(|told| now.since_ms(told) >= every);
            return if rule.repeat_ms.is_some_and(is_due) { Next::Tell(AlertState::Repeated) } else { Next::Nothing };
        }
        let is_over = if rule.kind.lasts() { !self.is_open } else { is_cool };
        if is_over && rule.tells_recovery && rule.kind.recovers() && !self.is_told_over && self.last_told.is_some() {
            return Next::Tell(AlertState::Recovered);
        }
        // Until it is cool it must be known that it was told.
        if is_cool { Next::Forget } else { Next::Nothing }
    }

    fn tell(&mut self, rule: &AlertRule, subject: &str, state: AlertState, now: Timestamp) -> Alert {
        let told = match state {
            // The first of them is the alert itself.
            AlertState::Firing if self.last_told.is_none() => self.suppressed.saturating_sub(1),
            _ => self.suppressed,
        };
        self.suppressed = 0;
        if state == AlertState::Recovered {
            self.is_open = false;
            self.is_told_over = true;
        } else {
            self.last_told = Some(now);
        }
        Alert::new((&rule.name, rule.kind), subject, state, now, told, self.latest.clone())
    }
}

fn occurrence(seen: &Observation, signal: &Signal) -> Occurrence {
    Occurrence {
        agent: seen.agent.to_string(),
        run: seen.run.as_ref().map(|run| run.as_str().to_owned()),
        reason: signal.reason.clone(),
        score: signal.score,
        threshold: signal.threshold,
        window: signal.window.clone(),
        blocked_requests: 0,
        cost_usd: None,
        proof: signal.proof.clone(),
    }
}
