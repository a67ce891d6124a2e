//! What all deliveries share: how names are looked up and how long is waited, places at servers, and which recipients
//! of a mail have it already.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use sprag_core::limits::{ALERT_CONNECTIONS, MAILS_IN_PART};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::address::Checked;

/// The addresses of a name.
pub type Found = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// How names are looked up, and how long is waited.
pub struct Setup {
    /// Gives the addresses of a name. What it gives is checked.
    pub look_up: Box<dyn Fn(String) -> Found + Send + Sync>,
    /// For one message over HTTP, and for all that is said to a mail server before the message itself.
    pub talk: Duration,
    /// For a mail server's word on the message. It may look for viruses first; who gives up early sends twice.
    pub verdict: Duration,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            look_up: Box::new(|name| {
                Box::pin(async move {
                    let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
                    Ok(found.map(|address| address.ip()).collect())
                })
            }),
            talk: Duration::from_secs(10),
            verdict: Duration::from_secs(60),
        }
    }
}

/// What all deliveries share.
#[derive(Default)]
pub(super) struct Wire {
    setup: ArcSwap<Setup>,
    places: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
    /// The oldest first.
    in_part: Mutex<VecDeque<(String, BTreeSet<String>)>>,
}

impl Wire {
    pub(super) fn setup(&self) -> Arc<Setup> {
        self.setup.load_full()
    }

    pub(super) fn set_up(&self, setup: Setup) {
        self.setup.store(Arc::new(setup));
    }

    /// Waits for a place at a server: a burst to many channels is no burst for the one server behind them.
    pub(super) async fn place_at(&self, checked: &Checked) -> Option<OwnedSemaphorePermit> {
        let ip = checked.addresses().first()?.ip();
        let places = {
            let mut all = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|_, places| places.strong_count() > 0);
            let known = all.get(&ip).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let places = Arc::new(Semaphore::new(ALERT_CONNECTIONS));
                all.insert(ip, Arc::downgrade(&places));
                places
            })
        };
        places.acquire_owned().await.ok()
    }

    /// Who has this mail already, of those it is for.
    pub(super) fn recipients_done(&self, mail: &str) -> BTreeSet<String> {
        let all = self.in_part.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(of, _)| of == mail).map(|(_, done)| done.clone()).unwrap_or_default()
    }

    /// Remembers who need not get this mail again. Nobody: it is done, and forgotten.
    pub(super) fn note_recipients(&self, mail: &str, done: BTreeSet<String>) {
        let mut all = self.in_part.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(of, _)| of != mail);
        if done.is_empty() {
            return;
        }
        if all.len() == MAILS_IN_PART {
            all.pop_front();
        }
        all.push_back((mail.to_owned(), done));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipients_of_a_bounded_number_of_mails_are_remembered() {
        let wire = Wire::default();
        let done = BTreeSet::from(["a@example.com".to_owned()]);
        for number in 0..=MAILS_IN_PART {
            wire.note_recipients(&number.to_string(), done.clone());
        }
        assert_eq!(wire.recipients_done("0"), BTreeSet::new(), "the oldest was forgotten");
        assert_eq!(wire.recipients_done("1"), done);
        wire.note_recipients("1", BTreeSet::new());
        assert_eq!(wire.recipients_done("1"), BTreeSet::new());
        assert_eq!(wire.in_part.lock().unwrap().len(), MAILS_IN_PART - 1);
    }
}
