//! What a node did by itself: sums by run and by account, so that it stays small however long Redis was away.

use std::collections::{HashMap, HashSet};

use sprag_core::event::{Ending, RunOrigin};
use sprag_core::id::RunId;
use sprag_core::limits::{ALONE_ACCOUNTS, ALONE_CLUES, ALONE_RUNS};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Draw, Span};
use sprag_core::run::{Clue, Lookup, Remember};
use sprag_store::RunKey;
use sprag_store::shared::{Missed, MissedAccount, MissedRun};
use sprag_store::state::{Recent, RunTotals, Settlement};

/// A call that was made, or refused, without Redis.
pub(crate) struct DoneAlone<'a> {
    /// Its run, with what it is a part of and how it was recognised.
    pub(crate) run: Option<(&'a RunKey, Option<&'a RunId>, RunOrigin)>,
    pub(crate) settlement: Settlement,
    /// The accounts that it drew on.
    pub(crate) draws: [&'a [Draw]; 2],
    /// What ties later requests to its run.
    pub(crate) left: Option<&'a Remember>,
}

/// What is summed up.
#[derive(Debug, Default)]
pub(super) struct Alone {
    sums: Sums,
    /// On its way: told again as it is, until it is taken.
    telling: Option<Missed>,
    /// Calls of runs and accounts that found no room.
    lost: u64,
    /// Runs of which this node has seen what others have not.
    ahead: HashSet<RunKey>,
    /// Clues that only this node knows, and the runs that they lead to.
    clues: Clues,
}

#[derive(Debug)]
struct Clues(Recent<RunKey>);

impl Default for Clues {
    fn default() -> Clues {
        Clues(Recent::new(ALONE_CLUES))
    }
}

#[derive(Debug, Default)]
struct Sums {
    runs: HashMap<RunKey, RunSum>,
    accounts: HashMap<(AccountId, i64), (Span, NanoUsd)>,
}

#[derive(Debug)]
struct RunSum {
    parent: Option<RunId>,
    origin: RunOrigin,
    added: RunTotals,
}

impl Alone {
    pub(super) fn len(&self) -> (usize, u64) {
        (self.sums.runs.len() + self.telling.as_ref().map_or(0, |telling| telling.runs.len()), self.lost)
    }

    pub(super) fn add(&mut self, done: DoneAlone<'_>) {
        let DoneAlone { run, settlement, draws, left } = done;
        if let Some((key, parent, origin)) = run {
            for clue in left.iter().flat_map(|left| left.clues.iter().chain(&left.unless_taken)) {
                self.clues.0.insert(*clue, key.clone());
            }
            if self.ahead.len() < ALONE_RUNS {
                self.ahead.insert(key.clone());
            }
            if self.sums.runs.len() >= ALONE_RUNS && !self.sums.runs.contains_key(key) {
                self.lost += 1;
            } else {
                let new = || RunSum { parent: parent.cloned(), origin, added: RunTotals::default() };
                count(&mut self.sums.runs.entry(key.clone()).or_insert_with(new).added, &settlement);
            }
        }
        let cost = settlement.cost.unwrap_or_default();
        if cost == NanoUsd::ZERO {
            return;
        }
        let mut charged: Vec<&AccountId> = Vec::new();
        for draw in draws.into_iter().flatten() {
            // Two limits of one account are one account.
            if charged.contains(&&draw.id) {
                continue;
            }
            charged.push(&draw.id);
            let place = (draw.id.clone(), draw.span.start.0);
            if self.sums.accounts.len() >= ALONE_ACCOUNTS && !self.sums.accounts.contains_key(&place) {
                self.lost += 1;
                continue;
            }
            self.sums.accounts.entry(place).or_insert((draw.span, NanoUsd::ZERO)).1 += cost;
        }
    }

    /// The run that one of these clues leads to, and the clue.
    pub(super) fn led_to<'c>(&self, clues: &'c [Clue]) -> Option<(RunKey, &'c Clue)> {
        let known = clues.iter().filter(|clue| clue.lookup == Lookup::Known);
        known.into_iter().find_map(|clue| Some((self.clues.0.get(clue.hash)?, clue)))
    }

    /// Whether this node has seen of a run what others have not. The first who asks is told.
    pub(super) fn take_ahead(&mut self, key: &RunKey) -> bool {
        self.ahead.remove(key)
    }

    /// What was spent on an account and is not told yet.
    pub(super) fn untold(&self, id: &AccountId, span: Span) -> NanoUsd {
        let telling = self.telling.iter().flat_map(|telling| &telling.accounts);
        let telling = telling.filter(|account| account.id == *id && account.span == span).map(|account| account.spent);
        let summed = match self.sums.accounts.is_empty() {
            true => None,
            false => self.sums.accounts.get(&(id.clone(), span.start.0)).map(|(_, spent)| *spent),
        };
        telling.chain(summed).fold(NanoUsd::ZERO, |sum, spent| sum + spent)
    }

    /// What is to be told, under a name that stays until it is taken. `known` tells what the node knows of a run in all,
    /// `in_all` the same of an account.
    pub(super) fn next_to_tell(
        &mut self,
        name: impl FnOnce() -> String,
        known: impl Fn(&RunKey) -> Option<RunTotals>,
        in_all: impl Fn(&AccountId, Span) -> Option<NanoUsd>,
    ) -> Option<Missed> {
        if self.telling.is_none() && !(self.sums.runs.is_empty() && self.sums.accounts.is_empty()) {
            let Sums { runs, accounts } = std::mem::take(&mut self.sums);
            let run = |(key, RunSum { parent, origin, added }): (RunKey, RunSum)| {
                let known = known(&key).unwrap_or(added);
                MissedRun { agent: key.agent, id: key.id, parent, origin, added, known }
            };
            let account = |((id, _), (span, spent)): ((AccountId, i64), (Span, NanoUsd))| {
                let before = (in_all(&id, span).unwrap_or(spent) - spent).max(NanoUsd::ZERO);
                MissedAccount { id, span, spent, before }
            };
            let (runs, accounts) = (runs.into_iter().map(run).collect(), accounts.into_iter().map(account).collect());
            self.telling = Some(Missed { id: name(), runs, accounts });
        }
        self.telling.clone()
    }

    /// What was told is taken.
    pub(super) fn told(&mut self) {
        self.telling = None;
    }
}

/// Adds one call to what a run has come to.
fn count(totals: &mut RunTotals, settlement: &Settlement) {
    let add = |number: &mut u32, is_so: bool| *number = number.saturating_add(u32::from(is_so));
    let cost = settlement.cost.unwrap_or_default();
    add(&mut totals.steps, true);
    add(&mut totals.tree_steps, true);
    add(&mut totals.tree_refused, matches!(settlement.ending, Ending::Refused | Ending::Killed));
    add(&mut totals.unpriced_steps, settlement.cost.is_none() && settlement.usage.is_some());
    let failed = [Ending::UpstreamError, Ending::UpstreamGone, Ending::TimedOut];
    add(&mut totals.failed_steps, failed.contains(&settlement.ending));
    totals.cost += cost;
    totals.tree_cost += cost;
    if let Some(usage) = settlement.usage {
        totals.input_tokens = totals.input_tokens.saturating_add(usage.prompt_tokens());
        totals.output_tokens = totals.output_tokens.saturating_add(usage.output);
    }
    if totals.steps == 1 {
        totals.first_at = settlement.now;
    }
    totals.last_at = totals.last_at.max(settlement.now);
}

#[cfg(test)]
mod tests {
    use sprag_core::id::AgentName;
    use sprag_core::policy::{ALWAYS, Holder, Level, Window};
    use sprag_core::time::Timestamp;

    use super::*;

    fn run(number: usize) -> RunKey {
        RunKey { agent: AgentName::default(), id: RunId::parse(&format!("run-{number}")).unwrap() }
    }

    fn settlement(cents: i64, ending: Ending) -> Settlement {
        Settlement { cost: Some(NanoUsd(cents)), usage: None, ending, now: Timestamp(5) }
    }

    fn draw() -> Draw {
        let id = AccountId { holder: Holder::Everything, window: Window::Day, is_shadow: false };
        Draw { id, limit: NanoUsd(1), level: Level::Everything, span: ALWAYS, seed: None, stages: [].into() }
    }

    #[test]
    fn calls_are_summed_and_told_under_one_name_until_they_are_taken() {
        let (mut alone, draws) = (Alone::default(), [draw(), draw()]);
        for ending in [Ending::Complete, Ending::Refused] {
            let done = Some((&run(1), None, RunOrigin::Declared));
            let settlement = settlement(7, ending);
            alone.add(DoneAlone { run: done, settlement, draws: [&draws, &[]], left: None });
        }
        let untold = |alone: &Alone| alone.untold(&draws[0].id, draws[0].span);
        assert_eq!(untold(&alone), NanoUsd(14));
        let missed = alone.next_to_tell(|| "first".to_owned(), |_| None, |_, _| Some(NanoUsd(20))).unwrap();
        let added = missed.runs[0].added;
        assert_eq!((added.steps, added.tree_refused, added.cost, added.tree_cost), (2, 1, NanoUsd(14), NanoUsd(14)));
        assert_eq!((missed.accounts.len(), missed.accounts[0].spent), (1, NanoUsd(14)), "one account, drawn on twice");
        assert_eq!(missed.accounts[0].before, NanoUsd(6), "what the account has beside that");
        assert_eq!(untold(&alone), NanoUsd(14), "on its way, and not taken yet");
        let settlement = settlement(1, Ending::Complete);
        alone.add(DoneAlone {
            run: Some((&run(2), None, RunOrigin::Declared)),
            settlement,
            draws: [&[], &[]],
            left: None,
        });
        let again = alone.next_to_tell(|| "second".to_owned(), |_| None, |_, _| None).unwrap();
        assert_eq!((again.id.as_str(), again.runs.len()), ("first", 1), "as it was, so that it counts once");
        alone.told();
        assert_eq!(untold(&alone), NanoUsd::ZERO);
        let later = alone.next_to_tell(|| "second".to_owned(), |_| None, |_, _| None).unwrap();
        assert_eq!((later.id.as_str(), later.runs[0].id.as_str()), ("second", "run-2"));
        alone.told();
        assert!(alone.next_to_tell(|| "third".to_owned(), |_| None, |_, _| None).is_none());
    }

    #[test]
    fn clues_of_that_time_lead_to_their_run() {
        let mut alone = Alone::default();
        let left = Remember { clues: vec![7], unless_taken: vec![8], offers: vec![9], ..Remember::default() };
        let (run, settlement) = (run(1), settlement(1, Ending::Complete));
        let run_of = Some((&run, None, RunOrigin::Conversation));
        alone.add(DoneAlone { run: run_of, settlement, draws: [&[], &[]], left: Some(&left) });
        let clue = |hash, lookup| [Clue { hash, lookup, origin: RunOrigin::Conversation }];
        for (hash, lookup, is_known) in
            [(7, Lookup::Known, true), (8, Lookup::Known, true), (9, Lookup::Claim, false), (6, Lookup::Known, false)]
        {
            assert_eq!(alone.led_to(&clue(hash, lookup)).is_some(), is_known, "{hash}");
        }
        assert!(alone.take_ahead(&run) && !alone.take_ahead(&run), "merged once");
    }

    #[test]
    fn runs_are_bounded_and_those_without_room_are_counted() {
        let mut alone = Alone::default();
        for number in 0..=ALONE_RUNS {
            let (run, settlement) = (run(number), settlement(1, Ending::Complete));
            alone.add(DoneAlone {
                run: Some((&run, None, RunOrigin::Declared)),
                settlement,
                draws: [&[], &[]],
                left: None,
            });
        }
        assert_eq!(alone.len(), (ALONE_RUNS, 1));
        let (run, settlement) = (run(0), settlement(1, Ending::Complete));
        alone.add(DoneAlone {
            run: Some((&run, None, RunOrigin::Declared)),
            settlement,
            draws: [&[], &[]],
            left: None,
        });
        assert_eq!(alone.len(), (ALONE_RUNS, 1), "one that has room goes on");
    }
}
