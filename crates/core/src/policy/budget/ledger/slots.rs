//! The open accounts: found by their id, or in one step by their place. Bounded; the longest idle leave first.

use std::collections::HashMap;

use super::entries::{Account, AccountState, Draw};
use crate::limits::LEDGER_ACCOUNTS;
use crate::money::NanoUsd;
use crate::policy::budget::AccountId;
use crate::policy::calendar::Span;
use crate::time::Timestamp;

/// Where an account stands. An account that begins anew, or another one in the same slot, has another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    slot: u32,
    generation: u32,
}

#[derive(Debug)]
pub(super) struct Slots {
    by_id: HashMap<AccountId, u32>,
    slots: Vec<Slot>,
    /// Of each slot; none while it is free. Apart, so that a call reads one line of memory per account.
    ids: Vec<Option<AccountId>>,
    free: Vec<u32>,
    room: usize,
}

#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    account: Account,
    generation: u32,
}

/// How the time of a draw lies to that of its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lies {
    Same,
    /// The clock went back.
    Before,
    After,
    /// The windows were moved: another time zone.
    Across,
}

impl Default for Slots {
    fn default() -> Slots {
        Slots::with_room(LEDGER_ACCOUNTS)
    }
}

impl Slots {
    pub(super) fn with_room(room: usize) -> Slots {
        Slots { by_id: HashMap::new(), slots: Vec::new(), ids: Vec::new(), free: Vec::new(), room }
    }

    /// Whether the account of a draw is open for its time. It counts as used, so that it stays until it is drawn on.
    pub(super) fn knows(&mut self, draw: &Draw, now: Timestamp) -> bool {
        let Some(slot) = self.by_id.get(&draw.id).and_then(|&at| self.slots.get_mut(at as usize)) else { return false };
        slot.account.last_at = slot.account.last_at.max(now);
        matches!(lies(draw.span, slot.account.span), Lies::Same | Lies::Before)
    }

    /// The place of a draw's account, which is opened or begins anew where its time says so. `None` if there is no
    /// room and nothing to forget. The accounts of the whole `call` stay.
    pub(super) fn open(&mut self, draw: &Draw, now: Timestamp, call: &[Draw]) -> Option<Place> {
        let at = match self.by_id.get(&draw.id) {
            Some(&at) => at,
            None => self.insert(draw, call)?,
        };
        let slot = self.slots.get_mut(at as usize)?;
        slot.follow(draw);
        slot.account.last_at = slot.account.last_at.max(now);
        Some(Place { slot: at, generation: slot.generation })
    }

    /// The account of a draw, if it is open for its time or for an earlier one. Nothing is forgotten for it.
    pub(super) fn find(&mut self, draw: &Draw) -> Option<&mut Account> {
        let slot = self.slots.get_mut(*self.by_id.get(&draw.id)? as usize)?;
        if lies(draw.span, slot.account.span) == Lies::Before {
            return None;
        }
        slot.follow(draw);
        Some(&mut slot.account)
    }

    pub(super) fn by_id(&mut self, id: &AccountId) -> Option<&mut Account> {
        self.slots.get_mut(*self.by_id.get(id)? as usize).map(|slot| &mut slot.account)
    }

    /// The account at a place; none if it has begun anew since.
    pub(super) fn at(&mut self, place: Place) -> Option<&mut Account> {
        self.slots
            .get_mut(place.slot as usize)
            .filter(|slot| slot.generation == place.generation)
            .map(|slot| &mut slot.account)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = AccountState> {
        let open =
            |(slot, id): (&Slot, &Option<AccountId>)| Some(AccountState { id: id.clone()?, account: slot.account });
        self.slots.iter().zip(&self.ids).filter_map(open)
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Forgets accounts without reservations that were idle for this long, and says how many.
    pub(super) fn forget_idle(&mut self, now: Timestamp, idle_ms: u64) -> usize {
        self.forget_where(usize::MAX, |_, _, account| now.since_ms(account.last_at) >= idle_ms)
    }

    /// Forgets accounts without reservations whose names are meant.
    pub(super) fn forget(&mut self, is_meant: impl Fn(&AccountId) -> bool) -> usize {
        self.forget_where(usize::MAX, |_, id, _| is_meant(id))
    }

    fn insert(&mut self, draw: &Draw, call: &[Draw]) -> Option<u32> {
        if self.by_id.len() >= self.room && !self.forget_idlest(call) {
            return None;
        }
        let account = Account { settled: draw.seed, span: draw.span, ..Account::default() };
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.slots.push(Slot { account, generation: 0 });
                self.ids.push(None);
                u32::try_from(self.slots.len() - 1).ok()?
            }
        };
        self.slots.get_mut(at as usize)?.account = account;
        *self.ids.get_mut(at as usize)? = Some(draw.id.clone());
        self.by_id.insert(draw.id.clone(), at);
        Some(at)
    }

    /// Forgets the idlest eighth, so that the search for them is paid once for many accounts. False if every account
    /// has calls under way.
    fn forget_idlest(&mut self, call: &[Draw]) -> bool {
        let needed: Vec<u32> = call.iter().filter_map(|draw| self.by_id.get(&draw.id).copied()).collect();
        let idle = |((at, slot), id): ((u32, &Slot), &Option<AccountId>)| {
            let goes = id.is_some() && slot.account.reserved == NanoUsd::ZERO && !needed.contains(&at);
            goes.then_some(slot.account.last_at)
        };
        let mut times: Vec<Timestamp> = (0..).zip(&self.slots).zip(&self.ids).filter_map(idle).collect();
        if times.is_empty() {
            return false;
        }
        let last = (self.by_id.len() / 8).min(times.len() - 1);
        let (_, newest_to_go, _) = times.select_nth_unstable(last);
        let newest_to_go = *newest_to_go;
        // Many may share that moment: never more than were meant to go.
        self.forget_where(last + 1, |at, _, account| account.last_at <= newest_to_go && !needed.contains(&at)) > 0
    }

    fn forget_where(&mut self, most: usize, goes: impl Fn(u32, &AccountId, &Account) -> bool) -> usize {
        let mut forgotten = 0;
        for ((at, slot), id) in (0_u32..).zip(&mut self.slots).zip(&mut self.ids) {
            let is_meant = id.as_ref().is_some_and(|id| goes(at, id, &slot.account));
            if forgotten == most || slot.account.reserved > NanoUsd::ZERO || !is_meant {
                continue;
            }
            let Some(id) = id.take() else { continue };
            self.by_id.remove(&id);
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(at);
            forgotten += 1;
        }
        forgotten
    }
}

impl Slot {
    /// Lets the account begin anew where the draw is of a later time. Calls under way belong to the time before.
    fn follow(&mut self, draw: &Draw) {
        match lies(draw.span, self.account.span) {
            Lies::Same | Lies::Before => {}
            Lies::After => {
                self.account = Account { settled: draw.seed, span: draw.span, ..Account::default() };
                self.generation = self.generation.wrapping_add(1);
            }
            Lies::Across => {
                self.account.settled = draw.seed;
                self.account.span = draw.span;
            }
        }
    }
}

fn lies(draw: Span, account: Span) -> Lies {
    if draw == account {
        Lies::Same
    } else if draw.start >= account.end {
        Lies::After
    } else if draw.end <= account.start {
        Lies::Before
    } else {
        Lies::Across
    }
}
