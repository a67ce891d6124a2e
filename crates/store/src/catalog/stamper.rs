//! Stamps on what is changed here, so that nodes that share a catalog agree on whose change counts.
//!
//! A stamp is written in the transaction of its row. A stop that the disk refuses holds in memory, and so does its stamp: other
//! nodes must hear of it all the same.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::shared_catalog::row::{RowName, Stamp};
use crate::shared_catalog::stamps;

pub(super) struct Stamper {
    /// This node, as stamps name it.
    pub(super) node: String,
    /// Stamps that the disk refused, with what they are of. Never more than there are stops in memory only.
    unstored: HashMap<RowName, Stamp>,
    /// Rows stamped in the transaction that is under way.
    stamped: Vec<RowName>,
    /// Those of them that were changed here: the others shall hear of it.
    changed: Vec<RowName>,
}

impl Stamper {
    pub(super) fn new() -> Stamper {
        Stamper { node: stamps::new_node(), unstored: HashMap::new(), stamped: Vec::new(), changed: Vec::new() }
    }

    /// A row was changed here, or taken away.
    pub(super) fn renew(&mut self, connection: &Connection, row: RowName, is_gone: bool) -> rusqlite::Result<()> {
        let stored = stamps::of(connection, &row)?;
        let known = latest(stored.as_ref(), self.unstored.get(&row));
        stamps::set(connection, &row, &stamps::next(known, &self.node, is_gone))?;
        self.stamped.push(row.clone());
        self.changed.push(row);
        Ok(())
    }

    /// Writes the stamp of a row that the disk refused before.
    pub(super) fn store_late(&mut self, connection: &Connection, row: RowName) -> rusqlite::Result<()> {
        match self.unstored.get(&row).cloned() {
            Some(stamp) => self.adopt(connection, row, &stamp),
            None => self.renew(connection, row, false),
        }
    }

    /// A row was changed elsewhere.
    pub(super) fn adopt(&mut self, connection: &Connection, row: RowName, stamp: &Stamp) -> rusqlite::Result<()> {
        stamps::set(connection, &row, stamp)?;
        self.stamped.push(row);
        Ok(())
    }

    /// The disk refused a stop that was ordered here, and it holds in memory.
    pub(super) fn hold(&mut self, connection: &Connection, row: RowName) {
        let stored = stamps::of(connection, &row).ok().flatten();
        let stamp = stamps::next(latest(stored.as_ref(), self.unstored.get(&row)), &self.node, false);
        self.unstored.insert(row.clone(), stamp);
        self.changed.push(row);
    }

    /// The same of a stop that was ordered elsewhere.
    pub(super) fn hold_foreign(&mut self, row: RowName, stamp: Stamp) {
        self.unstored.insert(row, stamp);
    }

    /// Whether a foreign stamp takes the place of what is on disk, and of what only memory has.
    pub(super) fn lets_in(&self, connection: &Connection, row: &RowName, stamp: &Stamp) -> rusqlite::Result<bool> {
        let is_overtaken = self.unstored.get(row).is_some_and(|held| held.beats(Some(stamp)));
        Ok(!is_overtaken && stamp.beats(stamps::of(connection, row)?.as_ref()))
    }

    /// The stamp of a row.
    pub(super) fn of(&self, connection: &Connection, row: &RowName) -> rusqlite::Result<Option<Stamp>> {
        let stored = stamps::of(connection, row)?;
        Ok(latest(stored.as_ref(), self.unstored.get(row)).cloned())
    }

    /// Stamps of orders that were given here and are not on disk.
    pub(super) fn held(&self) -> impl Iterator<Item = (&RowName, &Stamp)> {
        self.unstored.iter().filter(|(_, stamp)| stamp.node == self.node)
    }

    /// A row left that was in memory only.
    pub(super) fn forget(&mut self, row: &RowName) {
        self.unstored.remove(row);
    }

    pub(super) fn committed(&mut self) {
        for row in self.stamped.drain(..) {
            self.unstored.remove(&row);
        }
    }

    pub(super) fn rolled_back(&mut self) {
        self.stamped.clear();
        self.changed.clear();
    }

    /// What was changed here since this was last asked.
    pub(super) fn take_changed(&mut self) -> Vec<RowName> {
        std::mem::take(&mut self.changed)
    }
}

fn latest<'a>(stored: Option<&'a Stamp>, held: Option<&'a Stamp>) -> Option<&'a Stamp> {
    held.filter(|held| held.beats(stored)).or(stored)
}
