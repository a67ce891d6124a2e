//! A call begins.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::future::join_all;
use sprag_core::policy::Draw;

use super::answers::{PartBegun, PartMoney, PartPurse, Told, purse_of, rated};
use super::asking::{begin_tables, money_tables, run_corrections};
use super::calls::Telling;
use super::packed::{BeginTable, GiveBackTable, ReserveTable, pack};
use super::scripts::{BEGIN, GIVE_BACK, RESERVE};
use super::told::Drawn;
use super::{Away, Begin, Begun, Money, MoneyAsk, Purse, Shared, SharedCall, keys};

/// The first pause before it is looked again whether what a call goes on from is over.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// So often the next one is twice as long.
const LONGER: u32 = 4;

/// What the parts of a call must give back, because other parts were refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct GivenBack {
    rates: bool,
    force: bool,
    shadow: bool,
}

impl Shared {
    /// Begins a call: finds its run, counts it, takes its rates, sets its money aside. Whatever comes of it, the call
    /// must be [ended](Shared::end).
    ///
    /// # Errors
    /// When Redis does not answer in time. Should it do it later nevertheless, that is taken back.
    pub async fn begin(&self, begin: &Begin<'_>) -> Result<Begun, Away> {
        let node = &*self.node;
        let agent = keys::of_agent(begin.agent);
        let tables = begin_tables(begin, node.head(&agent, begin.call), node);
        let mut doubts = self.doubts();
        let begun = loop {
            let pause = doubts.next();
            let begun = join_all(tables.iter().map(|table| self.begin_part(table, pause.is_some()))).await;
            let begun = begun.into_iter().collect::<Result<Option<Vec<_>>, Away>>();
            match (begun?, pause) {
                (Some(begun), _) => break begun,
                (None, Some(pause)) => tokio::time::sleep(pause).await,
                (None, None) => return Err(Away::Failed("it did not begin a call that need not wait".to_owned())),
            }
        };
        let (mut parts, tellings): (Vec<_>, Vec<_>) = begun.into_iter().unzip();
        let rated = rated(&parts, begin.rates);
        let run = parts.first_mut().and_then(|part| part.run.take());
        let mut call = SharedCall {
            id: begin.call.to_owned(),
            run: run.as_ref().map(|run| run.id.clone()),
            born: parts.first_mut().and_then(|part| part.born.take()),
            places: tables.iter().map(|table| table.head.p.clone()).collect(),
            accounts: Vec::new(),
            held: Vec::new(),
            tree: run.as_ref().map(|run| run.opened.tree.clone()).unwrap_or_default(),
            is_over: AtomicBool::new(false),
        };
        let repeats = parts.iter().find_map(|part| part.repeats);
        let (now, agent_in_flight) = parts.first().map(|part| (part.now, part.agent_in_flight)).unwrap_or_default();
        let first = parts.first_mut();
        let (agent_watch, agent_habits) =
            first.map(|part| (part.agent_watch.take(), part.agent_habits.take())).unwrap_or_default();
        let money = parts.into_iter().map(|part| part.money).collect();
        let mut back = GivenBack { rates: rated.refused.is_some() && call.places.len() > 1, ..GivenBack::default() };
        let money = match (&begin.money, &rated.refused) {
            (Some(asked), None) => Some(self.money(&mut call, asked, money, &mut back)),
            _ => {
                back.force = back.rates;
                back.shadow = back.rates;
                None
            }
        };
        self.give_back(&call, back).await;
        let run_key = call.run.as_ref().map(|run| keys::run(&agent, run.as_str()));
        self.hold(&mut call, [keys::agent(&agent)].into_iter().chain(run_key));
        // Whoever gave up waiting until here leaves calls that are taken back; from now on the caller ends them.
        tellings.into_iter().for_each(Telling::done);
        let repeat = begin.repeat.zip(repeats).filter(|_| rated.refused.is_none());
        let repeat = repeat.and_then(|(ask, count)| ask.rule.found(count));
        Ok(Begun { call, now, run, agent_in_flight, agent_watch, agent_habits, rated, money, repeat })
    }

    /// Sets money aside for a call that has begun: after it was found out what its accounts have spent, or after a wait.
    ///
    /// # Errors
    /// When Redis does not answer in time.
    pub async fn reserve(&self, call: &mut SharedCall, money: &MoneyAsk<'_>) -> Result<Money, Away> {
        let node = &*self.node;
        let Some(agent) = call.places.first().cloned() else { return Err(Away::Connecting) };
        let tables = money_tables(money, &agent, node);
        for place in tables.keys().filter(|place| !call.places.contains(place)).cloned().collect::<Vec<_>>() {
            call.places.push(place);
        }
        let asked = tables.into_iter().map(|(place, money_table)| {
            let run = call.run.as_ref().filter(|_| place == agent).map(ToString::to_string);
            let head = node.head(&place, &call.id);
            let corrections = run_corrections(Some(money), &agent, node);
            let table = ReserveTable { head, run, money: money_table, corrections };
            async move { PartMoney::read(node.link.call(&RESERVE, &place, &[pack(&table)]).await?) }
        });
        let parts = join_all(asked).await.into_iter().collect::<Result<Vec<_>, Away>>()?;
        let mut back = GivenBack::default();
        let money = self.money(call, money, parts, &mut back);
        self.give_back(call, back).await;
        Ok(money)
    }

    /// Pauses between looks at whether what a call goes on from is over, an eighth of the link's patience in all. In a cluster, where a call may
    /// have begun in one place and not in another, there are none.
    fn doubts(&self) -> impl Iterator<Item = Duration> + use<> {
        let most = if self.looks_again() { self.node.link.timeout / 8 } else { Duration::ZERO };
        let pauses = (0_u32..).map(|look| LOOK_AGAIN * (1 << look.min(LONGER)));
        pauses.scan(Duration::ZERO, move |all, pause| {
            *all += pause;
            (*all <= most).then_some(pause)
        })
    }

    /// Begins in one place. What comes with the answer takes it back when it is dropped. None where it `may_doubt`, and does.
    async fn begin_part(&self, table: &BeginTable, may_doubt: bool) -> Result<Option<(PartBegun, Telling<'_>)>, Away> {
        let node = &*self.node;
        let telling = node.calls.taking_back(table.head.clone());
        match node.link.call(&BEGIN, &table.head.p, &table.arguments(may_doubt)).await {
            Ok(value) => match PartBegun::read(value)? {
                Some(begun) => Ok(Some((begun, telling))),
                None => {
                    telling.done();
                    Ok(None)
                }
            },
            Err(away @ (Away::Connecting | Away::Open)) => {
                // Nothing was sent.
                telling.done();
                Err(away)
            }
            Err(away) => Err(away),
        }
    }

    /// What came of the money in all places. Notes on the call what it drew on.
    fn money(&self, call: &mut SharedCall, asked: &MoneyAsk<'_>, parts: Vec<PartMoney>, back: &mut GivenBack) -> Money {
        let is_spread = call.places.len() > 1;
        let (enforced, shadow): (Vec<PartPurse>, Vec<PartPurse>) =
            parts.into_iter().map(|part| (part.enforced, part.shadow)).unzip();
        let heard = &self.node.heard;
        let tell = |draw: &Draw, told: &Told| heard.hear(&keys::account(&draw.id).key, told.heard());
        let enforced = purse_of(enforced, &asked.enforced, asked, &call.tree, tell);
        let mut shadow = purse_of(shadow, &asked.shadow, asked, &call.tree, tell);
        let is_refused = |purse: &Purse| matches!(purse, Purse::Short(_) | Purse::Unseeded(_));
        if is_refused(&enforced) {
            back.force |= is_spread;
            back.shadow |= is_spread;
            shadow = Purse::Nothing;
        }
        back.shadow |= is_refused(&shadow) && is_spread;
        for purse in [&enforced, &shadow] {
            let Some(reserved) = purse.reserved() else { continue };
            let drawn: Vec<Drawn> = reserved.accounts.iter().map(|account| drawn(&account.draw)).collect();
            self.hold(call, drawn.iter().map(|drawn| drawn.key.clone()));
            call.accounts.extend(drawn);
        }
        // What could not be set aside in shadow is charged all the same, where the account is open.
        if is_refused(&shadow) {
            call.accounts.extend(asked.shadow.draws.iter().map(drawn));
        }
        Money { enforced, shadow }
    }

    /// Notes what is held for a call, each once: for that signs of life are given until it ends.
    fn hold(&self, call: &mut SharedCall, keys: impl Iterator<Item = String>) {
        let before = call.held.len();
        for key in keys {
            if !call.held.contains(&key) {
                call.held.push(key);
            }
        }
        self.node.calls.hold(call.held[before..].iter().cloned());
    }

    /// Gives back in all places what was taken in some. Should that not arrive, it is given back when the call ends.
    async fn give_back(&self, call: &SharedCall, back: GivenBack) {
        if back == GivenBack::default() {
            return;
        }
        let node = &*self.node;
        let GivenBack { rates, force, shadow } = back;
        let given = call.places.iter().map(|place| {
            let table = GiveBackTable { head: node.head(place, &call.id), rates, force, shadow };
            async move { node.link.call(&GIVE_BACK, place, &[pack(&table)]).await }
        });
        join_all(given).await;
    }
}

/// Each account once.
pub(super) fn distinct(drawn: &[Drawn]) -> impl Iterator<Item = &Drawn> {
    drawn
        .iter()
        .enumerate()
        .filter(|(at, one)| drawn[..*at].iter().all(|other| other.key != one.key))
        .map(|(_, one)| one)
}

fn drawn(draw: &Draw) -> Drawn {
    let keys::Place { prefix, key } = keys::account(&draw.id);
    Drawn { draw: draw.clone(), key, place: prefix }
}
