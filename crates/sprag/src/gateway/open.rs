//! Opening a call: whose it is, which run it belongs to, its step counted in the run's state.

use std::sync::Arc;

use http::request::Parts;
use sprag_core::event::RunRecord;
use sprag_core::policy::Facts;
use sprag_core::wire::{Call, Reason, Refusal, read_history};
use sprag_store::state::OpenRequest;

use super::identify::{CallerRun, identify};
use super::invalid;
use super::route::Route;
use super::ticket::{Ticket, TicketRun};
use crate::app::App;
use crate::config::Settings;
use crate::config::file::Unpriced;

/// Counts the call in its run, or for its agent alone, and writes that on the ticket. Gives the agent's calls in
/// flight, this one included.
pub(crate) async fn open(
    app: &Arc<App>,
    settings: &Settings,
    route: &Route<'_>,
    head: &Parts,
    call: Option<&Call<'_>>,
    ticket: &mut Ticket,
) -> Result<u32, Refusal> {
    let now = ticket.event().at;
    let history = call.and_then(|call| read_history(call, |raw| app.marks.get(raw)));
    for (raw, mark) in history.iter().flat_map(|history| &history.marks) {
        app.marks.insert(*raw, *mark);
    }
    let with_history = call.map(|call| (call, history.as_ref()));
    let caller = identify(app, &settings.runs.sources, route.agent, head, with_history, now).map_err(invalid)?;
    ticket.set_caller(caller.agent, call.and_then(|call| call.model.as_deref()));
    let Some(CallerRun { key, parent, origin, is_fresh }) = caller.run else { return Ok(ticket.enter()) };

    // A run that is named may be older than this process.
    let seed = if is_fresh || app.state.knows(&key) { None } else { app.recall(&key).await };
    let request = OpenRequest { key: key.clone(), parent: parent.clone(), origin, seed, now };
    let opened = app.state.open(&request).map_err(|full| Refusal::new(Reason::Overloaded, full.to_string()))?;
    let record = RunRecord { id: key.id.clone(), step: opened.step, parent, origin };
    ticket.set_run(TicketRun { key, scope: caller.scope, history, has_left_evidence: false }, record);
    Ok(opened.agent_in_flight)
}

/// What the judge is told about a call.
pub(crate) fn facts<'a>(
    app: &App,
    settings: &'a Settings,
    route: &Route<'_>,
    call: Option<&'a Call<'_>>,
    agent_in_flight: u32,
) -> Facts<'a> {
    let model = call.and_then(|call| call.model.as_deref());
    Facts {
        model,
        is_priced: model.is_none() || app.price(route.provider, None, model).is_some(),
        blocks_unpriced: settings.prices.unpriced == Unpriced::Block,
        agent_in_flight,
        max_agent_in_flight: u32::try_from(settings.proxy.max_requests_per_agent).unwrap_or(u32::MAX),
    }
}
