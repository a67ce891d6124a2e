//! Which accounts a call draws on, and with which limits.

use super::ledger::Draw;
use super::{AccountId, Budget, Holder, Level, Reserve, Window};
use crate::id::{AgentName, RunId};
use crate::loops::Mode;
use crate::money::NanoUsd;
use crate::policy::calendar::Span;
use crate::time::Timestamp;

/// Who spends, and under which budgets.
#[derive(Clone, Copy, Debug)]
pub struct Spender<'a> {
    /// The agent.
    pub agent: &'a AgentName,
    /// The virtual key that the call came with, by its id.
    pub key: Option<(&'a str, &'a Budget)>,
    /// The agent's budget.
    pub budget: &'a Budget,
    /// The budget of everybody together.
    pub everything: &'a Budget,
    /// The run of the call and those above it, nearest first.
    pub runs: &'a [RunId],
    /// The civil day.
    pub day: Span,
    /// The civil month.
    pub month: Span,
}

/// The accounts of a call, in the order in which they are blamed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draws {
    /// Those whose limits are in force.
    pub enforced: Vec<Draw>,
    /// Those whose limits are only watched.
    pub shadow: Vec<Draw>,
    /// The strictest way of reserving that any limit in force asks for.
    pub reserve: Reserve,
    /// A run that has spent its limit is killed.
    pub kills_run: bool,
}

impl Draws {
    /// Whether no budget concerns the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.enforced.is_empty() && self.shadow.is_empty()
    }
}

/// A run is one account however long it takes.
pub const ALWAYS: Span = Span { start: Timestamp(0), end: Timestamp(i64::MAX) };

/// The accounts that a call draws on: its runs first, then the days, then the months; of each the key, the agent and
/// everybody.
#[must_use]
pub fn draws(spender: &Spender<'_>) -> Draws {
    let mut draws = Draws::default();
    let key = spender.key.map(|(id, budget)| (Level::Key, Holder::Key(id.into()), budget));
    let agent = (Level::Agent, Holder::Agent(spender.agent.clone()), spender.budget);
    let everything = (Level::Everything, Holder::Everything, spender.everything);
    let levels: Vec<(Level, Holder, &Budget)> =
        key.into_iter().chain([agent, everything]).filter(|(.., b)| b.is_set()).collect();
    if levels.is_empty() {
        return draws;
    }
    for mode in [Mode::Enforce, Mode::Shadow] {
        let (is_shadow, kept) = match mode {
            Mode::Shadow => (true, &mut draws.shadow),
            _ => (false, &mut draws.enforced),
        };
        let of_mode = || levels.iter().filter(|(.., budget)| budget.mode == mode);
        // The smallest limit of all levels is the one that a run meets.
        let tightest = of_mode()
            .filter_map(|(level, _, budget)| Some((budget.max_run_cost?, *level, *budget)))
            .min_by_key(|(limit, ..)| *limit);
        if let Some((limit, level, budget)) = tightest {
            draws.kills_run |= mode == Mode::Enforce && budget.kill_run;
            for run in spender.runs {
                let id = AccountId {
                    holder: Holder::Run(spender.agent.clone(), run.clone()),
                    window: Window::Run,
                    is_shadow,
                };
                kept.push(draw(id, limit, level, ALWAYS, budget));
            }
        }
        for (window, span) in [(Window::Day, spender.day), (Window::Month, spender.month)] {
            for (level, holder, budget) in of_mode() {
                let limit = if window == Window::Day { budget.daily_limit } else { budget.monthly_limit };
                let Some(limit) = limit else { continue };
                let id = AccountId { holder: holder.clone(), window, is_shadow };
                kept.push(draw(id, limit, *level, span, budget));
            }
        }
    }
    let is_strict =
        |(.., budget): &(Level, Holder, &Budget)| budget.mode == Mode::Enforce && budget.reserve == Reserve::WorstCase;
    draws.reserve = if levels.iter().any(is_strict) { Reserve::WorstCase } else { Reserve::Expected };
    draws
}

fn draw(id: AccountId, limit: NanoUsd, level: Level, span: Span, budget: &Budget) -> Draw {
    Draw { id, limit, level, span, seed: None, stages: budget.stages.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Span = Span { start: Timestamp(100), end: Timestamp(200) };
    const MONTH: Span = Span { start: Timestamp(50), end: Timestamp(900) };

    fn budget(mode: Mode, run: i64, day: i64, month: i64) -> Budget {
        let some = |dollars: i64| (dollars > 0).then(|| NanoUsd(dollars * 1_000_000_000));
        Budget {
            mode,
            max_run_cost: some(run),
            daily_limit: some(day),
            monthly_limit: some(month),
            kill_run: true,
            ..Budget::default()
        }
    }

    fn told(draws: &[Draw]) -> Vec<String> {
        draws.iter().map(|draw| format!("{} <= {} by {}", draw.id, draw.limit, draw.level.as_str())).collect()
    }

    fn drawn(key: Option<&Budget>, agent: &Budget, everything: &Budget) -> Draws {
        let name = AgentName::parse("bot").unwrap();
        let runs = ["task", "parent"].map(|id| RunId::parse(id).unwrap());
        draws(&Spender {
            agent: &name,
            key: key.map(|budget| ("key-1", budget)),
            budget: agent,
            everything,
            runs: &runs,
            day: DAY,
            month: MONTH,
        })
    }

    #[test]
    fn without_budgets_there_is_nothing_to_draw_on() {
        let off = budget(Mode::Off, 1, 1, 1);
        assert!(drawn(None, &Budget::default(), &off).is_empty());
        assert!(drawn(None, &budget(Mode::Enforce, 0, 0, 0), &off).is_empty());
    }

    #[test]
    fn runs_come_first_then_days_then_months_and_of_each_the_key_first() {
        let (key, agent, all) =
            (budget(Mode::Enforce, 3, 30, 0), budget(Mode::Enforce, 2, 20, 200), budget(Mode::Enforce, 5, 0, 500));
        let draws = drawn(Some(&key), &agent, &all);
        assert_eq!(
            told(&draws.enforced),
            [
                "run:bot/task run <= 2.00 by agent",
                "run:bot/parent run <= 2.00 by agent",
                "key:key-1 daily <= 30.00 by key",
                "agent:bot daily <= 20.00 by agent",
                "agent:bot monthly <= 200.00 by agent",
                "everything monthly <= 500.00 by everything",
            ]
        );
        assert_eq!((draws.enforced[2].span, draws.enforced[4].span), (DAY, MONTH));
        assert!(draws.kills_run && draws.shadow.is_empty());
    }

    #[test]
    fn a_limit_in_shadow_has_accounts_of_its_own_and_asks_for_nothing() {
        let watched = Budget { reserve: Reserve::WorstCase, ..budget(Mode::Shadow, 1, 1, 0) };
        let draws = drawn(None, &budget(Mode::Enforce, 0, 9, 0), &watched);
        assert_eq!(told(&draws.enforced), ["agent:bot daily <= 9.00 by agent"]);
        assert_eq!(draws.shadow.len(), 3);
        assert!(draws.shadow.iter().all(|draw| draw.id.is_shadow));
        assert_eq!((draws.reserve, draws.kills_run), (Reserve::Expected, false));
        let strict = Budget { mode: Mode::Enforce, ..watched };
        assert_eq!(drawn(None, &budget(Mode::Enforce, 0, 9, 0), &strict).reserve, Reserve::WorstCase);
    }
}
