//! Following what other nodes know.

use sprag_core::id::AgentName;
use sprag_core::loops::{AgentWatch, RunWatch};
use sprag_core::policy::Habits;
use sprag_core::time::Timestamp;

use super::MemoryState;
use crate::run_key::{RunKey, agent_hash, model_hash};
use crate::state::{Ancestor, OpenRefusal, OpenRequest, Opened, RunTotals};

impl MemoryState {
    pub(in crate::state) fn open_counted(&self, request: &OpenRequest, counted: &Opened) -> Result<(), OpenRefusal> {
        self.open(request)?;
        let above = |at: usize| counted.tree.get(at + 1).map(|place| &place.id);
        let totals = RunTotals { steps: counted.step, ..counted.totals };
        self.with_run(&request.key, |run| run.follow(&totals, request.origin, above(0)));
        for (at, place) in counted.tree.iter().enumerate() {
            let key = RunKey { agent: request.key.agent.clone(), id: place.id.clone() };
            self.with_run(&key, |run| run.follow_place(place, above(at)));
        }
        Ok(())
    }

    pub(in crate::state) fn lineage(&self, key: &RunKey) -> Vec<Ancestor> {
        let parent = self.runs.look(key, |run| run.parent(&key.agent)).flatten();
        let mut lineage = Vec::new();
        self.for_each_ancestor(key, parent, false, |id, run| {
            lineage.push(Ancestor { id: id.clone(), totals: Some(run.totals) });
        });
        lineage
    }

    pub(in crate::state) fn run_habits(&self, key: &RunKey) -> Option<Habits> {
        self.runs.look(key, |run| run.habits)
    }

    pub(in crate::state) fn follow_habits(
        &self,
        key: Option<&RunKey>,
        of_model: Option<(&AgentName, &str)>,
        habits: Habits,
    ) {
        let richer = |own: Habits| if habits.calls > own.calls { habits } else { own };
        if let Some(key) = key {
            self.runs.amend(key, |run| run.habits = richer(run.habits));
        }
        if let Some((agent, model)) = of_model {
            self.habits.update(model_hash(Some(agent), model), |own| richer(own.unwrap_or_default()));
        }
    }

    pub(in crate::state) fn follow_run(&self, key: &RunKey, totals: &RunTotals) {
        self.runs.change(key, |run| {
            let origin = run.place(&key.id).origin;
            run.follow(totals, origin, None);
        });
    }

    pub(in crate::state) fn follow_watch(&self, key: &RunKey, watch: RunWatch, version: u64, is_merged: bool) {
        self.with_watch_version(key, |own, own_version, is_alone| {
            *own = if is_merged || !is_alone { RunWatch::merge(own, watch) } else { watch };
            *own_version = version;
        });
    }

    pub(in crate::state) fn follow_agent_watch(
        &self,
        agent: &AgentName,
        watch: AgentWatch,
        version: u64,
        is_merged: bool,
    ) -> bool {
        let is_alone = self.agents.with(agent_hash(agent), |agents| !agents.contains_key(agent));
        self.with_agent_version(agent, Timestamp::default(), |own, own_version| {
            *own = if is_merged || !is_alone { AgentWatch::merge(own, watch) } else { watch };
            *own_version = version;
        });
        !is_alone
    }

    /// Works on a run's watch and its version, and is told whether one call of the run at most is under way here.
    pub(in crate::state) fn with_watch_version<R>(
        &self,
        key: &RunKey,
        work: impl FnOnce(&mut RunWatch, &mut u64, bool) -> R,
    ) -> Option<R> {
        self.runs.amend(key, |run| {
            let is_alone = run.is_alone();
            work(&mut run.watch, &mut run.watch_version, is_alone)
        })
    }

    pub(in crate::state) fn with_agent_version<R>(
        &self,
        agent: &AgentName,
        now: Timestamp,
        work: impl FnOnce(&mut AgentWatch, &mut u64) -> R,
    ) -> R {
        self.watched.with_version(agent, now, work)
    }
}
