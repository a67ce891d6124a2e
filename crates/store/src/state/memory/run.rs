//! One run in memory.

use sprag_core::event::{Ending, RunOrigin};
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::RunWatch;
use sprag_core::policy::Habits;
use sprag_core::time::Timestamp;

use crate::run_key::RunKey;
use crate::state::{Ancestor, OpenRequest, Opened, RunPlace, RunTotals, Settlement};

#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) totals: RunTotals,
    /// Most have none.
    parent: Option<Box<RunId>>,
    /// How it was recognised. Absent for a run that nobody has called in yet.
    origin: Option<RunOrigin>,
    in_flight: u32,
    /// Calls in flight of this run and of those below it: as long as there are any, it stays.
    tree_in_flight: u32,
    /// False for a run of which only a child has been seen.
    pub(super) is_opened: bool,
    /// What its own calls used.
    pub(super) habits: Habits,
    /// What detection keeps of it.
    pub(super) watch: RunWatch,
    /// Which version of that the node has seen elsewhere; 0 for none.
    pub(super) watch_version: u64,
}

impl Run {
    /// Counts a call. Also gives the run above.
    pub(super) fn open(&mut self, request: &OpenRequest, agent_in_flight: u32) -> (Opened, Option<RunKey>) {
        let is_new = !self.is_opened && request.seed.is_none();
        if !self.is_opened {
            self.begin(request);
        }
        if self.parent.is_none() {
            self.parent = request.parent.clone().filter(|parent| *parent != request.key.id).map(Box::new);
        }
        self.origin = Some(request.origin);
        let before = self.totals;
        self.totals.steps = before.steps.saturating_add(1);
        self.totals.tree_steps = before.tree_steps.saturating_add(1);
        self.touch(request.now);
        self.in_flight += 1;
        self.tree_in_flight += 1;
        let opened = Opened {
            step: self.totals.steps,
            totals: before,
            is_new,
            in_flight: self.in_flight,
            agent_in_flight,
            habits: self.habits,
            tree: vec![self.place(&request.key.id)],
        };
        (opened, self.parent(&request.key.agent))
    }

    /// Ends a call. Also gives the run above. `None` if none is in flight.
    pub(super) fn settle(&mut self, agent: &AgentName, settlement: &Settlement) -> Option<(RunTotals, Option<RunKey>)> {
        self.in_flight = self.in_flight.checked_sub(1)?;
        let totals = &mut self.totals;
        match (settlement.cost, settlement.usage) {
            (Some(cost), _) => totals.cost += cost,
            (None, Some(_)) => totals.unpriced_steps = totals.unpriced_steps.saturating_add(1),
            (None, None) => {}
        }
        if let Some(usage) = settlement.usage {
            totals.input_tokens = totals.input_tokens.saturating_add(usage.prompt_tokens());
            totals.output_tokens = totals.output_tokens.saturating_add(usage.output);
        }
        if matches!(settlement.ending, Ending::UpstreamError | Ending::UpstreamGone | Ending::TimedOut) {
            totals.failed_steps = totals.failed_steps.saturating_add(1);
        }
        self.child_settled(settlement);
        Some((self.totals, self.parent(agent)))
    }

    /// Takes what the history knows, in a run of which memory knows nothing yet.
    pub(super) fn recall(&mut self, id: &RunId, lineage: &[Ancestor]) {
        if self.origin.is_some() {
            return;
        }
        let Some(at) = lineage.iter().position(|ancestor| ancestor.id == *id) else { return };
        if let Some(totals) = lineage[at].totals {
            self.totals = totals;
        }
        self.parent = lineage.get(at + 1).map(|above| Box::new(above.id.clone()));
    }

    /// Where the run stands in the tree of a call.
    pub(super) fn place(&self, id: &RunId) -> RunPlace {
        RunPlace {
            id: id.clone(),
            origin: self.origin.unwrap_or(RunOrigin::Conversation),
            steps: self.totals.counted_steps(),
            first_at: self.totals.first_at,
            tree_cost: self.totals.tree_cost,
        }
    }

    /// Counts a call of a run below. Until the run is called in itself, it is known as that one is.
    pub(super) fn child_opened(&mut self, now: Timestamp, origin: RunOrigin) {
        if self.origin.is_none() && self.totals.first_at == Timestamp::default() {
            self.totals.first_at = now;
        }
        self.origin.get_or_insert(origin);
        self.totals.tree_steps = self.totals.tree_steps.saturating_add(1);
        self.tree_in_flight += 1;
        self.touch(now);
    }

    /// Ends a call of this run or of one below.
    pub(super) fn child_settled(&mut self, settlement: &Settlement) {
        self.totals.tree_cost += settlement.cost.unwrap_or_default();
        if matches!(settlement.ending, Ending::Refused | Ending::Killed) {
            self.totals.tree_refused = self.totals.tree_refused.saturating_add(1);
        }
        self.tree_in_flight = self.tree_in_flight.saturating_sub(1);
        self.touch(settlement.now);
    }

    /// Takes over what is known of the run elsewhere: of each number the larger.
    pub(super) fn follow(&mut self, totals: &RunTotals, origin: RunOrigin, parent: Option<&RunId>) {
        let own = &mut self.totals;
        let begun = [own.first_at, totals.first_at].into_iter().filter(|at| *at != Timestamp::default()).min();
        *own = RunTotals {
            steps: own.steps.max(totals.steps),
            cost: own.cost.max(totals.cost),
            tree_steps: own.tree_steps.max(totals.tree_steps),
            tree_cost: own.tree_cost.max(totals.tree_cost),
            tree_refused: own.tree_refused.max(totals.tree_refused),
            input_tokens: own.input_tokens.max(totals.input_tokens),
            output_tokens: own.output_tokens.max(totals.output_tokens),
            unpriced_steps: own.unpriced_steps.max(totals.unpriced_steps),
            failed_steps: own.failed_steps.max(totals.failed_steps),
            first_at: begun.unwrap_or_default(),
            last_at: own.last_at.max(totals.last_at),
        };
        self.origin.get_or_insert(origin);
        if self.parent.is_none() {
            self.parent = parent.cloned().map(Box::new);
        }
    }

    /// The same of a run above a call, of which less is told.
    pub(super) fn follow_place(&mut self, place: &RunPlace, parent: Option<&RunId>) {
        let totals = RunTotals {
            tree_steps: place.steps.saturating_add(self.totals.tree_refused),
            tree_cost: place.tree_cost,
            first_at: place.first_at,
            ..RunTotals::default()
        };
        self.follow(&totals, place.origin, parent);
    }

    /// Whether one call of the run at most is under way here.
    pub(super) fn is_alone(&self) -> bool {
        self.in_flight <= 1
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.tree_in_flight == 0
    }

    /// The run above; ids of parents belong to the same agent.
    pub(super) fn parent(&self, agent: &AgentName) -> Option<RunKey> {
        self.parent.as_deref().map(|id| RunKey { agent: agent.clone(), id: id.clone() })
    }

    /// The run's own first call in this process. Children may have come before it.
    fn begin(&mut self, request: &OpenRequest) {
        self.is_opened = true;
        match request.seed {
            // A part of it may have been first.
            None if self.origin.is_some() => {}
            None => self.totals.first_at = request.now,
            Some(seed) => {
                // The history may or may not have what the children added since they began, so the larger counts.
                self.totals = RunTotals {
                    tree_steps: seed.tree_steps.max(self.totals.tree_steps),
                    tree_cost: seed.tree_cost.max(self.totals.tree_cost),
                    tree_refused: seed.tree_refused.max(self.totals.tree_refused),
                    last_at: seed.last_at.max(self.totals.last_at),
                    ..seed
                };
            }
        }
    }

    fn touch(&mut self, now: Timestamp) {
        self.totals.last_at = self.totals.last_at.max(now);
    }
}
