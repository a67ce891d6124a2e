//! Which limits there are.

use std::collections::BTreeSet;

use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::AGENT_STANDINGS;
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{ALWAYS, AccountId, Budget, Crossed, Draw, Holder, KeyState, Level, Spender, Window, draws};
use sprag_store::StoreError;

use super::{BudgetFilter, BudgetLimit};
use crate::app::App;

/// An account that has a limit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limited {
    pub(super) id: AccountId,
    pub(super) limit: BudgetLimit,
}

impl App {
    /// The limits that there are, in no order.
    pub(super) fn limits(&self, filter: &BudgetFilter) -> Result<Vec<Limited>, StoreError> {
        let mut limits = Vec::new();
        let is_filtered = filter.agent.is_some() || filter.key.is_some();
        if !is_filtered {
            limits.extend(windows(Holder::Everything, Level::Everything, &self.settings.load().budget.budget));
        }
        if filter.key.is_none() {
            let policies = self.policies.load();
            for agent in self.limited_agents(filter)? {
                let budget = &policies.of(&agent).policy.budget;
                limits.extend(windows(Holder::Agent(agent.clone()), Level::Agent, budget));
            }
        }
        let (snapshot, now) = (self.catalog.snapshot(), self.common_now());
        let is_wanted = |agent: &AgentName, key: Option<&str>| {
            filter.agent.as_ref().is_none_or(|wanted| wanted == agent)
                && filter.key.as_deref().is_none_or(|wanted| Some(wanted) == key)
        };
        for entry in snapshot.keys().filter(|entry| is_wanted(&entry.key.agent, Some(&entry.key.id))) {
            // One that has ended spends no more. Whoever asks for it sees it.
            if entry.key.state(now) == KeyState::Active || filter.key.is_some() {
                limits.extend(windows(Holder::Key(entry.key.id.as_str().into()), Level::Key, &entry.key.budget));
            }
        }
        if filter.runs || is_filtered {
            for state in self.state.accounts() {
                let Holder::Run(agent, run) = &state.id.holder else { continue };
                if is_wanted(agent, run.key()) {
                    limits.extend(self.limits_of_run(agent, run).into_iter().filter(|limited| limited.id == state.id));
                }
            }
        }
        Ok(limits)
    }

    /// The limits of one account: one, or for a run one in force and one in shadow.
    pub(super) fn limits_of(&self, id: &AccountId) -> Vec<Limited> {
        let of_window = |limited: &Limited| limited.id.window == id.window;
        match &id.holder {
            Holder::Everything => {
                let settings = self.settings.load();
                windows(Holder::Everything, Level::Everything, &settings.budget.budget).filter(of_window).collect()
            }
            Holder::Agent(agent) => {
                let in_force = self.policy(agent);
                windows(id.holder.clone(), Level::Agent, &in_force.policy.budget).filter(of_window).collect()
            }
            Holder::Key(key) => {
                let snapshot = self.catalog.snapshot();
                let budget = snapshot.key(key).map(|entry| entry.key.budget.clone()).unwrap_or_default();
                windows(id.holder.clone(), Level::Key, &budget).filter(of_window).collect()
            }
            Holder::Run(agent, run) => self.limits_of_run(agent, run),
        }
    }

    /// What the limit in force of an account says to what it has spent now, if it had spent so much before.
    pub(crate) fn crossed(&self, id: &AccountId, before: NanoUsd, after: NanoUsd) -> Vec<Crossed> {
        let span = self.span_of(id.window).unwrap_or(ALWAYS);
        let of_account = self.limits_of(id).into_iter().filter(|limited| limited.id == *id && !id.is_shadow);
        let draws = of_account.map(|Limited { id, limit: BudgetLimit { amount, level, stages, .. } }| Draw {
            id,
            limit: amount,
            level,
            span,
            seed: None,
            stages,
        });
        let marks = self.alerts.in_force().rules.budget_thresholds();
        draws.flat_map(|draw| draw.crossed(before, after, &marks)).collect()
    }

    /// What a run may spend: the smallest limit of all its levels, in force and in shadow.
    fn limits_of_run(&self, agent: &AgentName, run: &RunId) -> Vec<Limited> {
        let (settings, snapshot, in_force) = (self.settings.load(), self.catalog.snapshot(), self.policy(agent));
        let entry = run.key().and_then(|key| snapshot.key(key));
        let (day, month) = self.windows.at(&settings.budget.zone, self.common_now());
        let spender = Spender {
            agent,
            key: entry.map(|entry| (entry.key.id.as_str(), &entry.key.budget)),
            budget: &in_force.policy.budget,
            everything: &settings.budget.budget,
            runs: std::slice::from_ref(run),
            day,
            month,
        };
        let draws = draws(&spender);
        let of_run = draws.enforced.into_iter().chain(draws.shadow).filter(|draw| draw.id.window == Window::Run);
        of_run
            .map(|draw| {
                let set_by = match draw.level {
                    Level::Key => spender.key.map_or(spender.budget, |(_, budget)| budget),
                    Level::Agent => spender.budget,
                    Level::Everything => spender.everything,
                };
                Limited { limit: limit(set_by, draw.limit, draw.level), id: draw.id }
            })
            .collect()
    }

    /// The agents that may have a limit: those with a policy of their own, and where the defaults have a limit, all that
    /// are known.
    fn limited_agents(&self, filter: &BudgetFilter) -> Result<BTreeSet<AgentName>, StoreError> {
        if let Some(agent) = &filter.agent {
            return Ok(BTreeSet::from([agent.clone()]));
        }
        let (settings, snapshot) = (self.settings.load(), self.catalog.snapshot());
        let mut agents: BTreeSet<AgentName> = settings.policies.agents.keys().cloned().collect();
        agents.extend(snapshot.agents().map(|(name, _)| name.clone()));
        let defaults = &settings.policies.defaults.budget;
        if !defaults.is_set() || (defaults.daily_limit.is_none() && defaults.monthly_limit.is_none()) {
            return Ok(agents);
        }
        agents.extend(self.state.accounts().into_iter().filter_map(|state| match state.id.holder {
            Holder::Agent(agent) => Some(agent),
            Holder::Run(..) | Holder::Key(_) | Holder::Everything => None,
        }));
        let (_, month) = self.windows.at(&settings.budget.zone, self.common_now());
        agents.extend(self.history.agent_names(AGENT_STANDINGS as u32)?);
        agents.extend(self.history.spent_by_all(month.start)?.agents.into_iter().map(|(name, _)| name));
        Ok(agents)
    }
}

/// The limits of days and months.
fn windows(holder: Holder, level: Level, budget: &Budget) -> impl Iterator<Item = Limited> {
    let budget = Some(budget).filter(|budget| budget.is_set()).cloned().unwrap_or_default();
    [(Window::Day, budget.daily_limit), (Window::Month, budget.monthly_limit)].into_iter().filter_map(
        move |(window, amount)| {
            let id = AccountId { holder: holder.clone(), window, is_shadow: budget.mode == Mode::Shadow };
            Some(Limited { id, limit: limit(&budget, amount?, level) })
        },
    )
}

fn limit(budget: &Budget, amount: NanoUsd, level: Level) -> BudgetLimit {
    BudgetLimit { amount, mode: budget.mode, level, reserve: budget.reserve, stages: budget.stages.clone() }
}
