//! Brings the facts of a call before the judge, and does what follows from a stop before anybody hears of it.

use std::sync::Arc;

use http::request::Parts;
use sprag_core::id::AgentName;
use sprag_core::loops::{Action, Decision, Mode, Rules};
use sprag_core::policy::{Facts, Permit, judge as decide};
use sprag_core::wire::{Call, Refusal};
use sprag_store::catalog::Snapshot;

use super::detect;
use super::open::{Opening, progress};
use super::route::Route;
use super::ticket::Ticket;
use crate::app::App;
use crate::config::Settings;
use crate::config::file::Unpriced;

/// A request, as far as the judge must know it.
pub(crate) struct Case<'a> {
    pub(crate) route: &'a Route<'a>,
    pub(crate) head: &'a Parts,
    pub(crate) body: &'a [u8],
    pub(crate) call: Option<&'a Call<'a>>,
    pub(crate) opening: Opening,
}

/// Judges a call. A consequence is durable before the refusal is given.
pub(crate) async fn judge(
    app: &Arc<App>,
    settings: &Settings,
    case: Case<'_>,
    ticket: &mut Ticket,
) -> Result<Permit, Refusal> {
    let Case { route, head, body, call, opening } = case;
    let agent = &ticket.event().agent;
    let snapshot = app.catalog.snapshot();
    let kill = ticket.kill(&snapshot);
    let runs = progress(&snapshot, opening.tree, ticket);
    let model = call.and_then(|call| call.model.as_deref());
    let facts = Facts {
        kill: kill.as_deref(),
        standing: snapshot.agent(agent).map(|standing| &**standing),
        agent_in_flight: opening.agent_in_flight,
        max_agent_in_flight: u32::try_from(settings.proxy.max_requests_per_agent).unwrap_or(u32::MAX),
        runs: &runs,
        run_limits: settings.policies.of(agent).run_limits,
        model,
        is_priced: model.is_none() || app.price(route.provider, None, model).is_some(),
        blocks_unpriced: settings.prices.unpriced == Unpriced::Block,
    };
    let rules = rules(settings, &snapshot, agent);
    let mut decision = Decision::default();
    let judged = decide(&facts, || {
        decision = detect::arrive(app, &rules, call, &ticket.seen(head, body));
        decision.clone()
    });
    let agent = agent.clone();
    ticket.set_verdict(rules, decision);
    match judged {
        Ok(permit) => Ok(permit),
        Err(stop) => {
            if let Some(consequence) = stop.consequence {
                app.follow(agent, *consequence).await;
            }
            Err(stop.refusal)
        }
    }
}

/// An agent's rules, its kill switch included.
fn rules(settings: &Settings, snapshot: &Snapshot, agent: &AgentName) -> Arc<Rules> {
    let policy = settings.policies.of(agent);
    let change = snapshot.agent(agent).map(|standing| standing.kill_switch).unwrap_or_default();
    let switch = change.over(policy.kill_switch);
    let score = &policy.rules.score.common;
    match switch.enabled {
        true => Arc::new(policy.rules.with_kill_switch(switch.window_size, switch.threshold)),
        // Nothing deactivates an agent whose switch is off, whatever the preset says.
        false if score.mode == Mode::Enforce && score.action == Action::DeactivateAgent => {
            let mut rules = Rules::clone(&policy.rules);
            rules.score.common.mode = Mode::Off;
            Arc::new(rules)
        }
        false => policy.rules.clone(),
    }
}
