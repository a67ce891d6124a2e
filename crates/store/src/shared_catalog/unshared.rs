//! Changes made on this node that the others do not have yet. Only names: what is in a row is read when it goes out, so many
//! changes of one row are one.

use std::collections::BTreeSet;
use std::sync::Mutex;

use sprag_core::limits::UNSHARED_CHANGES;
use tokio::sync::Notify;

use super::row::RowName;
use crate::shards::with_lock;

/// What is to go out.
#[derive(Debug, Default)]
pub struct Unshared {
    waiting: Mutex<Waiting>,
    told: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    rows: BTreeSet<RowName>,
    /// There were more than can be named: everything is compared.
    is_everything: bool,
}

/// The next part of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// These rows; none where all others have everything.
    Rows(Vec<RowName>),
    /// Too many to be named.
    Everything,
}

impl Unshared {
    /// Lets rows go out.
    pub(crate) fn add(&self, rows: impl IntoIterator<Item = RowName>) {
        with_lock(&self.waiting, |waiting| {
            waiting.rows.extend(rows);
            if waiting.rows.len() > UNSHARED_CHANGES {
                waiting.rows.clear();
                waiting.is_everything = true;
            }
        });
        self.told.notify_one();
    }

    /// What goes out next, at most so many rows. Whoever takes them and fails gives them back with `add`.
    pub(super) fn take(&self, most: usize) -> Next {
        with_lock(&self.waiting, |waiting| {
            if std::mem::take(&mut waiting.is_everything) {
                return Next::Everything;
            }
            Next::Rows(std::iter::from_fn(|| waiting.rows.pop_first()).take(most).collect())
        })
    }

    /// Waits until there is something.
    pub(super) async fn told(&self) {
        self.told.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::RowKind;
    use super::*;

    fn row(number: usize) -> RowName {
        RowName::new(RowKind::Key, format!("{number:06}"))
    }

    #[test]
    fn rows_are_named_once_and_as_many_as_there_is_room_for() {
        let unshared = Unshared::default();
        unshared.add([row(2), row(1), row(2)]);
        assert_eq!(unshared.take(1), Next::Rows(vec![row(1)]));
        assert_eq!(unshared.take(9), Next::Rows(vec![row(2)]));
        unshared.add((0..UNSHARED_CHANGES).map(row));
        assert!(matches!(unshared.take(1), Next::Rows(rows) if rows.len() == 1), "at the bound");
        unshared.add((0..=UNSHARED_CHANGES).map(row));
        assert_eq!(unshared.take(1), Next::Everything, "one past it");
        assert_eq!(unshared.take(1), Next::Rows(Vec::new()));
    }
}
