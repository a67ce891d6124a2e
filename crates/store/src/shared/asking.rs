//! Makes of what a call asks the tables that scripts are given: one on a single Redis, one for each tag in a cluster.

use std::collections::BTreeMap;

use sprag_core::id::RunId;
use sprag_core::loops::{Mode, WindowMode};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Draw, RateMeasure};

use super::node::Node;
use super::packed::{
    AncestorTable, BeginTable, ClueTable, DrawTable, HaveTable, Head, MoneyTable, PurseTable, RateTable, RepeatTable,
    RunTable, RunsTable, amount, bounded, hex, totals_table,
};
use super::{AskedPurse, AskedRun, Begin, MoneyAsk, NamedRun, RepeatAsk, keys};
use crate::state::RateAsk;

/// The tables of a call that begins. The first one is of its agent.
pub(super) fn begin_tables(begin: &Begin<'_>, head: Head, node: &Node) -> Vec<BeginTable> {
    let (agent, is_cluster) = (head.p.clone(), node.is_cluster());
    let corrections = run_corrections(begin.money.as_ref(), &agent, node);
    let main = BeginTable {
        head,
        agent: true,
        run: run_table(begin),
        agent_watch: begin.agent_watch.map(hex),
        habits: begin.model.map(|model| keys::habits(&agent, model)),
        rates: Vec::new(),
        money: None,
        repeat: None,
        corrections,
    };
    let mut tables = vec![main];
    for (place, ask) in begin.rates.iter().enumerate().filter(|(_, ask)| is_asked(ask)) {
        let at = keys::rate(ask, &agent);
        of_place(&mut tables, &at.prefix, is_cluster).rates.push(rate_table(place, ask, at.key));
    }
    if let Some(money) = &begin.money {
        for (prefix, table) in money_tables(money, &agent, node) {
            of_place(&mut tables, &prefix, is_cluster).money = Some(table);
        }
    }
    if let Some(ask) = begin.repeat.filter(|ask| ask.rule.common.mode != Mode::Off) {
        let (at, hits) = keys::repeat(ask.fingerprint, ask.rule);
        of_place(&mut tables, &at.prefix, is_cluster).repeat = Some(repeat_table(&ask, at.key, hits));
    }
    tables
}

/// What is asked of accounts, by the place where they lie.
pub(super) fn money_tables(money: &MoneyAsk<'_>, agent: &str, node: &Node) -> BTreeMap<String, MoneyTable> {
    let is_cluster = node.is_cluster();
    let mut tables: BTreeMap<String, MoneyTable> = BTreeMap::new();
    for (is_shadow, purse) in [(false, &money.enforced), (true, &money.shadow)] {
        let mut purse_at = |prefix: &str, work: &mut dyn FnMut(&mut PurseTable)| {
            let prefix = if is_cluster { prefix } else { agent };
            let table = tables.entry(prefix.to_owned()).or_insert_with(|| MoneyTable {
                amount: amount(money.amount),
                least: amount(money.least),
                ..MoneyTable::default()
            });
            work(if is_shadow { &mut table.shadow } else { &mut table.force });
        };
        let AskedPurse { of_runs, draws } = *purse;
        if let Some(draw) = of_runs {
            let (kind, l, e) = (keys::account_kind(&draw.id), amount(draw.limit), bounded(draw.span.end.0));
            purse_at(agent, &mut |purse| purse.runs = Some(RunsTable { kind, l, e }));
        }
        for (place, draw) in draws.iter().enumerate() {
            let at = keys::account(&draw.id);
            purse_at(&at.prefix, &mut |purse| purse.draws.push(draw_table(place, draw, at.key.clone(), node)));
        }
    }
    tables
}

/// By how much accounts of runs begin higher or lower, by run.
pub(super) fn run_corrections(money: Option<&MoneyAsk<'_>>, agent: &str, node: &Node) -> BTreeMap<String, i64> {
    let Some(money) = money else { return BTreeMap::new() };
    // One in force and one in shadow are corrected together.
    let kind = [&money.enforced, &money.shadow].into_iter().find_map(|purse| purse.of_runs);
    let without_untold = |(run, by): &(RunId, NanoUsd)| {
        let key = kind.map(|draw| keys::run_account(agent, &draw.id, run));
        let untold = key.map_or(0, |key| node.corrections.untold_of(&key, 0));
        (run.to_string(), amount(*by).saturating_sub(untold))
    };
    money.run_corrections.iter().map(without_untold).collect()
}

fn draw_table(place: usize, draw: &Draw, key: String, node: &Node) -> DrawTable {
    let heard = node.heard.get(&key);
    let mut table = DrawTable { i: place, l: amount(draw.limit), heard, ..DrawTable::of(key, draw.span) };
    let untold = |table: &DrawTable| node.corrections.untold_of(&table.k, table.f);
    // What Redis said itself comes first: this node may know of calls whose end is still to be told.
    let has_heard = table.heard.as_ref().is_some_and(|heard| heard.f == table.f);
    let seed = draw.seed.filter(|_| !has_heard);
    table.seed = seed.map(|seed| amount(seed.spent).saturating_sub(untold(&table)).max(0));
    table
}

fn of_place<'t>(tables: &'t mut Vec<BeginTable>, prefix: &str, is_cluster: bool) -> &'t mut BeginTable {
    let known = tables.iter().position(|table| !is_cluster || table.head.p == prefix);
    let at = known.unwrap_or_else(|| {
        let head = Head { p: prefix.to_owned(), ..tables[0].head.clone() };
        let table = BeginTable {
            head,
            agent: false,
            run: None,
            agent_watch: None,
            habits: None,
            rates: Vec::new(),
            money: None,
            repeat: None,
            corrections: BTreeMap::new(),
        };
        tables.push(table);
        tables.len() - 1
    });
    &mut tables[at]
}

fn run_table(begin: &Begin<'_>) -> Option<RunTable> {
    let (named, clues) = match begin.run {
        AskedRun::Outside => return None,
        AskedRun::Named(named) => (named, &[][..]),
        AskedRun::Evidence { clues, otherwise } => (otherwise, clues),
    };
    let NamedRun { id, parent, origin, seed, lineage } = named;
    let clues = clues.iter().map(|clue| ClueTable(clue.lookup, clue.hash, clue.origin));
    let above = lineage
        .iter()
        .map(|above| AncestorTable { id: above.id.to_string(), totals: above.totals.as_ref().map(totals_table) });
    Some(RunTable {
        id: id.to_string(),
        parent: parent.map(ToString::to_string),
        origin,
        seed: seed.as_ref().map(totals_table),
        lineage: above.collect(),
        clues: clues.collect(),
        have: begin.watch.map(|(id, version)| HaveTable { id: id.to_string(), version: hex(version) }),
        follows: begin.follows,
        left_clues: begin.remember.clues.clone(),
        left_offers: begin.remember.offers.clone(),
    })
}

/// Rules that are off, and rules on tokens for calls without any, are not asked.
fn is_asked(ask: &RateAsk<'_>) -> bool {
    ask.rule.mode != Mode::Off && !(ask.amount == 0 && ask.rule.measure.counts_tokens())
}

fn rate_table(place: usize, ask: &RateAsk<'_>, key: String) -> RateTable {
    let (l, w, rps, burst) = match ask.rule.measure {
        RateMeasure::Requests { limit, window_ms } | RateMeasure::Tokens { limit, window_ms } => {
            (limit, Some(window_ms), None, None)
        }
        RateMeasure::Bucket { rps, burst } => (0, None, Some(rps), Some(burst)),
    };
    let (shadow, tokens) = (ask.rule.mode == Mode::Shadow, ask.rule.measure.counts_tokens());
    RateTable { i: place, k: key, a: ask.amount.max(1), l, shadow, tokens, w, rps, burst }
}

fn repeat_table(ask: &RepeatAsk<'_>, k: String, hits: String) -> RepeatTable {
    let window = &ask.rule.common.window;
    let mode = match window.mode {
        WindowMode::Sliding => "sliding",
        WindowMode::Refresh => "refresh",
        WindowMode::Fixed => "fixed",
    };
    RepeatTable { k, hits, requests: window.requests, seconds: window.seconds, mode }
}
