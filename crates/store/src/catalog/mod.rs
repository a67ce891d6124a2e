//! What must never be lost: kills, resumed runs, virtual keys, admin tokens, where agents stand, and
//! corrections of what was spent.
//!
//! Everything is read once, at the start, into a [`Snapshot`] that requests look at without a lock. A change is on disk
//! before anybody sees it, then a new snapshot takes the place of the old one. A kill that the disk refuses holds all
//! the same: the error says so, and it is written with the next kill, unless the process ends before. Nothing here
//! decides anything.
//!
//! Every row has a stamp: who changed it last, and when (`stamper`). By that, nodes that share a catalog agree
//! ([`crate::shared_catalog`]); what others changed comes in through `foreign`.

mod foreign;
mod keys;
mod snapshot;
mod stamper;
mod table;
mod tokens;
mod writer;

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use rusqlite::{Connection, OpenFlags};
use sprag_core::id::AgentName;
use sprag_core::limits::{
    ADJUSTMENTS, ADMIN_TOKENS, AGENT_STANDINGS, KILLED_RUNS, RUN_MARKS, VIRTUAL_KEYS, WIDE_KILLS,
};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, AgentStanding, Kill, KillScope};
use sprag_core::time::Timestamp;

use crate::data_dir::DataDir;
use crate::error::StoreError;
use crate::run_key::RunKey;
use crate::shards::with_lock;
use crate::shared_catalog::Unshared;
use crate::shared_catalog::row::{RowKind, RowName};
use crate::sqlite::{CATALOG, open_reader, open_writer};

use writer::Writer;

pub use foreign::Applied;
pub use keys::{KeyEntry, SecretHash};
pub use snapshot::{Mark, Snapshot};
pub use tokens::TokenEntry;

const FILE: &str = "catalog.db";

/// The catalog of one data directory.
pub struct Catalog {
    snapshot: ArcSwap<Snapshot>,
    /// Whoever changes anything holds it from the writing to the new snapshot.
    writer: Mutex<Writer>,
    on_change: Box<dyn Fn(u64) + Send + Sync>,
    bounds: Bounds,
    /// Who wants to know which rows were changed here.
    unshared: OnceLock<Arc<Unshared>>,
    /// Keeps other processes out for as long as the file is in use.
    _dir: Arc<DataDir>,
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Killed runs; the oldest leave first.
    pub killed_runs: usize,
    /// Kills of anything wider.
    pub wide_kills: usize,
    /// Resumed runs; the oldest leave first.
    pub marks: usize,
    /// Agents.
    pub agents: usize,
    /// Corrections of what accounts have spent; those of the oldest times leave first.
    pub adjustments: usize,
    /// Virtual keys, those that ended included.
    pub keys: usize,
    /// Admin tokens, those that ended included.
    pub tokens: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            killed_runs: KILLED_RUNS,
            wide_kills: WIDE_KILLS,
            marks: RUN_MARKS,
            agents: AGENT_STANDINGS,
            adjustments: ADJUSTMENTS,
            keys: VIRTUAL_KEYS,
            tokens: ADMIN_TOKENS,
        }
    }
}

impl Catalog {
    /// Opens the catalog. `on_change` is called after every change, with the number of the new snapshot.
    ///
    /// # Errors
    /// When the file cannot be read and written: without it nobody knows what is killed.
    pub fn open(
        dir: Arc<DataDir>,
        bounds: Bounds,
        now: Timestamp,
        on_change: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<Catalog, StoreError> {
        let connection = open_writer(&dir.path().join(FILE), CATALOG)?;
        // A commit is on the disk itself when it returns, also when the power fails.
        let prepared = connection.pragma_update(None, "synchronous", "FULL");
        let read =
            prepared.and_then(|()| table::delete_expired(&connection, now)).and_then(|_| table::read(&connection));
        let snapshot = read.map_err(StoreError::database("be read"))?;
        Ok(Catalog {
            snapshot: ArcSwap::from_pointee(snapshot),
            writer: Mutex::new(Writer::new(connection)),
            on_change: Box::new(on_change),
            bounds,
            unshared: OnceLock::new(),
            _dir: dir,
        })
    }

    /// Copies the catalog of one data directory into another, which has none. The first may be in use. False where it has none
    /// either.
    ///
    /// # Errors
    /// When it can be neither read nor written.
    pub fn copy(from: &Path, to: &Path) -> Result<bool, StoreError> {
        let (from, to) = (from.join(FILE), to.join(FILE));
        if !from.exists() {
            return Ok(false);
        }
        let copied = Connection::open_with_flags(&from, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .and_then(|connection| connection.execute("VACUUM INTO ?1", [to.to_string_lossy()]));
        copied.map(|_| true).map_err(StoreError::database("be copied"))
    }

    /// The catalog of a data directory that another process may have, as it stands now; none where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(data_dir: &Path) -> Result<Option<Snapshot>, StoreError> {
        let file = data_dir.join(FILE);
        if !file.exists() {
            return Ok(None);
        }
        open_reader(&file).and_then(|reader| table::read(&reader)).map(Some).map_err(StoreError::database("be read"))
    }

    /// Everything as it stands now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Puts a kill on record, and the clues that lead to its run. Gives the kill in force: an earlier one of the same
    /// scope stays if it is no weaker and ends no earlier, otherwise it is replaced as [`Kill::in_place_of`] says.
    ///
    /// # Errors
    /// When there are too many kills wider than a run, and then nothing changes; or when it cannot be written, and then
    /// it holds until the process ends.
    pub fn kill(&self, kill: Kill, clues: &[u64]) -> Result<Arc<Kill>, StoreError> {
        self.change(|writer, snapshot| {
            let known = snapshot.kills.of_scope(&kill.scope).cloned();
            let covering = known.clone().filter(|known| known.covers(&kill));
            if let Some(known) = covering.as_ref().filter(|known| !writer.is_unwritten(&known.scope)) {
                return (Ok(known.clone()), false);
            }
            let most = self.bounds.wide_kills;
            if kill.run().is_none() && known.is_none() && snapshot.kills.wide().count() >= most {
                return (Err(StoreError::Full { what: "kills of agents, keys and descriptors", most }), false);
            }
            let now = kill.at;
            let kill = covering.unwrap_or_else(|| {
                Arc::new(match &known {
                    Some(known) => kill.in_place_of(known),
                    None => kill,
                })
            });
            (writer.put_kill(snapshot, &kill, clues, now, self.bounds.killed_runs).map(|()| kill), true)
        })
    }

    /// Adds clues to the kill of a run, as far as there is room.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn add_clues(&self, run: &RunKey, clues: &[u64]) -> Result<(), StoreError> {
        let scope = KillScope::run(&run.agent, &run.id);
        self.change(|writer, snapshot| {
            if snapshot.kills.of_scope(&scope).is_none() {
                return (Ok(()), false);
            }
            let written = writer.in_transaction(|transaction, stamper| {
                if table::insert_clues(transaction, &scope, clues)? > 0 {
                    stamper.renew(transaction, RowName::kill(&scope), false)?;
                }
                Ok(())
            });
            (written, false)
        })
    }

    /// Takes a kill back by its id. Gives what was taken back.
    ///
    /// # Errors
    /// When it cannot be written; then the kill stays.
    pub fn lift(&self, id: &str) -> Result<Option<Arc<Kill>>, StoreError> {
        let scope = self.snapshot().kills.iter().find(|kill| kill.id == id).map(|kill| kill.scope.clone());
        let Some(scope) = scope else { return Ok(None) };
        self.change(|writer, snapshot| {
            let written = writer.in_transaction(|transaction, stamper| {
                table::delete_kill(transaction, &scope)?;
                stamper.renew(transaction, RowName::kill(&scope), true)
            });
            if let Err(error) = written {
                return (Err(error), false);
            }
            writer.forget(&scope);
            (Ok(snapshot.kills.remove(&scope)), true)
        })
    }

    /// Lets a run go on from where it stands: takes its kill back and marks the place. Gives what was taken back;
    /// nothing changes where there was no kill.
    ///
    /// # Errors
    /// When it cannot be written; then the kill stays.
    pub fn resume(&self, run: &RunKey, mark: Mark) -> Result<Option<Arc<Kill>>, StoreError> {
        let scope = KillScope::run(&run.agent, &run.id);
        self.change(|writer, snapshot| {
            if snapshot.kills.of_scope(&scope).is_none() {
                return (Ok(None), false);
            }
            let excess = (snapshot.marks.len() + 1).saturating_sub(self.bounds.marks);
            let written = writer.in_transaction(|transaction, stamper| {
                table::delete_kill(transaction, &scope)?;
                stamper.renew(transaction, RowName::kill(&scope), true)?;
                table::insert_mark(transaction, run, mark)?;
                stamper.renew(transaction, RowName::mark(run), false)?;
                table::delete_oldest_marks(transaction, excess)
            });
            match written {
                Ok(gone) => {
                    let marks = Arc::make_mut(&mut snapshot.marks);
                    marks.retain(|run, _| !gone.contains(run));
                    marks.insert(run.clone(), mark);
                    writer.forget(&scope);
                    (Ok(snapshot.kills.remove(&scope)), true)
                }
                Err(error) => (Err(error), false),
            }
        })
    }

    /// Changes where an agent stands, and gives that.
    ///
    /// # Errors
    /// When there are too many agents, or when it cannot be written. A deactivation is never one too many, and one that
    /// cannot be written holds until the process ends.
    pub fn set_agent(
        &self,
        agent: &AgentName,
        change: impl FnOnce(&AgentStanding) -> AgentStanding,
    ) -> Result<Arc<AgentStanding>, StoreError> {
        self.change(|writer, snapshot| {
            let known = snapshot.agents.get(agent);
            let standing = Arc::new(change(&known.map(|known| (**known).clone()).unwrap_or_default()));
            // Stopping something is never refused for want of room.
            if standing.active && known.is_none() && snapshot.agents.len() >= self.bounds.agents {
                return (Err(StoreError::Full { what: "agents", most: self.bounds.agents }), false);
            }
            // Each part has a stamp of its own: a policy that is set here must not bring back an agent that another node stops.
            let is_standing_new = known
                .is_some_and(|known| foreign::standing_of(known) != foreign::standing_of(&standing))
                || known.is_none() && foreign::standing_of(&standing) != AgentStanding::default();
            let is_policy_new = known.is_none_or(|known| foreign::policy_of(known) != foreign::policy_of(&standing));
            let row = |kind| RowName::new(kind, agent.as_str());
            let written = writer.in_transaction(|transaction, stamper| {
                table::insert_agent(transaction, agent, &standing)?;
                if is_standing_new {
                    stamper.renew(transaction, row(RowKind::Standing), false)?;
                }
                if is_policy_new {
                    stamper.renew(transaction, row(RowKind::Policy), false)?;
                }
                Ok(())
            });
            let is_kept = written.is_ok() || !standing.active;
            if written.is_err() && is_kept {
                writer.hold(row(RowKind::Standing));
            }
            if is_kept {
                Arc::make_mut(&mut snapshot.agents).insert(agent.clone(), standing.clone());
            }
            (written.map(|()| standing), is_kept)
        })
    }

    /// Adds to what an account has spent at a moment, or takes from it. Gives what was added at that moment in all.
    ///
    /// # Errors
    /// When it cannot be written; then nothing changes.
    pub fn adjust(&self, account: &AccountId, at: Timestamp, amount: NanoUsd) -> Result<NanoUsd, StoreError> {
        self.change(|writer, snapshot| {
            let written = writer.in_transaction(|transaction, stamper| {
                // Others add to theirs.
                let node = stamper.node.clone();
                let own = table::adjustment(transaction, account, at, &node)?.0.saturating_add(amount.0);
                table::insert_adjustment(transaction, account, at, &node, NanoUsd(own))?;
                stamper.renew(transaction, RowName::adjustment(account, at, &node), false)?;
                table::delete_oldest_adjustments(transaction, self.bounds.adjustments, Some((account, at)))
            });
            match written {
                Ok(gone) => {
                    snapshot.remove_adjustments(gone);
                    snapshot.add_adjustment(account, at, amount);
                    (Ok(snapshot.adjustment_at(account, at)), true)
                }
                Err(error) => (Err(error), false),
            }
        })
    }

    /// The clues that lead to killed runs, those of the latest kills first, at most so many.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn clues(&self, most: usize) -> Result<Vec<(RunKey, Vec<u64>)>, StoreError> {
        with_lock(&self.writer, |writer| table::read_clues(&writer.connection, most))
            .map_err(StoreError::database("be read"))
    }

    /// One change at a time: `work` changes a copy of the snapshot, and says whether it takes the place of the old one.
    fn change<T>(
        &self,
        work: impl FnOnce(&mut Writer, &mut Snapshot) -> (Result<T, StoreError>, bool),
    ) -> Result<T, StoreError> {
        with_lock(&self.writer, |writer| {
            let mut snapshot = (*self.snapshot.load_full()).clone();
            let (result, is_changed) = work(writer, &mut snapshot);
            let changed = writer.stamper.take_changed();
            if let Some(unshared) = self.unshared.get().filter(|_| !changed.is_empty()) {
                unshared.add(changed);
            }
            if is_changed {
                snapshot.generation += 1;
                let generation = snapshot.generation;
                self.snapshot.store(Arc::new(snapshot));
                (self.on_change)(generation);
            }
            result
        })
    }
}
