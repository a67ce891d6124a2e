//! What is counted of the calls to one upstream, of one model, of one agent.

use std::time::Duration;

use sprag_core::dlp::Outcome;
use sprag_core::event::{Ending, Event};
use sprag_core::limits::METERED_MODELS;
use sprag_core::usage::Usage;
use sprag_core::wire::Dialect;

use super::durations::{Durations, MODEL};
use super::known::Known;
use super::{Counter, add, read};
use crate::gateway::Trail;
use crate::show;

pub(super) const DIALECTS: [Dialect; 7] = [
    Dialect::OpenaiChat,
    Dialect::OpenaiCompletions,
    Dialect::OpenaiResponses,
    Dialect::OpenaiEmbeddings,
    Dialect::Anthropic,
    Dialect::Gemini,
    Dialect::Opaque,
];
pub(super) const ENDINGS: [Ending; 9] = [
    Ending::Complete,
    Ending::UpstreamError,
    Ending::UpstreamGone,
    Ending::TimedOut,
    Ending::ClientGone,
    Ending::Refused,
    Ending::Killed,
    Ending::CutOff,
    Ending::Lost,
];
/// Parts of a call's tokens that do not overlap.
pub(super) const TOKENS: [&str; 4] = ["input", "cache_read", "cache_write", "output"];
pub(super) const OUTCOMES: [Outcome; 4] = [Outcome::Logged, Outcome::Covered, Outcome::Redacted, Outcome::Blocked];

/// Calls to one provider, or to the upstream of one route.
#[derive(Debug)]
pub(super) struct UpstreamMeters {
    requests: [[Counter; ENDINGS.len()]; DIALECTS.len()],
    /// From the arrival of a request to the last byte of its answer.
    pub(super) whole: Durations,
    /// From sending it on to the first byte of the answer.
    pub(super) first_byte: Durations,
    /// From sending it on to the last byte of the answer.
    pub(super) upstream: Durations,
    pub(super) models: Known<Spent>,
}

/// Calls of one agent.
#[derive(Debug, Default)]
pub(super) struct AgentMeters {
    pub(super) requests: Counter,
    pub(super) stops: Counter,
    pub(super) spent: Spent,
}

/// Tokens and money.
#[derive(Debug, Default)]
pub(super) struct Spent {
    tokens: [Counter; TOKENS.len()],
    cost_nano_usd: Counter,
}

/// Secrets and personal data of one kind, by what became of them.
#[derive(Debug, Default)]
pub(super) struct Findings {
    counts: [Counter; OUTCOMES.len()],
    unlisted: Counter,
}

impl UpstreamMeters {
    pub(super) fn new() -> UpstreamMeters {
        UpstreamMeters {
            requests: Default::default(),
            whole: Durations::new(MODEL),
            first_byte: Durations::new(MODEL),
            upstream: Durations::new(MODEL),
            models: Known::new(METERED_MODELS, Spent::default),
        }
    }

    pub(super) fn count(&self, event: &Event, trail: &Trail) {
        let dialect = DIALECTS.iter().position(|known| *known == event.dialect);
        let ending = ENDINGS.iter().position(|known| *known == event.ending);
        if let Some(counter) = dialect.zip(ending).and_then(|(row, column)| self.requests.get(row)?.get(column)) {
            add(counter, 1);
        }
        self.whole.add(Duration::from_millis(u64::from(event.total_ms)));
        if let Some(took) = trail.to_first_byte() {
            self.first_byte.add(took);
        }
        if let Some(took) = trail.upstream() {
            self.upstream.add(took);
        }
        if event.usage.is_some() || event.cost.is_some() {
            match trail.priced_as.as_deref() {
                Some(model) => self.models.with(model, |spent| spent.count(event)),
                None => self.models.with_other(|spent| spent.count(event)),
            }
        }
    }

    /// How many calls there were of each kind, those without any left out.
    pub(super) fn requests(&self) -> impl Iterator<Item = (Dialect, Ending, u64)> {
        let rows = DIALECTS.into_iter().zip(&self.requests);
        rows.flat_map(|(dialect, row)| ENDINGS.into_iter().zip(row).map(move |(ending, n)| (dialect, ending, read(n))))
            .filter(|(_, _, count)| *count > 0)
    }

    pub(super) fn is_used(&self) -> bool {
        self.requests().next().is_some()
    }
}

impl AgentMeters {
    pub(super) fn count(&self, event: &Event) {
        add(&self.requests, 1);
        add(&self.stops, u64::from(event.blocked));
        self.spent.count(event);
    }

    pub(super) fn is_used(&self) -> bool {
        read(&self.requests) > 0
    }
}

impl Spent {
    fn count(&self, event: &Event) {
        if let Some(usage) = &event.usage {
            for (counter, tokens) in self.tokens.iter().zip(parts(usage)) {
                add(counter, tokens);
            }
        }
        if let Some(cost) = event.cost {
            add(&self.cost_nano_usd, u64::try_from(cost.0).unwrap_or_default());
        }
    }

    pub(super) fn tokens(&self) -> impl Iterator<Item = (&'static str, u64)> {
        TOKENS.into_iter().zip(self.tokens.iter().map(read))
    }

    pub(super) fn cost_usd(&self) -> f64 {
        read(&self.cost_nano_usd) as f64 / 1e9
    }

    pub(super) fn is_used(&self) -> bool {
        self.tokens().any(|(_, tokens)| tokens > 0) || read(&self.cost_nano_usd) > 0
    }
}

impl Findings {
    pub(super) fn count(&self, outcome: Outcome) {
        let place = OUTCOMES.iter().position(|known| *known == outcome);
        if let Some(counter) = place.and_then(|place| self.counts.get(place)) {
            add(counter, 1);
        }
    }

    pub(super) fn count_unlisted(&self, more: u64) {
        if more > 0 {
            add(&self.unlisted, more);
        }
    }

    /// How many there were, by what became of them; of those that are not listed that is not told.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let listed = OUTCOMES.into_iter().map(outcome).zip(self.counts.iter().map(read));
        listed.chain([("unlisted", read(&self.unlisted))]).filter(|(_, count)| *count > 0)
    }
}

/// How calls ended, as a label.
pub(super) fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::CutOff => "cut_off",
        other => show::ending(other),
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Logged => "logged",
        Outcome::Covered => "covered",
        Outcome::Redacted => "redacted",
        Outcome::Blocked => "blocked",
    }
}

fn parts(usage: &Usage) -> [u64; TOKENS.len()] {
    [usage.input, usage.cache_read, usage.cache_write.saturating_add(usage.cache_write_1h), usage.output]
}
