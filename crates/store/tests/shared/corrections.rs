//! Corrections of accounts while Redis is away: they count when it is back, once.

use sprag_store::shared::{Address, Change, Correction, Options, Phase, Shared};
use sprag_testkit::RedisServer;

use super::doubt::{OverCable, begin, over_cable, until};
use super::*;

fn correct(shared: &Shared, draw: &Draw, change: Change) {
    shared.correct(Correction { name: call_id(), account: draw.id.clone(), span: draw.span, change });
}

fn by(nano: i64) -> Change {
    Change::By(NanoUsd(nano))
}

/// Spends, on an account that begins with what is given.
async fn spend(shared: &Shared, draw: &Draw, nano: i64) {
    let begun = begin(shared, std::slice::from_ref(draw)).await.unwrap();
    assert!(begun.money.as_ref().unwrap().enforced.reserved().is_some(), "{:?}", begun.money);
    shared.end(&begun.call, &ending(cost(nano, at(0)), &NOTHING)).await.unwrap();
}

async fn spent(shared: &Shared, draw: &Draw) -> i64 {
    shared.account(&draw.id).await.unwrap().unwrap().settled.0
}

async fn until_told(shared: &Shared) {
    until(|| shared.is_connected() && shared.status().untold_corrections == 0).await;
}

/// A server, and what is done with it when the node has noticed that it is gone.
async fn killed_and_back(
    options: &[&str],
    meanwhile: impl FnOnce(&Shared, &Draw),
) -> Option<(Shared, Draw, RedisServer)> {
    let mut server = RedisServer::start_with(options)?;
    let shared =
        Shared::connect(&Address::parse(&server.url()).unwrap(), Options { timeout_ms: 20_000, ..Options::default() });
    assert_eq!(shared.changed(Phase::Connecting).await, Phase::Connected);
    let draw = Draw { span: today(), ..everything(1_000) };
    spend(&shared, &draw, 40).await;
    server.kill();
    correct(&shared, &draw, by(100));
    shared.tell_corrections().await.unwrap_err();
    meanwhile(&shared, &draw);
    assert!(shared.status().untold_corrections > 0);
    server.restart();
    until_told(&shared).await;
    Some((shared, draw, server))
}

/// Redis's own clock counts here.
fn today() -> Span {
    Span { start: Timestamp(1_000), end: Timestamp(4_000_000_000_000) }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_told_when_a_killed_redis_is_back() {
    let kept = ["--appendonly", "yes", "--appendfsync", "always"];
    let more = |shared: &Shared, draw: &Draw| correct(shared, draw, by(-7));
    let Some((shared, draw, _server)) = killed_and_back(&kept, more).await else { return };
    assert_eq!(spent(&shared, &draw).await, 133);
    spend(&shared, &draw, 2).await;
    assert_eq!(spent(&shared, &draw).await, 135, "what was heard before is no loss");
}

#[tokio::test(flavor = "multi_thread")]
async fn they_count_once_in_a_redis_that_lost_everything() {
    let Some((shared, draw, server)) = killed_and_back(&[], |_, _| {}).await else { return };
    assert_eq!(spent(&shared, &draw).await, 140, "what the node had heard, and the correction");
    // The node's own view has the correction in it; so does the next one that looks into the catalog.
    let seeded = Draw { seed: Some(NanoUsd(140).into()), ..draw.clone() };
    spend(&shared, &seeded, 1).await;
    assert_eq!(spent(&shared, &draw).await, 141);
    server.flush();
    correct(&shared, &draw, by(-20));
    shared.tell_corrections().await.unwrap();
    assert_eq!(spent(&shared, &draw).await, 121);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_an_account_that_nobody_has_opened_is_left_to_whoever_opens_it() {
    let Some(one) = tokio::task::spawn_blocking(node).await.unwrap() else { return };
    let shared = one.shared.clone();
    let draw = everything(1_000);
    correct(&shared, &draw, by(5));
    shared.tell_corrections().await.unwrap();
    assert_eq!(shared.account(&draw.id).await.unwrap(), None);
    spend(&shared, &Draw { seed: Some(NanoUsd(5).into()), ..draw.clone() }, 3).await;
    assert_eq!(spent(&shared, &draw).await, 8);
    tokio::task::spawn_blocking(|| drop(one)).await.unwrap();
}

#[test]
fn one_whose_answer_is_lost_counts_once() {
    let Some(OverCable { shared, witness, cable }) = over_cable() else { return };
    let draw = everything(1_000);
    witness.runtime.block_on(async {
        spend(&shared, &draw, 40).await;
        // A script that Redis does not know yet takes two messages.
        correct(&shared, &draw, by(1));
        shared.tell_corrections().await.unwrap();
        cable.mute();
        correct(&shared, &draw, by(100));
        shared.tell_corrections().await.unwrap_err();
        assert_eq!(spent(&witness.shared, &draw).await, 141, "it has arrived, and nobody knows");
        cable.mend();
        until_told(&shared).await;
        assert_eq!(spent(&witness.shared, &draw).await, 141);
    });
}

#[test]
fn what_an_account_begins_with_leaves_out_what_is_untold() {
    let Some(OverCable { shared, witness, cable }) = over_cable() else { return };
    let draw = everything(1_000);
    witness.runtime.block_on(async {
        // A script that Redis does not know yet takes two messages.
        let another = of_day(Holder::Agent(key("r").agent), 1_000);
        spend(&shared, &another, 1).await;
        correct(&shared, &another, by(1));
        shared.tell_corrections().await.unwrap();
        cable.mute();
        correct(&shared, &draw, by(100));
        // It arrives, and the account is not open; the node does not know that.
        shared.tell_corrections().await.unwrap_err();
        let seeded = [Draw { seed: Some(NanoUsd(140).into()), ..draw.clone() }];
        begin(&shared, &seeded).await.unwrap_err();
        until(|| witness.server.ask(&["EXISTS", "sprag:2:{everything}:money:daily"]).number() == 1).await;
        assert_eq!(spent(&witness.shared, &draw).await, 40);
        cable.mend();
        until_told(&shared).await;
        until(|| shared.status().untold == 0).await;
        assert_eq!(spent(&witness.shared, &draw).await, 140, "and then it is told");
    });
}

#[test]
fn one_of_yesterday_does_not_correct_today() {
    let Some(one) = node() else { return };
    let draw = everything(1_000);
    let begun = begin_paid(&one, &key("r"), money(std::slice::from_ref(&draw), 5));
    settle(&one, &begun.call, 5);
    let yesterday = Span { start: Timestamp(draw.span.start.0 - 86_400_000), end: draw.span.start };
    correct(&one.shared, &Draw { span: yesterday, ..draw.clone() }, by(100));
    one.runtime.block_on(one.shared.tell_corrections()).unwrap();
    assert_eq!(held(&one, &draw), (5, 0));
}

#[test]
fn a_reset_that_is_late_takes_away_what_was_spent_then() {
    let Some(OverCable { shared, witness, cable }) = over_cable() else { return };
    let draw = everything(1_000);
    witness.runtime.block_on(async {
        spend(&shared, &draw, 40).await;
        cable.cut();
        correct(&shared, &draw, Change::Reset { spent: NanoUsd(40) });
        shared.tell_corrections().await.unwrap_err();
        spend(&witness.shared, &draw, 3).await;
        cable.mend();
        until_told(&shared).await;
        assert_eq!(spent(&witness.shared, &draw).await, 3, "what others spent since counts");
        correct(&shared, &draw, Change::Reset { spent: NanoUsd(0) });
        shared.tell_corrections().await.unwrap();
        assert_eq!(spent(&witness.shared, &draw).await, 0, "at once it is all of it");
    });
}
