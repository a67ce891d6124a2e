//! What a settled call leaves in its run, and what its client is told of it.

use std::sync::Arc;

use sprag_core::event::{Ending, Event, RunOrigin, RunRecord};
use sprag_core::money::NanoUsd;
use sprag_core::policy::loop_warning;
use sprag_core::time::Timestamp;
use sprag_core::wire::Reply;
use sprag_store::state::{Lesson, RunTotals, Settlement};

use super::identify::leave_evidence;
use super::ticket::TicketRun;
use crate::app::App;

/// What settling found out.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    pub(crate) cost: Option<NanoUsd>,
    pub(crate) totals: RunTotals,
    /// Something the caller should know.
    pub(crate) warning: Option<String>,
}

impl Settled {
    /// What the run has cost; None while nothing of it has a price.
    pub(crate) fn known_run_cost(&self) -> Option<NanoUsd> {
        let is_unknown = self.totals.unpriced_steps > 0 && self.totals.cost == NanoUsd::ZERO;
        (!is_unknown).then_some(self.totals.cost)
    }
}

/// Adds a settled call to its run and remembers what ties later requests to it.
pub(crate) fn settle_run(
    app: &Arc<App>,
    run: &mut TicketRun,
    event: &Event,
    reply: &Reply,
    lesson: Option<Lesson>,
    warning: Option<String>,
    now: Timestamp,
) -> Settled {
    let (cost, usage, ending) = (event.cost, event.usage, event.ending);
    let settlement = Settlement { cost, usage, ending, now };
    let totals = app.state.settle(&run.key, settlement);
    if let Some(lesson) = lesson {
        app.state.learn(&run.key, event.model.as_deref().unwrap_or_default(), &lesson);
    }
    leave_evidence(app, run, event.run.as_ref(), event.ending, reply);
    let is_named = |run: &RunRecord| matches!(run.origin, RunOrigin::Declared | RunOrigin::Session);
    if event.ending == Ending::Killed && !event.run.as_ref().is_some_and(is_named) {
        app.keep_clues(run.key.clone());
    }
    let model = event.model.as_deref().unwrap_or("unknown");
    let unpriced = event.unpriced.then(|| format!("model `{model}` has no price; its cost is unknown"));
    let warning = event.verdict.as_ref().map(loop_warning).or(warning).or(unpriced);
    Settled { cost: event.cost, totals, warning }
}
