//! The open accounts: found by their id, or in one step by their place. Bounded; the longest idle leave first.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::entries::{Account, AccountState, Draw, Seed};
use super::epochs::Epochs;
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
    by_id: HashMap<AccountId, u32, RandomState>,
    slots: Vec<Slot>,
    /// Of each slot; none while it is free. Apart, so that a call reads one line of memory per account.
    ids: Vec<Option<AccountId>>,
    free: Vec<u32>,
    room: usize,
    pub(super) epochs: Epochs,
}

#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    account: Account,
    generation: u32,
}

/// What came of the wish to draw on an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// It is open.
    At(Place),
    /// It must be opened, and there is no seed for it that holds.
    Unseeded,
    /// It covers a later time: the call was made before that began, and is none of its business.
    Later,
    /// There is no room, and nothing to forget.
    Full,
}

/// How the time of a draw lies to that of its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lies {
    Same,
    /// The clock went back, or the call was made before the account began anew.
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
        let (by_id, epochs) = (HashMap::default(), Epochs::default());
        Slots { by_id, slots: Vec::new(), ids: Vec::new(), free: Vec::new(), room, epochs }
    }

    /// The place of a draw's account, which is opened or begins anew where its time says so. The accounts of the whole
    /// `call` stay.
    pub(super) fn open(&mut self, draw: &Draw, now: Timestamp, call: &[Draw]) -> Opened {
        let at = match self.by_id.get(&draw.id) {
            Some(&at) => at,
            None => match self.seed(draw) {
                Some(seed) => match self.insert(draw, seed, call) {
                    Some(at) => at,
                    None => return Opened::Full,
                },
                None => return Opened::Unseeded,
            },
        };
        let Some(slot) = self.slots.get(at as usize) else { return Opened::Full };
        let lies = lies(draw.span, slot.account.span);
        // A clock that went back must not give a day back, so its calls count in the day that is open.
        if lies == Lies::Before && now >= slot.account.span.start {
            return Opened::Later;
        }
        let seed = match lies {
            Lies::Same | Lies::Before => None,
            Lies::After | Lies::Across => match self.seed(draw) {
                Some(seed) => Some(seed),
                None => return Opened::Unseeded,
            },
        };
        let Some(slot) = self.slots.get_mut(at as usize) else { return Opened::Full };
        if let Some(seed) = seed {
            slot.begin(draw.span, seed, lies);
        }
        slot.account.last_at = slot.account.last_at.max(now);
        Opened::At(Place { slot: at, generation: slot.generation })
    }

    /// The account of a draw, if it is open for its time.
    pub(super) fn find(&mut self, draw: &Draw) -> Option<&mut Account> {
        self.by_id(&draw.id).filter(|account| account.span == draw.span)
    }

    /// What an account begins with, if that is known and still holds.
    fn seed(&mut self, draw: &Draw) -> Option<NanoUsd> {
        let Seed { spent, epoch } = draw.seed?;
        self.epochs.holds(&draw.id, epoch).then_some(spent)
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

    fn insert(&mut self, draw: &Draw, seed: NanoUsd, call: &[Draw]) -> Option<u32> {
        if self.by_id.len() >= self.room && !self.forget_idlest(call) {
            return None;
        }
        let account = Account { settled: seed, span: draw.span, ..Account::default() };
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
            // What was settled on it since is missing in what somebody may be reading for it.
            self.epochs.next(&id);
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(at);
            forgotten += 1;
        }
        forgotten
    }
}

impl Slot {
    /// Lets the account cover another time. Calls under way belong to the time before, unless only the zone is another.
    fn begin(&mut self, span: Span, seed: NanoUsd, lies: Lies) {
        let reserved = match lies {
            Lies::Across => self.account.reserved,
            Lies::Same | Lies::Before | Lies::After => {
                self.generation = self.generation.wrapping_add(1);
                NanoUsd::ZERO
            }
        };
        self.account = Account { settled: seed, reserved, span, last_at: self.account.last_at };
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
