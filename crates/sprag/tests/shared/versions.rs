//! Two versions beside each other, as while nodes are upgraded one after the other: what the newer one has written of a run in a form of
//! its own says nothing here, and is left alone.

use serde_json::json;
use sprag_testkit::RedisServer;

use crate::agent::{Agent, Talk};
use crate::nodes::{is_connected, share, wait_until};
use crate::stage::Stage;

/// Writes what detection keeps and what calls use by habit in a form that nobody here knows.
const IN_ANOTHER_FORM: &str = "local changed = {}
for _, key in ipairs(redis.call('KEYS', 'sprag:2:*')) do
  local newer = 'ffffffffffffffff' .. string.char(200) .. 'of a newer version'
  if string.find(key, 'watch', 1, true) or string.find(key, ':habits:', 1, true) then
    redis.call('SET', key, newer)
    changed[#changed + 1] = key
  elseif string.find(key, ':run:', 1, true) then
    local form = '<c2ddddddddddddddI2c0I2c0I2c0I2c0'
    local run = { struct.unpack(form, redis.call('GET', key)) }
    -- A mark and fourteen numbers; then whose part it is, how it was recognised, habits, who holds it.
    local p, og, n = run[16], run[17], run[19]
    local numbers = { unpack(run, 1, 15) }
    for _, text in ipairs({ p, og, newer, n }) do
      numbers[#numbers + 1] = #text
      numbers[#numbers + 1] = text
    end
    redis.call('SET', key, struct.pack(form, unpack(numbers)), 'KEEPTTL')
  end
end
table.sort(changed)
return changed";

/// Steps that go to one node after the other; those behind them stay on the first.
const SPREAD: usize = 6;

/// Works on the same error until it is stopped. Gives the steps that were paid for.
async fn until_stopped(stages: &[Stage], run: &str, mut between: impl FnMut(usize)) -> usize {
    let mut agent = Agent::new(&stages[0], Talk::Chat, "How is the weather in Paris?").declared(run);
    for number in 0..30 {
        agent.moves_to(&stages[if number < SPREAD { number % stages.len() } else { 0 }]);
        let said = agent.calls("search_weather", json!({"city": "Paris"}), "error: service not found").await;
        if said.status != 200 {
            assert_eq!(said.json()["block_reason"], "loop_detected", "{}", said.json());
            assert_eq!(said.step as usize, number + 1, "steps are counted all along");
            return number;
        }
        between(number);
    }
    panic!("not stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_newer_version_keeps_of_a_run_is_left_alone_and_its_loops_are_caught() {
    let Some(redis) = RedisServer::start() else { return };
    let mut stages = Vec::new();
    for _ in 0..2 {
        let stage = Stage::start_with(|settings| share(settings, &redis.url())).await;
        wait_until("a node has its Redis", || is_connected(&stage.sprag)).await;
        stages.push(stage);
    }
    let alone = until_stopped(&[Stage::start().await], "task", |_| {}).await;
    let mut theirs = Vec::new();
    let paid = until_stopped(&stages, "task", |number| {
        if number == 0 {
            let changed = redis.ask(&["EVAL", IN_ANOTHER_FORM, "0"]).list();
            theirs = changed.into_iter().map(|key| key.text()).collect();
        }
    })
    .await;
    assert!(theirs.iter().any(|key| key.contains(":watch:")), "{theirs:?}");
    // Half of a run is no proof; on one node it is seen whole again.
    assert!((SPREAD + 1..=SPREAD + alone).contains(&paid), "{paid} steps were paid for, {alone} on one node");
    for key in theirs.iter().filter(|key| key.contains(":watch:")) {
        assert!(redis.ask(&["GETRANGE", key, "0", "15"]).text() == "ffffffffffffffff", "{key} was overwritten");
    }
}
