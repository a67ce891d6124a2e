//! What must not flood, get lost or be told twice: bounds, restarts, clocks that are set, periods of budgets.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;

use super::tests::*;
use super::*;
use crate::event::{ActKind, Ending, Event, EventKind};
use crate::limits::{ALERT_SUBJECTS, ALERTS_A_MINUTE};
use crate::loops::Detector;
use crate::policy::{Hours, Zone};
use crate::time::Timestamp;

fn after_seconds(seconds: i64) -> Timestamp {
    Timestamp(START.0 + seconds * 1000)
}

/// The same engine after a kill: what it handed out was on disk, and nothing else.
struct Kept(std::collections::HashMap<(String, String), String>);

impl Kept {
    fn new() -> Kept {
        Kept(std::collections::HashMap::new())
    }

    fn keep(&mut self, engine: &mut Engine) {
        for change in engine.take_changes() {
            let key = (change.rule, change.subject);
            match change.standing {
                Some(standing) => drop(self.0.insert(key, serde_json::to_string(&standing).unwrap())),
                None => drop(self.0.remove(&key)),
            }
        }
    }

    fn restart(&self, rules: Arc<AlertRules>, now: Timestamp) -> Engine {
        let mut engine = Engine::default();
        engine.set_rules(rules);
        for ((rule, subject), body) in &self.0 {
            engine.restore(rule.clone(), subject.clone(), serde_json::from_str(body).unwrap(), now);
        }
        engine
    }
}

fn rules(list: Vec<AlertRule>) -> Arc<AlertRules> {
    Arc::new(AlertRules { rules: list, quiet: Hours::default() })
}

fn quiet_rules(list: Vec<AlertRule>) -> Arc<AlertRules> {
    // START is 2026-05-28T20:26:40Z: 22:26 in Berlin.
    let zone = Zone::named("Europe/Berlin").unwrap();
    let quiet = Hours { windows: vec!["22:00-07:00".parse().unwrap()].into(), zone, ..Hours::default() };
    Arc::new(AlertRules { rules: list, quiet })
}

#[test]
fn more_silent_agents_than_there_is_room_for_are_counted_and_nothing_is_told_again() {
    let mut engine = engine(vec![rule(AlertKind::AgentDown)]);
    let more = 200;
    for number in 0..ALERT_SUBJECTS + more {
        see(&mut engine, &call(&format!("agent-{number}")), START);
    }
    let mut told: Vec<String> = Vec::new();
    // The cap spreads them over minutes.
    for minute in 0..60 {
        told.extend(engine.tick(after(10 + minute)).into_iter().map(|alert| alert.subject));
    }
    let subjects: HashSet<&String> = told.iter().collect();
    assert_eq!((told.len(), subjects.len()), (ALERT_SUBJECTS, ALERT_SUBJECTS), "each once");
    assert_eq!(engine.take_counts().untold, more as u64, "each is counted once");
    for minute in 0..60 {
        assert_eq!(engine.tick(after(80 + minute)), [], "nothing is told again");
    }
    // One that comes back makes room for another.
    let back = told[0].clone();
    see(&mut engine, &call(&back), after(200));
    let next = engine.tick(after(200));
    let states: Vec<AlertState> = next.iter().map(|alert| alert.state).collect();
    assert!(states.contains(&AlertState::Recovered) || states.contains(&AlertState::Firing), "{next:?}");
}

#[test]
fn names_that_nobody_uses_any_more_are_forgotten_after_a_week() {
    let mut engine = engine(vec![rule(AlertKind::AgentDown)]);
    see(&mut engine, &call("ci-1"), START);
    assert_eq!(engine.tick(after(10)).len(), 1);
    assert_eq!(engine.tick(after(8 * 24 * 60)), []);
    let changes = engine.take_changes();
    assert!(changes.iter().any(|change| change.subject == "ci-1" && change.standing.is_none()), "{changes:?}");
}

#[test]
fn what_is_over_makes_room_and_what_holds_something_back_leaves_last() {
    let week = 7 * 24 * 3_600_000;
    let mut engine = engine(vec![AlertRule { cooldown_ms: week, ..rule(AlertKind::UnpricedModel) }]);
    let told = |number: usize, at: i64, engine: &mut Engine| {
        let mut event = call("bot");
        event.unpriced = true;
        event.model = Some(format!("m{number}"));
        see(engine, &event, after_seconds(at)).len()
    };
    for number in 0..ALERT_SUBJECTS {
        assert_eq!(told(number, number as i64, &mut engine), 1);
    }
    let end = ALERT_SUBJECTS as i64;
    assert_eq!(told(0, end, &mut engine), 0, "held back");
    assert_eq!(told(ALERT_SUBJECTS, end + 1, &mut engine), 1, "one had to leave");
    assert_eq!(told(0, end + 2, &mut engine), 0, "not the one that holds something back");
    assert_eq!(told(1, end + 3, &mut engine), 1, "but the oldest of the others");
}

#[test]
fn a_rule_tells_so_much_in_a_minute_and_the_rest_later() {
    let mut engine = engine(vec![AlertRule { cooldown_ms: 0, ..rule(AlertKind::LoopDetected) }]);
    let cap = ALERTS_A_MINUTE as usize;
    let told: Vec<Alert> = (0..cap + 50)
        .flat_map(|number| see(&mut engine, &looping(&format!("agent-{number}"), Detector::Exact), START))
        .collect();
    assert_eq!(told.len(), cap);
    assert_eq!(engine.take_counts().delayed, 50);
    assert_eq!(engine.tick(after_seconds(59)), []);
    let later = engine.tick(after_seconds(60));
    let late: Vec<_> = later.iter().filter(|alert| alert.state == AlertState::Firing).collect();
    assert_eq!(late.len(), 50, "none is lost");
    assert!(late.iter().all(|alert| alert.suppressed == 0));
}

#[test]
fn a_kill_loses_nothing_that_is_held_back() {
    let rules = rules(vec![rule(AlertKind::LoopDetected)]);
    let (mut kept, event) = (Kept::new(), looping("bot", Detector::Exact));
    let mut engine = kept.restart(rules.clone(), START);
    assert_eq!(see(&mut engine, &event, START).len(), 1);
    for _ in 0..41 {
        assert_eq!(see(&mut engine, &event, after(1)), []);
    }
    kept.keep(&mut engine);
    let mut engine = kept.restart(rules.clone(), after(2));
    assert_eq!(see(&mut engine, &event, after(14)), [], "the cooldown goes on");
    kept.keep(&mut engine);
    let mut engine = kept.restart(rules.clone(), after(15));
    assert_eq!(states(&engine.tick(after(15))), [(AlertState::Digest, 42)]);
    kept.keep(&mut engine);
    let mut engine = kept.restart(rules.clone(), after(30));
    assert_eq!(states(&engine.tick(after(30))), [(AlertState::Recovered, 0)]);
    kept.keep(&mut engine);
    let mut engine = kept.restart(rules, after(31));
    assert_eq!(engine.tick(after(31)), [], "it is told once that it is over");
}

#[test]
fn a_kill_in_quiet_hours_loses_no_alert() {
    let rules = quiet_rules(vec![rule(AlertKind::LoopDetected)]);
    let mut kept = Kept::new();
    let mut engine = kept.restart(rules.clone(), START);
    (0..3).for_each(|_| assert_eq!(see(&mut engine, &looping("bot", Detector::Exact), START), []));
    kept.keep(&mut engine);
    let mut engine = kept.restart(rules, after(8 * 60));
    assert_eq!(engine.tick(after(8 * 60)), [], "06:26");
    assert_eq!(states(&engine.tick(after(8 * 60 + 40))), [(AlertState::Firing, 2)], "07:06");
}

#[test]
fn the_cooldown_counts_from_the_alert_and_not_from_its_end() {
    let rules = rules(vec![rule(AlertKind::KillSwitch)]);
    let (off, on) =
        (act(EventKind::KillSwitch, ActKind::Deactivate, false), act(EventKind::Admin, ActKind::Activate, false));
    let mut kept = Kept::new();
    let mut engine = kept.restart(rules.clone(), START);
    assert_eq!(see(&mut engine, &off, START).len(), 1);
    see(&mut engine, &on, after(10));
    assert_eq!(states(&engine.tick(after(10))), [(AlertState::Recovered, 0)]);
    kept.keep(&mut engine);
    let mut engine = kept.restart(rules, after(11));
    assert_eq!(states(&see(&mut engine, &off, after(15))), [(AlertState::Firing, 0)]);
}

#[test]
fn what_is_kept_of_rules_that_are_gone_is_taken_away() {
    let (mut kept, event) = (Kept::new(), looping("bot", Detector::Exact));
    let mut engine = kept.restart(rules(vec![rule(AlertKind::LoopDetected)]), START);
    see(&mut engine, &event, START);
    kept.keep(&mut engine);
    assert_eq!(kept.0.len(), 1);
    let mut engine = kept.restart(rules(vec![rule(AlertKind::Dlp)]), after(1));
    kept.keep(&mut engine);
    assert_eq!(kept.0.len(), 0);
    engine.set_rules(rules(vec![rule(AlertKind::LoopDetected)]));
    assert_eq!(see(&mut engine, &event, after(2)).len(), 1);
}

fn failed(agent: &str) -> Event {
    let mut event = call(agent);
    event.ending = Ending::UpstreamError;
    event
}

#[test]
fn failures_are_not_over_because_of_a_restart_a_reload_or_little_traffic() {
    let rules = rules(vec![rule(AlertKind::ErrorRate)]);
    let mut kept = Kept::new();
    let mut engine = kept.restart(rules.clone(), START);
    (0..10).for_each(|_| drop(see(&mut engine, &failed("bot"), START)));
    kept.keep(&mut engine);

    let mut restarted = kept.restart(rules.clone(), after(1));
    assert_eq!(restarted.tick(after(1)), [], "after a restart nothing is known yet");
    assert_eq!(see(&mut restarted, &call("bot"), after(1)), []);
    assert_eq!(restarted.tick(after(2)), [], "one call is no proof");
    assert_eq!(states(&restarted.tick(after(6))), [], "and it has left the window");
    see(&mut restarted, &call("bot"), after(7));
    assert_eq!(states(&restarted.tick(after(7))), [(AlertState::Recovered, 0)], "a whole window was counted");

    let mut other = (*rules).clone();
    other.rules.push(rule(AlertKind::Dlp));
    other.rules.swap(0, 1);
    engine.set_rules(Arc::new(other));
    assert_eq!(engine.tick(after(1)), [], "after a reload the counts go on");
    (0..3).for_each(|_| drop(see(&mut engine, &failed("bot"), after(6))));
    assert_eq!(engine.tick(after(6)), [], "few calls that fail are no proof either");
}

#[test]
fn a_clock_that_is_set_neither_tells_again_nor_keeps_silent() {
    let hour = 3_600_000;
    for shift in [hour, -hour] {
        let list = [AlertKind::LoopDetected, AlertKind::AgentDown, AlertKind::ErrorRate].map(rule).to_vec();
        let mut engine = engine(list);
        let at = |minutes: i64, shift: i64| Now { wall: Timestamp(after(minutes).0 + shift), steady: after(minutes) };
        let mut observe = |event: &Event, now: Now| engine.observe(&Observation::of(event), now, None);
        let event = looping("bot", Detector::Exact);
        assert_eq!(observe(&event, at(0, 0)).len(), 1);
        assert_eq!(observe(&event, at(1, shift)), [], "{shift}: it is not told again");
        assert_eq!(engine.tick(at(2, shift)), [], "{shift}: nobody has become silent");
        assert_eq!(states(&engine.tick(at(15, shift)))[0], (AlertState::Firing, 0), "agent_down, by the steady clock");
        let later = engine.tick(at(16, shift));
        assert!(later.is_empty(), "{later:?}");
    }
}

#[test]
fn a_restart_after_the_clock_was_set_back_is_not_silent_for_longer_than_a_cooldown() {
    let rules = rules(vec![rule(AlertKind::LoopDetected)]);
    let (mut kept, event) = (Kept::new(), looping("bot", Detector::Exact));
    let mut engine = kept.restart(rules.clone(), after(120));
    assert_eq!(see(&mut engine, &event, after(120)).len(), 1);
    kept.keep(&mut engine);
    let mut engine = kept.restart(rules, after(60));
    assert_eq!(see(&mut engine, &event, after(60)), []);
    assert_eq!(states(&engine.tick(after(75))), [(AlertState::Digest, 1)]);
}

#[test]
fn two_alerts_of_one_moment_do_not_share_an_id() {
    let mut engine = engine(vec![AlertRule { cooldown_ms: 0, ..rule(AlertKind::LoopDetected) }]);
    let event = looping("bot", Detector::Exact);
    let ids: HashSet<String> = (0..20).flat_map(|_| see(&mut engine, &event, START)).map(|alert| alert.id).collect();
    assert_eq!(ids.len(), 20);
}

fn reached(percent: u8, day: i64) -> Event {
    let mut event = act(EventKind::Budget, ActKind::BudgetReached, false);
    let since = Timestamp(day * 86_400_000);
    let act = event.act.as_mut().unwrap();
    act.detail = Some(json!({
        "percent": percent, "since": since.to_rfc3339(), "until": Timestamp(since.0 + 86_400_000).to_rfc3339(),
    }));
    event
}

#[test]
fn each_threshold_of_a_budget_is_told_once_in_its_period_and_again_in_the_next() {
    let rules = rules(vec![AlertRule { thresholds: vec![50, 100], ..rule(AlertKind::Budget) }]);
    let (mut kept, day) = (Kept::new(), 20_000);
    let at = |day: i64, minutes: i64| Timestamp(day * 86_400_000 + minutes * 60_000);
    let mut engine = kept.restart(rules.clone(), at(day, 0));
    let told: Vec<String> = [50, 80, 100]
        .iter()
        .flat_map(|percent| see(&mut engine, &reached(*percent, day), at(day, 1)))
        .map(|alert| alert.subject)
        .collect();
    assert_eq!(told, ["agent:bot at 50 %", "agent:bot at 100 %"]);
    assert_eq!(engine.tick(at(day, 600)), []);
    kept.keep(&mut engine);
    let mut engine = kept.restart(rules, at(day, 900));
    assert_eq!(see(&mut engine, &reached(50, day), at(day, 1435)), [], "long after the cooldown, but the same day");
    assert_eq!(engine.tick(at(day, 1436)), [], "and nothing is counted for a digest");
    assert_eq!(see(&mut engine, &reached(50, day + 1), at(day + 1, 1)).len(), 1, "the next day again");
    assert_eq!(see(&mut engine, &reached(50, day + 2), at(day + 2, 0)).len(), 1);
    assert_eq!(see(&mut engine, &reached(50, day + 3), at(day + 2, 1)).len(), 1, "whatever the cooldown");
}

#[test]
fn a_budget_rule_without_thresholds_tells_every_stage() {
    let mut engine = engine(vec![rule(AlertKind::Budget)]);
    for percent in [50, 65, 80, 100] {
        assert_eq!(see(&mut engine, &reached(percent, 20_000), START).len(), 1, "{percent}");
    }
    let list = [vec![], vec![30, 100]].map(|thresholds| AlertRule { thresholds, ..rule(AlertKind::Budget) });
    assert_eq!(AlertRules { rules: list.to_vec(), ..AlertRules::default() }.budget_thresholds(), [30, 50, 80, 100]);
}

#[test]
fn what_was_put_together_counts_for_each() {
    let mut engine = engine(vec![rule(AlertKind::LoopDetected)]);
    let together = Observation { again: 6, ..Observation::of(&looping("bot", Detector::Exact)) };
    assert_eq!(states(&engine.observe(&together, START, None)), [(AlertState::Firing, 6)]);
    assert_eq!(engine.observe(&together, after(1), None), []);
    assert_eq!(states(&engine.tick(after(15))), [(AlertState::Digest, 7)]);
}
