//! How requests are recognised as a run's, whichever node they come to.

use sprag_core::loops::{Finding, Mode, Preset, RepeatRule, Rules, WindowMode};
use sprag_core::run::{Clue, Lookup, RETRY_MS, Remember};
use sprag_store::shared::{AskedRun, Begin, End, NewHabits, RepeatAsk};
use sprag_store::state::State;

use super::*;

fn clue(hash: u64, lookup: Lookup) -> Clue {
    Clue { hash, lookup, origin: RunOrigin::Previous }
}

fn follow(state: &RedisState, clues: &[Clue], otherwise: &str) -> (String, RunOrigin, Option<usize>) {
    let (call, own) = (call_id(), key(otherwise));
    let origin = RunOrigin::Conversation;
    let otherwise = NamedRun { id: &own.id, parent: None, origin, seed: None, lineage: &[] };
    let run = AskedRun::Evidence { clues, otherwise };
    let begun = state.begin(&Begin { run, ..outside(&call, &own.agent, &NOTHING) });
    state.end(&begun.call, &ending(EndHow::Withdrawn, &NOTHING));
    let run = begun.run.unwrap();
    (run.id.to_string(), run.origin, run.clue)
}

fn leave(state: &RedisState, run: &str, left: &Remember) {
    let begun = state.begin_run(&request(&key(run), None, 0));
    state.end(&begun.call, &ending(cost(1, at(0)), left));
}

#[test]
fn the_first_clue_that_leads_somewhere_counts() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    leave(&one, "a", &Remember { clues: vec![1], offers: vec![2], ..Remember::default() });
    let known = [clue(9, Lookup::Known), clue(1, Lookup::Known)];
    assert_eq!(follow(&two, &known, "mine"), ("a".into(), RunOrigin::Previous, Some(1)));
    let nothing = [clue(9, Lookup::Known), clue(9, Lookup::Claim), clue(9, Lookup::Retry)];
    assert_eq!(follow(&two, &nothing, "mine"), ("mine".into(), RunOrigin::Conversation, None));
    assert_eq!(one.run(&key("mine")), None, "what is taken back leaves nothing");
    assert_eq!(one.run(&key("a")).unwrap().totals.steps, 1, "and counts nothing");
    assert_eq!(follow(&two, &[clue(2, Lookup::Claim)], "mine").0, "a");
    assert_eq!(follow(&one, &[clue(2, Lookup::Claim)], "mine").0, "mine", "claimed once");
}

#[test]
fn a_clue_is_known_for_an_hour_after_it_was_left_the_last_time() {
    let Some(one) = node() else { return };
    let known = [clue(1, Lookup::Known)];
    let left = Remember { clues: vec![1], unless_taken: vec![2], offers: vec![3], ..Remember::default() };
    leave(&one, "a", &left);
    let lives_for = |key: &String| one.server.ask(&["PTTL", key]).number();
    let hour = 3_540_000..=3_600_000;
    let keys = [one.keys("*}:c:*"), one.keys("*}:o:*")].concat();
    assert_eq!(keys.len(), 3, "{keys:?}");
    for key in &keys {
        assert!(hour.contains(&lives_for(key)), "{key}");
        one.server.ask(&["PEXPIRE", key, "1000"]);
    }
    assert_eq!(follow(&one, &known, "mine").0, "a");
    assert!(keys.iter().all(|key| lives_for(key) <= 1_000), "who only asks does not keep it");
    leave(&one, "a", &left);
    assert!(keys.iter().all(|key| hour.contains(&lives_for(key))), "who leaves it again does");
}

#[test]
fn a_retry_comes_soon() {
    let Some(one) = node() else { return };
    let retry = [clue(2, Lookup::Retry)];
    let offer = Remember { offers: vec![2], ..Remember::default() };
    leave(&one, "a", &offer);
    one.at(at(RETRY_MS as i64));
    assert_eq!(follow(&one, &retry, "mine").0, "a");
    leave(&one, "a", &offer);
    one.at(at(2 * RETRY_MS as i64 + 1));
    assert_eq!(follow(&one, &retry, "mine").0, "mine");
}

#[test]
fn what_a_call_brings_is_known_as_soon_as_it_begins() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let (call, run) = (call_id(), key("r"));
    let left = Remember { clues: vec![5], offers: vec![6], ..Remember::default() };
    let named = NamedRun { id: &run.id, parent: None, origin: RunOrigin::Trace, seed: None, lineage: &[] };
    let begun = one.begin(&Begin { run: AskedRun::Named(named), ..outside(&call, &run.agent, &left) });
    assert_eq!(follow(&two, &[clue(5, Lookup::Known)], "mine").0, "r");
    let withdrawn = Remember { withdrawn: vec![6], ..Remember::default() };
    one.end(&begun.call, &ending(cost(1, at(0)), &withdrawn));
    assert_eq!(follow(&two, &[clue(6, Lookup::Claim)], "mine").0, "mine");
}

#[test]
fn habits_travel() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let begun = one.begin_run(&request(&key("r"), None, 0));
    let habits = NewHabits { run: Some(b"of the run"), of_model: Some(("m", b"of the model")) };
    one.end(&begun.call, &End { habits: Some(habits), ..ending(cost(1, at(0)), &NOTHING) });
    let (call, run) = (call_id(), key("r"));
    let named = NamedRun { id: &run.id, parent: None, origin: RunOrigin::Declared, seed: None, lineage: &[] };
    let begin = Begin { run: AskedRun::Named(named), model: Some("m"), ..outside(&call, &run.agent, &NOTHING) };
    let begun = two.begin(&begin);
    assert_eq!(begun.run.unwrap().habits.as_deref(), Some(&b"of the run"[..]));
    assert_eq!(begun.agent_habits.as_deref(), Some(&b"of the model"[..]));
}

fn rule(mode: WindowMode, seconds: u32, requests: u32) -> RepeatRule {
    let mut rule = Rules::preset(Preset::Fairvisor).repeat;
    (rule.threshold, rule.common.mode) = (3, Mode::Enforce);
    (rule.common.window.mode, rule.common.window.seconds, rule.common.window.requests) = (mode, seconds, requests);
    rule
}

fn count(state: &RedisState, fingerprint: u64, rule: &RepeatRule) -> (Option<Finding>, SharedCall) {
    let (call, agent) = (call_id(), key("r").agent);
    let repeat = Some(RepeatAsk { fingerprint, rule });
    let begun = state.begin(&Begin { repeat, ..outside(&call, &agent, &NOTHING) });
    (begun.repeat, begun.call)
}

#[test]
fn identical_requests_are_counted_as_in_memory() {
    let Some(one) = node() else { return };
    let two = one.neighbour();
    let kinds = [WindowMode::Sliding, WindowMode::Refresh, WindowMode::Fixed];
    let rules: Vec<RepeatRule> =
        kinds.into_iter().flat_map(|mode| [rule(mode, 5, 0), rule(mode, 0, 4), rule(mode, 5, 6)]).collect();
    for (number, rule) in rules.iter().enumerate() {
        let memory = State::memory();
        let mut random = common::Random::new(number as u64);
        let (mut now, mut found) = (0, 0);
        one.server.flush();
        for step in 0..60 {
            now += random.below(2_500) as i64;
            one.at(at(now));
            let fingerprint = random.below(3);
            let node = if random.below(2) == 0 { &one } else { &two };
            let expected = memory.count_repeat(fingerprint, at(now), rule);
            assert_eq!(count(node, fingerprint, rule).0, expected, "rule {number}, step {step}");
            found += usize::from(expected.is_some());
        }
        assert!(found > 0 && found < 60, "rule {number}: {found}");
    }
}

#[test]
fn a_request_that_came_to_nothing_is_not_counted() {
    let Some(one) = node() else { return };
    let rule = rule(WindowMode::Sliding, 60, 0);
    for _ in 0..5 {
        let (found, call) = count(&one, 1, &rule);
        assert_eq!(found, None);
        one.end(&call, &End { uncounts_repeat: true, ..ending(contract::refused(at(0)), &NOTHING) });
    }
    let counts: Vec<bool> = (0..3).map(|_| count(&one, 1, &rule).0.is_some()).collect();
    assert_eq!(counts, [false, false, true]);
}
