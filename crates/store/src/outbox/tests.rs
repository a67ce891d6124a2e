use std::sync::Arc;

use sprag_core::alerts::{AlertKind, AlertRule, AlertRules, AlertState, Engine, ErrorRate, Observation, Occurrence};
use sprag_core::event::{Event, EventKind};
use tempfile::TempDir;

use super::*;

const FAR: Timestamp = Timestamp(i64::MAX);

fn alert(subject: &str, at: i64) -> Alert {
    let of = ("loops", AlertKind::LoopDetected);
    Alert::new(of, subject, AlertState::Firing, Timestamp(at), 0, Occurrence::default())
}

fn raised(subject: &str, at: i64) -> Raised {
    Raised { alert: alert(subject, at), at: Timestamp(at), channels: ["mail", "ops"].map(str::to_owned).to_vec() }
}

fn open(folder: &TempDir, most: u32) -> Outbox {
    Outbox::bounded(Arc::new(DataDir::open(folder.path()).unwrap()), most).unwrap()
}

fn due(outbox: &Outbox, channel: &str, now: i64, is_strict: bool) -> Vec<i64> {
    let due = outbox.due(channel, Timestamp(now), FAR, is_strict, 100).unwrap();
    due.iter().map(|one| one.seq).collect()
}

fn tried(outbox: &Outbox, channel: &str, seq: i64, attempts: u32, next_at: i64) {
    let now = Timestamp(i64::MAX - 1);
    let all = outbox.due(channel, now, FAR, false, 1000).unwrap();
    let one = all.into_iter().find(|one| one.seq == seq).unwrap();
    outbox.note(&Delivery { attempts, next_at: Timestamp(next_at), ..one }).unwrap();
}

#[test]
fn what_waits_is_there_after_a_restart_until_it_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = open(&folder, 100);
    outbox.write(&[raised("bot", 1)], &[]).unwrap();
    outbox.write(&[raised("bot", 1)], &[]).unwrap();
    drop(outbox);
    let outbox = open(&folder, 100);
    assert_eq!(outbox.waiting_channels().unwrap(), ["mail", "ops"]);
    let [mail, ops] = ["mail", "ops"].map(|channel| outbox.due(channel, Timestamp(1), FAR, false, 9).unwrap());
    assert_eq!((mail.len(), ops.len()), (1, 1), "each once");
    assert_eq!(outbox.alert(mail[0].seq).unwrap(), Some(alert("bot", 1)));
    let (error, next_at) = (Some("x".repeat(deliveries::ERROR_CHARS + 1)), Timestamp(9));
    outbox.note(&Delivery { attempts: 1, next_at, error, ..mail[0].clone() }).unwrap();
    let (state, done_at) = (DeliveryState::Delivered, Some(Timestamp(5)));
    outbox.note(&Delivery { state, done_at, ..ops[0].clone() }).unwrap();
    drop(outbox);
    let outbox = open(&folder, 100);
    assert_eq!((due(&outbox, "mail", 8, false), due(&outbox, "mail", 9, false)), (vec![], vec![1]));
    let back = outbox.due("mail", Timestamp(1), Timestamp(8), false, 9).unwrap();
    assert_eq!(back.len(), 1, "a clock that was set back does not hold it up");
    let listed = outbox.list(None, 10).unwrap();
    assert_eq!(listed[0].deliveries[0].error.as_ref().map(String::len), Some(deliveries::ERROR_CHARS));
    assert_eq!((listed[0].deliveries[1].state, listed[0].deliveries[1].done_at), (state, done_at));
}

#[test]
fn alerts_are_listed_in_pages_and_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = open(&folder, 4);
    for at in 1..=6 {
        outbox.write(&[raised("a", at)], &[]).unwrap();
    }
    let moments = |alerts: Vec<SentAlert>| alerts.iter().map(|alert| alert.at.0).collect::<Vec<_>>();
    let first = outbox.list(None, 2).unwrap();
    let last = first[1].seq;
    assert_eq!(moments(first), [6, 5]);
    assert_eq!(moments(outbox.list(Some(last), 9).unwrap()), [4, 3], "the oldest are gone");
}

#[test]
fn what_waits_too_long_is_given_up_where_it_can_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = open(&folder, 4);
    let given_up: Vec<u64> = (1..=4).map(|at| outbox.write(&[raised("a", at)], &[]).unwrap()).collect();
    assert_eq!(given_up, [0, 0, 2, 2], "to two channels each");
    let listed = outbox.list(None, 10).unwrap();
    let states: Vec<DeliveryState> = listed.iter().map(|sent| sent.deliveries[0].state).collect();
    let (waits, left) = (DeliveryState::Waiting, DeliveryState::GivenUp);
    assert_eq!(states, [waits, waits, left, left]);
    let error = listed[3].deliveries[0].error.clone().unwrap();
    assert!(error.contains("2 newer alerts"), "{error}");
    let backlog = Backlog { waiting: 4, given_up: 4, held_back: 0 };
    assert_eq!(outbox.backlog().unwrap(), backlog);
    // One that was on its way meanwhile does not come back to life by a try that failed.
    outbox.note(&Delivery { state: waits, ..listed[3].deliveries[0].clone() }).unwrap();
    assert_eq!(outbox.backlog().unwrap(), backlog);
}

#[test]
fn what_is_about_the_same_goes_out_in_its_order_and_others_pass_it() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = open(&folder, 100);
    outbox.write(&[raised("a", 1), raised("a", 2), raised("b", 3)], &[]).unwrap();
    assert_eq!(due(&outbox, "ops", 9, false), [1, 3]);
    tried(&outbox, "ops", 1, 2, 50);
    assert_eq!(due(&outbox, "ops", 9, false), [3], "the second waits for the first");
    tried(&outbox, "ops", 1, 3, 50);
    assert_eq!(due(&outbox, "ops", 9, false), [2, 3], "not for ever, where others arrive");
    assert_eq!(due(&outbox, "ops", 9, true), [3], "but while the channel fails");
    outbox.hasten("ops", Timestamp(9)).unwrap();
    assert_eq!(due(&outbox, "ops", 9, true), [3, 1], "it works again");
    assert_eq!(outbox.due("ops", Timestamp(9), FAR, false, 1).unwrap().len(), 1, "a page at a time");
}

#[test]
fn a_channel_that_is_down_is_tried_with_each_message_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = open(&folder, 100);
    outbox.write(&[raised("a", 1), raised("b", 2), raised("c", 3)], &[]).unwrap();
    let next = |now| outbox.due("ops", Timestamp(now), FAR, true, 1).unwrap().remove(0).seq;
    for seq in [1, 2] {
        assert_eq!(next(9), seq);
        tried(&outbox, "ops", seq, 5, 50 + seq);
    }
    assert_eq!(next(100), 3, "what was never tried does not wait for what failed often");
    tried(&outbox, "ops", 3, 5, 150);
    assert_eq!(next(200), 1, "and then it goes round");
}

#[test]
fn what_was_given_up_is_sent_again_when_somebody_asks() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = open(&folder, 100);
    outbox.write(&[raised("a", 1)], &[]).unwrap();
    let one = outbox.due("ops", Timestamp(1), FAR, false, 1).unwrap().remove(0);
    let (state, done_at) = (DeliveryState::GivenUp, Some(Timestamp(2)));
    outbox.note(&Delivery { state, done_at, attempts: 7, error: Some("no".to_owned()), ..one }).unwrap();
    let id = alert("a", 1).id;
    assert_eq!(outbox.again("alert_0", None, Timestamp(9)).unwrap(), None);
    assert_eq!(outbox.again(&id, Some("mail"), Timestamp(9)).unwrap(), Some(0), "it still waits there");
    assert_eq!(outbox.again(&id, None, Timestamp(9)).unwrap(), Some(1));
    let again = outbox.due("ops", Timestamp(9), FAR, false, 1).unwrap().remove(0);
    assert_eq!((again.attempts, again.queued_at, again.error), (0, Timestamp(9), None));
}

#[test]
fn standings_are_kept_with_the_alerts_that_they_gave() {
    let folder = tempfile::tempdir().unwrap();
    let rule = AlertRule {
        name: "models".to_owned(),
        kind: AlertKind::UnpricedModel,
        agents: vec!["*".to_owned()],
        channels: Vec::new(),
        cooldown_ms: 1000,
        repeat_ms: None,
        tells_recovery: false,
        keeps_quiet: false,
        error_rate: ErrorRate { percent: 1, min_requests: 1, window_ms: 1 },
        silent_ms: 1,
        thresholds: Vec::new(),
        is_for_all: false,
    };
    let rules = Arc::new(AlertRules { rules: vec![rule], ..AlertRules::default() });
    let mut engine = Engine::default();
    engine.set_rules(rules.clone());
    let mut event = Event::new("req_1".to_owned(), Timestamp(1), EventKind::LlmCall);
    event.unpriced = true;
    let told: usize = (0..5).map(|_| engine.observe(&Observation::of(&event), Timestamp(5000), None).len()).sum();
    assert_eq!(told, 1);
    open(&folder, 100).write(&[], &engine.take_changes()).unwrap();

    assert_eq!(open(&folder, 100).backlog().unwrap().held_back, 4);
    let mut engine = Engine::default();
    engine.set_rules(rules);
    for (rule, subject, standing) in open(&folder, 100).standings().unwrap() {
        engine.restore(rule, subject, standing, Timestamp(5000));
    }
    let digest = engine.tick(Timestamp(6000));
    assert_eq!((digest.len(), digest[0].suppressed), (1, 4));
    engine.tick(Timestamp(7000));
    let outbox = open(&folder, 100);
    outbox.write(&[], &engine.take_changes()).unwrap();
    assert_eq!(outbox.standings().unwrap().len(), 0, "what is over is not kept");
}

#[test]
fn what_was_made_stays_until_it_is_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let made = |body: &str| Made { kind: MadeKind::Channel, name: "ops".to_owned(), body: body.to_owned() };
    let outbox = open(&folder, 100);
    outbox.make(&made("1")).unwrap();
    outbox.make(&made("2")).unwrap();
    outbox.make(&Made { kind: MadeKind::Rule, ..made("3") }).unwrap();
    drop(outbox);
    let outbox = open(&folder, 100);
    let rule = Made { kind: MadeKind::Rule, ..made("3") };
    assert_eq!(outbox.made().unwrap(), [made("2"), rule.clone()]);
    assert!(!format!("{:?}", outbox.made().unwrap()).contains('2'), "it may hold secrets");
    outbox.unmake(MadeKind::Channel, "ops").unwrap();
    assert_eq!(outbox.made().unwrap(), [rule]);
}
