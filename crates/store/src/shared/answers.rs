//! What scripts answered, part by part, and how the parts of a cluster are put together: what one part refuses, the
//! others give back.

use redis::Value;
use sprag_core::event::RunOrigin;
use sprag_core::id::RunId;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Account, AccountId, Draw, Holder, RateExceeded, Shortfall, Span};
use sprag_core::time::Timestamp;

use super::heard::Heard;
use super::packed::{bounded, totals_of};
use super::reading::Parts;
use super::{AskedPurse, Away, BegunRun, MoneyAsk, Purse, Reserved, ReservedAccount, Watch};
use crate::state::{Opened, RateAsk, Rated, RunPlace};

/// Parts of the answer of `begin`.
const BEGUN_PARTS: usize = 11;

/// The answer of `begin` in one place.
pub(super) struct PartBegun {
    pub(super) now: Timestamp,
    pub(super) born: Option<String>,
    pub(super) agent_in_flight: u32,
    pub(super) run: Option<BegunRun>,
    pub(super) agent_watch: Option<Watch>,
    pub(super) agent_habits: Option<Vec<u8>>,
    pub(super) refused: Option<NoRoom>,
    pub(super) would_refuse: Vec<NoRoom>,
    pub(super) money: PartMoney,
    pub(super) repeats: Option<u32>,
}

/// What came of both purses in one place.
pub(super) struct PartMoney {
    pub(super) enforced: PartPurse,
    pub(super) shadow: PartPurse,
}

/// A rate without room: its place, what is counted, when there could be room.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoRoom(usize, f64, u64);

pub(super) enum PartPurse {
    Nothing,
    Reserved(i64, Vec<Told>),
    Short(Told),
    Unseeded(Vec<usize>),
}

/// An account as a script tells it. Places below zero are of runs: -1 is the call's own.
#[derive(Clone, Debug)]
pub(super) struct Told {
    place: i64,
    settled: i64,
    reserved: i64,
    generation: String,
    lowered: i64,
    from: i64,
    until: i64,
}

impl PartBegun {
    /// None where it did not begin, because what it goes on from may still be under way.
    pub(super) fn read(value: Value) -> Result<Option<PartBegun>, Away> {
        if value == Value::Nil {
            return Ok(None);
        }
        let mut parts = Parts::unpacked(value, BEGUN_PARTS)?;
        let now = Timestamp(parts.number()?);
        let born = parts.optional_text()?;
        let agent_in_flight = parts.count()?;
        let run = match parts.value()? {
            Value::Nil => None,
            value => Some(run(Parts::of(value)?, agent_in_flight)?),
        };
        Ok(Some(PartBegun {
            now,
            born,
            agent_in_flight,
            run,
            agent_watch: parts.watch()?,
            agent_habits: parts.optional_bytes()?,
            refused: match parts.value()? {
                Value::Nil => None,
                value => Some(no_room(Parts::of(value)?)?),
            },
            would_refuse: parts.each(no_room)?,
            money: PartMoney { enforced: purse(parts.parts()?)?, shadow: purse(parts.parts()?)? },
            repeats: match parts.value()? {
                Value::Nil => None,
                Value::Int(count) => Some(u32::try_from(count.max(0)).unwrap_or(u32::MAX)),
                _ => return Err(Away::Failed("its answer counts repeats by no number".to_owned())),
            },
        }))
    }
}

impl PartMoney {
    pub(super) fn read(value: Value) -> Result<PartMoney, Away> {
        let mut parts = Parts::of(value)?;
        Ok(PartMoney { enforced: purse(parts.parts()?)?, shadow: purse(parts.parts()?)? })
    }
}

impl Told {
    pub(super) fn read(mut parts: Parts) -> Result<Told, Away> {
        Ok(Told {
            place: parts.number()?,
            settled: parts.number()?,
            reserved: parts.number()?,
            generation: parts.text()?,
            lowered: parts.number()?,
            from: parts.number()?,
            until: parts.number()?,
        })
    }

    pub(super) fn heard(&self) -> Heard {
        Heard { s: self.settled, g: self.generation.clone(), v: self.lowered, f: self.from }
    }

    pub(super) fn account(&self) -> Account {
        Account {
            settled: NanoUsd(self.settled),
            reserved: NanoUsd(self.reserved),
            span: Span { start: Timestamp(self.from), end: Timestamp(self.until) },
            last_at: Timestamp::default(),
        }
    }
}

/// What came of the rates in all places.
pub(super) fn rated(parts: &[PartBegun], asks: &[RateAsk<'_>]) -> Rated {
    let exceeded = |NoRoom(place, current, retry_after_ms): NoRoom| {
        let ask = asks.get(place)?;
        let (limit, asked) = (ask.rule.measure.limit(), ask.amount.max(1) as f64);
        Some((place, RateExceeded { current, limit, asked, retry_after_ms }))
    };
    let first = parts.iter().filter_map(|part| part.refused).min_by_key(|no_room| no_room.0);
    let mut would_refuse: Vec<_> =
        parts.iter().flat_map(|part| &part.would_refuse).filter_map(|no_room| exceeded(*no_room)).collect();
    would_refuse.sort_by_key(|(place, _)| *place);
    Rated { refused: first.and_then(exceeded), would_refuse, ..Rated::default() }
}

/// What came of one purse in all places: short where one is, and unseeded where one is; set aside only where all are.
/// `tell` hears of every account.
pub(super) fn purse_of(
    parts: Vec<PartPurse>,
    asked: &AskedPurse<'_>,
    money: &MoneyAsk<'_>,
    tree: &[RunPlace],
    mut tell: impl FnMut(&Draw, &Told),
) -> Purse {
    let (mut unseeded, mut short, mut accounts) = (Vec::new(), Vec::new(), Vec::new());
    let mut least = None;
    for part in parts {
        match part {
            PartPurse::Nothing => {}
            PartPurse::Unseeded(places) => unseeded.extend(places),
            PartPurse::Short(told) => short.push(told),
            PartPurse::Reserved(amount, told) => {
                least = Some(least.map_or(amount, |least: i64| least.min(amount)));
                accounts.extend(told);
            }
        }
    }
    let mut with_draw = |told: Told| {
        let draw = draw_of(asked, told.place, tree)?;
        tell(&draw, &told);
        Some((draw, told))
    };
    // Runs first, the nearest before others; then in the order of the draws.
    let order = |told: &Told| if told.place < 0 { (0, -told.place) } else { (1, told.place) };
    let blamed = short.into_iter().min_by_key(order).and_then(&mut with_draw);
    if let Some((draw, told)) = blamed.filter(|(_, told)| unseeded.iter().all(|place| told.place < *place as i64)) {
        let mut account = told.account();
        if is_same_time(&draw, &told) {
            account.span = draw.span;
        }
        return Purse::Short(Box::new(Shortfall { draw, account, amount: money.amount, least: money.least }));
    }
    if !unseeded.is_empty() {
        unseeded.sort_unstable();
        return Purse::Unseeded(unseeded);
    }
    let Some(amount) = least else { return Purse::Nothing };
    accounts.sort_by_key(order);
    let accounts = accounts.into_iter().filter_map(with_draw).map(|(draw, told)| ReservedAccount {
        draw,
        settled: NanoUsd(told.settled),
        reserved: NanoUsd(told.reserved),
    });
    let amount = if amount == bounded(money.amount.0) { money.amount } else { NanoUsd(amount) };
    Purse::Reserved(Reserved { amount, accounts: accounts.collect() })
}

fn is_same_time(draw: &Draw, told: &Told) -> bool {
    (bounded(draw.span.start.0), bounded(draw.span.end.0)) == (told.from, told.until)
}

/// The draw at a place. That of a run is the limit of runs, for this run.
fn draw_of(asked: &AskedPurse<'_>, place: i64, tree: &[RunPlace]) -> Option<Draw> {
    let Ok(place) = usize::try_from(place) else {
        let run = tree.get(usize::try_from(-place - 1).ok()?)?;
        let limit = asked.of_runs?;
        let Holder::Run(agent, _) = &limit.id.holder else { return None };
        let id = AccountId { holder: Holder::Run(agent.clone(), run.id.clone()), ..limit.id.clone() };
        return Some(Draw { id, ..limit.clone() });
    };
    asked.draws.get(place).cloned()
}

fn no_room(mut parts: Parts) -> Result<NoRoom, Away> {
    let place = usize::try_from(parts.number()?).unwrap_or(usize::MAX);
    let current = parts.real()?;
    Ok(NoRoom(place, current, u64::try_from(parts.number()?).unwrap_or(0)))
}

fn purse(mut parts: Parts) -> Result<PartPurse, Away> {
    Ok(match parts.number()? {
        0 => PartPurse::Nothing,
        1 => PartPurse::Reserved(parts.number()?, parts.each(Told::read)?),
        2 => PartPurse::Short(Told::read(parts.parts()?)?),
        _ => {
            let mut places = parts.parts()?;
            let mut unseeded = Vec::new();
            while let Ok(place) = places.number() {
                unseeded.push(usize::try_from(place).unwrap_or(usize::MAX));
            }
            PartPurse::Unseeded(unseeded)
        }
    })
}

fn run(mut parts: Parts, agent_in_flight: u32) -> Result<BegunRun, Away> {
    let id: RunId = parts.run_id()?;
    let origin: RunOrigin = parts.origin()?;
    let clue = usize::try_from(parts.number()?).ok().and_then(|place| place.checked_sub(1));
    let is_new = parts.number()? == 1;
    let (step, in_flight) = (parts.count()?, parts.count()?);
    let totals = totals_of(&parts.totals()?);
    let habits = parts.optional_bytes()?;
    let watch = parts.watch()?;
    let tree = parts.each(|mut place| {
        Ok(RunPlace {
            id: place.run_id()?,
            origin: place.origin()?,
            steps: place.count()?,
            first_at: Timestamp(place.number()?),
            tree_cost: NanoUsd(place.number()?),
        })
    })?;
    let opened = Opened {
        step,
        totals,
        is_new,
        in_flight,
        agent_in_flight,
        habits: sprag_core::policy::Habits::default(),
        tree,
    };
    Ok(BegunRun { id, origin, clue, opened, habits, watch })
}
