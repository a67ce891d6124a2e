use std::sync::LazyLock;

use serde_json::json;

use super::*;
use crate::id::RunId;
use crate::loops::Decision;
use crate::loops::RunKind;
use crate::policy::{Consequence, RunLimits};
use crate::time::Timestamp;

/// The policy of an agent for which nothing was configured.
static USUAL: LazyLock<Policy> = LazyLock::new(Policy::default);

fn judge(facts: &Facts<'_>, loops: impl FnOnce() -> Decision) -> Result<Permit, Stop> {
    super::judge(facts, Weighed::default, loops, || None, || Some(Weighed::default())).unwrap().verdict
}

fn fine() -> Facts<'static> {
    Facts {
        now: Timestamp(1_700_000_000_000),
        kill: None,
        standing: None,
        policy: &USUAL,
        is_llm: true,
        model: Some("m"),
        other_models: &[],
        is_priced: true,
        blocks_unpriced: true,
        agent_in_flight: 3,
        max_agent_in_flight: 3,
        runs: &[],
    }
}

fn kill(kind: KillKind, scope: &str) -> Kill {
    Kill {
        id: "kill_1".into(),
        scope: scope.parse().unwrap(),
        kind,
        reason: "step_limit".into(),
        by: "sprag".into(),
        at: Timestamp(1_700_000_000_000),
        expires_at: None,
        proof: Some(json!({"value": 31}).into()),
    }
}

fn progress(run: &str, steps: u32, age_ms: u64) -> RunProgress {
    RunProgress { run: RunId::parse(run).unwrap(), steps, age_ms, is_declared: true }
}

fn inactive(by: DeactivatedBy) -> AgentStanding {
    AgentStanding::default().deactivated(by, "score 12 above 10".into(), Some(json!({"score": 12})), Timestamp(1))
}

#[test]
fn what_breaks_no_rule_passes() {
    assert!(judge(&fine(), Decision::default).is_ok());
    assert!(judge(&Facts { is_priced: false, blocks_unpriced: false, ..fine() }, Decision::default).is_ok());
    assert!(judge(&Facts { is_priced: false, model: None, ..fine() }, Decision::default).is_ok());
    assert!(judge(&Facts { standing: Some(&AgentStanding::default()), ..fine() }, Decision::default).is_ok());
}

#[test]
fn one_request_too_many_is_refused_with_its_numbers() {
    let refusal = judge(&Facts { agent_in_flight: 4, ..fine() }, Decision::default).unwrap_err().refusal;
    assert_eq!((refusal.reason, refusal.retry_after_seconds), (Reason::RateLimited, Some(1)));
    assert_eq!(refusal.fields["limit"], 3);
}

#[test]
fn a_model_without_a_price_is_refused_where_that_is_asked_for() {
    let stop = judge(&Facts { is_priced: false, ..fine() }, Decision::default).unwrap_err();
    assert_eq!((stop.refusal.reason, stop.consequence), (Reason::ModelNotAllowed, None));
    assert!(stop.refusal.message.contains("`m`"));
}

#[test]
fn a_kill_is_told_with_all_that_is_known_of_it() {
    let kill = kill(KillKind::Kill, "run:bot/task");
    let stop = judge(&Facts { kill: Some(&kill), ..fine() }, Decision::default).unwrap_err();
    let Refusal { reason, status, message, fields, .. } = stop.refusal;
    assert_eq!((reason, status, stop.consequence), (Reason::RunKilled, 403, None));
    assert!(message.starts_with("run `task` was killed by sprag: step_limit; "), "{message}");
    let expected = json!({
        "kill_reason": "step_limit", "killed_by": "sprag", "killed_at": "2023-11-14T22:13:20.000Z",
        "killed_scope": "run:bot/task", "proof": {"value": 31},
    });
    assert_eq!(serde_json::Value::Object(fields), expected);
}

#[test]
fn a_pause_waits_for_approval() {
    let pause = kill(KillKind::Pause, "run:bot/task");
    let refusal = judge(&Facts { kill: Some(&pause), ..fine() }, Decision::default).unwrap_err().refusal;
    assert_eq!(refusal.reason, Reason::RunPaused);
    assert!(refusal.message.contains("`sprag approve`"), "{}", refusal.message);
}

#[test]
fn what_is_wider_than_a_run_is_lifted_and_not_approved() {
    for scope in ["all", "agent:bot", "key:k1", "header:x=y", "/v1 agent:bot"] {
        for kind in [KillKind::Pause, KillKind::Kill] {
            let message = killed(&kill(kind, scope)).message;
            assert!(message.ends_with("`sprag kills lift kill_1`"), "{message}");
            assert!(!message.contains("approve"), "{message}");
        }
    }
}

#[test]
fn an_inactive_agent_is_told_what_set_it_so() {
    for (by, word, said) in [
        (DeactivatedBy::KillSwitch, "kill_switch", "deactivated by its Kill Switch"),
        (DeactivatedBy::Manual, "manual", "deactivated by hand"),
    ] {
        let standing = inactive(by);
        let refusal = judge(&Facts { standing: Some(&standing), ..fine() }, Decision::default).unwrap_err().refusal;
        assert_eq!((refusal.reason, refusal.status), (Reason::AgentInactive, 200));
        assert_eq!(refusal.fields["deactivated_by"], word);
        assert_eq!(refusal.fields["proof"], json!({"score": 12}));
        assert!(refusal.message.contains(said), "{}", refusal.message);
    }
}

#[test]
fn the_first_stop_wins() {
    let (kill, standing) = (kill(KillKind::Kill, "all"), inactive(DeactivatedBy::Manual));
    let runs = [progress("r", 31, 0)];
    let worst = Facts {
        kill: Some(&kill),
        standing: Some(&standing),
        agent_in_flight: 4,
        runs: &runs,
        is_priced: false,
        ..fine()
    };
    let reason = |facts: &Facts<'_>| judge(facts, Decision::default).unwrap_err().refusal.reason;
    let mut facts = worst;
    assert_eq!(reason(&facts), Reason::RunKilled);
    facts.kill = None;
    assert_eq!(reason(&facts), Reason::AgentInactive);
    facts.standing = None;
    assert_eq!(reason(&facts), Reason::ModelNotAllowed);
    facts.is_priced = true;
    assert_eq!(reason(&facts), Reason::RateLimited);
    facts.agent_in_flight = 3;
    assert_eq!(reason(&facts), Reason::RunLimitExceeded);
}

#[test]
fn limits_hold_at_the_bound_and_stop_one_past_it() {
    let cases = [
        (30, 120_000, None),
        (31, 0, Some(("max_steps", "step_limit", json!(30), json!(31)))),
        (1, 120_500, Some(("timeout_seconds", "timeout", json!(120), json!(120.5)))),
        (31, 120_001, Some(("max_steps", "step_limit", json!(30), json!(31)))),
    ];
    for (steps, age_ms, expected) in cases {
        let runs = [progress("task", steps, age_ms)];
        let judged = judge(&Facts { runs: &runs, ..fine() }, Decision::default);
        let Some((key, reason, limit, current)) = expected else {
            assert!(judged.is_ok(), "{steps} {age_ms}");
            continue;
        };
        let stop = judged.unwrap_err();
        let fields = &stop.refusal.fields;
        assert_eq!(stop.refusal.reason, Reason::RunLimitExceeded);
        assert_eq!((&fields["exceeded_limit"], &fields["limit"], &fields["current"]), (&json!(key), &limit, &current));
        let Some(Consequence::KillRun { run, reason: why, proof }) = stop.consequence.map(|boxed| *boxed) else {
            panic!()
        };
        assert_eq!((run.as_str(), why.as_str()), ("task", reason));
        assert_eq!(proof.unwrap()["compared"], key);
    }
}

#[test]
fn a_call_stops_at_the_limit_of_a_run_above_it() {
    let runs = [progress("part", 2, 0), progress("whole", 31, 0)];
    let stop = judge(&Facts { runs: &runs, ..fine() }, Decision::default).unwrap_err();
    assert!(matches!(*stop.consequence.unwrap(), Consequence::KillRun { run, .. } if run.as_str() == "whole"));
    assert_eq!(stop.refusal.fields["killed_run"], "whole");
}

#[test]
fn runs_that_nobody_named_have_no_limits_unless_told() {
    let runs = [RunProgress { is_declared: false, ..progress("r", 999, 999_999_999) }];
    assert!(judge(&Facts { runs: &runs, ..fine() }, Decision::default).is_ok());
    let limited = |run_limits| Policy { run_limits, ..Policy::default() };
    let everywhere = limited(RunLimits { applies_to: RunKind::All, ..RunLimits::default() });
    assert!(judge(&Facts { runs: &runs, policy: &everywhere, ..fine() }, Decision::default).is_err());
    let runs = [progress("r", 999, 999_999_999)];
    assert!(judge(&Facts { runs: &runs, policy: &limited(RunLimits::NONE), ..fine() }, Decision::default).is_ok());
}

#[test]
fn every_model_that_may_answer_must_be_allowed() {
    let mut policy = Policy::default();
    policy.models.mode = Mode::Enforce;
    policy.models.allow = ["m*".to_owned()].into();
    let with = |is_llm, model, other_models: &[Cow<'_, str>]| {
        judge(&Facts { policy: &policy, is_llm, model, other_models, ..fine() }, Decision::default)
            .map_err(|stop| stop.refusal.fields["model"].clone())
    };
    assert!(with(true, Some("m"), &["m2".into()]).is_ok());
    assert_eq!(with(true, Some("m"), &["m2".into(), "dear".into()]).unwrap_err(), "dear");
    assert_eq!(with(false, Some("dear"), &[]).unwrap_err(), "dear", "also where nothing else is understood");
    assert_eq!(with(false, Some("m"), &["dear".into()]).unwrap_err(), "dear");
    assert!(with(false, None, &[]).is_ok());
}

#[test]
fn money_that_cannot_be_set_aside_yet_gives_no_permit_and_hides_no_stop() {
    let judge = |facts: &Facts<'_>| super::judge(facts, Weighed::default, Decision::default, || None, || None);
    assert!(judge(&fine()).is_none());
    let stopped = judge(&Facts { agent_in_flight: 4, ..fine() }).unwrap();
    assert_eq!(stopped.verdict.unwrap_err().refusal.reason, Reason::RateLimited);
}

#[test]
fn what_must_not_leave_is_stopped_before_money_is_set_aside() {
    let secret = || Some(Refusal::new(Reason::DlpBlocked, "a key"));
    let mut asked = false;
    let budgets = || {
        asked = true;
        Some(Weighed::default())
    };
    let judged = super::judge(&fine(), Weighed::default, Decision::default, secret, budgets).unwrap();
    assert_eq!(judged.verdict.unwrap_err().refusal.reason, Reason::DlpBlocked);
    assert!(!asked);
}
