//! The counters of rate limits, behind one lock: a call takes from all of its rules or from none.
//!
//! Their number is bounded. When there is no room for another, those leave that count nothing any more; when all count
//! something, new values share one counter for each rule. More values never make more room.

use std::collections::HashMap;
use std::sync::Mutex;

use foldhash::fast::RandomState;
use sprag_core::limits::RATE_BUCKETS;
use sprag_core::loops::Mode;
use sprag_core::policy::{RateCounter, RateExceeded, RateMeasure, RateRule};
use sprag_core::time::Timestamp;

use crate::shards::with_lock;
use crate::state::rates::{Place, RateAsk, Rated, RatesTaken, TokensTaken};

/// Looking through all counters for idle ones is paid once in this time, however many new values arrive.
const SWEEP_MS: u64 = 1000;
/// Rules that have a shared counter, as a part of all counters.
const SHARED_PART: usize = 16;

#[derive(Debug)]
pub(super) struct Rates {
    counters: Mutex<Counters>,
}

#[derive(Debug)]
struct Counters {
    own: HashMap<u64, Counter, RandomState>,
    /// By the rule's id.
    shared: HashMap<u64, Counter, RandomState>,
    room: usize,
    swept_at: Option<Timestamp>,
}

#[derive(Debug)]
struct Counter {
    counter: RateCounter,
    measure: RateMeasure,
}

impl Default for Rates {
    fn default() -> Rates {
        Rates::with_room(RATE_BUCKETS)
    }
}

impl Rates {
    pub(super) fn with_room(room: usize) -> Rates {
        let counters = Counters { own: HashMap::default(), shared: HashMap::default(), room, swept_at: None };
        Rates { counters: Mutex::new(counters) }
    }

    pub(super) fn take(&self, asks: &[RateAsk<'_>], now: Timestamp) -> Rated {
        let is_asked = |ask: &&RateAsk<'_>| ask.rule.mode != Mode::Off && !is_without_tokens(ask);
        match asks {
            // No rules, no lock.
            [] => Rated::default(),
            _ if !asks.iter().any(|ask| is_asked(&ask)) => Rated::default(),
            _ => with_lock(&self.counters, |counters| counters.take(asks, now)),
        }
    }

    pub(super) fn correct(&self, taken: &RatesTaken, used_tokens: u64) {
        if taken.is_empty() {
            return;
        }
        with_lock(&self.counters, |counters| {
            for tokens in &taken.tokens {
                let counter = match tokens.place {
                    Place::Own(bucket) => counters.own.get_mut(&bucket),
                    Place::Shared(rule) => counters.shared.get_mut(&rule),
                };
                // One that has left counted nothing any more: the call's window is over.
                if let Some(counter) = counter {
                    counter.counter.correct(&tokens.measure, taken.at, difference(used_tokens, tokens.amount));
                }
            }
        });
    }

    pub(super) fn len(&self) -> usize {
        with_lock(&self.counters, |counters| counters.own.len() + counters.shared.len())
    }
}

impl Counters {
    fn take(&mut self, asks: &[RateAsk<'_>], now: Timestamp) -> Rated {
        let mut rated = Rated::default();
        let in_mode = |mode: Mode| {
            asks.iter().enumerate().filter(move |(_, ask)| ask.rule.mode == mode && !is_without_tokens(ask))
        };
        for (index, ask) in in_mode(Mode::Enforce) {
            if let Err(exceeded) = self.counter(ask, now).1.check(&ask.rule.measure, ask.amount, now) {
                rated.refused = Some((index, exceeded));
                break;
            }
        }
        for (index, ask) in in_mode(Mode::Shadow) {
            let tried = match rated.refused {
                // The call does not take place: it is not counted.
                Some(_) => self.counter(ask, now).1.check(&ask.rule.measure, ask.amount, now),
                None => self.take_one(ask, now, &mut rated.taken),
            };
            rated.would_refuse.extend(tried.err().map(|exceeded| (index, exceeded)));
        }
        if rated.refused.is_none() {
            for (_, ask) in in_mode(Mode::Enforce) {
                let (place, counter) = self.counter(ask, now);
                counter.add(&ask.rule.measure, ask.amount, now);
                rated.taken.note(place, ask, now);
            }
        }
        rated
    }

    fn take_one(&mut self, ask: &RateAsk<'_>, now: Timestamp, taken: &mut RatesTaken) -> Result<(), RateExceeded> {
        let (place, counter) = self.counter(ask, now);
        counter.take(&ask.rule.measure, ask.amount, now)?;
        taken.note(place, ask, now);
        Ok(())
    }

    /// The counter of a call, made where there is none.
    fn counter(&mut self, ask: &RateAsk<'_>, now: Timestamp) -> (Place, &mut RateCounter) {
        if self.own.len() < self.room || self.own.contains_key(&ask.bucket) || self.has_room(now) {
            let counter = self.own.entry(ask.bucket).or_insert_with(|| Counter::new(ask.rule));
            return (Place::Own(ask.bucket), &mut counter.counter);
        }
        let most = (self.room / SHARED_PART).max(1);
        if self.shared.len() >= most && !self.shared.contains_key(&ask.rule.id) {
            self.shared.retain(|_, counter| !counter.is_idle(now));
            if self.shared.len() >= most {
                // That many rules at once, each with more values than there is room for: one of them begins anew.
                let gone = self.shared.keys().next().copied();
                gone.map(|rule| self.shared.remove(&rule));
            }
        }
        let counter = self.shared.entry(ask.rule.id).or_insert_with(|| Counter::new(ask.rule));
        (Place::Shared(ask.rule.id), &mut counter.counter)
    }

    /// Whether there is room when those have left that count nothing.
    fn has_room(&mut self, now: Timestamp) -> bool {
        let is_early = self.swept_at.is_some_and(|at| now >= at && now.since_ms(at) < SWEEP_MS);
        if !is_early {
            self.swept_at = Some(now);
            self.own.retain(|_, counter| !counter.is_idle(now));
        }
        self.own.len() < self.room
    }
}

impl Counter {
    fn new(rule: &RateRule) -> Counter {
        Counter { counter: RateCounter::default(), measure: rule.measure }
    }

    fn is_idle(&mut self, now: Timestamp) -> bool {
        self.counter.is_idle(&self.measure, now)
    }
}

impl RatesTaken {
    fn note(&mut self, place: Place, ask: &RateAsk<'_>, now: Timestamp) {
        if ask.rule.measure.counts_tokens() {
            self.at = now;
            self.tokens.push(TokensTaken { place, measure: ask.rule.measure, amount: ask.amount });
        }
    }
}

fn is_without_tokens(ask: &RateAsk<'_>) -> bool {
    ask.amount == 0 && ask.rule.measure.counts_tokens()
}

fn difference(used: u64, expected: u64) -> i64 {
    let number = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    number(used) - number(expected)
}

#[cfg(test)]
mod tests;
