//! What several nodes know together: runs, money, rates and evidence, in one Redis.
//!
//! A node goes on working on its own [`State`](crate::state::State); Redis is where nodes meet. [`Shared::begin`] counts
//! a call before it is judged, [`Shared::end`] settles it: one script call each, one round trip each. Scripts hold
//! arithmetic, and give the numbers that memory would give. What follows from them is decided elsewhere.
//!
//! - `asked`, `told`, `ending`, `missed`: what goes in and what comes out
//! - `address`, `link`, `status`: the way to Redis; a breaker, so that a Redis that is away costs nothing
//! - `keys`, `packed`, `reading`, `scripts`, `lua/`: how it is kept there
//! - `calls`: what this node holds, and what it still has to tell
//!
//! Keys begin with `sprag:1:`. Another version of their form has another number, so two versions never read what they do
//! not understand. Every key has a time to live. Redis's clock counts, not the node's. All keys of an agent share a hash
//! tag; what crosses agents has tags of its own. On a single Redis all of it goes into one script call, on a cluster
//! into one for each tag, sent at once.
//!
//! What a call holds (money, its place among those in flight) is kept by node, with the node's last sign of life. What
//! a node held that gave no sign for a minute is booked as spent, and its calls are no longer in flight. Should it come
//! back, what was booked for it counts towards what its calls cost.
//!
//! Accounts carry a generation, chosen at random when they are opened. `Shared` remembers what Redis said last of each;
//! where Redis has another generation, or less than it said before, it has lost something, and the larger counts.

mod address;
mod asked;
mod ending;
mod missed;
mod status;
mod told;

pub use address::{Address, BadAddress};
pub use asked::{AskedPurse, AskedRun, Begin, MoneyAsk, NamedRun, RepeatAsk};
pub use ending::{End, EndHow, Ended, NewHabits, NewWatch, RatesEnd, SettledAccount};
pub use missed::{Missed, MissedAccount, MissedRun};
pub use status::{Away, LinkStatus, Phase, RoundTrips};
pub use told::{Begun, BegunRun, Money, Purse, Reserved, ReservedAccount, SharedCall, Watch};

use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Account, AccountId, Shortfall};

/// How the link behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long one script call may take.
    pub timeout_ms: u64,
    /// Whose clock counts.
    pub clock: Clock,
}

/// Whose clock counts.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// That of Redis.
    #[default]
    Redis,
    /// One that somebody else moves; in milliseconds. For tests.
    Told(std::sync::Arc<std::sync::atomic::AtomicI64>),
}

impl Default for Options {
    fn default() -> Options {
        Options { timeout_ms: 250, clock: Clock::Redis }
    }
}

/// The link of one node. Clones are the same link.
#[derive(Clone, Debug)]
pub struct Shared {}

impl Shared {
    /// A link to a Redis, which is connected to in the background: until that is done, everything is [`Away`]. Must be
    /// called inside a runtime. The link ends when its last clone is dropped.
    #[must_use]
    pub fn connect(_address: &Address, _options: Options) -> Shared {
        Shared {}
    }

    /// Begins a call: finds its run, counts it, takes its rates, sets its money aside. Whatever comes of it, the call
    /// must be [ended](Shared::end).
    ///
    /// # Errors
    /// When Redis does not answer in time. Should it do it later nevertheless, that is taken back.
    pub async fn begin(&self, _begin: &Begin<'_>) -> Result<Begun, Away> {
        Err(Away::Connecting)
    }

    /// Ends a call: adds what it cost, gives back what it held, leaves what it learned. A second time changes nothing.
    ///
    /// # Errors
    /// When Redis does not answer in time. It is told again when it is back; the caller has nothing more to do.
    pub async fn end(&self, _call: &SharedCall, _end: &End<'_>) -> Result<Ended, Away> {
        Err(Away::Connecting)
    }

    /// Sets money aside for a call that has begun: after it was found out what its accounts have spent, or after a wait.
    ///
    /// # Errors
    /// When Redis does not answer in time.
    pub async fn reserve(&self, _call: &mut SharedCall, _money: &MoneyAsk<'_>) -> Result<Money, Away> {
        Err(Away::Connecting)
    }

    /// Raises what is set aside for a call to `amount`, on all its accounts in force or on none.
    ///
    /// # Errors
    /// When Redis does not answer in time.
    pub async fn raise(&self, _call: &SharedCall, _amount: NanoUsd) -> Result<Result<(), Box<Shortfall>>, Away> {
        Err(Away::Connecting)
    }

    /// Writes what detection keeps of a run, after a merge with what another node had written meanwhile. Gives what a
    /// third one has written since: then nothing was written.
    ///
    /// # Errors
    /// When Redis does not answer in time.
    pub async fn put_watch(
        &self,
        _agent: &AgentName,
        _run: Option<&RunId>,
        _watch: &NewWatch<'_>,
    ) -> Result<Option<Watch>, Away> {
        Err(Away::Connecting)
    }

    /// Adds to, or takes from, what an account has spent, which never is less than nothing. None if it is not open.
    ///
    /// # Errors
    /// When Redis does not answer in time.
    pub async fn adjust(&self, _id: &AccountId, _amount: NanoUsd) -> Result<Option<Account>, Away> {
        Err(Away::Connecting)
    }

    /// Nothing of what an account has spent counts any more. What is set aside stays. None if it is not open.
    ///
    /// # Errors
    /// When Redis does not answer in time.
    pub async fn reset(&self, _id: &AccountId) -> Result<Option<Account>, Away> {
        Err(Away::Connecting)
    }

    /// One account, if it is open.
    ///
    /// # Errors
    /// When Redis does not answer in time.
    pub async fn account(&self, _id: &AccountId) -> Result<Option<Account>, Away> {
        Err(Away::Connecting)
    }

    /// Adds what this node did by itself while Redis was away.
    ///
    /// # Errors
    /// When Redis does not answer in time. The same `missed` can be sent again: it counts once.
    pub async fn reconcile(&self, _missed: &Missed) -> Result<(), Away> {
        Err(Away::Connecting)
    }

    /// Whether a call would be tried now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        false
    }

    /// How the link is.
    #[must_use]
    pub fn status(&self) -> LinkStatus {
        LinkStatus::default()
    }

    /// Waits until the link is in another phase than this one, and gives that.
    pub async fn changed(&self, seen: Phase) -> Phase {
        seen
    }
}
