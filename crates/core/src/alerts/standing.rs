//! Where one subject of one rule stands: what was told about it, and what is held back. It is kept on disk, so that a
//! restart neither tells a thing again nor forgets what waits to be told.

use serde::{Deserialize, Serialize};

use super::alert::{Alert, AlertState, Occurrence};
use super::now::Now;
use super::rule::{AlertKind, AlertRule};
use crate::policy::Span;
use crate::time::Timestamp;

/// What is about a run has no period that ends; it is known for so long that it was told.
const KNOWN_MS: u64 = 7 * 24 * 3_600_000;

/// Where one subject of one rule stands. Moments are those of the steady clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    pub(super) kind: AlertKind,
    /// It happened, or lasts.
    pub(super) is_open: bool,
    /// Its end was told.
    pub(super) is_told_over: bool,
    /// When it was told last; that it is over does not count.
    pub(super) last_told: Option<Timestamp>,
    pub(super) touched: Timestamp,
    /// How often it happened without being told.
    pub(super) suppressed: u64,
    /// What the agent had been refused before this began.
    pub(super) blocked_before: u64,
    /// What was told for this time is told once.
    pub(super) period: Option<Span>,
    pub(super) latest: Occurrence,
}

/// What follows from time alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    Tell(AlertState),
    Forget,
}

impl Standing {
    pub(super) fn new(kind: AlertKind, blocked_before: u64) -> Standing {
        Standing {
            kind,
            is_open: false,
            is_told_over: false,
            last_told: None,
            touched: Timestamp::default(),
            suppressed: 0,
            blocked_before,
            period: None,
            latest: Occurrence::default(),
        }
    }

    /// The same for a process whose clock began anew: nothing lies in the future, or it would be silent until then.
    pub(super) fn resumed(self, now: Now) -> Standing {
        Standing {
            last_told: self.last_told.map(|told| told.min(now.steady)),
            touched: self.touched.min(now.steady),
            blocked_before: 0,
            ..self
        }
    }

    /// One that lasts must stay known, or it would be told as new.
    pub(super) fn may_be_forgotten(&self) -> bool {
        !(self.kind.lasts() && self.is_open)
    }

    pub(super) fn is_cool(&self, rule: &AlertRule, now: Now) -> bool {
        self.last_told.is_none_or(|told| now.steady.since_ms(told) >= rule.cooldown_ms)
    }

    pub(super) fn next(&self, rule: &AlertRule, now: Now) -> Next {
        let is_cool = self.is_cool(rule, now);
        if self.suppressed > 0 {
            // What quiet hours held back was never told at all.
            let state = if self.last_told.is_some() { AlertState::Digest } else { AlertState::Firing };
            return if is_cool { Next::Tell(state) } else { Next::Nothing };
        }
        if rule.kind.lasts() && self.is_open {
            let is_due = |every: u64| self.last_told.is_some_and(|told| now.steady.since_ms(told) >= every);
            return if rule.repeat_ms.is_some_and(is_due) { Next::Tell(AlertState::Repeated) } else { Next::Nothing };
        }
        let is_over = if rule.kind.lasts() { !self.is_open } else { is_cool };
        if is_over && rule.tells_recovery && rule.kind.recovers() && !self.is_told_over && self.last_told.is_some() {
            return Next::Tell(AlertState::Recovered);
        }
        // Until it is cool, or its period is over, it must be known that it was told.
        let is_in_period = self.period.is_some_and(|period| now.wall < period.end)
            && now.steady.since_ms(self.touched) < KNOWN_MS.max(self.period.map_or(0, length_ms));
        if is_cool && !is_in_period { Next::Forget } else { Next::Nothing }
    }

    pub(super) fn tell(&mut self, rule: &AlertRule, subject: &str, state: AlertState, now: Now) -> Alert {
        let told = std::mem::take(&mut self.suppressed);
        if state == AlertState::Recovered {
            self.is_open = false;
            self.is_told_over = true;
        } else {
            self.last_told = Some(now.steady);
        }
        Alert::new((&rule.name, rule.kind), subject, state, now.wall, told, self.latest.clone())
    }
}

/// How long a period is; that of a run has no end.
fn length_ms(period: Span) -> u64 {
    if period.end == Timestamp(i64::MAX) { 0 } else { period.end.since_ms(period.start) }
}
