//! The scripts: what each needs, put together once. Redis knows them by their hash.

use std::sync::LazyLock;

use sprag_core::limits::{CLUE_OFFERS, REPEAT_COUNT, RUN_TREE_DEPTH};
use sprag_core::run::RETRY_MS;

const GIVEN: &str = include_str!("lua/given.lua");
const GIVEN_BEGIN: &str = include_str!("lua/given_begin.lua");
const GIVEN_END: &str = include_str!("lua/given_end.lua");
const PRELUDE: &str = include_str!("lua/prelude.lua");
const HELD: &str = include_str!("lua/held.lua");
const SIGNS: &str = include_str!("lua/signs.lua");
const AGENTS: &str = include_str!("lua/agents.lua");
const RUNS: &str = include_str!("lua/runs.lua");
const RUNS_BEGIN: &str = include_str!("lua/runs_begin.lua");
const RUNS_END: &str = include_str!("lua/runs_end.lua");
const CHAINS: &str = include_str!("lua/chains.lua");
const CLUES: &str = include_str!("lua/clues.lua");
const FOLLOWING: &str = include_str!("lua/following.lua");
const WATCH: &str = include_str!("lua/watch.lua");
const WATCH_BEGIN: &str = include_str!("lua/watch_begin.lua");
const WATCH_END: &str = include_str!("lua/watch_end.lua");
const RATES: &str = include_str!("lua/rates.lua");
const MONEY: &str = include_str!("lua/money.lua");
const PURSES: &str = include_str!("lua/purses.lua");
const MONEY_END: &str = include_str!("lua/money_end.lua");
const REPEAT: &str = include_str!("lua/repeat.lua");

/// How long a run is kept that nobody calls in, with what belongs to it: twice as long as memory keeps it by default. The
/// history knows it for longer.
const RUN_TTL_MS: u64 = 2 * 60 * 60 * 1000;
/// How long evidence is kept after it was left the last time. Most of what is kept for a step is that.
const CLUE_TTL_MS: u64 = 60 * 60 * 1000;
/// How long a call may be under way.
const CALL_TTL_MS: u64 = 24 * 60 * 60 * 1000;

/// Lost nodes of which an account knows what was booked for them; beyond that those are forgotten that were lost first. Should
/// one of them come back after all, what its calls cost is added to what was booked.
const BOOKED_NODES: usize = 1000;

/// A script and its hash.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) text: String,
    pub(super) hash: String,
}

// Each script has only what it needs: functions are made anew with every call, and take their time.
pub(super) static BEGIN: LazyLock<Script> = LazyLock::new(|| {
    let of_runs = [HELD, AGENTS, RUNS, RUNS_BEGIN, CLUES, FOLLOWING, WATCH, WATCH_BEGIN];
    script_with(GIVEN_BEGIN, &[&of_runs[..], &[RATES, MONEY, PURSES, REPEAT, include_str!("lua/begin.lua")]].concat())
});
pub(super) static END: LazyLock<Script> = LazyLock::new(|| {
    let of_runs = [HELD, AGENTS, RUNS, RUNS_END, CLUES, WATCH, WATCH_END];
    script_with(GIVEN_END, &[&of_runs[..], &[RATES, MONEY, MONEY_END, REPEAT, include_str!("lua/end.lua")]].concat())
});
pub(super) static RESERVE: LazyLock<Script> =
    LazyLock::new(|| script(&[HELD, RUNS, CHAINS, MONEY, PURSES, MONEY_END, include_str!("lua/reserve.lua")]));
pub(super) static RAISE: LazyLock<Script> = LazyLock::new(|| script(&[HELD, MONEY, include_str!("lua/raise.lua")]));
pub(super) static GIVE_BACK: LazyLock<Script> =
    LazyLock::new(|| script(&[HELD, RATES, MONEY, MONEY_END, REPEAT, include_str!("lua/give_back.lua")]));
pub(super) static ACCOUNT: LazyLock<Script> =
    LazyLock::new(|| script(&[HELD, MONEY, include_str!("lua/accounts.lua")]));
pub(super) static ALIVE: LazyLock<Script> =
    LazyLock::new(|| script(&[HELD, SIGNS, AGENTS, RUNS, MONEY, include_str!("lua/alive.lua")]));
pub(super) static LOOK: LazyLock<Script> = LazyLock::new(|| script(&[HELD, RUNS, include_str!("lua/look.lua")]));
pub(super) static PUT: LazyLock<Script> = LazyLock::new(|| script(&[WATCH, WATCH_END, include_str!("lua/put.lua")]));
pub(super) static RECONCILE: LazyLock<Script> =
    LazyLock::new(|| script(&[HELD, RUNS, MONEY, include_str!("lua/reconcile.lua")]));

fn script(parts: &[&str]) -> Script {
    script_with(GIVEN, parts)
}

fn script_with(given: &str, parts: &[&str]) -> Script {
    let bounds = format!(
        "local TREE_DEPTH, OFFERS, RETRY_MS, MOMENTS = {RUN_TREE_DEPTH}, {CLUE_OFFERS}, {RETRY_MS}, {REPEAT_COUNT}\n\
         local BOOKED_NODES = {BOOKED_NODES}\n\
         local RUN_TTL, CLUE_TTL, CALL_TTL = '{RUN_TTL_MS}', '{CLUE_TTL_MS}', '{CALL_TTL_MS}'\n"
    );
    let text = [&[bounds.as_str(), given, PRELUDE], parts].concat().concat();
    let hash = redis::Script::new(&text).get_hash().to_owned();
    Script { text, hash }
}
