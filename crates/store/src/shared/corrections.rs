//! Corrections of accounts by hand, and those that Redis is still to be told.
//!
//! Whoever makes one has written it into the catalog, from which accounts begin; one that is open in Redis is corrected
//! there, once, however long Redis was away. Until it is told, what this node gives an account to begin with leaves it
//! out: it would count twice.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::Value;
use sprag_core::limits::UNTOLD_CORRECTIONS;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Span};

use super::answers::Told;
use super::keys::{self, Place};
use super::node::Node;
use super::packed::{AccountTable, amount, bounded, pack};
use super::reading::Parts;
use super::scripts::ACCOUNT;
use super::{Away, Phase, Shared};
use crate::shards::with_lock;

/// A correction of an account.
#[derive(Clone, Debug)]
pub struct Correction {
    /// Names it, so that it counts once however often it is told.
    pub name: String,
    /// Of which account.
    pub account: AccountId,
    /// The time that it is for: an account of a later time is not corrected.
    pub span: Span,
    /// How.
    pub change: Change,
}

/// How an account is corrected.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// By so much; it never has spent less than nothing.
    By(NanoUsd),
    /// Nothing counts any more of what it has spent, which this node knows to be so much. What others spend between that
    /// and the moment at which Redis is told counts.
    Reset {
        /// What this node knows.
        spent: NanoUsd,
    },
}

#[derive(Debug, Default)]
pub(super) struct Corrections {
    untold: Mutex<VecDeque<Untold>>,
    lost: AtomicU64,
    /// One at a time, so that they arrive in their order.
    telling: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
struct Untold {
    correction: Correction,
    place: Place,
    /// Redis was away when it was made.
    is_late: bool,
}

impl Corrections {
    /// How many Redis is still to be told.
    pub(super) fn untold(&self) -> usize {
        with_lock(&self.untold, |untold| untold.len())
    }

    /// What Redis is still to be told of an account whose time begins then, in all.
    pub(super) fn untold_of(&self, key: &str, start: i64) -> i64 {
        with_lock(&self.untold, |untold| {
            let of_account = untold.iter().filter(|one| one.place.key == key && one.start() == start);
            of_account.map(Untold::amount).fold(0_i64, i64::saturating_add)
        })
    }

    fn add(&self, correction: Correction) {
        let place = keys::account(&correction.account);
        let has_room = with_lock(&self.untold, |untold| {
            let has_room = untold.len() < UNTOLD_CORRECTIONS;
            if has_room {
                untold.push_back(Untold { correction, place, is_late: false });
            }
            has_room
        });
        if !has_room {
            self.lost.fetch_add(1, Ordering::Relaxed);
            tracing::error!("too many corrections wait for redis; one holds on this node alone");
        }
    }

    fn first(&self) -> Option<Untold> {
        with_lock(&self.untold, |untold| untold.front().cloned())
    }

    fn told(&self) {
        with_lock(&self.untold, |untold| untold.pop_front());
    }

    fn is_late(&self) {
        with_lock(&self.untold, |untold| untold.iter_mut().for_each(|one| one.is_late = true));
    }
}

impl Untold {
    fn start(&self) -> i64 {
        bounded(self.correction.span.start.0)
    }

    /// What it adds to what was spent, as this node sees it.
    fn amount(&self) -> i64 {
        match self.correction.change {
            Change::By(by) => amount(by),
            Change::Reset { spent } => -amount(spent),
        }
    }

    /// All that was spent is taken away where Redis hears of it at once; later only what it was then.
    fn what(&self) -> &'static str {
        match self.correction.change {
            Change::Reset { .. } if !self.is_late => "reset",
            Change::Reset { .. } | Change::By(_) => "adjust",
        }
    }
}

impl Shared {
    /// Corrects an account: now where Redis is there, else when it is back. To be followed by
    /// [`Shared::tell_corrections`] where it should not wait for the next second.
    pub fn correct(&self, correction: Correction) {
        self.node.corrections.add(correction);
    }

    /// Tells Redis of all corrections, in their order.
    ///
    /// # Errors
    /// When Redis does not answer in time. They are told when it is back; the caller has nothing more to do.
    pub async fn tell_corrections(&self) -> Result<(), Away> {
        self.node.tell_corrections().await
    }
}

impl Node {
    pub(super) async fn tell_corrections(&self) -> Result<(), Away> {
        let corrections = &self.corrections;
        let _alone = corrections.telling.lock().await;
        while let Some(untold) = corrections.first() {
            match self.tell_correction(&untold).await {
                Ok(()) => {}
                Err(Away::Failed(error)) if self.link.phase() == Phase::Connected => {
                    // It will be refused however often it is told.
                    let account = &untold.correction.account;
                    tracing::error!(%error, %account, "a correction is refused by the shared state; it holds on this node alone");
                    corrections.lost.fetch_add(1, Ordering::Relaxed);
                }
                Err(away) => {
                    corrections.is_late();
                    return Err(away);
                }
            }
            corrections.told();
        }
        Ok(())
    }

    /// An account that is not open in Redis is left alone: whoever opens it finds the correction in the catalog.
    async fn tell_correction(&self, untold: &Untold) -> Result<(), Away> {
        let Untold { correction, place: Place { prefix, key }, .. } = untold;
        let table = AccountTable {
            head: self.head(prefix, &correction.name),
            k: key.clone(),
            what: untold.what(),
            amount: untold.amount(),
            f: untold.start(),
            e: bounded(correction.span.end.0),
            heard: self.heard.get(key),
        };
        match self.link.call(&ACCOUNT, prefix, &[pack(&table)]).await? {
            Value::Nil => Ok(()),
            value => {
                let told = Told::read(Parts::of(value)?)?;
                self.heard.hear(key, told.heard());
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sprag_core::policy::{ALWAYS, Holder, Window};
    use sprag_core::time::Timestamp;

    use super::*;

    fn correction(window: Window, span: Span, change: Change) -> Correction {
        let account = AccountId { holder: Holder::Everything, window, is_shadow: false };
        Correction { name: "c".into(), account, span, change }
    }

    #[test]
    fn what_is_untold_is_known_by_account_and_time() {
        let corrections = Corrections::default();
        let day = Span { start: Timestamp(1_000), end: Timestamp(9_000) };
        let later = Span { start: Timestamp(9_000), end: Timestamp(19_000) };
        corrections.add(correction(Window::Day, day, Change::By(NanoUsd(5))));
        corrections.add(correction(Window::Day, day, Change::By(NanoUsd(-2))));
        corrections.add(correction(Window::Day, later, Change::By(NanoUsd(100))));
        corrections.add(correction(Window::Month, day, Change::By(NanoUsd(100))));
        let key = keys::account(&correction(Window::Day, day, Change::By(NanoUsd(0))).account).key;
        assert_eq!(corrections.untold_of(&key, 1_000), 3);
        assert_eq!(corrections.untold_of(&key, 2_000), 0, "another time");
        corrections.told();
        assert_eq!(corrections.untold_of(&key, 1_000), -2);
    }

    #[test]
    fn a_run_that_begins_anew_later_keeps_what_it_spent_since() {
        let corrections = Corrections::default();
        corrections.add(correction(Window::Run, ALWAYS, Change::Reset { spent: NanoUsd(7) }));
        assert_eq!(corrections.first().map(|one| (one.what(), one.amount())), Some(("reset", -7)));
        corrections.is_late();
        assert_eq!(corrections.first().map(|one| (one.what(), one.amount())), Some(("adjust", -7)));
    }

    #[test]
    fn what_is_untold_is_bounded() {
        let corrections = Corrections::default();
        for number in 0..=UNTOLD_CORRECTIONS {
            assert_eq!(corrections.lost.load(Ordering::Relaxed), 0, "{number}");
            corrections.add(correction(Window::Day, ALWAYS, Change::By(NanoUsd(1))));
        }
        assert_eq!((corrections.untold(), corrections.lost.load(Ordering::Relaxed)), (UNTOLD_CORRECTIONS, 1));
    }
}
