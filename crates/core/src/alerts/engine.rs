//! When something is told: once, then counted for a cooldown, told again while it lasts, and told when it is over.
//!
//! What is known is bounded, and so is how much a rule tells in a minute: what goes beyond is held back and counted, never
//! told twice. What changed is handed out, to be kept on disk.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::agents::Agents;
use super::alert::{Alert, AlertState, Occurrence};
use super::error_rate::{is_too_high, is_well};
use super::now::Now;
use super::observation::{Observation, Signal};
use super::rule::{AlertKind, AlertRule, AlertRules};
use super::standing::{Next, Standing};
use crate::id::AgentName;
use crate::limits::{ALERT_SUBJECTS, ALERTS_A_MINUTE};
use crate::money::NanoUsd;
use crate::policy::Span;
use crate::time::Timestamp;

const MINUTE_MS: u64 = 60_000;
/// Without a call for so long, nothing is said any more about failures of an agent or its silence: it is gone.
const GONE_MS: u64 = 7 * 24 * 3_600_000;

/// A rule and what it is about.
type Key = (String, String);

/// What is known about what was told. It belongs to one task.
#[derive(Debug, Default)]
pub struct Engine {
    rules: Arc<AlertRules>,
    standings: HashMap<Key, Standing>,
    agents: Agents,
    /// Of each rule: since when its alerts are counted, and how many there were.
    told: HashMap<String, (Timestamp, u32)>,
    /// What is not on disk as it is here.
    changed: HashSet<Key>,
    /// The moment of the latest alert, and how many there were before at that moment: no two share an id.
    latest: (Timestamp, u64),
    counts: EngineCounts,
}

/// What was not told when it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounts {
    /// There was no room to know about it.
    pub untold: u64,
    /// The rule had told enough in that minute; it comes later.
    pub delayed: u64,
}

/// What is to be kept about one subject of one rule; nothing where it is forgotten.
#[derive(Clone, Debug, PartialEq)]
pub struct StandingChange {
    /// The rule's name.
    pub rule: String,
    /// What it is about.
    pub subject: String,
    /// Where it stands now.
    pub standing: Option<Standing>,
}

/// Something that happened, as it is told.
struct Happened<'a> {
    subject: &'a str,
    occurrence: Occurrence,
    /// What the agent had been refused before, and now.
    blocked: (u64, u64),
    /// How often it happened besides.
    again: u64,
    period: Option<Span>,
}

impl Engine {
    /// Takes other rules. What was told stays known, and counts of calls go on where a rule looks at the same as before.
    pub fn set_rules(&mut self, rules: Arc<AlertRules>) {
        self.agents.set_rules(&self.rules, &rules);
        let is_known = |(name, _): &Key, standing: &Standing| {
            rules.rules.iter().any(|rule| rule.name == *name && rule.kind == standing.kind)
        };
        let gone = self.standings.extract_if(|key, standing| !is_known(key, standing));
        self.changed.extend(gone.map(|(key, _)| key));
        self.told.retain(|name, _| rules.rules.iter().any(|rule| rule.name == *name));
        self.rules = rules;
    }

    /// Takes over where a subject stood before a restart.
    pub fn restore(&mut self, rule: String, subject: String, standing: Standing, now: impl Into<Now>) {
        let is_known = self.rules.rules.iter().any(|known| known.name == rule && known.kind == standing.kind);
        if is_known && self.standings.len() < ALERT_SUBJECTS {
            self.standings.insert((rule, subject), standing.resumed(now.into()));
        } else {
            self.changed.insert((rule, subject));
        }
    }

    /// What is to be kept on disk since this was asked last.
    pub fn take_changes(&mut self) -> Vec<StandingChange> {
        let taken = std::mem::take(&mut self.changed).into_iter();
        taken
            .map(|key| {
                let standing = self.standings.get(&key).cloned();
                StandingChange { rule: key.0, subject: key.1, standing }
            })
            .collect()
    }

    /// What was not told since this was asked last.
    pub fn take_counts(&mut self) -> EngineCounts {
        std::mem::take(&mut self.counts)
    }

    /// Takes note of an event; `run_cost` is what its run has cost so far. Gives what is to be told at once.
    pub fn observe(&mut self, seen: &Observation, now: impl Into<Now>, run_cost: Option<NanoUsd>) -> Vec<Alert> {
        let (rules, now) = (self.rules.clone(), now.into());
        if seen.is_request {
            self.agents.watch(&rules, seen, now);
        }
        let blocked = self.agents.blocked(&seen.agent);
        let mut alerts = Vec::new();
        for (number, rule) in rules.rules.iter().enumerate().filter(|(_, rule)| rule.covers(seen.agent.as_str())) {
            match rule.kind {
                AlertKind::ErrorRate if seen.is_request => {
                    alerts.extend(self.judge_failures(number, rule, &seen.agent, now));
                }
                AlertKind::AgentDown if seen.is_request => self.end(rule, seen.agent.as_str(), now),
                AlertKind::KillSwitch if seen.is_activated => self.end(rule, seen.agent.as_str(), now),
                _ => {}
            }
            for signal in seen.signals.iter().filter(|signal| rule.is_about(signal)) {
                let happened = Happened {
                    subject: &signal.subject,
                    occurrence: occurrence(seen, signal).costing(run_cost.or(seen.cost)),
                    blocked: (blocked - u64::from(seen.is_blocked).min(blocked), blocked),
                    again: seen.again,
                    period: signal.period,
                };
                alerts.extend(self.fire(rule, happened, now));
            }
        }
        alerts
    }

    /// Lets time pass. Gives what is to be told now: digests, repetitions, ends, and agents that are silent.
    pub fn tick(&mut self, now: impl Into<Now>) -> Vec<Alert> {
        let (rules, now) = (self.rules.clone(), now.into());
        let mut alerts = Vec::new();
        self.forget_gone(&rules, now);
        for (number, rule) in rules.rules.iter().enumerate() {
            match rule.kind {
                AlertKind::AgentDown => alerts.extend(self.find_silent(rule, now)),
                AlertKind::ErrorRate => self.end_old_failures(number, rule, now),
                _ => {}
            }
        }
        let mut due: Vec<(Timestamp, Key, Next)> = Vec::new();
        for (key, standing) in &self.standings {
            let Some(rule) = rules.rules.iter().find(|rule| rule.name == key.0) else { continue };
            match standing.next(rule, now) {
                Next::Nothing => {}
                next if rules.is_quiet(rule, now.wall) && next != Next::Forget => {}
                next => due.push((standing.touched, key.clone(), next)),
            }
        }
        // Whoever waits longest is told first, where a rule may not tell all at once.
        due.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        for (_, key, next) in due {
            let Some(rule) = rules.rules.iter().find(|rule| rule.name == key.0) else { continue };
            match next {
                Next::Tell(state) if self.may_tell(rule, now) => {
                    let Some(standing) = self.standings.get_mut(&key) else { continue };
                    // The first of what was held back is the alert itself.
                    standing.suppressed -= u64::from(state == AlertState::Firing).min(standing.suppressed);
                    let alert = standing.tell(rule, &key.1, state, now);
                    alerts.push(self.numbered(alert, now));
                    self.changed.insert(key);
                }
                Next::Forget => {
                    self.standings.remove(&key);
                    self.changed.insert(key);
                }
                Next::Tell(_) | Next::Nothing => {}
            }
        }
        alerts.sort_by(|a, b| (&a.rule, &a.subject).cmp(&(&b.rule, &b.subject)));
        alerts
    }

    fn judge_failures(&mut self, number: usize, rule: &AlertRule, agent: &AgentName, now: Now) -> Option<Alert> {
        let (calls, failed) = self.agents.counts(agent, number, rule, now);
        let is_whole = self.agents.is_whole(number, rule, now);
        if is_well(&rule.error_rate, (calls, failed), is_whole) {
            self.end(rule, agent.as_str(), now);
        }
        if !is_too_high(&rule.error_rate, (calls, failed)) {
            return None;
        }
        let (minutes, blocked) = (rule.error_rate.window_ms / MINUTE_MS, self.agents.blocked(agent));
        let occurrence = Occurrence {
            agent: agent.to_string(),
            reason: format!("{failed} of {calls} calls failed"),
            score: Some((failed * 100) as f64 / calls.max(1) as f64),
            threshold: Some(f64::from(rule.error_rate.percent)),
            window: Some(format!("last {minutes} minutes")),
            ..Occurrence::default()
        };
        let blocked = (blocked, blocked);
        self.fire(rule, Happened { subject: agent.as_str(), occurrence, blocked, again: 0, period: None }, now)
    }

    /// Failures leave the window without any further call, too.
    fn end_old_failures(&mut self, number: usize, rule: &AlertRule, now: Now) {
        let is_whole = self.agents.is_whole(number, rule, now);
        for (key, standing) in self.standings.iter_mut().filter(|(key, _)| key.0 == rule.name) {
            let Some(agent) = AgentName::parse(&key.1).ok().filter(|_| standing.is_open) else { continue };
            let counts = self.agents.counts(&agent, number, rule, now);
            let is_gone = now.steady.since_ms(standing.touched) >= GONE_MS;
            if is_gone || is_well(&rule.error_rate, counts, is_whole) {
                standing.is_open = false;
                self.changed.insert(key.clone());
            }
        }
    }

    fn find_silent(&mut self, rule: &AlertRule, now: Now) -> Vec<Alert> {
        let is_open = |agent: &AgentName| {
            let key = (rule.name.clone(), agent.to_string());
            self.standings.get(&key).is_some_and(|standing| standing.is_open)
        };
        let mut silent: Vec<(Now, AgentName, u64)> = (self.agents.silent(rule.silent_ms, now))
            .filter(|(agent, _)| rule.covers(agent.as_str()) && !is_open(agent))
            .map(|(agent, watched)| (watched.last_call, agent.clone(), watched.blocked))
            .collect();
        silent.sort_by(|a, b| (a.0.steady, &a.1).cmp(&(b.0.steady, &b.1)));
        let (mut alerts, mut is_full) = (Vec::new(), false);
        for (last_call, agent, blocked) in silent {
            let key = (rule.name.clone(), agent.to_string());
            if !self.standings.contains_key(&key) && (is_full || !self.has_room()) {
                is_full = true;
                self.counts.untold += u64::from(self.agents.leave_untold(&agent));
                continue;
            }
            let occurrence = Occurrence {
                agent: agent.to_string(),
                reason: format!("no call since {}", last_call.wall.to_rfc3339()),
                score: Some((now.steady.since_ms(last_call.steady) / MINUTE_MS) as f64),
                threshold: Some((rule.silent_ms / MINUTE_MS) as f64),
                window: Some("minutes without a call".to_owned()),
                ..Occurrence::default()
            };
            let blocked = (blocked, blocked);
            let happened = Happened { subject: agent.as_str(), occurrence, blocked, again: 0, period: None };
            alerts.extend(self.fire(rule, happened, now));
        }
        alerts
    }

    /// Names that nobody uses any more must not take the room of others for ever.
    fn forget_gone(&mut self, rules: &AlertRules, now: Now) {
        let silences = rules.rules.iter().filter(|rule| rule.kind == AlertKind::AgentDown);
        let Some(longest) = silences.map(|rule| rule.silent_ms.saturating_mul(2)).max() else { return };
        let gone_ms = longest.max(GONE_MS);
        let gone: Vec<AgentName> = self.agents.silent(gone_ms, now).map(|(agent, _)| agent.clone()).collect();
        gone.iter().for_each(|agent| self.agents.forget(agent));
        let is_gone = |(_, subject): &Key, standing: &Standing| {
            let is_old = standing.is_open && now.steady.since_ms(standing.touched) >= gone_ms;
            let is_watched = || AgentName::parse(subject).is_ok_and(|agent| self.agents.last_call(&agent).is_some());
            standing.kind == AlertKind::AgentDown && is_old && !is_watched()
        };
        let forgotten = self.standings.extract_if(|key, standing| is_gone(key, standing));
        self.changed.extend(forgotten.map(|(key, _)| key));
    }

    /// It happened, or lasts.
    fn fire(&mut self, rule: &AlertRule, happened: Happened<'_>, now: Now) -> Option<Alert> {
        let Happened { subject, occurrence, blocked, again, period } = happened;
        let key = (rule.name.clone(), subject.to_owned());
        if !self.standings.contains_key(&key) && !self.has_room() {
            self.counts.untold += 1;
            return None;
        }
        let is_quiet = self.rules.is_quiet(rule, now.wall);
        let standing = self.standings.entry(key.clone()).or_insert_with(|| Standing::new(rule.kind, blocked.0));
        let blocked_requests = blocked.1.saturating_sub(standing.blocked_before);
        standing.touched = now.steady;
        let lasts = standing.is_open && matches!(rule.kind, AlertKind::ErrorRate | AlertKind::AgentDown);
        if lasts {
            standing.latest = Occurrence { blocked_requests, ..occurrence };
            return None;
        }
        if let Some(period) = period {
            if standing.period.is_some_and(|told| told.start == period.start) {
                return None;
            }
            // A new period: what was told in the last one does not count.
            (standing.period, standing.last_told) = (Some(period), None);
        }
        standing.latest = Occurrence { blocked_requests, ..occurrence };
        standing.is_open = true;
        standing.is_told_over = false;
        let is_held = is_quiet || !standing.is_cool(rule, now);
        standing.suppressed = standing.suppressed.saturating_add(again);
        self.changed.insert(key.clone());
        let is_delayed = !is_held && !self.may_tell(rule, now);
        if is_held || is_delayed {
            self.counts.delayed += u64::from(is_delayed);
            let standing = self.standings.get_mut(&key)?;
            standing.suppressed = standing.suppressed.saturating_add(1);
            return None;
        }
        let alert = self.standings.get_mut(&key)?.tell(rule, subject, AlertState::Firing, now);
        Some(self.numbered(alert, now))
    }

    fn end(&mut self, rule: &AlertRule, subject: &str, now: Now) {
        let key = (rule.name.clone(), subject.to_owned());
        if let Some(standing) = self.standings.get_mut(&key).filter(|standing| standing.is_open) {
            standing.is_open = false;
            standing.touched = now.steady;
            self.changed.insert(key);
        }
    }

    /// Whether a rule may tell one more in this minute; if so, it is counted.
    fn may_tell(&mut self, rule: &AlertRule, now: Now) -> bool {
        let (since, count) = self.told.entry(rule.name.clone()).or_insert((now.steady, 0));
        if now.steady.since_ms(*since) >= MINUTE_MS {
            (*since, *count) = (now.steady, 0);
        }
        let may_tell = *count < ALERTS_A_MINUTE;
        *count += u32::from(may_tell);
        may_tell
    }

    /// No two alerts share an id, however fast they come.
    fn numbered(&mut self, alert: Alert, now: Now) -> Alert {
        let number = if self.latest.0 == now.wall { self.latest.1 + 1 } else { 0 };
        self.latest = (now.wall, number);
        alert.numbered(number)
    }

    /// Makes room for one more by forgetting what is over, or happens at a moment; of that, first what holds nothing back.
    fn has_room(&mut self) -> bool {
        if self.standings.len() < ALERT_SUBJECTS {
            return true;
        }
        let unneeded = self.standings.iter().filter(|(_, standing)| standing.may_be_forgotten());
        let oldest = unneeded.min_by_key(|(_, standing)| (standing.suppressed > 0, standing.touched));
        let Some(key) = oldest.map(|(key, _)| key.clone()) else { return false };
        self.standings.remove(&key);
        self.changed.insert(key);
        true
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
