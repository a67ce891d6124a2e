//! Nodes that die, and a Redis that forgets or holds what nobody understands.

use sprag_core::money::NanoUsd;
use sprag_store::shared::{Change, Missed, MissedAccount, MissedRun, Purse};
use sprag_store::state::RunTotals;

use super::*;

#[test]
fn what_a_dead_node_held_is_booked_and_its_calls_are_over() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let draws = [everything(100)];
    begin_paid(&one, &key("r"), money(&draws, 30));
    let begun = begin_paid(&two, &key("r"), money(&draws, 5));
    drop(one);
    two.at(at(50_000));
    two.runtime.block_on(two.shared.catch_up());
    two.at(at(59_999));
    assert_eq!(held(&two, &draws[0]), (0, 35), "a minute is not over");
    assert_eq!(two.run(&key("r")).unwrap().in_flight, 2);
    two.at(at(60_000));
    assert_eq!(held(&two, &draws[0]), (30, 5), "money is never forgotten");
    assert_eq!(two.run(&key("r")).unwrap().in_flight, 1);
    assert_eq!(begin_paid(&two, &key("r"), money(&draws, 1)).agent_in_flight, 2, "its own two");
    settle(&two, &begun.call, 5);
    assert_eq!(held(&two, &draws[0]), (35, 1));
}

/// A limit in shadow that had no room holds nothing: that its call ends is no reason to forget what others hold.
#[test]
fn what_a_live_node_holds_stays_held() {
    let Some(one) = node() else { return };
    let mut watched = [everything(20)];
    watched[0].id.is_shadow = true;
    let shadow = AskedPurse { of_runs: None, draws: &watched };
    let ask = |amount| MoneyAsk { shadow, ..money(&[], amount) };
    let holds = begin_paid(&one, &key("r"), ask(15));
    for _ in 0..3 {
        let short = begin_paid(&one, &key("r"), ask(10));
        assert!(matches!(short.money.unwrap().shadow, Purse::Short(_)));
        settle(&one, &short.call, 0);
    }
    for minute in 1..=3 {
        one.at(at(minute * 50_000));
        one.runtime.block_on(one.shared.catch_up());
    }
    assert_eq!(held(&one, &watched[0]), (0, 15));
    settle(&one, &holds.call, 1);
    assert_eq!(held(&one, &watched[0]), (1, 0));
}

#[test]
fn a_node_that_was_only_quiet_pays_what_its_calls_cost() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let draws = [everything(100)];
    let begun = begin_paid(&one, &key("r"), money(&draws, 30));
    two.at(at(61_000));
    assert_eq!(held(&two, &draws[0]), (30, 0), "it is taken for dead");
    settle(&one, &begun.call, 10);
    assert_eq!(held(&two, &draws[0]), (10, 0));
    assert_eq!(two.run(&key("r")).unwrap().in_flight, 0);
    // What was booked for it is used up.
    let again = begin_paid(&one, &key("r"), money(&draws, 20));
    settle(&one, &again.call, 20);
    assert_eq!(held(&two, &draws[0]), (30, 0));
}

#[test]
fn a_flushed_redis_loses_nothing_that_a_node_has_heard() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let draws = [everything(1_000)];
    let spend = |state: &RedisState, nano: i64| {
        let begun = begin_paid(state, &key("r"), money(&draws, nano));
        settle(state, &begun.call, nano);
    };
    spend(&one, 40);
    spend(&two, 1);
    spend(&one, 10);
    let in_flight = begin_paid(&one, &key("r"), money(&draws, 7));
    one.server.flush();

    let asked = [unseeded(draws[0].clone())];
    let begun = begin_paid(&two, &key("r"), money(&asked, 5));
    assert!(begun.money.unwrap().enforced.reserved().is_some(), "nobody has to look into the history");
    settle(&two, &begun.call, 5);
    assert_eq!(held(&two, &draws[0]), (41 + 5, 0), "what the second node knew");
    let begun = begin_paid(&one, &key("r"), money(&asked, 3));
    assert_eq!(held(&two, &draws[0]), (51 + 5, 3), "and what only the first one knew");
    settle(&one, &begun.call, 3);
    settle(&one, &in_flight.call, 7);
    settle(&one, &in_flight.call, 7);
    assert_eq!(held(&two, &draws[0]), (51 + 5 + 3 + 7, 0), "a call whose beginning is lost pays once");

    let stranger = one.neighbour();
    one.server.flush();
    let begun = begin_paid(&stranger, &key("r"), money(&asked, 1));
    assert_eq!(begun.money.unwrap().enforced, Purse::Unseeded(vec![0]), "who knows nothing must look");
}

#[test]
fn a_failed_over_redis_that_is_behind_catches_up() {
    let Some(one) = node() else { return };
    let draws = [everything(1_000)];
    let spend = |nano: i64| {
        let begun = begin_paid(&one, &key("r"), money(&draws, nano));
        settle(&one, &begun.call, nano);
    };
    spend(40);
    let account = one.keys("*:money:daily").remove(0);
    spend(10);
    // A replica that had not heard of the last call yet.
    let behind = "local is = redis.call('GET', KEYS[1])
        redis.call('SET', KEYS[1], 'm1' .. struct.pack('<d', 40) .. string.sub(is, 11), 'KEEPTTL')";
    one.server.ask(&["EVAL", behind, "1", &account]);
    spend(1);
    assert_eq!(held(&one, &draws[0]), (51, 0));
    // That somebody lowered it is no loss.
    one.correct(&draws[0].id, Change::Reset { spent: NanoUsd::ZERO });
    spend(2);
    assert_eq!(held(&one, &draws[0]), (2, 0));
}

#[test]
fn what_is_booked_for_lost_nodes_is_bounded() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let draws = [everything(100)];
    let account = "sprag:2:{everything}:money:daily";
    let script = |change: &str| {
        format!(
            "local form = '<c2dddddddI2c0I2c0I2c0'
             local mark, s, r, v, b, f, e, due, g, n, k = struct.unpack(form, redis.call('GET', KEYS[1]))
             {change}
             redis.call('SET', KEYS[1], struct.pack(form, mark, s, r, v, b, f, e, due, #g, g, #n, n, #k, k), 'KEEPTTL')
             return {{ #k / 20, string.sub(k, 1, 12) }}"
        )
    };
    let kept = |change: &str| {
        let told = one.server.ask(&["EVAL", &script(change), "1", account]).list();
        (told[0].number(), told[1].text())
    };
    let held_by_one = begin_paid(&one, &key("r"), money(&draws, 30));
    assert_eq!(kept("for i = 1, 1000 do k = k .. struct.pack('<c12d', string.format('node%08d', i), 1) end").0, 1_000);
    two.at(at(61_000));
    // It is booked by whoever writes next.
    let begun = begin_paid(&two, &key("other"), money(&draws, 1));
    assert_eq!(kept(""), (1_000, "node00000002".into()), "the first one is forgotten");
    settle(&two, &begun.call, 1);
    settle(&one, &held_by_one.call, 10);
    assert_eq!(held(&two, &draws[0]), (11, 0), "the last one is known");
}

/// The node has settled a call by itself that Redis has not heard the end of: what it knows of the account has the call in it.
#[test]
fn a_call_whose_end_is_told_late_counts_once_in_an_account_that_redis_lost() {
    let Some(one) = node() else { return };
    let draws = [everything(100)];
    let under_way = begin_paid(&one, &key("r"), money(&draws, 10));
    one.server.flush();
    let known = [Draw { seed: Some(NanoUsd(10).into()), ..everything(100) }];
    let next = begin_paid(&one, &key("other"), money(&known, 1));
    settle(&one, &under_way.call, 10);
    settle(&one, &next.call, 1);
    assert_eq!(held(&one, &draws[0]), (11, 0));
}

#[test]
fn a_run_that_redis_lost_goes_on_from_what_the_node_knows() {
    let Some(one) = node() else { return };
    let begun = one.begin_run(&request(&key("r"), None, 0));
    let totals = settle(&one, &begun.call, 9).totals.unwrap();
    one.server.flush();
    let seeded = OpenRequest { seed: Some(totals), ..request(&key("r"), None, 10) };
    let opened = one.begin_run(&seeded).run.unwrap().opened;
    assert_eq!((opened.step, opened.totals.cost, opened.is_new), (2, NanoUsd(9), false));
}

#[test]
fn scripts_that_redis_forgot_are_sent_again() {
    let Some(mut one) = node() else { return };
    let begun = one.begin_run(&request(&key("r"), None, 0));
    one.server.ask(&["SCRIPT", "FLUSH"]);
    assert_eq!(settle(&one, &begun.call, 1).totals.unwrap().cost, NanoUsd(1));
    drop(begun);
    let server = Arc::get_mut(&mut one.server).unwrap();
    server.restart();
    let shared = one.shared.clone();
    let step = one.runtime.block_on(async {
        loop {
            // The connection breaks with the next call, or did already.
            let (call, run) = (call_id(), key("r"));
            let named = NamedRun { id: &run.id, parent: None, origin: RunOrigin::Declared, seed: None, lineage: &[] };
            let begin = Begin { run: AskedRun::Named(named), ..outside(&call, &run.agent, &NOTHING) };
            match shared.begin(&begin).await {
                Ok(begun) => return begun.run.unwrap().opened.step,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    });
    assert_eq!(step, 1, "everything began anew");
}

#[test]
fn garbage_gives_an_error_and_no_number() {
    let Some(one) = node() else { return };
    let draws = [everything(100)];
    let begun = begin_paid(&one, &key("r"), money(&draws, 10));
    settle(&one, &begun.call, 10);
    let (run, account, agent) =
        ("sprag:2:{a:tester}:run:r", "sprag:2:{everything}:money:daily", "sprag:2:{a:tester}:agent");
    let of_another_kind = "m1".to_owned() + &"x".repeat(400);
    let cases: [(&str, &[&str]); 6] = [
        (run, &["SET", run, "another version's"]),
        (run, &["SET", run, &of_another_kind]),
        (run, &["SET", run, "r1 and then it was cut"]),
        (account, &["SET", account, "m1 a lot"]),
        (account, &["RPUSH", account, "a list"]),
        (account, &["HSET", account, "spent", "5"]),
    ];
    for (key_of_case, command) in cases {
        one.server.ask(&["DEL", key_of_case]);
        assert!(!one.server.ask(command).text().contains("ERR"), "{command:?}");
        let before = one.server.ask(&["GET", agent]);
        let (call, run) = (call_id(), key("r"));
        let named = NamedRun { id: &run.id, parent: None, origin: RunOrigin::Declared, seed: None, lineage: &[] };
        let (run_asked, asked) = (AskedRun::Named(named), Some(money(&draws, 1)));
        let begin = Begin { run: run_asked, money: asked, ..outside(&call, &run.agent, &NOTHING) };
        let error = one.runtime.block_on(one.shared.begin(&begin)).unwrap_err().to_string();
        assert!(error.contains("Redis failed"), "{command:?}: {error}");
        assert_eq!(one.server.ask(&["GET", agent]), before, "{command:?}: nothing was counted");
        assert!(one.shared.is_connected(), "a refusal is an answer");
        one.server.ask(&["DEL", key_of_case]);
        let healthy = begin_paid(&one, &key("r"), money(&draws, 1));
        settle(&one, &healthy.call, 1);
    }
}

#[test]
fn keys_of_another_version_are_left_alone() {
    let Some(one) = node() else { return };
    for key in ["sprag:3:{a:tester}:run:r", "sprag:1:{a:tester}:run:r"] {
        one.server.ask(&["SET", key, "theirs"]);
    }
    let begun = one.begin_run(&request(&key("r"), None, 0));
    settle(&one, &begun.call, 1);
    let ours = one.keys("*").into_iter().filter(|key| !key.starts_with("sprag:2:"));
    assert_eq!(ours.count(), 2);
    assert_eq!(one.server.ask(&["GET", "sprag:3:{a:tester}:run:r"]).text(), "theirs");
}

#[test]
fn what_a_node_did_alone_is_added_once() {
    let Some(one) = node() else { return };
    let draw = everything(1_000);
    let begun = begin_paid(&one, &key("child"), money(std::slice::from_ref(&draw), 5));
    settle(&one, &begun.call, 5);
    let parent = one.begin_run(&request(&key("child"), Some("top"), 0));
    settle(&one, &parent.call, 0);
    let added = RunTotals {
        steps: 3,
        cost: NanoUsd(30),
        tree_steps: 3,
        tree_cost: NanoUsd(30),
        tree_refused: 1,
        input_tokens: 9,
        first_at: at(1),
        last_at: at(9_000),
        ..RunTotals::default()
    };
    let run = |id: &str| MissedRun {
        agent: key(id).agent,
        id: key(id).id,
        parent: None,
        origin: RunOrigin::Declared,
        added,
        known: added,
    };
    let spent = MissedAccount { id: draw.id.clone(), span: draw.span, spent: NanoUsd(30), before: NanoUsd(900) };
    let missed = Missed { id: "absence".into(), runs: vec![run("child"), run("new")], accounts: vec![spent] };
    for _ in 0..2 {
        one.runtime.block_on(one.shared.reconcile(&missed)).unwrap();
    }
    let totals = |id: &str| one.run(&key(id)).unwrap().totals;
    let child = totals("child");
    assert_eq!((child.steps, child.cost, child.input_tokens, child.last_at), (5, NanoUsd(35), 9, at(9_000)));
    assert_eq!((totals("top").tree_steps, totals("top").tree_cost, totals("top").tree_refused), (4, NanoUsd(30), 1));
    assert_eq!((totals("new").steps, totals("new").cost, totals("new").first_at), (3, NanoUsd(30), at(1)));
    assert_eq!(held(&one, &draw), (35, 0));
}

#[test]
fn what_nodes_spent_alone_on_an_account_that_redis_never_had_is_all_added() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let draw = everything(1_000);
    let alone = |name: &str, spent, before| {
        let account =
            MissedAccount { id: draw.id.clone(), span: draw.span, spent: NanoUsd(spent), before: NanoUsd(before) };
        Missed { id: name.to_owned(), runs: Vec::new(), accounts: vec![account] }
    };
    // Both had 100 on record before it.
    one.runtime.block_on(one.shared.reconcile(&alone("first", 30, 100))).unwrap();
    two.runtime.block_on(two.shared.reconcile(&alone("second", 7, 100))).unwrap();
    assert_eq!(held(&one, &draw), (137, 0));

    // A day later Redis has yesterday's account only.
    let span = Span { start: DAY.end, end: Timestamp(DAY.end.0 + 80_000_000) };
    let today = Draw { span, ..draw.clone() };
    one.at(Timestamp(span.start.0 + 1_000));
    let mut missed = alone("third", 5, 0);
    missed.accounts[0].span = today.span;
    one.runtime.block_on(one.shared.reconcile(&missed)).unwrap();
    assert_eq!(held(&one, &today), (5, 0));
    // What comes late of yesterday is not spent today.
    two.runtime.block_on(two.shared.reconcile(&alone("fourth", 9, 100))).unwrap();
    assert_eq!(held(&one, &today), (5, 0));
}
