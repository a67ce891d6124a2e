//! Opening a call: whose it is, which run it belongs to, its step counted in the run's state.

use std::sync::Arc;

use http::request::Parts;
use sprag_core::event::{RunOrigin, RunRecord};
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::Mode;
use sprag_core::policy::{Habits, RunProgress, unknown_refusal};
use sprag_core::wire::{Call, Reason, Refusal, read_history};
use sprag_store::RunKey;
use sprag_store::catalog::Snapshot;
use sprag_store::state::{Ancestor, OpenRequest, RunPlace};

use super::authenticate::speaks_for;
use super::identify::{CallerRun, Known, identify};
use super::invalid;
use super::killed::Watched;
use super::route::Route;
use super::ticket::{Ticket, TicketRun};
use crate::app::App;
use crate::app::Recalled;
use crate::config::Settings;

/// How long after a kill the request that it cut counts as that request again.
const KILLED_RETRY_MS: u64 = 60_000;

/// A call that was counted.
pub(crate) struct Opening {
    /// The agent's calls in flight, this one included.
    pub(crate) agent_in_flight: u32,
    /// The run of the call and those above it, nearest first; none outside any run.
    pub(crate) tree: Vec<RunPlace>,
    /// What the run's calls used so far.
    pub(crate) habits: Habits,
}

/// Counts the call in its run, or for its agent alone, and writes that on the ticket.
pub(crate) async fn open(
    app: &Arc<App>,
    settings: &Settings,
    route: &Route<'_>,
    head: &Arc<Parts>,
    call: Option<&Call<'_>>,
    ticket: &mut Ticket,
) -> Result<Opening, Refusal> {
    let now = ticket.event().at;
    let history = call.and_then(|call| read_history(call, |raw| app.marks.get(raw)));
    for (raw, mark) in history.iter().flat_map(|history| &history.marks) {
        app.marks.insert(*raw, *mark);
    }
    let with_history = call.map(|call| (call, history.as_ref()));
    let sources = &settings.runs.sources;
    // Clients retry for a while what was killed; who asks the same later begins anew.
    let is_over = |run: &RunKey| {
        let snapshot = app.catalog.snapshot();
        snapshot.kills.of_run(&run.agent, &run.id).is_some_and(|kill| now.since_ms(kill.at) > KILLED_RETRY_MS)
    };
    let scanner = &settings.dlp.scanner;
    let command = settings.runs.command.as_ref();
    let known = Known { state: &app.state, ids: &app.ids, scanner, command, is_over: &is_over };
    let key = ticket.key().map(|entry| &entry.key);
    if let Some(key) = key {
        speaks_for(key, call.and_then(|call| call.own.agent.as_deref()).map(str::as_bytes))?;
    }
    let key_id = key.map(|key| key.id.clone());
    let caller = identify(known, sources, route.agent, key, head, with_history, now).map_err(invalid)?;
    ticket.set_caller(caller.agent.clone(), call.and_then(|call| call.model.as_deref()));
    let mut watched =
        Watched { agent: caller.agent, key: key_id, runs: Vec::new(), head: head.clone(), path: route.path.to_owned() };
    let Some(CallerRun { key, parent, origin, is_fresh }) = caller.run else {
        ticket.set_watched(watched);
        return Ok(Opening { agent_in_flight: ticket.enter(), tree: Vec::new(), habits: Habits::default() });
    };

    // A run that is named may be older than this process, and so may the runs above it.
    let recalled = match is_fresh || app.state.knows(&key) {
        true => Recalled { parent, ..Recalled::default() },
        false => match app.recall(&key, parent.as_ref()).await {
            Ok(recalled) => recalled,
            Err(error) => {
                tracing::error!(%error, run.id = %key.id, "what is on record about a run cannot be read");
                if is_limited(app, settings, &key.agent, ticket) {
                    return Err(unknown_refusal());
                }
                Recalled { parent, ..Recalled::default() }
            }
        },
    };
    let Recalled { totals: seed, parent, mut lineage } = recalled;
    // A part of a run that nobody has called in yet: that one is the command's.
    if let Some(command) = command.filter(|&command| parent.as_ref().is_some_and(|parent| parent != command)) {
        lineage.push(Ancestor { id: command.clone(), totals: None });
    }
    let request = OpenRequest { key: key.clone(), parent: parent.clone(), origin, seed, lineage, now };
    let opened = app.state.open(&request).map_err(|full| Refusal::new(Reason::Overloaded, full.to_string()))?;
    let record = RunRecord { id: key.id.clone(), step: opened.step, parent, origin };
    ticket.set_run(TicketRun { key, scope: caller.scope, history, has_left_evidence: false }, record);
    watched.runs = opened.tree.iter().map(|place| place.id.clone()).collect();
    ticket.set_watched(watched);
    Ok(Opening { agent_in_flight: opened.agent_in_flight, tree: opened.tree, habits: opened.habits })
}

/// Whether anything holds against a call what its run did before.
fn is_limited(app: &App, settings: &Settings, agent: &AgentName, ticket: &Ticket) -> bool {
    let policy = &app.policy(agent).policy;
    let of_key = ticket.key().map(|entry| &entry.key.budget);
    let budgets = [Some(&policy.budget), Some(&settings.budget.budget), of_key];
    let limits = &policy.run_limits;
    let has_run_limits = limits.mode == Mode::Enforce && (limits.max_steps > 0 || limits.timeout_seconds > 0);
    has_run_limits || budgets.into_iter().flatten().any(|budget| budget.is_set() && budget.mode == Mode::Enforce)
}

/// How far the runs of a call have come since they began, or were resumed.
pub(crate) fn progress(
    snapshot: &Snapshot,
    tree: &[RunPlace],
    command: Option<&RunId>,
    ticket: &Ticket,
) -> Vec<RunProgress> {
    let (agent, now) = (&ticket.event().agent, ticket.event().at);
    let since_mark = |place: &RunPlace| {
        let mark = snapshot.mark(&RunKey { agent: agent.clone(), id: place.id.clone() });
        let begun = mark.map_or(place.first_at, |mark| mark.at.max(place.first_at));
        RunProgress {
            run: place.id.clone(),
            steps: place.steps.saturating_sub(mark.map_or(0, |mark| mark.steps)),
            age_ms: now.since_ms(begun),
            // Nobody named the run of a command, even where a part of it has a name.
            is_declared: place.origin == RunOrigin::Declared && Some(&place.id) != command,
        }
    };
    tree.iter().map(since_mark).collect()
}
