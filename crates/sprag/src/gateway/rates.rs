//! The rate limits of one call: those of its agent, and those of the route it takes.

use http::request::Parts;
use sprag_core::loops::Mode;
use sprag_core::policy::{LimitKey, Policy, RateExceeded, RateMeasure, RateRule, Weighed};
use sprag_store::state::{RateAsk, Rated, RatesTaken};

use super::identify::key_id_for;
use super::limit_keys::{self, Carrier, bucket};
use super::route::Route;
use super::ticket::Ticket;
use crate::app::App;
use crate::config::Settings;

/// A call, as far as its limits depend on it.
#[derive(Clone, Copy)]
pub(crate) struct Limited<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) route: &'a Route<'a>,
    pub(crate) head: &'a Parts,
    pub(crate) policy: &'a Policy,
    pub(crate) ticket: &'a Ticket,
}

/// What a call asks of its limits.
pub(crate) fn asks<'a>(limited: Limited<'a>, tokens: u64) -> Vec<RateAsk<'a>> {
    if limited.rules().next().is_none() {
        return Vec::new();
    }
    limited.with_carrier(|carrier| {
        let ask = |rule| RateAsk { rule, bucket: bucket(rule, carrier), amount: amount(rule, tokens) };
        limited.rules().map(ask).collect()
    })
}

/// Counts a call on all limits in force, or on none. Gives what is to be corrected when the call is over. Where the
/// call was counted for all nodes together, that is what holds.
pub(crate) fn take(app: &App, limited: Limited<'_>, tokens: u64, together: Option<&Rated>) -> (Weighed, RatesTaken) {
    let asks = asks(limited, tokens);
    if asks.is_empty() {
        return (Weighed::default(), RatesTaken::default());
    }
    let here = app.state.take_rates(&asks, limited.ticket.event().at);
    let taken = here.taken.clone();
    let Rated { refused, would_refuse, .. } = together.cloned().unwrap_or(here);
    let told = |(place, exceeded): (usize, RateExceeded)| exceeded.refusal(asks[place].rule);
    let weighed = Weighed {
        stop: refused.map(|refused| told(refused).into()),
        would_stop: would_refuse.into_iter().map(told).collect(),
        ..Weighed::default()
    };
    (weighed, taken)
}

/// What the limits in force tell calls apart by. Those in shadow have no say: they change nothing.
pub(crate) fn descriptors(limited: Limited<'_>) -> Vec<(String, String)> {
    let in_force = || limited.rules().filter(|rule| rule.mode == Mode::Enforce);
    if in_force().next().is_none() {
        return Vec::new();
    }
    limited.with_carrier(|carrier| limit_keys::descriptors(in_force(), carrier))
}

impl<'a> Limited<'a> {
    /// The rules of the agent, then those of the route.
    fn rules(self) -> impl Iterator<Item = &'a RateRule> {
        let of_route = self.route.rule.map_or(&[][..], |rule| &rule.rate_limits);
        self.policy.rate_limits.iter().chain(of_route)
    }

    fn with_carrier<T>(self, look: impl FnOnce(&Carrier<'_>) -> T) -> T {
        let event = self.ticket.event();
        // A hash of the credential stands for it, and costs something.
        let names_key = event.key.is_none() && self.rules().any(|rule| rule.limit_keys.contains(&LimitKey::Key));
        let credential = if names_key { key_id_for(self.head, self.route) } else { None };
        let key = event.key.as_deref().or(credential.as_deref());
        let (model, verifier) = (event.model.as_deref(), self.settings.jwt.as_deref());
        look(&Carrier::new(self.head, &event.agent, key, model, verifier, event.at))
    }
}

fn amount(rule: &RateRule, tokens: u64) -> u64 {
    if matches!(rule.measure, RateMeasure::Tokens { .. }) { tokens } else { 1 }
}
