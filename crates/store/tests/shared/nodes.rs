//! Several nodes on one Redis.

use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{RateMeasure, RateRule};
use sprag_store::shared::{AskedPurse, Begin, End, MoneyAsk, NewWatch, Purse, RatesEnd};
use sprag_store::state::RateAsk;

use super::*;

#[test]
fn nodes_see_each_others_steps_and_calls_in_flight() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let run = key("r");
    let first = one.begin_run(&request(&run, Some("top"), 0));
    let second = two.begin_run(&request(&run, None, 10));
    let opened = second.run.unwrap().opened;
    assert_eq!((opened.step, opened.is_new, opened.in_flight, second.agent_in_flight), (2, false, 2, 2));
    assert_eq!(opened.tree.len(), 2, "the parent that the other node was told");
    settle(&one, &first.call, 7);
    let ended = settle(&two, &second.call, 5);
    assert_eq!(ended.totals.unwrap().cost, NanoUsd(12));
    assert_eq!(one.run(&key("top")).unwrap().totals.tree_cost, NanoUsd(12));
    assert_eq!(two.run(&run).unwrap().in_flight, 0);
}

#[test]
fn nodes_share_rates() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let measure = RateMeasure::Requests { limit: 3, window_ms: 60_000 };
    let rule = RateRule { name: "r".into(), mode: Mode::Enforce, limit_keys: Vec::new(), measure, id: 1 };
    let asks = [RateAsk { rule: &rule, bucket: 5, amount: 1 }];
    let agent = key("r").agent;
    let call = |state: &RedisState| {
        let id = call_id();
        state.begin(&Begin { rates: &asks, ..outside(&id, &agent, &NOTHING) })
    };
    let begun = [call(&one), call(&two), call(&one)];
    assert!(begun.iter().all(|begun| begun.rated.refused.is_none()));
    assert!(call(&two).rated.refused.is_some());
    // What memory would not have taken is given back.
    let end = End { rates: RatesEnd::GivenBack, ..ending(contract::refused(at(0)), &NOTHING) };
    one.end(&begun[0].call, &end);
    assert!(call(&two).rated.refused.is_none());
    assert!(call(&one).rated.refused.is_some());
}

#[test]
fn nodes_pass_on_what_detection_keeps() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let run = key("r");
    let put = |state: &RedisState, based_on: Option<u64>, version: u64, bytes: &[u8]| {
        let begun = state.begin_run(&request(&run, None, 0));
        let watch = Some(NewWatch { based_on, version, bytes });
        let end = End { watch, agent_watch: watch, ..ending(cost(1, at(0)), &NOTHING) };
        state.end(&begun.call, &end)
    };
    assert!(put(&one, Some(0), 1, b"first").watch.is_none(), "there was nothing");
    let heard = |version: Option<u64>| {
        let (call, agent) = (call_id(), run_agent());
        let named = NamedRun { id: &run.id, parent: None, origin: RunOrigin::Declared, seed: None, lineage: &[] };
        let watch = version.map(|version| (&run.id, version));
        let run = AskedRun::Named(named);
        let begin = Begin { run, watch, agent_watch: version.or(Some(0)), ..outside(&call, &agent, &NOTHING) };
        let begun = two.begin(&begin);
        two.end(&begun.call, &ending(cost(0, at(0)), &NOTHING));
        (begun.run.unwrap().watch, begun.agent_watch)
    };
    let (of_run, of_agent) = heard(None);
    assert_eq!(of_run.as_ref().map(|watch| (watch.version, watch.bytes.as_slice())), Some((1, &b"first"[..])));
    assert_eq!(of_run, of_agent);
    assert_eq!(heard(Some(1)), (None, None), "it has this one already");

    assert!(put(&two, Some(1), 2, b"second").watch.is_none());
    let newer = put(&one, Some(1), 3, b"lost").watch.unwrap();
    assert_eq!((newer.version, newer.bytes.as_slice()), (2, &b"second"[..]), "somebody was faster");
    let merged = NewWatch { based_on: Some(2), version: 4, bytes: b"merged" };
    let put_watch = |new| one.runtime.block_on(one.shared.put_watch(&run.agent, Some(&run.id), new)).unwrap();
    assert_eq!(put_watch(&merged), None);
    assert_eq!(put_watch(&merged).map(|watch| watch.version), Some(4));
    assert!(put(&two, None, 5, b"whatever").watch.is_none(), "written whatever is there");
    assert_eq!(heard(Some(4)).0.map(|watch| watch.bytes), Some(b"whatever".to_vec()));
}

fn run_agent() -> AgentName {
    key("r").agent
}

/// Five hundred calls at once from three nodes against one dollar. What is spent never passes it.
#[test]
fn five_hundred_calls_of_three_nodes_never_pass_a_dollar() {
    let Some(one) = node() else { return };
    let nodes = [one.neighbour(), one.neighbour(), one];
    const DOLLAR: i64 = 1_000_000_000;
    let draws = [everything(DOLLAR), of_day(Holder::Agent(run_agent()), i64::MAX)];
    let (spent, refused) = (AtomicI64::new(0), AtomicI64::new(0));
    thread::scope(|scope| {
        for number in 0..500_i64 {
            let (node, draws, spent, refused) = (&nodes[number as usize % 3], &draws, &spent, &refused);
            scope.spawn(move || {
                let amount = 3_000_000 + number % 7 * 100_000;
                let begun = begin_paid(node, &key(&format!("r{}", number % 5)), money(draws, amount));
                let Some(Purse::Reserved(reserved)) = begun.money.map(|money| money.enforced) else {
                    refused.fetch_add(1, Ordering::Relaxed);
                    node.end(&begun.call, &ending(contract::refused(at(0)), &NOTHING));
                    return;
                };
                let now_spent = spent.fetch_add(reserved.amount.0, Ordering::SeqCst) + reserved.amount.0;
                assert!(now_spent <= DOLLAR, "{now_spent}");
                settle(node, &begun.call, reserved.amount.0);
            });
        }
    });
    let spent = spent.into_inner();
    assert!(refused.into_inner() > 0 && spent > DOLLAR - 4_000_000, "the dollar was spent: {spent}");
    assert_eq!((held(&nodes[0], &draws[0]), held(&nodes[1], &draws[1])), ((spent, 0), (spent, 0)));
}

#[test]
fn the_limit_of_runs_holds_for_the_whole_tree() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let agent = run_agent();
    let limit = of_runs(&agent, 100);
    let ask = |amount: i64| {
        let enforced = AskedPurse { of_runs: Some(&limit), draws: &[] };
        MoneyAsk { enforced, ..money(&[], amount) }
    };
    // The top has cost 60 before anybody asked for its account.
    let top = one.begin_run(&request(&key("top"), None, 0));
    settle(&one, &top.call, 60);
    let child = one.begin_run(&request(&key("child"), Some("top"), 0));
    settle(&one, &child.call, 5);
    let begun = begin_paid(&two, &key("child"), ask(30));
    let enforced = begun.money.unwrap().enforced;
    let accounts: Vec<_> = enforced.reserved().unwrap().accounts.iter().collect();
    let told: Vec<_> = accounts.iter().map(|one| (one.draw.id.to_string(), one.settled.0, one.reserved.0)).collect();
    assert_eq!(told, [("run:tester/child run".into(), 5, 30), ("run:tester/top run".into(), 65, 30)]);
    let short = begin_paid(&one, &key("child"), ask(10));
    let Purse::Short(shortfall) = short.money.unwrap().enforced else { panic!("only 5 are left of the top") };
    assert_eq!((shortfall.draw.id.to_string().as_str(), shortfall.account.reserved.0), ("run:tester/top run", 30));
    assert!(shortfall.may_pass());
    let ended = settle(&two, &begun.call, 31);
    let settled: Vec<_> = ended.accounts.iter().map(|one| (one.id.to_string(), one.before.0, one.settled.0)).collect();
    assert_eq!(settled, [("run:tester/child run".into(), 5, 36), ("run:tester/top run".into(), 65, 96)]);
}

#[test]
fn a_run_that_was_resumed_begins_its_account_lower() {
    let Some(one) = node() else { return };
    let agent = run_agent();
    let limit = of_runs(&agent, 100);
    let spent = one.begin_run(&request(&key("r"), None, 0));
    settle(&one, &spent.call, 90);
    let corrections = [(key("r").id, NanoUsd(-80))];
    let enforced = AskedPurse { of_runs: Some(&limit), draws: &[] };
    let begun = begin_paid(&one, &key("r"), MoneyAsk { enforced, run_corrections: &corrections, ..money(&[], 50) });
    let enforced = begun.money.unwrap().enforced;
    assert_eq!(enforced.reserved().unwrap().accounts[0].settled, NanoUsd(10));
}

#[test]
fn shadow_counts_beside_and_refuses_nothing() {
    let Some(one) = node() else { return };
    let in_force = [everything(100)];
    let mut watched = [everything(20)];
    watched[0].id.is_shadow = true;
    let ask = |amount| MoneyAsk { shadow: AskedPurse { of_runs: None, draws: &watched }, ..money(&in_force, amount) };
    let begun = begin_paid(&one, &key("r"), ask(30));
    let told = begun.money.unwrap();
    assert!(told.enforced.reserved().is_some() && matches!(told.shadow, Purse::Short(_)));
    settle(&one, &begun.call, 30);
    assert_eq!((held(&one, &in_force[0]), held(&one, &watched[0])), ((30, 0), (30, 0)), "it is charged all the same");
}

#[test]
fn money_can_be_asked_for_later() {
    let Some(one) = node() else { return };
    let draws = [unseeded(everything(100)), of_day(Holder::Agent(run_agent()), 100)];
    let mut begun = begin_paid(&one, &key("r"), money(&draws, 30));
    assert_eq!(begun.money.unwrap().enforced, Purse::Unseeded(vec![0]));
    let seeded = [Draw { seed: Some(NanoUsd(60).into()), ..draws[0].clone() }, draws[1].clone()];
    let later = one.runtime.block_on(one.shared.reserve(&mut begun.call, &money(&seeded, 30))).unwrap();
    assert_eq!(later.enforced.reserved().map(|reserved| reserved.amount), Some(NanoUsd(30)));
    let again = one.runtime.block_on(one.shared.reserve(&mut begun.call, &money(&seeded, 20))).unwrap();
    assert_eq!(again.enforced.reserved().map(|reserved| reserved.amount), Some(NanoUsd(20)));
    assert_eq!((held(&one, &draws[0]), held(&one, &draws[1])), ((60, 20), (0, 20)), "in place of what was set aside");
    let raise = |to| one.runtime.block_on(one.shared.raise(&begun.call, NanoUsd(to))).unwrap();
    assert!(raise(40).is_ok());
    assert!(matches!(raise(41), Err(short) if short.draw.id == draws[0].id && short.account.reserved == NanoUsd::ZERO));
    assert_eq!((held(&one, &draws[0]), held(&one, &draws[1])), ((60, 40), (0, 40)));
    settle(&one, &begun.call, 35);
    assert_eq!((held(&one, &draws[0]), held(&one, &draws[1])), ((95, 0), (35, 0)));
}

#[test]
fn a_limit_set_meanwhile_is_charged_late() {
    let Some(one) = node() else { return };
    let draw = everything(100);
    let early = one.begin_run(&request(&key("r"), None, 0));
    let later = begin_paid(&one, &key("r"), money(std::slice::from_ref(&draw), 10));
    let late = [draw.id.clone(), of_day(Holder::Key("nobody".into()), 1).id];
    one.end(&early.call, &End { late: &late, ..ending(cost(7, at(0)), &NOTHING) });
    assert_eq!(held(&one, &draw), (7, 10));
    settle(&one, &later.call, 10);
    assert_eq!(held(&one, &draw), (17, 0));
}
