use std::sync::Arc;

use serde_json::{Value, json};

use super::forms;
use super::*;
use crate::event::{Act, ActKind, Ending, Event, EventKind, RunOrigin, RunRecord};
use crate::id::{AgentName, RunId};
use crate::loops::{Action, Detector, Finding, Mode, Proof, ProofStep, Verdict};
use crate::money::NanoUsd;
use crate::policy::{Hours, Zone};
use crate::time::Timestamp;

pub(super) const START: Timestamp = Timestamp(1_780_000_000_000);
const MINUTE: i64 = 60_000;

pub(super) fn after(minutes: i64) -> Timestamp {
    Timestamp(START.0 + minutes * MINUTE)
}

pub(super) fn rule(kind: AlertKind) -> AlertRule {
    AlertRule {
        name: kind.as_str().to_owned(),
        kind,
        agents: vec!["*".to_owned()],
        channels: vec!["ops".to_owned()],
        cooldown_ms: 15 * 60_000,
        repeat_ms: None,
        tells_recovery: true,
        keeps_quiet: true,
        error_rate: ErrorRate { percent: 50, min_requests: 10, window_ms: 5 * 60_000 },
        silent_ms: 10 * 60_000,
        thresholds: Vec::new(),
        is_for_all: false,
    }
}

pub(super) fn engine(rules: Vec<AlertRule>) -> Engine {
    let mut engine = Engine::default();
    engine.set_rules(Arc::new(AlertRules { rules, quiet: Hours::default() }));
    engine
}

pub(super) fn call(agent: &str) -> Event {
    let mut event = Event::new("req_1".to_owned(), START, EventKind::LlmCall);
    event.agent = AgentName::parse(agent).unwrap();
    let id = RunId::parse("task-1#key-4k2m9x0a").unwrap();
    event.run = Some(RunRecord { id, step: 9, parent: None, origin: RunOrigin::Declared });
    event.status = 200;
    event
}

pub(super) fn looping(agent: &str, detector: Detector) -> Event {
    let steps = [3, 5, 7].map(|step| ProofStep { step, alike: "exact".to_owned(), ..ProofStep::default() });
    let proof = Proof {
        summary: "search was called 3 times with the same result".to_owned(),
        compared: "calls and results".to_owned(),
        threshold: 1.0,
        value: 1.25,
        window: "last 24 steps".to_owned(),
        steps: steps.to_vec(),
    };
    let (mode, loop_type) = (Mode::Enforce, "repeated_step".to_owned());
    let finding = Finding { detector, mode, loop_type, confidence: 0.9, score: 1.25, count: 3, proof };
    let mut event = call(agent);
    event.verdict = Some(Verdict { finding, action: Action::Reject, strike: 1, retry_seconds: None });
    event.blocked = true;
    event.ending = Ending::Refused;
    event
}

pub(super) fn act(kind: EventKind, what: ActKind, run: bool) -> Event {
    let act = Act {
        what,
        by: "sprag".to_owned(),
        target: "agent:bot".to_owned(),
        reason: "loop_detected".to_owned(),
        proof: None,
        expires_at: None,
        detail: Some(json!({"percent": 80, "window": "day"})),
    };
    let run = run.then(|| call("bot").run.unwrap());
    Event::of_act("req_2".to_owned(), START, kind, AgentName::parse("bot").unwrap(), run, act)
}

pub(super) fn see(engine: &mut Engine, event: &Event, now: Timestamp) -> Vec<Alert> {
    engine.observe(&Observation::of(event), now, Some(NanoUsd(1_500_000_000)))
}

pub(super) fn states(alerts: &[Alert]) -> Vec<(AlertState, u64)> {
    alerts.iter().map(|alert| (alert.state, alert.suppressed)).collect()
}

#[test]
fn every_kind_is_seen_in_its_event() {
    let mut unpriced = call("bot");
    unpriced.unpriced = true;
    unpriced.model = Some("new-model".to_owned());
    let mut dlp = call("bot");
    dlp.dlp = serde_json::from_value(json!({"total": 1, "list": [{"entity": "EMAIL", "direction": "request",
        "outcome": "redacted", "path": "messages[0]", "start": 0, "length": 5, "hint": "a***"}]}))
    .unwrap();
    for (event, kind, subject) in [
        (looping("bot", Detector::Progress), AlertKind::LoopDetected, "bot"),
        (looping("bot", Detector::Velocity), AlertKind::Velocity, "bot"),
        (act(EventKind::KillSwitch, ActKind::Deactivate, false), AlertKind::KillSwitch, "bot"),
        (act(EventKind::RunKilled, ActKind::Kill, true), AlertKind::RunKilled, "bot"),
        (act(EventKind::Admin, ActKind::Pause, true), AlertKind::RunKilled, "bot"),
        (act(EventKind::Budget, ActKind::BudgetReached, false), AlertKind::Budget, "agent:bot at 80 %"),
        (unpriced, AlertKind::UnpricedModel, "new-model"),
        (dlp, AlertKind::Dlp, "bot"),
    ] {
        let alerts = see(&mut engine(AlertKind::ALL.map(rule).to_vec()), &event, START);
        let told: Vec<_> = alerts.iter().map(|alert| (alert.kind, alert.subject.as_str())).collect();
        assert_eq!(told, [(kind, subject)]);
    }
    let quiet = see(&mut engine(AlertKind::ALL.map(rule).to_vec()), &call("bot"), START);
    assert_eq!(quiet, []);
}

#[test]
fn a_burst_is_told_once_in_a_cooldown_and_then_counted() {
    let mut engine = engine(vec![rule(AlertKind::LoopDetected)]);
    let event = looping("bot", Detector::Exact);
    let told: Vec<Alert> = (0..1000).flat_map(|_| see(&mut engine, &event, START)).collect();
    assert_eq!(states(&told), [(AlertState::Firing, 0)]);
    assert_eq!((told[0].occurrence.blocked_requests, told[0].occurrence.cost_usd), (1, Some(1.5)));
    assert_eq!(told[0].occurrence.run.as_deref(), Some("task-1#key-4k2m9x0a"));
    assert_eq!(engine.tick(Timestamp(after(15).0 - 1)), []);
    let digest = engine.tick(after(15));
    assert_eq!(states(&digest), [(AlertState::Digest, 999)]);
    assert_eq!(digest[0].occurrence.blocked_requests, 1000);
    assert_ne!(digest[0].id, told[0].id);
    assert_eq!(engine.tick(after(16)), []);
    assert_eq!(states(&engine.tick(after(30))), [(AlertState::Recovered, 0)]);
    assert_eq!(engine.tick(after(31)), [], "it is told once that it is over");
    assert_eq!(states(&see(&mut engine, &event, after(32))), [(AlertState::Firing, 0)]);
}

#[test]
fn what_lasts_is_repeated_until_it_ends() {
    let mut engine = engine(vec![AlertRule { repeat_ms: Some(60 * 60_000), ..rule(AlertKind::KillSwitch) }]);
    let switched = act(EventKind::KillSwitch, ActKind::Deactivate, false);
    assert_eq!(states(&see(&mut engine, &switched, START)), [(AlertState::Firing, 0)]);
    assert_eq!(engine.tick(after(59)), []);
    assert_eq!(states(&engine.tick(after(60))), [(AlertState::Repeated, 0)]);
    assert_eq!(see(&mut engine, &act(EventKind::Admin, ActKind::Activate, false), after(61)), []);
    assert_eq!(states(&engine.tick(after(61))), [(AlertState::Recovered, 0)]);
    assert_eq!(engine.tick(after(200)), []);
}

#[test]
fn what_comes_back_within_the_cooldown_waits_for_its_end() {
    let mut engine = engine(vec![rule(AlertKind::KillSwitch)]);
    let (off, on) =
        (act(EventKind::KillSwitch, ActKind::Deactivate, false), act(EventKind::Admin, ActKind::Activate, false));
    assert_eq!(see(&mut engine, &off, START).len(), 1);
    see(&mut engine, &on, after(1));
    assert_eq!(states(&engine.tick(after(1))), [(AlertState::Recovered, 0)]);
    assert_eq!(see(&mut engine, &off, after(2)), []);
    assert_eq!(engine.tick(after(14)), []);
    assert_eq!(states(&engine.tick(after(15))), [(AlertState::Digest, 1)]);
}

#[test]
fn failures_are_told_from_the_threshold_on_and_end_by_themselves() {
    let mut engine = engine(vec![rule(AlertKind::ErrorRate)]);
    let mut failed = call("bot");
    failed.ending = Ending::UpstreamError;
    for _ in 0..5 {
        assert_eq!(see(&mut engine, &call("bot"), START), []);
    }
    for _ in 0..4 {
        assert_eq!(see(&mut engine, &failed, START), [], "fewer than ten calls");
    }
    let told = see(&mut engine, &failed, START);
    assert_eq!(states(&told), [(AlertState::Firing, 0)]);
    assert_eq!(told[0].occurrence.reason, "5 of 10 calls failed");
    assert_eq!(see(&mut engine, &failed, START), [], "it lasts");
    assert_eq!(engine.tick(after(4)), []);
    assert_eq!(engine.tick(after(5)), [], "no calls say nothing");
    assert_eq!(see(&mut engine, &call("bot"), after(6)), []);
    assert_eq!(states(&engine.tick(after(6))), [(AlertState::Recovered, 0)]);
    let mut refused = looping("other", Detector::Exact);
    refused.verdict = None;
    (0..20).for_each(|_| assert_eq!(see(&mut engine, &refused, START), [], "refusals are no failures"));
}

#[test]
fn an_agent_that_falls_silent_is_told_until_it_calls() {
    let mut engine = engine(vec![AlertRule { agents: vec!["ci-*".to_owned()], ..rule(AlertKind::AgentDown) }]);
    see(&mut engine, &call("ci-1"), START);
    see(&mut engine, &call("bot"), START);
    assert_eq!(engine.tick(Timestamp(after(10).0 - 1)), []);
    let told = engine.tick(after(10));
    assert_eq!((states(&told), told[0].subject.as_str()), (vec![(AlertState::Firing, 0)], "ci-1"));
    assert_eq!(engine.tick(after(30)), []);
    see(&mut engine, &call("ci-1"), after(31));
    assert_eq!(states(&engine.tick(after(31))), [(AlertState::Recovered, 0)]);
}

#[test]
fn quiet_hours_hold_alerts_back_and_tell_them_afterwards() {
    // START is 2026-05-28T20:26:40Z: 22:26 in Berlin.
    let zone = Zone::named("Europe/Berlin").unwrap();
    let quiet = Hours { windows: vec!["22:00-07:00".parse().unwrap()].into(), zone, ..Hours::default() };
    let loud = AlertRule { keeps_quiet: false, name: "loud".to_owned(), ..rule(AlertKind::LoopDetected) };
    let mut engine = Engine::default();
    engine.set_rules(Arc::new(AlertRules { rules: vec![rule(AlertKind::LoopDetected), loud], quiet }));
    let event = looping("bot", Detector::Exact);
    let told: Vec<Alert> = (0..3).flat_map(|_| see(&mut engine, &event, START)).collect();
    assert_eq!(told.iter().map(|alert| alert.rule.as_str()).collect::<Vec<_>>(), ["loud"]);
    let held = |alerts: Vec<Alert>| states(&alerts.into_iter().filter(|a| a.rule != "loud").collect::<Vec<_>>());
    assert_eq!(held(engine.tick(after(8 * 60))), [], "06:26");
    assert_eq!(held(engine.tick(after(8 * 60 + 40))), [(AlertState::Firing, 2)], "07:06");
}

#[test]
fn patterns_fit_whole_names() {
    for (pattern, name, fits) in [
        ("*", "bot", true),
        ("bot", "bot", true),
        ("bot", "bots", false),
        ("ci-*", "ci-1", true),
        ("ci-*", "xci-1", false),
        ("*-prod", "a-prod", true),
        ("a*b*c", "a-b-c", true),
        ("a*b*c", "acb", false),
        ("", "bot", false),
    ] {
        assert_eq!(agent_matches(pattern, name), fits, "{pattern} {name}");
    }
}

fn shown(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

fn sample(agent: &str) -> Alert {
    let mut alert =
        see(&mut engine(vec![rule(AlertKind::LoopDetected)]), &looping(agent, Detector::Exact), START).remove(0);
    alert.link = Some("http://127.0.0.1:7071/run?agent=bot&id=task%2D1".to_owned());
    alert
}

fn links() -> Vec<ActLink> {
    let link = |act, token| ActLink { act, url: format!("https://sprag.example.com/act?t={token}") };
    vec![link(LinkAct::Approve, "abc"), link(LinkAct::Kill, "def")]
}

#[test]
fn each_channel_gets_its_form() {
    let alert = sample("bot");
    let sent: Value = serde_json::from_str(&forms::webhook(&alert, &links())).unwrap();
    insta::assert_snapshot!("webhook", shown(&sent));
    let bare: Value = serde_json::from_str(&forms::webhook(&alert, &[])).unwrap();
    assert_eq!(bare, serde_json::to_value(&alert).unwrap(), "without links it is the alert on record");
    insta::assert_snapshot!("slack", shown(&forms::slack(&alert, &links())));
    insta::assert_snapshot!("discord", shown(&forms::discord(&alert, &links())));
    insta::assert_snapshot!("teams", shown(&forms::teams(&alert, &links())));
    insta::assert_snapshot!("telegram", shown(&forms::telegram(&alert, "-100123", &links())));
    insta::assert_snapshot!("pagerduty", shown(&forms::pagerduty(&alert, "R0UT1NG", &links())));
    let mail = forms::email(&alert, &links());
    insta::assert_snapshot!("email", format!("{}\n---\n{}---\n{}", mail.subject, mail.text, mail.html));
    insta::assert_snapshot!("test", shown(&serde_json::to_value(Alert::test("ops", "anna", START)).unwrap()));
}

#[test]
fn what_is_over_resolves_the_incident_that_it_opened() {
    let (mut engine, event) = (engine(vec![rule(AlertKind::LoopDetected)]), looping("bot", Detector::Exact));
    let opened = forms::pagerduty(&see(&mut engine, &event, START)[0], "k", &[]);
    let closed = forms::pagerduty(&engine.tick(after(15))[0], "k", &[]);
    assert_eq!((&opened["event_action"], &closed["event_action"]), (&json!("trigger"), &json!("resolve")));
    assert_eq!(opened["dedup_key"], closed["dedup_key"]);
}
