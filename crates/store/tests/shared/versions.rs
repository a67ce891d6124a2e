//! Two versions beside each other on one Redis, as while nodes are upgraded one after the other. A stand-in plays the newer one:
//! it writes what the next version might write in the same form.

use super::*;

/// Adds what this version does not know to everything that it keeps: a field to each hash, an entry to each call under way.
const A_NEWER_VERSION: &str = "local changed = 0
for _, key in ipairs(redis.call('KEYS', 'sprag:1:*')) do
  if redis.call('TYPE', key).ok == 'hash' then
    redis.call('HSET', key, 'x:mood', 'theirs')
    changed = changed + 1
  elseif string.find(key, ':call:', 1, true) then
    local call = cmsgpack.unpack(redis.call('GET', key))
    call.mood = 'theirs'
    redis.call('SET', key, cmsgpack.pack(call), 'KEEPTTL')
    changed = changed + 1
  end
end
return changed";

/// What it added and still finds.
const STILL_THERE: &str = "local found = {}
for _, key in ipairs(redis.call('KEYS', 'sprag:1:*')) do
  if redis.call('TYPE', key).ok == 'hash' then
    if redis.call('HGET', key, 'x:mood') == 'theirs' then found[#found + 1] = key end
  elseif string.find(key, ':call:', 1, true) then
    if cmsgpack.unpack(redis.call('GET', key)).mood == 'theirs' then found[#found + 1] = key end
  end
end
table.sort(found)
return found";

fn found(state: &RedisState) -> Vec<String> {
    let found = state.server.ask(&["EVAL", STILL_THERE, "0"]).list();
    found.into_iter().map(|key| key.text()).collect()
}

#[test]
fn what_a_newer_version_adds_stays_and_changes_no_sum() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let draws = [everything(100)];
    let first = begin_paid(&one, &key("r"), money(&draws, 10));
    let second = begin_paid(&two, &key("r"), money(&draws, 10));
    // Two calls under way, their agent, run and account.
    assert_eq!(one.server.ask(&["EVAL", A_NEWER_VERSION, "0"]).number(), 5);
    let everywhere = found(&one);
    assert_eq!(everywhere.len(), 5);

    // More is asked for a call, and another begins and ends meanwhile.
    assert!(one.runtime.block_on(one.shared.raise(&first.call, NanoUsd(20))).unwrap().is_ok());
    assert_eq!(held(&one, &draws[0]), (0, 30));
    let third = begin_paid(&two, &key("r"), money(&draws, 5));
    assert_eq!(third.run.unwrap().opened.step, 3);
    settle(&two, &third.call, 5);
    assert_eq!(found(&one), everywhere, "nothing of it is lost while calls are under way");

    settle(&one, &first.call, 15);
    settle(&two, &second.call, 10);
    let lasting: Vec<String> = everywhere.into_iter().filter(|key| !key.contains(":call:")).collect();
    assert_eq!(found(&one), lasting, "nor when they are over");
    assert_eq!(held(&one, &draws[0]), (30, 0));
    assert_eq!(one.run(&key("r")).unwrap().totals.cost, NanoUsd(30));
}

#[test]
fn nodes_of_a_newer_version_that_are_gone_are_forgotten_like_any_other() {
    let Some(one) = node() else { return };
    let draws = [everything(100)];
    let begun = begin_paid(&one, &key("r"), money(&draws, 10));
    settle(&one, &begun.call, 10);
    // Their node holds 7 and has other words beside it.
    let account = "sprag:1:{everything}:money:daily";
    let now = one.now().0.to_string();
    let due = (one.now().0 + 60_000).to_string();
    let words = ["r", "7", "n:newer", "7", "t:newer", &now, "due", &due, "x:newer", "theirs"];
    one.server.ask(&[&["HSET", account], words.as_slice()].concat());
    assert_eq!(held(&one, &draws[0]), (10, 7));
    one.at(at(61_000));
    assert_eq!(held(&one, &draws[0]), (17, 0), "what it held is booked");
    assert_eq!(one.server.ask(&["HGET", account, "x:newer"]).text(), "theirs");
}
