//! The one hand that writes the catalog, and what the disk has refused it so far.
//!
//! A kill that could not be written holds in memory. It is tried again when somebody asks for it again, and with the
//! next kill of anything: nobody asks twice for what Sprag stopped by itself.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use sprag_core::limits::{KILL_CLUES, UNWRITTEN_CLUES};
use sprag_core::policy::{Kill, KillScope};
use sprag_core::time::Timestamp;

use super::snapshot::Snapshot;
use super::stamper::Stamper;
use super::table;
use crate::error::StoreError;
use crate::shared_catalog::row::RowName;

pub(super) struct Writer {
    pub(super) connection: Connection,
    /// Who changed what last.
    pub(super) stamper: Stamper,
    /// Scopes whose kill is in memory only, with the clues to it. Never more than there are kills.
    unwritten: HashMap<KillScope, Vec<u64>>,
}

impl Writer {
    pub(super) fn new(connection: Connection) -> Writer {
        Writer { connection, stamper: Stamper::new(), unwritten: HashMap::new() }
    }

    pub(super) fn is_unwritten(&self, scope: &KillScope) -> bool {
        self.unwritten.contains_key(scope)
    }

    /// The kill of this scope was taken back.
    pub(super) fn forget(&mut self, scope: &KillScope) {
        self.unwritten.remove(scope);
    }

    /// The disk refused a stop that is ordered here; other nodes hear of it nevertheless.
    pub(super) fn hold(&mut self, row: RowName) {
        self.stamper.hold(&self.connection, row);
    }

    pub(super) fn in_transaction<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>, &mut Stamper) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        in_transaction(&mut self.connection, &mut self.stamper, work)
    }

    /// Puts a kill into the snapshot and on disk; what is over and the oldest runs beyond `most_runs` leave both.
    pub(super) fn put_kill(
        &mut self,
        snapshot: &mut Snapshot,
        kill: &Arc<Kill>,
        clues: &[u64],
        now: Timestamp,
        most_runs: usize,
    ) -> Result<(), StoreError> {
        snapshot.kills.insert(kill.clone());
        let mut excess = snapshot.kills.run_count().saturating_sub(most_runs);
        let waiting = self.waiting(snapshot);
        let written = in_transaction(&mut self.connection, &mut self.stamper, |transaction, stamper| {
            for (kill, clues) in &waiting {
                table::insert_kill(transaction, kill, clues)?;
                stamper.store_late(transaction, RowName::kill(&kill.scope))?;
            }
            let mut gone = table::delete_expired(transaction, now)?;
            table::insert_kill(transaction, kill, clues)?;
            stamper.renew(transaction, RowName::kill(&kill.scope), false)?;
            if !waiting.is_empty() {
                // While the disk refused, runs left the memory that are still on disk.
                excess = table::count_runs(transaction)?.saturating_sub(most_runs);
            }
            gone.extend(table::delete_oldest_runs(transaction, excess)?);
            Ok(gone)
        });
        match &written {
            Ok(gone) => {
                self.unwritten.clear();
                // An earlier kill of the same scope may be among what is over.
                for scope in gone.iter().filter(|scope| **scope != kill.scope) {
                    snapshot.kills.remove(scope);
                }
            }
            Err(_) => {
                self.remember(&kill.scope, clues);
                self.hold(RowName::kill(&kill.scope));
                self.forget_oldest_runs(snapshot, &kill.scope, most_runs);
            }
        }
        if excess > 0 {
            tracing::warn!(kills = excess, "the oldest kills of runs were forgotten: there are too many");
        }
        written.map(drop)
    }

    /// What was refused before, the oldest first.
    fn waiting(&self, snapshot: &Snapshot) -> Vec<(Arc<Kill>, Vec<u64>)> {
        let kill_of = |scope| snapshot.kills.of_scope(scope).cloned();
        let mut waiting: Vec<_> =
            self.unwritten.iter().filter_map(|(scope, clues)| Some((kill_of(scope)?, clues.clone()))).collect();
        waiting.sort_by(|(a, _), (b, _)| (a.at, &a.id).cmp(&(b.at, &b.id)));
        waiting
    }

    pub(super) fn remember(&mut self, scope: &KillScope, clues: &[u64]) {
        let known: usize = self.unwritten.values().map(Vec::len).sum();
        let kept = self.unwritten.entry(scope.clone()).or_default();
        let room = UNWRITTEN_CLUES.saturating_sub(known).min(KILL_CLUES.saturating_sub(kept.len()));
        let new: Vec<u64> = clues.iter().copied().filter(|clue| !kept.contains(clue)).take(room).collect();
        kept.extend(new);
    }

    fn forget_oldest_runs(&mut self, snapshot: &mut Snapshot, except: &KillScope, most: usize) {
        while snapshot.kills.run_count() > most {
            let others = snapshot.kills.iter().filter(|kill| kill.run().is_some() && kill.scope != *except);
            let oldest = others.min_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id))).map(|kill| kill.scope.clone());
            let Some(scope) = oldest else { return };
            snapshot.kills.remove(&scope);
            self.unwritten.remove(&scope);
            self.stamper.forget(&RowName::kill(&scope));
        }
    }
}

fn in_transaction<T>(
    connection: &mut Connection,
    stamper: &mut Stamper,
    work: impl FnOnce(&Transaction<'_>, &mut Stamper) -> rusqlite::Result<T>,
) -> Result<T, StoreError> {
    let written = (|| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = work(&transaction, stamper)?;
        transaction.commit()?;
        Ok(value)
    })();
    match &written {
        Ok(_) => stamper.committed(),
        Err(_) => stamper.rolled_back(),
    }
    written.map_err(StoreError::database("be written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clues_of_what_was_refused_are_bounded() {
        let mut writer = Writer::new(Connection::open_in_memory().unwrap());
        let scope = |n: usize| -> KillScope { format!("run:bot/{n}").parse().unwrap() };
        let clues: Vec<u64> = (0..=KILL_CLUES as u64).collect();
        let full = UNWRITTEN_CLUES / KILL_CLUES;
        for n in 0..full {
            writer.remember(&scope(n), &clues);
        }
        writer.remember(&scope(0), &[u64::MAX]);
        assert_eq!(writer.unwritten[&scope(0)].len(), KILL_CLUES);
        assert_eq!(writer.unwritten[&scope(full - 1)].len(), KILL_CLUES);
        writer.remember(&scope(full), &clues);
        assert!(writer.unwritten[&scope(full)].is_empty(), "no room for its clues");
        assert!(writer.is_unwritten(&scope(full)), "but it is not forgotten");
    }
}
