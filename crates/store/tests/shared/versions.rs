//! Two versions beside each other on one Redis, as while nodes are upgraded one after the other. A stand-in plays the newer one:
//! it writes what the next version might write in the same form.

use super::*;

/// Adds what this version does not know to everything that it keeps: bytes behind each record, an entry to each call under way.
const A_NEWER_VERSION: &str = "local changed = 0
for _, key in ipairs(redis.call('KEYS', 'sprag:2:*')) do
  local value = redis.call('GET', key)
  if string.find(value, '^[arm]1') then
    redis.call('SET', key, value .. 'theirs', 'KEEPTTL')
    changed = changed + 1
  elseif string.find(key, ':call:', 1, true) then
    local call = cmsgpack.unpack(value)
    call.mood = 'theirs'
    redis.call('SET', key, cmsgpack.pack(call), 'KEEPTTL')
    changed = changed + 1
  end
end
return changed";

/// What it added and still finds.
const STILL_THERE: &str = "local found = {}
for _, key in ipairs(redis.call('KEYS', 'sprag:2:*')) do
  local value = redis.call('GET', key)
  if string.find(value, '^[arm]1') then
    if string.sub(value, -6) == 'theirs' then found[#found + 1] = key end
  elseif string.find(key, ':call:', 1, true) then
    if cmsgpack.unpack(value).mood == 'theirs' then found[#found + 1] = key end
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
    let account = "sprag:2:{everything}:money:daily";
    let holds = "local form = '<c2dddddddI2c0I2c0I2c0'
        local mark, s, r, v, b, f, e, due, g, n, k = struct.unpack(form, redis.call('GET', KEYS[1]))
        n = struct.pack('<c12dd', 'a-newer-node', 7, ARGV[1])
        local held = struct.pack(form, mark, s, 7, v, b, f, e, ARGV[1] + 60000, #g, g, #n, n, #k, k)
        redis.call('SET', KEYS[1], held .. 'theirs', 'KEEPTTL')";
    one.server.ask(&["EVAL", holds, "1", account, &one.now().0.to_string()]);
    assert_eq!(held(&one, &draws[0]), (10, 7));
    one.at(at(61_000));
    assert_eq!(held(&one, &draws[0]), (17, 0), "what it held is booked");
    settle(&one, &begin_paid(&one, &key("r"), money(&draws, 1)).call, 1);
    assert_eq!(held(&one, &draws[0]), (18, 0));
    assert!(one.server.ask(&["GET", account]).bytes().ends_with(b"theirs"));
}
