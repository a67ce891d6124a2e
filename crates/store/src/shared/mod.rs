//! What several nodes know together: runs, money, rates and evidence, in one Redis.
//!
//! A node goes on working on its own [`State`](crate::state::State); Redis is where nodes meet. [`Shared::begin`] counts
//! a call before it is judged, [`Shared::end`] settles it: one script call each, one round trip each. Scripts hold
//! arithmetic, and give the numbers that memory would give. What follows from them is decided elsewhere.
//!
//! - `asked`, `told`, `ending`, `missed`: what goes in and what comes out
//! - `beginning`, `settling`, `accounts`, `corrections`, `reconciling`: what is done
//! - `address`, `link`, `status`: the way to Redis; a breaker, so that a Redis that is away costs nothing
//! - `keys`, `asking`, `packed`, `scripts`, `lua/`, `reading`, `answers`: how it is kept there, asked and answered
//! - `node`, `calls`, `heard`: what this node holds, what it still has to tell, and what it has heard
//!
//! Keys begin with `sprag:2:`. Another version of their form has another number, so two versions never read what they do
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

mod accounts;
mod address;
mod answers;
mod asked;
mod asking;
mod beginning;
mod calls;
mod corrections;
mod ending;
mod heard;
mod keys;
mod link;
mod missed;
mod node;
mod packed;
mod reading;
mod reconciling;
mod scripts;
mod settling;
mod status;
mod told;

pub use address::{Address, BadAddress};
pub use asked::{AskedPurse, AskedRun, Begin, Follows, MoneyAsk, NamedRun, RepeatAsk};
pub use corrections::{Change, Correction};
pub use ending::{End, EndHow, Ended, NewHabits, NewWatch, RatesEnd, SettledAccount};
pub use missed::{Missed, MissedAccount, MissedRun};
pub use status::{Away, LinkStatus, Phase, RoundTrips};
pub use told::{Begun, BegunRun, Money, Purse, Reserved, ReservedAccount, RunNow, SharedCall, Watch};

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use node::Node;
use sprag_core::time::Timestamp;

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
    Told(Arc<AtomicI64>),
}

impl Default for Options {
    fn default() -> Options {
        Options { timeout_ms: 250, clock: Clock::Redis }
    }
}

/// The link of one node. Clones are the same link.
#[derive(Clone, Debug)]
pub struct Shared {
    node: Arc<Node>,
}

impl Shared {
    /// A link to a Redis, which is connected to in the background: until that is done, everything is [`Away`]. Must be
    /// called inside a runtime. The link ends when its last clone is dropped.
    #[must_use]
    pub fn connect(address: &Address, options: Options) -> Shared {
        Shared { node: Node::start(address, options) }
    }

    /// Whether a call would be tried now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.node.link.phase() == Phase::Connected
    }

    /// Whether a call that comes before the end of the one that it goes on from looks again: then no answer needs to wait until Redis has
    /// heard of its end.
    #[must_use]
    pub fn looks_again(&self) -> bool {
        !self.node.is_cluster()
    }

    /// How the link is.
    #[must_use]
    pub fn status(&self) -> LinkStatus {
        let Node { link, calls, corrections, .. } = &*self.node;
        let (untold, untold_corrections) = (calls.untold(), corrections.untold());
        LinkStatus { untold, untold_corrections, lost: calls.lost(), ..link.status() }
    }

    /// Waits until the link is in another phase than this one, and gives that.
    pub async fn changed(&self, seen: Phase) -> Phase {
        self.node.link.changed(seen).await
    }

    /// What time it is by the clock that counts, as far as that is known; none before the first connection.
    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        self.node.time()
    }

    /// Gives a sign of life for what is held, and tells what is untold, now rather than in its time.
    pub async fn catch_up(&self) {
        self.node.give_sign().await;
        self.node.tell_untold().await;
    }
}
