//! A month of ten million events of a million runs, 500 agents and three nodes, as statements for ClickHouse.
//!
//! They write what nodes would have sent, the events and all sums, into tables that a node has made. For tests that measure
//! how long readings and pages take: to fill it takes minutes, so it can be kept in a folder, which `SPRAG_HISTORY_DIR` names.

use std::path::PathBuf;

use sprag_core::time::Timestamp;

/// Events of the month.
pub const EVENTS: i64 = 10_000_000;
/// Says how many events there are, and when the first of them began.
pub const FIND: &str = "SELECT count(), min(at) FROM events FORMAT TSV";

const BATCH: i64 = 250_000;
const DAY_MS: i64 = 86_400_000;
/// Sums by the minute are kept for two days, by the server's clock: a month that ended before tells nothing of its last hour.
const FRESH_MS: i64 = DAY_MS / 2;
const KEPT_IN: &str = "SPRAG_HISTORY_DIR";

/// When it was.
#[derive(Clone, Copy, Debug)]
pub struct Month {
    start: i64,
}

impl Month {
    /// The one that ends now.
    #[must_use]
    pub fn until(now: Timestamp) -> Month {
        Month { start: now.0 - EVENTS * 2592 / 10 }
    }

    /// The one that is there, as [`FIND`] tells it; none where it is not whole, or over for so long that it is to be filled anew.
    #[must_use]
    pub fn found(answer: &str, now: Timestamp) -> Option<Month> {
        let (events, start) = answer.trim().split_once('\t')?;
        let month = Month { start: start.parse().ok()? };
        // A node that looked at it may have added something of its own.
        let is_whole = events.parse::<i64>().ok()? >= EVENTS;
        (is_whole && now.0 - month.end().0 < FRESH_MS).then_some(month)
    }

    /// When the event of a number begins; the one before it is over.
    #[must_use]
    pub fn at_of(self, number: i64) -> Timestamp {
        Timestamp(self.start + number * 2592 / 10)
    }

    /// Its last moment.
    #[must_use]
    pub fn end(self) -> Timestamp {
        self.at_of(EVENTS - 1)
    }

    /// What fills it, to be run one after the other in a database whose tables are there and empty.
    pub fn statements(self) -> impl Iterator<Item = String> {
        let batches = (0..EVENTS).step_by(BATCH as usize).flat_map(move |first| {
            let events = include_str!("../clickhouse/month/events.sql").replace("{start}", &self.start.to_string());
            let events = events.replace("{first}", &first.to_string()).replace("{count}", &BATCH.to_string());
            let (from, until) = (self.at_of(first).0, self.at_of(first + BATCH).0);
            [events, between(include_str!("../clickhouse/month/runs.sql"), from, until)]
        });
        let days = self.start / DAY_MS..=self.end().0 / DAY_MS;
        let sums = days.flat_map(|day| {
            let statements = include_str!("../clickhouse/month/sums.sql").split(';');
            statements.map(move |statement| between(statement, day * DAY_MS, (day + 1) * DAY_MS))
        });
        let agents = include_str!("../clickhouse/month/agents.sql").to_owned();
        let nodes = "INSERT INTO nodes SELECT 'node-' || toString(number), 1, '' FROM numbers(3)".to_owned();
        batches.chain(sums).chain([agents, nodes])
    }
}

/// Where the month is kept for the next time; none where nobody said.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    std::env::var_os(KEPT_IN).map(PathBuf::from)
}

fn between(sql: &str, from: i64, until: i64) -> String {
    sql.replace("{from}", &from.to_string()).replace("{until}", &until.to_string())
}
