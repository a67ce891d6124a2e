//! What scripts are given: one packed table each, with the names that the scripts use. The scripts that every call waits for are given
//! values one after the other instead, and the keys that they read: tables take Redis longer than anything else.

mod begin;
mod end;

use std::collections::BTreeMap;

use serde::Serialize;
use sprag_core::event::RunOrigin;
use sprag_core::money::NanoUsd;
use sprag_core::policy::Span;
use sprag_core::time::Timestamp;

use super::heard::Heard;
use crate::state::RunTotals;

pub(super) use self::begin::{AncestorTable, BeginTable, ClueTable, HaveTable, RepeatTable, RunTable};
pub(super) use self::end::{EndTable, HowTable};

/// The largest number that scripts count with exactly.
const MOST: i64 = (1 << 53) - 1;

/// A number as scripts can hold it. What is larger, such as the end of all time, is as good as that.
pub(super) fn bounded(number: i64) -> i64 {
    number.clamp(-MOST, MOST)
}

pub(super) fn amount(money: NanoUsd) -> i64 {
    bounded(money.0)
}

/// Packs a table.
pub(super) fn pack(table: &impl Serialize) -> Vec<u8> {
    // Plain values of bounded size: there is nothing that could not be packed.
    rmp_serde::to_vec_named(table).unwrap_or_default()
}

/// Whether it says nothing: scripts take what is absent for none.
fn is_none<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Hashes one after the other, as their keys have them.
fn hexes(numbers: &[u64]) -> String {
    let mut text = String::with_capacity(16 * numbers.len());
    numbers.iter().for_each(|number| push_hex(&mut text, *number));
    text
}

/// A hash or a version: scripts have no numbers of 64 bits, and no bytes in tables.
pub(super) fn hex(number: u64) -> String {
    let mut text = String::with_capacity(16);
    push_hex(&mut text, number);
    text
}

fn push_hex(text: &mut String, number: u64) {
    text.extend(
        number
            .to_be_bytes()
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
    );
}

/// Values one after the other.
#[derive(Default)]
struct Stream(Vec<u8>);

impl Stream {
    fn put(mut self, value: &impl Serialize) -> Stream {
        let mut packing = rmp_serde::Serializer::new(&mut self.0).with_struct_map();
        // As with a table.
        let _ = value.serialize(&mut packing);
        self
    }
}

/// The place of what no script reads, among the arguments: the table is the first.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Blob(usize);

impl Blob {
    pub(super) fn put(blobs: &mut Vec<Vec<u8>>, bytes: Vec<u8>) -> Blob {
        blobs.push(bytes);
        Blob(blobs.len() + 1)
    }
}

/// What every script needs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Head {
    pub(super) p: String,
    pub(super) call: String,
    pub(super) node: String,
    /// For what begins now: a generation of its own.
    pub(super) fresh: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) now: Option<i64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct RateTable {
    /// The place in the list that was asked.
    pub(super) i: usize,
    pub(super) k: String,
    pub(super) a: u64,
    pub(super) l: u64,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) shadow: bool,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) tokens: bool,
    /// The window; absent for a bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) w: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) burst: Option<f64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct MoneyTable {
    pub(super) amount: i64,
    pub(super) least: i64,
    pub(super) force: PurseTable,
    #[serde(skip_serializing_if = "PurseTable::is_empty")]
    pub(super) shadow: PurseTable,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct PurseTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) runs: Option<RunsTable>,
    pub(super) draws: Vec<DrawTable>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct RunsTable {
    pub(super) kind: &'static str,
    pub(super) l: i64,
    pub(super) e: i64,
}

/// An account, with what this node has heard of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DrawTable {
    /// The place in the list that was asked.
    pub(super) i: usize,
    pub(super) k: String,
    pub(super) l: i64,
    pub(super) f: i64,
    pub(super) e: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) heard: Option<Heard>,
    /// Of a node alone: what it spent.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) spent: i64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct WatchTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) based: Option<String>,
    /// Its version, then the bytes.
    pub(super) value: Blob,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct ReserveTable {
    #[serde(flatten)]
    pub(super) head: Head,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    pub(super) money: MoneyTable,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) corrections: BTreeMap<String, i64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct RaiseTable {
    #[serde(flatten)]
    pub(super) head: Head,
    pub(super) amount: i64,
    pub(super) draws: Vec<DrawTable>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct GiveBackTable {
    #[serde(flatten)]
    pub(super) head: Head,
    pub(super) rates: bool,
    pub(super) force: bool,
    pub(super) shadow: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct AccountTable {
    #[serde(flatten)]
    pub(super) head: Head,
    pub(super) k: String,
    pub(super) what: &'static str,
    pub(super) amount: i64,
    pub(super) f: i64,
    pub(super) e: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) heard: Option<Heard>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct PutTable {
    #[serde(flatten)]
    pub(super) head: Head,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    pub(super) watch: WatchTable,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct LookTable {
    #[serde(flatten)]
    pub(super) head: Head,
    pub(super) run: String,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct AliveTable {
    #[serde(flatten)]
    pub(super) head: Head,
    pub(super) keys: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct ReconcileTable {
    #[serde(flatten)]
    pub(super) head: Head,
    pub(super) runs: Vec<MissedRunTable>,
    pub(super) accounts: Vec<DrawTable>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct MissedRunTable {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    pub(super) origin: RunOrigin,
    pub(super) added: [i64; 11],
    pub(super) known: [i64; 11],
}

impl PurseTable {
    fn is_empty(&self) -> bool {
        self.runs.is_none() && self.draws.is_empty()
    }
}

impl DrawTable {
    /// An account by its key and time.
    pub(super) fn of(k: String, span: Span) -> DrawTable {
        let (f, e) = (bounded(span.start.0), bounded(span.end.0));
        DrawTable { i: 0, k, l: 0, f, e, seed: None, heard: None, spent: 0 }
    }
}

/// Totals in the order that scripts know.
pub(super) fn totals_table(totals: &RunTotals) -> [i64; 11] {
    let tokens = |count: u64| bounded(i64::try_from(count).unwrap_or(i64::MAX));
    [
        i64::from(totals.steps),
        amount(totals.cost),
        i64::from(totals.tree_steps),
        amount(totals.tree_cost),
        i64::from(totals.tree_refused),
        tokens(totals.input_tokens),
        tokens(totals.output_tokens),
        i64::from(totals.unpriced_steps),
        i64::from(totals.failed_steps),
        bounded(totals.first_at.0),
        bounded(totals.last_at.0),
    ]
}

/// The other way.
pub(super) fn totals_of(table: &[i64; 11]) -> RunTotals {
    let steps = |count: i64| u32::try_from(count.max(0)).unwrap_or(u32::MAX);
    let tokens = |count: i64| u64::try_from(count).unwrap_or(0);
    RunTotals {
        steps: steps(table[0]),
        cost: NanoUsd(table[1]),
        tree_steps: steps(table[2]),
        tree_cost: NanoUsd(table[3]),
        tree_refused: steps(table[4]),
        input_tokens: tokens(table[5]),
        output_tokens: tokens(table[6]),
        unpriced_steps: steps(table[7]),
        failed_steps: steps(table[8]),
        first_at: Timestamp(table[9]),
        last_at: Timestamp(table[10]),
    }
}
