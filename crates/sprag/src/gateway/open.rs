//! Opening a call: whose it is, which run it belongs to, its step counted in the run's state.

use std::sync::Arc;

use http::request::Parts;
use sprag_core::event::{RunOrigin, RunRecord};
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::{Finding, Mode};
use sprag_core::policy::{Habits, RunProgress, unknown_refusal};
use sprag_core::run::Remember;
use sprag_core::time::Timestamp;
use sprag_core::wire::{Call, Reason, Refusal, read_history};
use sprag_store::RunKey;
use sprag_store::catalog::Snapshot;
use sprag_store::state::{Ancestor, OpenRequest, Opened, Rated, RunPlace};

use super::authenticate::speaks_for;
use super::identify::{AskedRun, CallerRun, Known, Naming, identify};
use super::inspect::Look;
use super::invalid;
use super::killed::{Watched, WatchedHead};
use super::route::Route;
use super::share::{self, Held, Met};
use super::spending::Spending;
use super::ticket::{Ticket, TicketRun};
use crate::app::App;
use crate::app::Recalled;
use crate::config::Settings;

/// How long after a kill the request that it cut counts as that request again.
const KILLED_RETRY_MS: u64 = 60_000;

/// A request that has been read.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) route: &'a Route<'a>,
    pub(crate) head: &'a Arc<Parts>,
    /// As it can be read.
    pub(crate) body: &'a [u8],
    pub(crate) call: Option<&'a Call<'a>>,
}

/// A call that was counted.
pub(crate) struct Opening {
    /// The agent's calls in flight, this one included.
    pub(crate) agent_in_flight: u32,
    /// The run of the call and those above it, nearest first; none outside any run.
    pub(crate) tree: Vec<RunPlace>,
    /// What the run's calls used so far.
    pub(crate) habits: Habits,
    /// What all nodes together say of it; absent where this one is on its own. On its own, because it is large and most calls have none.
    pub(crate) together: Option<Box<Together>>,
    /// Why it cannot pass while this node is on its own.
    pub(crate) lost: Option<Refusal>,
}

/// What came of a call where nodes meet.
pub(crate) struct Together {
    pub(crate) rated: Rated,
    /// One identical request too many.
    pub(crate) repeated: Option<Finding>,
    /// Its money, as it was planned and asked for.
    pub(crate) spending: Spending,
    /// What was seen of its body meanwhile: nothing that may not pass. Absent where it must be looked at once more.
    pub(crate) looked: Option<Look>,
}

/// Counts the call in its run, or for its agent alone, and writes that on the ticket.
pub(crate) async fn open(app: &Arc<App>, request: Request<'_>, ticket: &mut Ticket) -> Result<Opening, Refusal> {
    let Request { settings, route, head, call, .. } = request;
    let now = ticket.event().at;
    let history = call.and_then(|call| read_history(call, |raw| app.marks.get(raw)));
    for (raw, mark) in history.iter().flat_map(|history| &history.marks) {
        app.marks.insert(*raw, *mark);
    }
    let with_history = call.map(|call| (call, history.as_ref()));
    let sources = &settings.runs.sources;
    let naming = Naming { scanner: &settings.dlp.scanner, command: settings.runs.command.as_ref() };
    let key = ticket.key().map(|entry| &entry.key);
    if let Some(key) = key {
        speaks_for(key, call.and_then(|call| call.own.agent.as_deref()).map(str::as_bytes))?;
    }
    let key_id = key.map(|key| key.id.clone());
    let mut caller = identify(naming, sources, route.agent, key, head, with_history).map_err(invalid)?;
    ticket.set_caller(caller.agent.clone(), call.and_then(|call| call.model.as_deref()));
    let met = match &app.link {
        // On its own, so that calls of a Sprag without others carry nothing of it.
        Some(link) => Some(Box::pin(share::begin(app, link, request, &caller, ticket)).await?),
        None => None,
    };
    let (begun, lost) = match met {
        Some(Met::Begun(begun)) => (Some(*begun), None),
        Some(Met::Lost(refusal)) => {
            ticket.set_shared(Held::Alone);
            (None, refusal)
        }
        None => (None, None),
    };
    let mut watched = Watched {
        agent: caller.agent,
        key: key_id,
        runs: Vec::new(),
        head: WatchedHead::Read(head.clone()),
        path: route.path.to_owned(),
    };
    let asked = caller.run.take();
    let (begun, together) = match begun {
        Some(begun) => {
            ticket.set_shared(begun.held);
            (Some((begun.run, begun.agent_in_flight)), Some(begun.together))
        }
        None => (None, None),
    };
    let Some(asked) = asked else {
        ticket.set_watched(watched);
        let (here, habits) = (ticket.enter(), Habits::default());
        let agent_in_flight = begun.map_or(here, |(_, agent_in_flight)| agent_in_flight);
        return Ok(Opening { agent_in_flight, tree: Vec::new(), habits, together, lost });
    };
    let (run, opened) = match begun.and_then(|(run, _)| run) {
        Some(counted) => {
            app.state.keep(&caller.leaves, &counted.run.key);
            let opened = counted.follow(app, &asked, now)?;
            (counted.run, opened)
        }
        None => open_here(app, settings, asked, &caller.leaves, ticket).await?,
    };
    if app.link.is_some() {
        // Steps that nobody tells of are under way on other nodes.
        app.state.watch(&run.key, |watch| watch.share(opened.step));
    }
    let CallerRun { key, parent, origin, .. } = run;
    let record = RunRecord { id: key.id.clone(), step: opened.step, parent, origin };
    ticket.set_run(TicketRun { key, scope: caller.scope, history, left: None }, record);
    watched.runs = opened.tree.iter().map(|place| place.id.clone()).collect();
    ticket.set_watched(watched);
    let Opened { agent_in_flight, tree, habits, .. } = opened;
    Ok(Opening { agent_in_flight, tree, habits, together, lost })
}

/// Finds the run by what this node knows, and counts the call there.
async fn open_here(
    app: &Arc<App>,
    settings: &Settings,
    asked: AskedRun,
    leaves: &Remember,
    ticket: &Ticket,
) -> Result<(CallerRun, Opened), Refusal> {
    let now = ticket.event().at;
    // Clients retry for a while what was killed; who asks the same later begins anew.
    let is_over = |run: &RunKey| {
        let snapshot = app.catalog.snapshot();
        snapshot.kills.of_run(&run.agent, &run.id).is_some_and(|kill| now.since_ms(kill.at) > KILLED_RETRY_MS)
    };
    let known = Known { state: &app.state, ids: &app.ids, is_over: &is_over };
    let mut run = asked.found_here(known, now);
    app.state.keep(leaves, &run.key);
    let Recalled { totals: seed, parent, lineage } = recalled(app, settings, &run, ticket).await?;
    run.parent = parent;
    let request =
        OpenRequest { key: run.key.clone(), parent: run.parent.clone(), origin: run.origin, seed, lineage, now };
    let opened = app.state.open(&request).map_err(|full| Refusal::new(Reason::Overloaded, full.to_string()))?;
    Ok((run, opened))
}

/// What is on record of a run, and of those above it, that this node has nothing of in memory.
pub(crate) async fn recalled(
    app: &Arc<App>,
    settings: &Settings,
    run: &CallerRun,
    ticket: &Ticket,
) -> Result<Recalled, Refusal> {
    let CallerRun { key, parent, is_fresh, .. } = run;
    // A run that is named may be older than this process, and so may the runs above it.
    let mut recalled = match *is_fresh || app.state.knows(key) {
        true => Recalled { parent: parent.clone(), ..Recalled::default() },
        false => match app.recall(key, parent.as_ref()).await {
            Ok(recalled) => recalled,
            Err(error) => {
                tracing::error!(%error, run.id = %key.id, "what is on record about a run cannot be read");
                if is_limited(app, settings, &key.agent, ticket) {
                    return Err(unknown_refusal());
                }
                Recalled { parent: parent.clone(), ..Recalled::default() }
            }
        },
    };
    let command = settings.runs.command.as_ref();
    // A part of a run that nobody has called in yet: that one is the command's.
    if let Some(command) = command.filter(|&command| recalled.parent.as_ref().is_some_and(|parent| parent != command)) {
        recalled.lineage.push(Ancestor { id: command.clone(), totals: None });
    }
    Ok(recalled)
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

/// How far the runs of a call have come since they began, or were resumed, by the clock that nodes have in common.
pub(crate) fn progress(
    snapshot: &Snapshot,
    tree: &[RunPlace],
    command: Option<&RunId>,
    (agent, now): (&AgentName, Timestamp),
) -> Vec<RunProgress> {
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
