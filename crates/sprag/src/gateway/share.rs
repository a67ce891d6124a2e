//! Calls of several nodes, counted and judged together: what is asked where nodes meet before a call is opened, and what
//! this node takes over of the answer.
//!
//! Redis gives numbers, and the judge decides by them as it would by this node's own. Without Redis the node goes on by
//! what it knows, but for controls that are closed then.

mod end;
mod loss;

use std::sync::Arc;

use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::{AgentWatch, Mode, RunWatch};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{ALWAYS, AccountId, Habits, Holder, Window};
use sprag_core::run::{Clue, Lookup};
use sprag_core::time::Timestamp;
use sprag_core::wire::{Reason, Refusal};
use sprag_store::RunKey;
use sprag_store::shared::{self, Begin, BegunRun, NamedRun, RepeatAsk};
use sprag_store::state::{Ancestor, OpenRequest, Opened, RunPlace, RunTotals};

pub(crate) use self::end::{Farewell, Held, Over};
use self::loss::Lost;
pub(crate) use self::loss::refusal as lost_refusal;
use super::detect::{Way, identity};
use super::identify::{AskedRun, Caller, CallerRun};
use super::inspect;
use super::judge::plan;
use super::open::{Request, Together, recalled};
use super::rates::{self, Limited};
use super::ticket::Ticket;
use crate::app::{App, Recalled};
use crate::link::Link;

/// How a call stands with the other nodes.
pub(crate) enum Met {
    /// They know of it.
    Begun(Box<Begun>),
    /// Redis is away. Where a control is closed then, the refusal.
    Lost(Option<Refusal>),
}

/// A call that other nodes know of.
pub(crate) struct Begun {
    pub(crate) held: Held,
    /// None outside any run.
    pub(crate) run: Option<Counted>,
    pub(crate) agent_in_flight: u32,
    pub(crate) together: Box<Together>,
}

/// The run of a call, as all nodes together know it.
pub(crate) struct Counted {
    pub(crate) run: CallerRun,
    told: BegunRun,
    seed: Option<RunTotals>,
    lineage: Vec<Ancestor>,
}

/// Asks for a call where nodes meet: one round trip.
pub(crate) async fn begin(
    app: &Arc<App>,
    link: &Link,
    request: Request<'_>,
    caller: &Caller,
    ticket: &Ticket,
) -> Result<Met, Refusal> {
    let Request { settings, route, head, body, call } = request;
    let (agent, now) = (&caller.agent, ticket.event().at);
    let policy = app.policy(agent);
    let rules = route.rule.map_or(&policy.rules, |rule| &rule.rules);
    let (clues, run): (&[Clue], Option<CallerRun>) = match &caller.run {
        None => (&[], None),
        Some(AskedRun::Named(run)) => (&[], Some(run.clone())),
        Some(AskedRun::Evidence { clues, otherwise }) => {
            let unknown = otherwise.clone().run(&app.ids, now);
            // Of what happened while Redis was away, this node alone knows.
            let run = match link.led_to(clues) {
                Some((key, clue)) => CallerRun { key, origin: clue.origin, is_fresh: false, ..unknown },
                None => unknown,
            };
            (clues, Some(run))
        }
    };
    let Recalled { mut totals, parent, mut lineage } = match &run {
        Some(run) => recalled(app, settings, run, ticket).await?,
        None => Recalled::default(),
    };
    let expected = expected_run(app, clues, run.as_ref());
    if let Some(run) = run.as_ref().filter(|run| app.state.knows(&run.key)) {
        (totals, lineage) = (app.state.totals(&run.key), app.state.lineage(&run.key));
    }
    let place = |run: &CallerRun| RunPlace {
        id: run.key.id.clone(),
        origin: run.origin,
        steps: 0,
        first_at: now,
        tree_cost: NanoUsd::ZERO,
    };
    let tree: Vec<RunPlace> = run.iter().map(place).collect();
    let habits = expected.as_ref().and_then(|run| app.state.run_habits(run)).unwrap_or_default();
    let mut spending = plan(app, request, &policy.policy, &tree, habits, ticket);
    spending.ask_together(app);

    let limited = Limited { settings, route, head, policy: &policy.policy, ticket };
    let asks = rates::asks(limited, spending.tokens());
    let fingerprint = (rules.repeat.common.mode != Mode::Off).then(|| {
        let told_apart = || rates::descriptors(limited);
        identity(&ticket.seen(head, body), &Way { route, told_apart: &told_apart, repeated: None })
    });
    let runs = run.iter().map(|run| &run.key.id).chain(lineage.iter().map(|above| &above.id));
    let corrections = corrections(app, agent, runs);
    let otherwise = run.as_ref().map(|run| NamedRun {
        id: &run.key.id,
        parent: parent.as_ref(),
        origin: run.origin,
        seed: totals,
        lineage: &lineage,
    });
    let asked = match (otherwise, &caller.run) {
        (Some(otherwise), Some(AskedRun::Evidence { .. })) => shared::AskedRun::Evidence { clues, otherwise },
        (Some(named), _) => shared::AskedRun::Named(named),
        (None, _) => shared::AskedRun::Outside,
    };
    let watches_agent = run.is_some() && rules.watches_agents();
    let version = expected.as_ref().map(|run| app.state.watch_version(run));
    let begin = Begin {
        call: &ticket.event().id,
        agent,
        run: asked,
        follows: caller.follows,
        remember: &caller.leaves,
        watch: expected.as_ref().map(|run| &run.id).zip(version),
        agent_watch: watches_agent.then(|| app.state.agent_watch_version(agent, now)),
        model: call.and_then(|call| call.model.as_deref()),
        rates: &asks,
        money: spending.money_ask(&corrections),
        repeat: fingerprint.map(|fingerprint| RepeatAsk { fingerprint, rule: &rules.repeat }),
    };
    let asked_at = app.clock.now();
    // Redis takes its time: meanwhile the body is looked at. It is asked first, by another task, which must have its turn for that.
    let looking = async {
        tokio::task::yield_now().await;
        inspect::ahead(app, &policy, request, ticket)
    };
    let (begun, looked) = futures_util::future::join(link.shared.begin(&begin), looking).await;
    let begun = match begun {
        Ok(begun) => begun,
        Err(away) => {
            let lost = Lost { away: &away, on_loss: settings.state.on_loss, has_run: run.is_some() };
            return Ok(Met::Lost(lost.refusal(&policy.policy, rules, &asks, &spending)));
        }
    };
    link.hear_time(begun.now, (asked_at, app.clock.now()));
    if let Some(watch) = begun.agent_watch
        && let Some(unpacked) = AgentWatch::unpack(&watch.bytes)
    {
        app.state.follow_agent_watch(agent, unpacked, watch.version, false);
    }
    let of_model = call.map(|call| (agent, call.model.as_deref().unwrap_or_default()));
    if let Some(habits) = begun.agent_habits.as_deref().and_then(Habits::unpack) {
        app.state.follow_habits(None, of_model, habits);
    }
    spending.told(begun.money);
    let run = begun.run.zip(run).map(|(told, asked)| {
        let is_found = told.clue.is_some();
        let key = RunKey { agent: agent.clone(), id: told.id.clone() };
        let above = told.opened.tree.get(1).map(|place| place.id.clone());
        let is_fresh = asked.is_fresh && !is_found;
        let run = CallerRun { key, parent: above.or(parent), origin: told.origin, is_fresh };
        match is_found {
            true => Counted { run, told, seed: None, lineage: Vec::new() },
            false => Counted { run, told, seed: totals, lineage },
        }
    });
    Ok(Met::Begun(Box::new(Begun {
        held: Held::begun(begun.call, watches_agent),
        run,
        agent_in_flight: begun.agent_in_flight,
        together: Box::new(Together { rated: begun.rated, repeated: begun.repeat, spending, looked }),
    })))
}

impl Counted {
    /// Counts the call here as well, and takes over what all nodes together know of its run.
    pub(crate) fn follow(&self, app: &App, asked: &AskedRun, now: Timestamp) -> Result<Opened, Refusal> {
        let Counted { run, told, seed, lineage } = self;
        // Whoever claimed the run elsewhere has it; it is not offered here any longer.
        if let (AskedRun::Evidence { clues, .. }, Some(place)) = (asked, told.clue)
            && let Some(clue) = clues.get(place).filter(|clue| clue.lookup != Lookup::Known)
        {
            app.state.withdraw(clue.hash, &run.key);
        }
        let request = OpenRequest {
            key: run.key.clone(),
            parent: run.parent.clone(),
            origin: run.origin,
            now,
            seed: *seed,
            lineage: lineage.clone(),
        };
        let full = app.state.open_counted(&request, &told.opened);
        full.map_err(|full| Refusal::new(Reason::Overloaded, full.to_string()))?;
        if let Some(watch) = &told.watch
            && let Some(unpacked) = RunWatch::unpack(&watch.bytes)
        {
            let is_ahead = app.link.as_ref().is_some_and(|link| link.take_ahead(&run.key));
            app.state.follow_watch(&run.key, unpacked, watch.version, is_ahead);
        }
        let habits = told.habits.as_deref().and_then(Habits::unpack);
        if let Some(habits) = habits {
            app.state.follow_habits(Some(&run.key), None, habits);
        }
        Ok(Opened { habits: habits.unwrap_or(told.opened.habits), ..told.opened.clone() })
    }
}

/// The run that a call will most likely belong to, as far as this node knows.
fn expected_run(app: &App, clues: &[Clue], run: Option<&CallerRun>) -> Option<RunKey> {
    let known: Vec<u64> = clues.iter().filter(|clue| clue.lookup == Lookup::Known).map(|clue| clue.hash).collect();
    let found = app.state.resolve(&known).map(|(_, key)| key);
    found.or_else(|| run.map(|run| run.key.clone())).filter(|key| app.state.totals(key).is_some())
}

/// By how much accounts of runs begin higher or lower than what the runs have cost: they were resumed or corrected.
pub(crate) fn corrections<'a>(
    app: &App,
    agent: &AgentName,
    runs: impl Iterator<Item = &'a RunId>,
) -> Vec<(RunId, NanoUsd)> {
    let snapshot = app.catalog.snapshot();
    let correction = |id: &RunId| {
        let run = RunKey { agent: agent.clone(), id: id.clone() };
        let before = snapshot.mark(&run).map_or(NanoUsd::ZERO, |mark| mark.cost);
        let holder = Holder::Run(run.agent, run.id);
        let account = AccountId { holder, window: Window::Run, is_shadow: false };
        app.adjusted(&account, ALWAYS) - before
    };
    runs.map(|id| (id.clone(), correction(id))).filter(|(_, by)| *by != NanoUsd::ZERO).collect()
}
