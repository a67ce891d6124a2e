//! Brings the facts of a call before the judge, and does what follows from a stop before anybody hears of it.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use http::request::Parts;
use sprag_core::dlp::Inspector;
use sprag_core::event::WouldBlock;
use sprag_core::loops::Mode;
use sprag_core::policy::{Facts, Habits, Judgement, Permit, Policy, Weighed, judge as decide};
use sprag_core::price::Price;
use sprag_core::wire::{Call, Refusal};
use sprag_store::state::{RatesTaken, RunPlace};

use super::detect::{self, Way};
use super::inspect::{self, Look};
use super::open::{Opening, Request, Together, progress};
use super::plain;
use super::rates::{self, Limited};
use super::route::Route;
use super::spending::{Payer, Plan, Spending, unread};
use super::ticket::Ticket;
use super::trail::Leg;
use crate::app::App;
use crate::config::file::Unpriced;
use crate::config::{Provider, Settings};

/// A request, as far as the judge must know it.
pub(crate) struct Case<'a> {
    pub(crate) route: &'a Route<'a>,
    pub(crate) head: &'a Arc<Parts>,
    pub(crate) body: &'a [u8],
    pub(crate) call: Option<&'a Call<'a>>,
    pub(crate) opening: Opening,
}

/// A call that may go out, and what must be done to it on the way.
pub(crate) struct Judged {
    pub(crate) permit: Permit,
    /// What must be hidden of its body.
    pub(crate) edits: Vec<(Range<usize>, String)>,
    /// Who looks at its answer.
    pub(crate) inspector: Option<Inspector>,
}

/// Judges a call. A consequence is durable before the refusal is given. What is set aside is on record only with
/// [`Ticket::mark_permitted`].
pub(crate) async fn judge(
    app: &Arc<App>,
    settings: &Settings,
    case: Case<'_>,
    ticket: &mut Ticket,
) -> Result<Judged, Refusal> {
    let Case { route, head, body, call, opening } = case;
    let (agent, now) = (ticket.event().agent.clone(), ticket.event().at);
    let policy = app.policy(&agent);
    let rules = route.rule.map_or(&policy.rules, |rule| &rule.rules);
    let may_cost = route.may_cost(&head.method);
    let named = match may_cost && policy.policy.models.mode != Mode::Off && !policy.policy.models.allow.is_empty() {
        true => unread::models(route, head, body, settings.proxy.max_body_bytes),
        false => Vec::new(),
    };
    let model = call.map_or(named.first(), |call| call.model.as_ref()).map(AsRef::as_ref);
    let other_models = call.map_or(named.get(1..), |call| Some(&call.fallback_models)).unwrap_or_default();
    let Opening { agent_in_flight, tree, habits, together, lost } = opening;
    let (counted, mut spending, mut ahead) = match together {
        Some(together) => {
            let Together { rated, repeated, mut spending, looked } = *together;
            spending.draw_on(app, &Payer { settings, policy: &policy.policy, tree: &tree }, ticket);
            (Some((rated, repeated)), spending, looked)
        }
        None => {
            let request = Request { settings, route, head, body, call };
            (None, plan(app, request, &policy.policy, &tree, habits, ticket), None)
        }
    };
    let tokens = spending.tokens();

    let inspector = inspect::inspector(app, settings, &policy, route, ticket);
    let (mut taken, mut rated, mut looked, mut inspected) = (RatesTaken::default(), None, None, None);
    // Only what passes every other check waits, and is judged again by what is then.
    let Judgement { verdict, would_stop } = loop {
        let snapshot = app.catalog.snapshot();
        let kill = ticket.kill(&snapshot);
        let runs = progress(&snapshot, &tree, settings.runs.command.as_ref(), (&agent, app.common_time(now)));
        let facts = Facts {
            now: app.common_time(now),
            kill: kill.as_deref(),
            standing: snapshot.agent(&agent).map(|standing| &**standing),
            policy: &policy.policy,
            is_llm: route.dialect.is_llm(),
            model,
            other_models,
            is_priced: call.is_none() || model.is_none() || spending.is_priced(),
            blocks_unpriced: settings.prices.unpriced == Unpriced::Block,
            agent_in_flight,
            max_agent_in_flight: u32::try_from(settings.proxy.max_requests_per_agent).unwrap_or(u32::MAX),
            runs: &runs,
        };
        let limited = Limited { settings, route, head, policy: &policy.policy, ticket };
        // A call counts once, however often it is judged.
        let rates = || {
            if let Some(refusal) = &lost {
                return Weighed { stop: Some(refusal.clone().into()), ..Weighed::default() };
            }
            let take = || {
                let together = counted.as_ref().map(|(rated, _)| rated);
                let (weighed, counted) = rates::take(app, limited, tokens, together);
                taken = counted;
                weighed
            };
            rated.get_or_insert_with(take).clone()
        };
        // Where loops were looked for just now, secrets are from then on.
        let looked_at = Cell::new(None);
        let loops = || {
            let look = || {
                let told_apart = || rates::descriptors(limited);
                let repeated = counted.as_ref().map(|(_, repeated)| repeated.clone());
                let way = Way { route, told_apart: &told_apart, repeated };
                let looked = detect::arrive(app, rules, call, &ticket.seen(head, body), &way);
                looked_at.set(looked.leg.map(Leg::ended_at));
                looked
            };
            looked.get_or_insert_with(look).decision.clone()
        };
        let dlp = || {
            let inspector = inspector.as_ref()?;
            let now = || inspect::request(app, settings, inspector, route, head, call, body, ticket, looked_at.take());
            let look = || ahead.take().unwrap_or_else(now);
            inspected.get_or_insert_with(look).refusal()
        };
        if let Some(judgement) = decide(&facts, rates, loops, dlp, || spending.reserve(app)) {
            break judgement;
        }
        // Rare, and on its own: calls that do not wait carry nothing of it.
        if let Err(refusal) = Box::pin(spending.wait(app, &tree, ticket)).await {
            break Judgement { verdict: Err(refusal.into()), would_stop: Vec::new() };
        }
    };
    if let Some(shared) = ticket.shared() {
        shared.came(rated.is_some(), looked.is_some());
    }
    ticket.set_verdict(rules.clone(), looked.unwrap_or_default());
    ticket.set_would_block(would_stop.into_iter().map(|stop| would_block(settings, stop)).collect());
    ticket.set_limits(taken, spending);
    let Look { edits, sightings, leg, .. } = inspected.unwrap_or_default();
    ticket.trail().inspected = leg;
    ticket.add_sightings(sightings);
    match verdict {
        Ok(permit) => Ok(Judged { permit, edits, inspector }),
        Err(stop) => {
            if let Some(consequence) = stop.consequence {
                Box::pin(app.follow(agent, *consequence)).await;
            }
            Err(stop.refusal)
        }
    }
}

/// Plans the money of a request.
pub(crate) fn plan(
    app: &App,
    request: Request<'_>,
    policy: &Policy,
    tree: &[RunPlace],
    habits: Habits,
    ticket: &Ticket,
) -> Spending {
    let Request { settings, route, head, body, call } = request;
    match call {
        Some(call) => {
            let price = dearest_price(app, route.provider, call);
            Spending::plan(app, Plan { settings, policy, call, price, tree, habits, body }, ticket)
        }
        None if route.may_cost(&head.method) => unread::plan(app, settings, policy, tree, ticket),
        None => Spending::default(),
    }
}

/// The price of a call: the dearest of the models that may answer it, and none where one of them has none.
fn dearest_price(app: &App, provider: &Provider, call: &Call<'_>) -> Option<Price> {
    // A deployment may have a name of its own, which no list of prices knows.
    let asked = app.price(provider, call.model.as_deref(), call.model_in_body.as_deref())?;
    let others = call.fallback_models.iter();
    others
        .map(|model| app.price(provider, None, Some(model)))
        .try_fold(asked, |dearest, price| Some(dearest.or_dearer(&price?)))
}

fn would_block(settings: &Settings, refusal: Refusal) -> WouldBlock {
    let model = refusal.fields.get("model").and_then(|model| model.as_str());
    let message = plain::message(&settings.dlp.scanner, &refusal.message, model);
    WouldBlock {
        reason: refusal.reason.as_str().to_owned(),
        exceeded_limit: refusal.fields.get("exceeded_limit").and_then(|limit| limit.as_str()).map(str::to_owned),
        message,
    }
}

#[cfg(test)]
mod cost;
