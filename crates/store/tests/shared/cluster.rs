//! A Redis Cluster of three: what lies in different places is taken everywhere or nowhere.

use sprag_core::loops::{Mode, Preset, Rules};
use sprag_core::policy::{LimitKey, RateMeasure, RateRule};
use sprag_store::shared::{Address, Begin, Clock, End, Options, Phase, Purse, RatesEnd, RepeatAsk, Shared};
use sprag_store::state::RateAsk;
use sprag_testkit::RedisServer;

use super::*;

async fn connected(servers: &[RedisServer]) -> Shared {
    let places: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
    let address = Address::parse(&format!("redis+cluster://{}", places.join(","))).unwrap();
    let clock = Arc::new(std::sync::atomic::AtomicI64::new(START));
    let shared = Shared::connect(&address, Options { timeout_ms: 20_000, clock: Clock::Told(clock) });
    assert_eq!(shared.changed(Phase::Connecting).await, Phase::Connected);
    shared
}

fn requests(id: u64, limit: u64, limit_keys: Vec<LimitKey>) -> RateRule {
    let measure = RateMeasure::Requests { limit, window_ms: 60_000 };
    RateRule { name: "r".into(), mode: Mode::Enforce, limit_keys, measure, id }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_counted_everywhere_or_nowhere() {
    let Some(servers) = RedisServer::cluster(3) else { return };
    let (one, two) = (connected(&servers).await, connected(&servers).await);
    let agent = key("r").agent;
    let rules =
        [requests(1, 100, vec![LimitKey::Agent]), requests(2, 4, vec![]), requests(3, 100, vec![LimitKey::Model])];
    let asks: Vec<RateAsk<'_>> = rules.iter().map(|rule| RateAsk { rule, bucket: rule.id * 77, amount: 1 }).collect();
    let draws =
        [of_day(Holder::Key("key-1".into()), 1_000), of_day(Holder::Agent(agent.clone()), 1_000), everything(50)];
    let runs = of_runs(&agent, 1_000);
    let repeat = Rules::preset(Preset::Fairvisor).repeat;
    let begin = async |shared: &Shared, run: &str, amount: i64| {
        let (call, run) = (call_id(), key(run));
        let named = NamedRun { id: &run.id, parent: None, origin: RunOrigin::Declared, seed: None, lineage: &[] };
        let enforced = AskedPurse { of_runs: Some(&runs), draws: &draws };
        let begin = Begin {
            run: AskedRun::Named(named),
            rates: &asks,
            money: Some(MoneyAsk { enforced, ..money(&draws, amount) }),
            repeat: Some(RepeatAsk { fingerprint: 4, rule: &repeat }),
            ..outside(&call, &run.agent, &NOTHING)
        };
        shared.begin(&begin).await.unwrap()
    };
    let held = async |draw: &Draw| {
        let account = one.account(&draw.id).await.unwrap().unwrap();
        (account.settled.0, account.reserved.0)
    };

    let first = begin(&one, "r", 30).await;
    let reserved = first.money.unwrap().enforced;
    assert_eq!(reserved.reserved().unwrap().accounts.len(), 4, "the run, the key, the agent, everything");
    assert_eq!(first.run.unwrap().opened.step, 1);
    // Everything has no room for a second one: nobody else holds anything for it.
    let second = begin(&two, "r", 30).await;
    let Purse::Short(short) = second.money.unwrap().enforced else { panic!("only 20 are left of everything") };
    assert_eq!(short.draw.id, draws[2].id);
    for draw in &draws {
        assert_eq!(held(draw).await, (0, 30), "{}", draw.id);
    }
    two.end(&second.call, &ending(contract::refused(at(0)), &NOTHING)).await.unwrap();
    let ended = one.end(&first.call, &ending(cost(29, at(0)), &NOTHING)).await.unwrap();
    assert_eq!((ended.accounts.len(), ended.totals.unwrap().cost), (4, NanoUsd(29)));
    for draw in &draws {
        assert_eq!(held(draw).await, (29, 0), "{}", draw.id);
    }

    // The rule that does not go by agent is used up: the others give back what they took.
    let third = begin(&one, "r", 1).await;
    let fourth = begin(&two, "r", 1).await;
    assert!(third.rated.refused.is_none() && fourth.rated.refused.is_none());
    let fifth = begin(&one, "r", 1).await;
    assert_eq!(fifth.rated.refused.map(|(place, _)| place), Some(1));
    assert!(fifth.money.is_none() && fifth.repeat.is_none());
    assert_eq!(held(&draws[0]).await, (29, 2), "only those that take place");
    let given_back = End { rates: RatesEnd::GivenBack, ..ending(contract::refused(at(0)), &NOTHING) };
    one.end(&third.call, &given_back).await.unwrap();
    let sixth = begin(&two, "r", 1).await;
    assert!(sixth.rated.refused.is_none());
    for (shared, begun) in [(&two, fourth), (&one, fifth), (&two, sixth)] {
        shared.end(&begun.call, &ending(cost(0, at(0)), &NOTHING)).await.unwrap();
    }
    let run = one.run(&key("r")).await.unwrap().unwrap();
    assert_eq!((run.totals.steps, run.in_flight), (6, 0));
    assert_eq!(held(&draws[2]).await, (29, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_agents_lie_in_many_places() {
    let Some(servers) = RedisServer::cluster(3) else { return };
    let shared = connected(&servers).await;
    for number in 0..30 {
        let (call, run) = (call_id(), common::key_of(&format!("agent-{number}"), "r"));
        let named = NamedRun { id: &run.id, parent: None, origin: RunOrigin::Declared, seed: None, lineage: &[] };
        let begin = Begin { run: AskedRun::Named(named), ..outside(&call, &run.agent, &NOTHING) };
        let begun = shared.begin(&begin).await.unwrap();
        shared.end(&begun.call, &ending(cost(1, at(0)), &NOTHING)).await.unwrap();
    }
    shared.catch_up().await;
    let sizes: Vec<i64> = servers.iter().map(|server| server.ask(&["DBSIZE"]).number()).collect();
    assert!(sizes.iter().all(|size| *size > 0), "{sizes:?}");
    assert_eq!(sizes.iter().sum::<i64>(), 60, "an agent and a run each");
    assert_eq!(shared.status().failures, 0);
}
