//! Values for the parameters of a statement, one after the other: for statements that take many rows.

use rusqlite::{Statement, ToSql};
use serde::Serialize;

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
    pub(super) fn put(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.last += 1;
        self.statement.raw_bind_parameter(self.last, value)
    }
}

/// The word that an enum's value is written as, in a buffer that serves for many.
pub(super) fn word_in<'a>(buffer: &'a mut Vec<u8>, value: &impl Serialize) -> &'a str {
    buffer.clear();
    // A value that is no word leaves nothing, which no reader takes for one.
    let _ = serde_json::to_writer(&mut *buffer, value);
    str::from_utf8(buffer).unwrap_or_default().trim_matches('"')
}

/// Places for so many rows of so many values.
pub(super) fn rows_of(values: usize, rows: usize) -> String {
    let row = format!("({})", vec!["?"; values].join(", "));
    vec![row; rows].join(", ")
}
