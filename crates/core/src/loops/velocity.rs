//! `velocity`: tokens or money per minute far above what the agent usually uses, or above a cap.
//!
//! The usual is a moving average over the stretches in which the agent did something; it says nothing before there are
//! enough of them, and nothing about amounts too small to matter.

use super::packed::{Reader, put_number, put_signed};
use super::{Action, Detector, Finding, Mode, Proof, VelocityRule};
use crate::money::NanoUsd;
use crate::time::Timestamp;

/// Active stretches before the usual is known.
const LEARNING_STRETCHES: u32 = 10;
/// The share of the newest stretch in the average.
const NEWEST_SHARE: f64 = 0.1;
/// Tokens per minute below which nothing is unusual.
const QUIET_TOKENS: f64 = 20_000.0;
/// Nano-dollars per minute below which nothing is unusual.
const QUIET_NANO_USD: f64 = 100_000_000.0;

/// What an agent uses per minute.
#[derive(Clone, Debug, Default)]
pub(super) struct Velocity {
    mode: Mode,
    /// The number of the stretch of time that is measured now.
    stretch: i64,
    tokens: Gauge,
    nano_usd: Gauge,
    active_stretches: u32,
    has_warned: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Gauge {
    /// In this stretch.
    used: u64,
    /// On average, per stretch.
    usual: f64,
}

impl Velocity {
    /// What was seen in another mode is no evidence.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        if self.mode != mode {
            *self = Velocity { mode, ..Velocity::default() };
        }
    }

    /// Adds what an answer used.
    pub(super) fn add(&mut self, now: Timestamp, tokens: u64, cost: Option<NanoUsd>, rule: &VelocityRule) {
        self.turn_to(now, rule);
        self.tokens.used = self.tokens.used.saturating_add(tokens);
        let nano_usd = u64::try_from(cost.unwrap_or_default().0).unwrap_or(0);
        self.nano_usd.used = self.nano_usd.used.saturating_add(nano_usd);
    }

    /// Says once per stretch of time that too much was used in it.
    pub(super) fn look(&mut self, now: Timestamp, step: u32, rule: &VelocityRule) -> Option<Finding> {
        self.turn_to(now, rule);
        // A warning is given once; what refuses or slows must do so each time.
        if self.has_warned && rule.common.action <= Action::Nudge && rule.common.ladder.is_empty() {
            return None;
        }
        let per_minute = 60.0 / f64::from(seconds(rule));
        let knows_usual = self.active_stretches >= LEARNING_STRETCHES && rule.factor > 0.0;
        let above_usual = |gauge: &Gauge, quiet: f64| {
            let (rate, limit) = (gauge.used as f64 * per_minute, (gauge.usual * per_minute * rule.factor).max(quiet));
            (knows_usual && rate > limit).then_some((rate, limit, "far above the agent's usual"))
        };
        let above_cap = |gauge: &Gauge, cap: u64| {
            let rate = gauge.used as f64 * per_minute;
            (cap > 0 && rate > cap as f64).then_some((rate, cap as f64, "above the cap"))
        };
        let tokens =
            above_cap(&self.tokens, rule.max_tokens_per_minute).or_else(|| above_usual(&self.tokens, QUIET_TOKENS));
        let money = above_cap(&self.nano_usd, rule.max_nano_usd_per_minute)
            .or_else(|| above_usual(&self.nano_usd, QUIET_NANO_USD));
        let (unit, (rate, limit, why)) = match (money, tokens) {
            (Some(money), _) => ("nano-dollars", money),
            (None, tokens) => ("tokens", tokens?),
        };
        self.has_warned = true;
        Some(Finding {
            detector: Detector::Velocity,
            mode: rule.common.mode,
            loop_type: "velocity".into(),
            confidence: (1.0 - limit / (2.0 * rate)).clamp(0.0, 1.0),
            score: rate,
            count: 1,
            proof: Proof {
                summary: format!("{rate:.0} {unit} per minute, {why} ({limit:.0})"),
                compared: format!("{unit} per minute"),
                threshold: limit,
                value: rate,
                window: format!("{} s", seconds(rule)),
                steps: super::ProofStep::all_alike(&[step], "now"),
            },
        })
    }

    /// What is known of both. Of one stretch of time the larger use counts: how much of it both know of cannot be told.
    pub(super) fn merge(&self, theirs: &Velocity) -> Velocity {
        let (own, other) = (self, theirs);
        if own.mode != other.mode {
            return if own.mode == Mode::Off { other.clone() } else { own.clone() };
        }
        let (mut later, earlier) = if (own.stretch, own.active_stretches) >= (other.stretch, other.active_stretches) {
            (own.clone(), other)
        } else {
            (other.clone(), own)
        };
        if later.stretch == earlier.stretch {
            later.tokens.used = later.tokens.used.max(earlier.tokens.used);
            later.nano_usd.used = later.nano_usd.used.max(earlier.nano_usd.used);
            later.has_warned |= earlier.has_warned;
        }
        later
    }

    /// Writes it down for another node.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.mode as u8, u8::from(self.has_warned)]);
        put_signed(bytes, self.stretch);
        put_number(bytes, u64::from(self.active_stretches));
        for gauge in [&self.tokens, &self.nano_usd] {
            put_number(bytes, gauge.used);
            bytes.extend(gauge.usual.to_bits().to_le_bytes());
        }
    }

    /// Reads what was written; None where it tells of an amount that is none.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Velocity> {
        let (mode, has_warned) = (reader.mode()?, reader.byte() == 1);
        let (stretch, active_stretches) = (reader.signed(), reader.small()?);
        let mut gauge = || {
            let gauge = Gauge { used: reader.number(), usual: f64::from_bits(reader.eight()) };
            (gauge.usual.is_finite() && gauge.usual >= 0.0).then_some(gauge)
        };
        let (tokens, nano_usd) = (gauge()?, gauge()?);
        Some(Velocity { mode, stretch, tokens, nano_usd, active_stretches, has_warned })
    }

    /// Goes on to the stretch of time that `now` lies in.
    fn turn_to(&mut self, now: Timestamp, rule: &VelocityRule) {
        let stretch = now.0.div_euclid(i64::from(seconds(rule)) * 1000);
        if stretch <= self.stretch {
            return;
        }
        self.stretch = stretch;
        self.has_warned = false;
        if self.tokens.used == 0 && self.nano_usd.used == 0 {
            return;
        }
        let is_first = self.active_stretches == 0;
        let knows_usual = self.active_stretches >= LEARNING_STRETCHES;
        for gauge in [&mut self.tokens, &mut self.nano_usd] {
            gauge.learn(is_first, knows_usual.then_some(rule.factor));
        }
        self.active_stretches = self.active_stretches.saturating_add(1);
    }
}

impl Gauge {
    /// An outburst counts for no more than what would have been called one: it must not become the usual at once.
    fn learn(&mut self, is_first: bool, factor: Option<f64>) {
        let used = std::mem::take(&mut self.used) as f64;
        let used = match factor {
            Some(factor) if factor >= 1.0 && self.usual > 0.0 => used.min(self.usual * factor),
            _ => used,
        };
        self.usual = if is_first { used } else { self.usual + NEWEST_SHARE * (used - self.usual) };
    }
}

fn seconds(rule: &VelocityRule) -> u32 {
    match rule.common.window.seconds {
        0 => 60,
        seconds => seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::Rules;

    const MINUTE: i64 = 60_000;

    /// Uses so many tokens in each minute; gives the minutes in which it warns.
    fn warns(tokens: &[u64], rule: &VelocityRule) -> Vec<usize> {
        let mut velocity = Velocity::default();
        velocity.set_mode(rule.common.mode);
        let mut minutes = Vec::new();
        for (minute, tokens) in tokens.iter().enumerate() {
            let now = Timestamp(minute as i64 * MINUTE);
            velocity.add(now, *tokens, None, rule);
            let findings = (0..3).filter_map(|_| velocity.look(now, 1, rule)).count();
            assert!(findings <= 1, "once a minute");
            minutes.extend((findings > 0).then_some(minute));
        }
        minutes
    }

    #[test]
    fn far_above_the_usual_is_noticed_once_the_usual_is_known() {
        let rule = Rules::default().velocity;
        let usual = [5_000; 10];
        assert_eq!(warns(&[&usual[..], &[51_000, 49_000]].concat(), &rule), [10]);
        assert!(warns(&[&usual[..9], &[51_000]].concat(), &rule).is_empty(), "too early to know");
        assert!(warns(&[&[10; 20][..], &[10_000]].concat(), &rule).is_empty(), "too little to matter");
        assert!(warns(&[&[0; 20][..], &[500_000]].concat(), &rule).is_empty(), "idle minutes teach nothing");
    }

    #[test]
    fn a_cap_holds_from_the_first_minute() {
        let mut rule = Rules::default().velocity;
        rule.max_tokens_per_minute = 1000;
        assert_eq!(warns(&[1000, 1001, 5, 2000], &rule), [1, 3]);
        rule.common.window.seconds = 120;
        assert_eq!(warns(&[1000, 1000, 1000, 1001], &rule), [3], "two minutes are measured together");
    }

    #[test]
    fn money_counts_as_well() {
        let mut rule = Rules::default().velocity;
        rule.max_nano_usd_per_minute = 1_000_000_000;
        let mut velocity = Velocity::default();
        velocity.add(Timestamp(0), 1, Some(NanoUsd(1_000_000_001)), &rule);
        let finding = velocity.look(Timestamp(1), 4, &rule).unwrap();
        assert_eq!(finding.proof.compared, "nano-dollars per minute");
        assert_eq!(velocity.look(Timestamp(MINUTE), 5, &rule), None, "the next minute is another");
    }

    #[test]
    fn another_mode_begins_anew() {
        let mut rule = Rules::default().velocity;
        rule.max_tokens_per_minute = 10;
        let mut velocity = Velocity::default();
        velocity.set_mode(Mode::Shadow);
        velocity.add(Timestamp(0), 100, None, &rule);
        velocity.set_mode(Mode::Enforce);
        assert_eq!(velocity.look(Timestamp(1), 1, &rule), None);
    }
}
