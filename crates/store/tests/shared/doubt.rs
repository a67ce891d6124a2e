//! What was sent and not answered: it counts once, or not at all.

use std::time::Duration;

use sprag_store::shared::{Address, Away, Clock, Options, Phase, Shared};
use sprag_testkit::{Cable, RedisServer};

use super::*;

/// Long enough for a busy machine, short enough to wait for.
const TIMEOUT_MS: u64 = 400;

/// How long a machine may take that does much else.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct OverCable {
    pub(super) shared: Shared,
    /// Sees what Redis has.
    pub(super) witness: RedisState,
    pub(super) cable: Cable,
}

pub(super) fn over_cable() -> Option<OverCable> {
    let witness = node()?;
    let (shared, cable) = witness.runtime.block_on(async {
        let cable = Cable::to(witness.server.address()).await.unwrap();
        let options = Options { timeout_ms: TIMEOUT_MS, clock: Clock::Told(witness.clock.clone()) };
        let shared = Shared::connect(&Address::parse(&cable.redis_url()).unwrap(), options);
        assert_eq!(shared.changed(Phase::Connecting).await, Phase::Connected);
        (shared, cable)
    });
    Some(OverCable { shared, witness, cable })
}

/// Begins a call that draws on everything.
pub(super) async fn begin(shared: &Shared, draws: &[Draw]) -> Result<Begun, Away> {
    let (call, run) = (call_id(), key("r"));
    let named = NamedRun { id: &run.id, parent: None, origin: RunOrigin::Declared, seed: None, lineage: &[] };
    let begin =
        Begin { run: AskedRun::Named(named), money: Some(money(draws, 10)), ..outside(&call, &run.agent, &NOTHING) };
    shared.begin(&begin).await
}

pub(super) async fn until(mut holds: impl FnMut() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(2 * PATIENCE, waited).await.unwrap();
}

pub(super) async fn until_all_is_told(shared: &Shared) {
    let told = until(|| shared.is_connected() && shared.status().untold == 0);
    assert!(tokio::time::timeout(PATIENCE, told).await.is_ok(), "{:?}", shared.status());
}

#[test]
fn a_beginning_without_an_answer_is_taken_back() {
    let Some(OverCable { shared, witness, cable }) = over_cable() else { return };
    let draws = [everything(1_000)];
    witness.runtime.block_on(async {
        let begun = begin(&shared, &draws).await.unwrap();
        cable.hold();
        let lost = begin(&shared, &draws).await.unwrap_err();
        assert_eq!(lost, Away::Slow { timeout_ms: TIMEOUT_MS });
        assert_eq!(shared.status().untold, 1);
        cable.mend();
        until_all_is_told(&shared).await;
        shared.end(&begun.call, &ending(cost(3, at(0)), &NOTHING)).await.unwrap();
    });
    let run = witness.run(&key("r")).unwrap();
    assert_eq!((run.totals.steps, run.in_flight), (1, 0), "the lost one counts nowhere");
    assert_eq!(held(&witness, &draws[0]), (3, 0));
}

/// A frozen server reads old connections after new ones: what was given up may arrive when it was taken back already.
#[test]
fn a_beginning_that_arrives_after_it_was_taken_back_does_not_begin() {
    let Some(OverCable { shared, witness, cable: _cable }) = over_cable() else { return };
    let draws = [everything(1_000)];
    witness.runtime.block_on(async {
        for _ in 0..3 {
            witness.server.freeze();
            while shared.is_connected() {
                begin(&shared, &draws).await.unwrap_err();
            }
            assert_eq!(begin(&shared, &draws).await.unwrap_err(), Away::Open, "nothing is sent");
            witness.server.thaw();
            until_all_is_told(&shared).await;
        }
        // All connections that the server has were read by now, the old ones too.
        let begun = begin(&shared, &draws).await.unwrap();
        shared.end(&begun.call, &ending(cost(3, at(0)), &NOTHING)).await.unwrap();
    });
    let run = witness.run(&key("r")).unwrap();
    assert_eq!((run.totals.steps, run.in_flight), (1, 0));
    assert_eq!(held(&witness, &draws[0]), (3, 0));
}

/// The same, in that order for sure: the old connection is heard again when all is told over a new one.
#[test]
fn a_beginning_that_was_stranded_does_not_begin_later() {
    let Some(OverCable { shared, witness, cable }) = over_cable() else { return };
    let draws = [everything(1_000)];
    witness.runtime.block_on(async {
        let begun = begin(&shared, &draws).await.unwrap();
        shared.end(&begun.call, &ending(cost(3, at(0)), &NOTHING)).await.unwrap();
        cable.strand();
        let mut lost = 0;
        while shared.is_connected() {
            begin(&shared, &draws).await.unwrap_err();
            lost += 1;
        }
        until_all_is_told(&shared).await;
        let before = witness.server.calls_of("evalsha");
        cable.mend();
        until(|| witness.server.calls_of("evalsha") >= before + lost).await;
    });
    let run = witness.run(&key("r")).unwrap();
    assert_eq!((run.totals.steps, run.in_flight), (1, 0), "what was taken back stays so");
    assert_eq!(held(&witness, &draws[0]), (3, 0));
}

#[test]
fn an_end_whose_answer_is_lost_counts_once() {
    let Some(OverCable { shared, witness, cable }) = over_cable() else { return };
    let draws = [everything(1_000)];
    witness.runtime.block_on(async {
        // A script that Redis does not know yet takes two messages.
        let known = begin(&shared, &draws).await.unwrap();
        shared.end(&known.call, &ending(cost(0, at(0)), &NOTHING)).await.unwrap();
        let begun = begin(&shared, &draws).await.unwrap();
        cable.mute();
        shared.end(&begun.call, &ending(cost(3, at(0)), &NOTHING)).await.unwrap_err();
        let (settled, untold) = (witness.shared.run(&key("r")).await.unwrap().unwrap(), shared.status().untold);
        assert_eq!((settled.totals.cost, untold), (NanoUsd(3), 1), "it has arrived, and nobody knows");
        cable.mend();
        until_all_is_told(&shared).await;
    });
    assert_eq!(witness.run(&key("r")).unwrap().totals.cost, NanoUsd(3));
    assert_eq!(held(&witness, &draws[0]), (3, 0));
}

#[test]
fn an_end_without_an_answer_is_told_again_and_counts_once() {
    let Some(OverCable { shared, witness, cable }) = over_cable() else { return };
    let draws = [everything(1_000)];
    witness.runtime.block_on(async {
        let (first, second) = (begin(&shared, &draws).await.unwrap(), begin(&shared, &draws).await.unwrap());
        // The first arrives, and its answer does not; the second is cut on its way.
        cable.hold();
        shared.end(&first.call, &ending(cost(3, at(0)), &NOTHING)).await.unwrap_err();
        cable.cut();
        shared.end(&second.call, &ending(cost(4, at(0)), &NOTHING)).await.unwrap_err();
        until(|| !shared.is_connected()).await;
        let status = shared.status();
        assert_eq!((status.untold, status.phase), (2, Phase::Away));
        assert!(status.failures >= 1 && status.last_error.is_some(), "{status:?}");
        cable.mend();
        until_all_is_told(&shared).await;
    });
    let run = witness.run(&key("r")).unwrap();
    assert_eq!((run.totals.cost, run.in_flight), (NanoUsd(7), 0));
    assert_eq!(held(&witness, &draws[0]), (7, 0));
}

#[test]
fn an_end_that_nobody_waits_for_any_more_arrives() {
    let Some(OverCable { shared, witness, cable }) = over_cable() else { return };
    let draws = [everything(1_000)];
    witness.runtime.block_on(async {
        let begun = begin(&shared, &draws).await.unwrap();
        cable.hold();
        let patience = Duration::from_millis(20);
        let nothing = tokio::time::timeout(patience, shared.end(&begun.call, &ending(cost(3, at(0)), &NOTHING))).await;
        assert!(nothing.is_err(), "given up by its caller");
        cable.mend();
        until_all_is_told(&shared).await;
    });
    assert_eq!(held(&witness, &draws[0]), (3, 0));
}

#[test]
fn a_redis_that_is_slow_by_100_ms_is_not_away() {
    let Some(OverCable { shared, witness, cable }) = over_cable() else { return };
    cable.slow(Duration::from_millis(100));
    let draws = [everything(1_000)];
    witness.runtime.block_on(async {
        let begun = begin(&shared, &draws).await.unwrap();
        shared.end(&begun.call, &ending(cost(3, at(0)), &NOTHING)).await.unwrap();
    });
    let status = shared.status();
    assert_eq!((status.failures, status.phase), (0, Phase::Connected));
    assert!(status.round_trips.sum_us >= 200_000, "{status:?}");
}

#[test]
fn a_failed_over_redis_goes_on_with_what_it_has() {
    let Some(OverCable { shared, witness, cable }) = over_cable() else { return };
    let draws = [everything(1_000)];
    let spend = async |nano: i64| {
        let begun = begin(&shared, &draws).await?;
        shared.end(&begun.call, &ending(cost(nano, at(0)), &NOTHING)).await
    };
    let replica = RedisServer::replica_of(&witness.server);
    witness.runtime.block_on(async {
        spend(5).await.unwrap();
        let spent = |server: &RedisServer| {
            let first_number = "return struct.unpack('<d', redis.call('GET', KEYS[1]), 3)";
            server.ask(&["EVAL", first_number, "1", "sprag:2:{everything}:money:daily"]).number()
        };
        until(|| replica.ask(&["KEYS", "*:money:daily"]).list().len() == 1 && spent(&replica) == 5).await;
        replica.promote();
        cable.plug_into(replica.address());
        until(|| !shared.is_connected() || shared.status().phase == Phase::Connected).await;
        while spend(6).await.is_err() {}
        assert_eq!(spent(&replica), 11);
    });
}
