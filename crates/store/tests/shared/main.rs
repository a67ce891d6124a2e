//! What several nodes on one Redis must do, whatever happens to nodes, to Redis and between them.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../contract/mod.rs"]
mod contract;

mod cluster;
mod corrections;
mod cost;
mod doubt;
mod equal;
mod evidence;
mod full;
mod link;
mod loss;
mod nodes;
mod traces;
mod versions;

use std::sync::Arc;

use common::key;
use contract::{NOTHING, RedisState, call_id, ending, outside};
use sprag_core::event::{Ending, RunOrigin};
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{ALWAYS, AccountId, Draw, Holder, Level, Seed, Span, Window};
use sprag_core::time::Timestamp;
use sprag_store::RunKey;
use sprag_store::shared::{AskedPurse, AskedRun, Begin, Begun, EndHow, Ended, MoneyAsk, NamedRun, SharedCall};
use sprag_store::state::{OpenRequest, Settlement};

const START: i64 = 1_770_000_000_000;
const DAY: Span = Span { start: Timestamp(START - 1_000), end: Timestamp(START + 80_000_000) };

fn at(ms: i64) -> Timestamp {
    Timestamp(START + ms)
}

/// An account of a day, with nothing spent so far.
fn of_day(holder: Holder, limit: i64) -> Draw {
    let id = AccountId { holder, window: Window::Day, is_shadow: false };
    let (limit, seed) = (NanoUsd(limit), Some(Seed::default()));
    Draw { id, limit, level: Level::Agent, span: DAY, seed, stages: Arc::default() }
}

fn everything(limit: i64) -> Draw {
    of_day(Holder::Everything, limit)
}

fn unseeded(draw: Draw) -> Draw {
    Draw { seed: None, ..draw }
}

/// The limit of runs.
fn of_runs(agent: &AgentName, limit: i64) -> Draw {
    let id = AccountId { holder: Holder::Run(agent.clone(), key("any").id), window: Window::Run, is_shadow: false };
    Draw { id, limit: NanoUsd(limit), level: Level::Agent, span: ALWAYS, seed: None, stages: Arc::default() }
}

fn money(draws: &[Draw], amount: i64) -> MoneyAsk<'_> {
    let enforced = AskedPurse { of_runs: None, draws };
    let (amount, shadow) = (NanoUsd(amount), AskedPurse::default());
    MoneyAsk { enforced, shadow, amount, least: amount, run_corrections: &[] }
}

fn request(key: &RunKey, parent: Option<&str>, ms: i64) -> OpenRequest {
    let parent = parent.map(|parent| common::key(parent).id);
    OpenRequest { key: key.clone(), parent, origin: RunOrigin::Declared, now: at(ms), seed: None, lineage: vec![] }
}

/// Begins a call of a run that asks for money.
fn begin_paid(state: &RedisState, key: &RunKey, money: MoneyAsk<'_>) -> Begun {
    let call = call_id();
    let named = NamedRun { id: &key.id, parent: None, origin: RunOrigin::Declared, seed: None, lineage: &[] };
    let run = AskedRun::Named(named);
    state.begin(&Begin { run, money: Some(money), ..outside(&call, &key.agent, &NOTHING) })
}

fn cost(nano: i64, now: Timestamp) -> EndHow {
    EndHow::Settled(Settlement { cost: Some(NanoUsd(nano)), usage: None, ending: Ending::Complete, now })
}

fn settle(state: &RedisState, call: &SharedCall, nano: i64) -> Ended {
    state.end(call, &ending(cost(nano, state.now()), &NOTHING))
}

/// Settled and reserved.
fn held(state: &RedisState, draw: &Draw) -> (i64, i64) {
    let account = state.account(&draw.id).unwrap();
    (account.settled.0, account.reserved.0)
}

/// A server and a node on it, at the beginning of time.
fn node() -> Option<RedisState> {
    let state = RedisState::start()?;
    state.at(at(0));
    Some(state)
}
