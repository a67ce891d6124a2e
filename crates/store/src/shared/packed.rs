//! What scripts are given: one packed table each. Names are those that the scripts use.

use std::collections::BTreeMap;

use serde::Serialize;
use sprag_core::event::{Ending, RunOrigin};
use sprag_core::money::NanoUsd;
use sprag_core::policy::Span;
use sprag_core::time::Timestamp;

use super::heard::Heard;
use crate::state::{RunTotals, Settlement};

/// Of a call that drew on nothing.
const NO_ACCOUNTS: [DrawTable; 0] = [];

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

/// A hash or a version: scripts have no numbers of 64 bits, and no bytes in tables.
pub(super) fn hex(number: u64) -> String {
    format!("{number:016x}")
}

pub(super) fn hexes(numbers: &[u64]) -> Vec<String> {
    numbers.iter().copied().map(hex).collect()
}

/// The place of what no script reads, among the arguments: the table is the first.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Blob(usize);

impl Blob {
    pub(super) fn put(blobs: &mut Vec<Vec<u8>>, bytes: &[u8]) -> Blob {
        blobs.push(bytes.to_vec());
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
pub(super) struct BeginTable {
    #[serde(flatten)]
    pub(super) head: Head,
    pub(super) agent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<RunTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent_watch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) habits: Option<String>,
    pub(super) rates: Vec<RateTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) money: Option<MoneyTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repeat: Option<RepeatTable>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) corrections: BTreeMap<String, i64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct RunTable {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    pub(super) origin: RunOrigin,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<[i64; 11]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) lineage: Vec<AncestorTable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) clues: Vec<ClueTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) have: Option<HaveTable>,
    pub(super) left: LeftTable,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct AncestorTable {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) totals: Option<[i64; 11]>,
}

/// A clue, and how a run that it leads to was recognised. The first letter says how it is looked up: `k`nown, `c`laim or
/// `r`etry.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ClueTable(pub(super) String, pub(super) RunOrigin);

#[derive(Clone, Debug, Serialize)]
pub(super) struct HaveTable {
    pub(super) id: String,
    pub(super) version: String,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct LeftTable {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) clues: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unless: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) withdrawn: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) offers: Vec<String>,
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
    pub(super) kind: String,
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
pub(super) struct RepeatTable {
    pub(super) k: String,
    pub(super) hits: String,
    pub(super) requests: u32,
    pub(super) seconds: u32,
    pub(super) mode: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct EndTable {
    #[serde(flatten)]
    pub(super) head: Head,
    pub(super) how: HowTable,
    pub(super) agent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) born: Option<String>,
    /// It may have been told before.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) again: bool,
    /// Tokens that were used; absent where what was taken is given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) used: Option<u64>,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) uncounts: bool,
    pub(super) left: LeftTable,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) watch: Option<WatchTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent_watch: Option<WatchTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) habits: Option<Blob>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) of_model: Option<HabitsTable>,
    /// The accounts that it drew on.
    pub(super) drawn: Vec<String>,
    /// The same with what this node has heard of them, should what it noted be lost: a packed list of [`DrawTable`], the first of all
    /// further arguments.
    pub(super) accounts: Blob,
    pub(super) late: Vec<String>,
    /// Further arguments.
    #[serde(skip)]
    pub(super) blobs: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct HowTable {
    pub(super) cost: i64,
    pub(super) input: u64,
    pub(super) output: u64,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) unpriced: u32,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) failed: u32,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) is_refused: bool,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) is_withdrawn: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct WatchTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) based: Option<String>,
    pub(super) version: String,
    pub(super) bytes: Blob,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct HabitsTable {
    pub(super) k: String,
    pub(super) bytes: Blob,
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

impl EndTable {
    /// Takes a call back, whatever came of it.
    pub(super) fn withdrawing(head: Head) -> EndTable {
        let mut blobs = Vec::new();
        EndTable {
            head,
            how: HowTable { is_withdrawn: true, ..HowTable::default() },
            agent: true,
            run: None,
            born: None,
            again: false,
            used: None,
            uncounts: true,
            left: LeftTable::default(),
            watch: None,
            agent_watch: None,
            habits: None,
            of_model: None,
            drawn: Vec::new(),
            accounts: Blob::put(&mut blobs, &pack(&NO_ACCOUNTS)),
            late: Vec::new(),
            blobs,
        }
    }
}

impl HowTable {
    pub(super) fn of(settlement: &Settlement) -> HowTable {
        let usage = settlement.usage;
        let is_failed = matches!(settlement.ending, Ending::UpstreamError | Ending::UpstreamGone | Ending::TimedOut);
        HowTable {
            cost: amount(settlement.cost.unwrap_or_default()),
            input: usage.map_or(0, |usage| usage.prompt_tokens()),
            output: usage.map_or(0, |usage| usage.output),
            unpriced: u32::from(settlement.cost.is_none() && usage.is_some()),
            failed: u32::from(is_failed),
            is_refused: matches!(settlement.ending, Ending::Refused | Ending::Killed),
            is_withdrawn: false,
        }
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
