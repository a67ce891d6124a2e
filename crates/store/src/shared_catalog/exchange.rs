//! Everything is compared: at the start, after every loss of the connection, when Redis has lost its memory, and now and then.
//!
//! Only stamps of this node's own rows are in memory meanwhile. Rows of Redis come a few hundred at a time.

use std::collections::HashMap;
use std::sync::Arc;

use sprag_core::limits::{SHARED_BATCH, SHARED_ROWS};

use super::link::{SharedCatalog, Trouble};
use super::redis_side::{Position, RedisSide};
use super::row::{self, Row, RowKind, RowName, Stamp};
use super::stamps;

/// What is to be done about a row of Redis.
enum Found {
    /// It is later than the one here, or new.
    Theirs(Row),
    /// The one here is later. Theirs may say nevertheless that a key was taken back.
    Mine(Option<Row>),
    /// Both are the same.
    Same,
    /// It left so long ago that nobody has to know.
    Over,
    /// It cannot be read. One here takes its place.
    Unreadable,
}

impl SharedCatalog {
    /// Compares everything. Gives the place in the log from where to go on.
    pub(super) async fn exchange(self: &Arc<Self>, redis: &mut RedisSide) -> Result<Position, Trouble> {
        let forgotten = self.blocking(|link| Ok(link.catalog.forget_gone()? + link.outbox.forget_gone()?)).await;
        if let Err(error) = forgotten {
            tracing::warn!(%error, "what was taken away long ago could not be forgotten");
        }
        // What is changed from now on is in the log.
        let position = redis.begin().await?;
        for kind in RowKind::ALL {
            self.exchange_kind(redis, kind).await?;
        }
        Ok(position)
    }

    async fn exchange_kind(self: &Arc<Self>, redis: &mut RedisSide, kind: RowKind) -> Result<(), Trouble> {
        let stamps = self.blocking(move |link| match kind.is_of_alerts() {
            true => link.outbox.stamps(kind),
            false => link.catalog.stamps(kind),
        });
        let mut here: HashMap<String, Stamp> = stamps.await?.into_iter().collect();
        let mut to_give: Vec<RowName> = Vec::new();
        let (mut cursor, mut read) = (0, 0);
        loop {
            let scanned = redis.scan(kind, cursor).await?;
            let mut to_take = Vec::new();
            for (name, text) in scanned.rows {
                read += 1;
                let (name, found) = self.compare(kind, name, &text, &here);
                match found {
                    Found::Theirs(row) => to_take.push(row),
                    Found::Mine(row) => {
                        to_take.extend(row);
                        to_give.push(name.clone());
                    }
                    Found::Over => redis.forget(&name, &text).await?,
                    Found::Same => {}
                    Found::Unreadable => continue,
                }
                here.remove(&name.name);
            }
            self.take(to_take).await;
            cursor = scanned.cursor;
            if cursor == 0 {
                break;
            }
            if read >= SHARED_ROWS {
                tracing::error!(kind = kind.as_str(), most = SHARED_ROWS, "there are more shared rows than are read");
                break;
            }
        }
        // The rest is what Redis does not have.
        to_give.extend(here.into_keys().map(|name| RowName { kind, name }));
        for names in to_give.chunks(SHARED_BATCH) {
            self.put(redis, names.to_vec()).await?;
        }
        Ok(())
    }

    fn compare(&self, kind: RowKind, name: Vec<u8>, text: &[u8], here: &HashMap<String, Stamp>) -> (RowName, Found) {
        let name = match String::from_utf8(name) {
            Ok(name) => RowName { kind, name },
            Err(error) => {
                self.notes.unreadable(kind.as_str(), error.as_bytes(), &row::Unreadable::Form);
                return (RowName::new(kind, String::new()), Found::Unreadable);
            }
        };
        let complain = |why: row::Unreadable| {
            self.notes.unreadable(kind.as_str(), name.name.as_bytes(), &why);
            Found::Unreadable
        };
        let theirs = match row::read_stamp(text) {
            Ok((stamp, _)) => stamp,
            Err(why) => {
                let found = complain(why);
                return (name, found);
            }
        };
        let mine = here.get(&name.name);
        let is_over = theirs.gone_at.is_some_and(|gone_at| gone_at < stamps::now_ms() - stamps::gone_row_ms());
        let found = if is_over && mine.is_none() {
            Found::Over
        } else if theirs.beats(mine) {
            row::read(name.clone(), text).map_or_else(complain, Found::Theirs)
        } else if mine.is_some_and(|mine| mine.beats(Some(&theirs))) {
            let says_more = matches!(kind, RowKind::Key | RowKind::Token);
            Found::Mine(says_more.then(|| row::read(name.clone(), text).ok()).flatten())
        } else {
            Found::Same
        };
        (name, found)
    }
}
