//! Reading the shared history: what all nodes have put on record, with the answers of the embedded one.
//!
//! Every value travels as a parameter of its own, never inside a query. A reader sees what nodes have sent; an event that
//! was sent twice may stand in a table twice, and is told once.

mod agents;
mod event_row;
mod events;
mod evidence;
mod findings;
mod question;
mod run_rows;
mod run_totals;
mod runs;
mod series;
mod shadow;
mod shadow_runs;
#[cfg(test)]
mod speed;
mod spent;
mod stops;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use sprag_core::limits::PAGE_ROWS;

use super::link::Link;
use crate::error::StoreError;
use question::Question;

/// Asks the server.
pub(in crate::history) struct Reader {
    link: Arc<Link>,
}

/// An answer that nobody waits for any more is not worked on. Numbers come as numbers.
const SETTINGS: &str = "max_execution_time = 10, cancel_http_readonly_queries_on_client_close = 1, \
    output_format_json_quote_64bit_integers = 0";

/// Many runs at once are looked for in all events of a time; to ask the index of runs for each of them costs more.
const WITHOUT_INDEX_OF_RUNS: &str = ", ignore_data_skipping_indices = 'of_run'";

/// The largest sum that is told. A plain sum would start again from the smallest number beyond it, so sums are made in twice the width.
const MOST: &str = "9223372036854775807";

impl Reader {
    pub(super) fn new(link: Arc<Link>) -> Reader {
        Reader { link }
    }

    /// The rows of an answer.
    fn ask<T: DeserializeOwned>(&self, sql: &str, question: &Question) -> Result<Vec<T>, StoreError> {
        self.ask_with(sql, "", question)
    }

    /// The same with settings of its own, each with a comma in front.
    fn ask_with<T: DeserializeOwned>(
        &self,
        sql: &str,
        settings: &str,
        question: &Question,
    ) -> Result<Vec<T>, StoreError> {
        let sql = format!("{sql} SETTINGS {SETTINGS}{settings} FORMAT JSONEachRow");
        let answer = self.link.select(&sql, question.params())?;
        let lines = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).map_err(unreadable)).collect()
    }

    /// The first row of an answer.
    fn ask_one<T: DeserializeOwned>(&self, sql: &str, question: &Question) -> Result<Option<T>, StoreError> {
        Ok(self.ask::<T>(sql, question)?.into_iter().next())
    }
}

fn unreadable(error: serde_json::Error) -> StoreError {
    StoreError::Database {
        action: "be read",
        message: format!(
            "ClickHouse holds a row that this version does not understand ({error}); run the same version on every node"
        ),
        may_pass: false,
    }
}

/// Between one row and the largest page.
fn page_rows(limit: u32) -> usize {
    limit.clamp(1, PAGE_ROWS) as usize
}

/// A sum of money or tokens over nodes, which stays at the largest number.
fn sum_of(column: &str) -> String {
    format!("toInt64(least(sum(toInt128({column})), {MOST}))")
}

fn bad_cursor(text: &str) -> StoreError {
    StoreError::BadCursor(text.chars().take(64).collect())
}
