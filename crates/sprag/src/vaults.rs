//! What was hidden of each run and can be put back, for as long as the run is under way.
//!
//! In memory only. A vault is overwritten when its run is over, or when there are too many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;
use sprag_core::dlp::Vault;
use sprag_core::limits::VAULTS;
use sprag_core::run::Scope;
use sprag_core::time::Timestamp;
use sprag_store::RunKey;

/// Whose vault it is: a run, and the caller in it. Anybody may name a run, but gets back only what is his own.
pub type VaultKey = (RunKey, Scope);

/// The vaults of all runs.
#[derive(Debug, Default)]
pub struct Vaults {
    runs: Mutex<HashMap<VaultKey, Kept, RandomState>>,
}

#[derive(Debug)]
struct Kept {
    vault: Arc<Mutex<Vault>>,
    used_at: Timestamp,
}

impl Vaults {
    /// The vault of a caller's run. Calls that begin together get the same one, so that no two of their values get one
    /// placeholder; tell [`Vaults::drop_unused`] when nothing had to be hidden.
    #[must_use]
    pub fn of(&self, owner: &VaultKey, now: Timestamp) -> Arc<Mutex<Vault>> {
        let mut runs = self.lock();
        if let Some(kept) = runs.get_mut(owner) {
            kept.used_at = now;
            return kept.vault.clone();
        }
        if runs.len() >= VAULTS {
            make_room(&mut runs);
        }
        let vault = Arc::default();
        runs.insert(owner.clone(), Kept { vault: Arc::clone(&vault), used_at: now });
        vault
    }

    /// Forgets a vault that holds nothing, unless another call is about to use it.
    pub fn drop_unused(&self, owner: &VaultKey, vault: &Arc<Mutex<Vault>>) {
        let mut runs = self.lock();
        // Ours and the one of the table.
        let is_ours = runs.get(owner).is_some_and(|kept| Arc::ptr_eq(&kept.vault, vault));
        if is_ours && is_empty(vault) && Arc::strong_count(vault) <= 2 {
            runs.remove(owner);
        }
    }

    /// Forgets those of runs that are over.
    pub fn sweep(&self, now: Timestamp, idle_ms: u64) {
        self.lock().retain(|_, kept| now.since_ms(kept.used_at) <= idle_ms);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<VaultKey, Kept, RandomState>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those that hold nothing go first, then those unused longest.
fn make_room(runs: &mut HashMap<VaultKey, Kept, RandomState>) {
    runs.retain(|_, kept| !is_empty(&kept.vault) || Arc::strong_count(&kept.vault) > 1);
    if runs.len() >= VAULTS {
        // Rare, and a pass over them costs less than an order kept at each call.
        let mut times: Vec<Timestamp> = runs.values().map(|kept| kept.used_at).collect();
        let (_, oldest, _) = times.select_nth_unstable(VAULTS / 8);
        let oldest = *oldest;
        runs.retain(|_, kept| kept.used_at > oldest);
    }
}

fn is_empty(vault: &Mutex<Vault>) -> bool {
    vault.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}

#[cfg(test)]
mod tests {
    use sprag_core::dlp::Entity;
    use sprag_core::id::{AgentName, RunId};

    use super::*;

    fn owner(name: &str) -> VaultKey {
        let agent = AgentName::parse("a").unwrap();
        let scope = Scope::new(&agent, None);
        (RunKey { agent, id: RunId::parse(name).unwrap() }, scope)
    }

    fn fill(vaults: &Vaults, name: &str, now: i64) {
        let vault = vaults.of(&owner(name), Timestamp(now));
        vault.lock().unwrap().keep(Entity(0), name);
        vaults.drop_unused(&owner(name), &vault);
    }

    fn holds(vaults: &Vaults, owner: &VaultKey, value: &str) -> bool {
        let runs = vaults.lock();
        runs.get(owner).is_some_and(|kept| kept.vault.lock().unwrap().holds(Entity(0), value))
    }

    #[test]
    fn a_run_finds_its_own_again_until_it_is_over() {
        let vaults = Vaults::default();
        fill(&vaults, "one", 1000);
        fill(&vaults, "two", 5000);
        assert!(holds(&vaults, &owner("one"), "one") && !holds(&vaults, &owner("three"), "one"));
        let (run, _) = owner("one");
        let other = Scope::new(&run.agent, Some(b"another credential"));
        assert!(!holds(&vaults, &(run, other), "one"), "the name of a run opens nothing");
        fill(&vaults, "one", 1000);
        vaults.sweep(Timestamp(6000), 2000);
        assert!(!holds(&vaults, &owner("one"), "one") && holds(&vaults, &owner("two"), "two"));
    }

    #[test]
    fn what_holds_nothing_goes_when_nobody_uses_it() {
        let vaults = Vaults::default();
        let (first, second) = (vaults.of(&owner("one"), Timestamp(0)), vaults.of(&owner("one"), Timestamp(0)));
        assert!(Arc::ptr_eq(&first, &second), "calls that begin together share it");
        vaults.drop_unused(&owner("one"), &first);
        assert_eq!(vaults.len(), 1, "the second call still uses it");
        drop(first);
        vaults.drop_unused(&owner("one"), &second);
        assert!(vaults.is_empty());
    }

    #[test]
    fn there_is_a_bound_and_those_unused_longest_go() {
        let vaults = Vaults::default();
        for number in 0..VAULTS {
            fill(&vaults, &format!("run-{number}"), number as i64);
        }
        assert_eq!(vaults.len(), VAULTS);
        fill(&vaults, "one-more", VAULTS as i64);
        assert!(vaults.len() < VAULTS && holds(&vaults, &owner("one-more"), "one-more"));
        assert!(!holds(&vaults, &owner("run-0"), "run-0"));
        for number in vaults.len()..VAULTS {
            drop(vaults.of(&owner(&format!("empty-{number}")), Timestamp(number as i64)));
        }
        let last = format!("run-{}", VAULTS / 4);
        drop(vaults.of(&owner("another"), Timestamp(0)));
        assert!(vaults.len() < VAULTS && holds(&vaults, &owner(&last), &last), "those that hold nothing go first");
    }
}
