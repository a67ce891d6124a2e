//! Values for the parameters of a statement, one after the other: for statements that take many rows.

use rusqlite::{Statement, ToSql};
use serde::Serialize;

use super::rows::json;

pub(super) struct Values<'s, 'c> {
    statement: &'s mut Statement<'c>,
    /// The number of the parameter that was bound last.
    last: usize,
}

impl<'s, 'c> Values<'s, 'c> {
    pub(super) fn of(statement: &'s mut Statement<'c>) -> Values<'s, 'c> {
        Values { statement, last: 0 }
    }

    /// Binds the next parameter.
    fn put(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.last += 1;
        self.statement.raw_bind_parameter(self.last, value)
    }

    /// Leaves the next parameter as it was bound before.
    fn keep(&mut self) {
        self.last += 1;
    }
}

/// The values of one of many rows. Where the statement holds the value already, because the row that stood in this place before had the same, it is not
/// bound again: rows that follow each other have most values in common.
pub(super) struct Row<'r, 'v, 's, 'c, R> {
    values: &'v mut Values<'s, 'c>,
    row: &'r R,
    /// The row whose values the statement holds.
    held: Option<&'r R>,
    word: &'v mut Vec<u8>,
}

impl<'r, 'v, 's, 'c, R> Row<'r, 'v, 's, 'c, R> {
    /// `word` is room for the words of enums.
    pub(super) fn new(
        values: &'v mut Values<'s, 'c>,
        row: &'r R,
        held: Option<&'r R>,
        word: &'v mut Vec<u8>,
    ) -> Row<'r, 'v, 's, 'c, R> {
        Row { values, row, held, word }
    }

    pub(super) fn put<T: ToSql + PartialEq>(&mut self, part: impl Fn(&'r R) -> T) -> rusqlite::Result<()> {
        let value = part(self.row);
        if self.held.is_some_and(|held| part(held) == value) {
            self.values.keep();
            return Ok(());
        }
        self.values.put(value)
    }

    /// The word that an enum's value is written as.
    pub(super) fn put_word<T: Serialize + PartialEq>(
        &mut self,
        part: impl Fn(&'r R) -> Option<T>,
    ) -> rusqlite::Result<()> {
        let value = part(self.row);
        if self.held.is_some_and(|held| part(held) == value) {
            self.values.keep();
            return Ok(());
        }
        self.values.put(value.map(|value| word_in(self.word, &value)))
    }

    /// What few rows have, as JSON.
    pub(super) fn put_json<T: Serialize + 'r>(
        &mut self,
        part: impl Fn(&'r R) -> Option<&'r T>,
    ) -> rusqlite::Result<()> {
        let value = part(self.row);
        if value.is_none() && self.held.is_some_and(|held| part(held).is_none()) {
            self.values.keep();
            return Ok(());
        }
        self.values.put(json(value))
    }
}

/// The word that an enum's value is written as, in a buffer that serves for many.
fn word_in<'a>(buffer: &'a mut Vec<u8>, value: &impl Serialize) -> &'a str {
    buffer.clear();
    // A value that is no word leaves nothing, which no reader takes for one.
    let _ = serde_json::to_writer(&mut *buffer, value);
    str::from_utf8(buffer).unwrap_or_default().trim_matches('"')
}

/// So many rows like one.
pub(super) fn rows_of(row: &str, rows: usize) -> String {
    vec![format!("({row})"); rows].join(", ")
}
