//! What was done about runs and agents: on record beside the requests, counted nowhere, and telling where runs stand.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use serde_json::json;
use sprag_core::event::{Act, ActKind, Event, EventKind, RunOrigin, RunRecord};
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{EventFilter, History, HistorySettings, Recorded, RunFilter, RunStatus, RunStopped};

use crate::common::{Home, all_events, key, on_every_history, patient, step};

on_every_history!(
    acts_come_back_and_count_nowhere,
    a_killed_run_stays_killed_whatever_answers_come,
    a_run_may_be_killed_before_its_first_answer,
    a_full_spool_drops_acts_rather_than_count_them_as_calls,
);

fn act(id: &str, what: ActKind, run: Option<&str>) -> Event {
    let act = Act {
        what,
        by: "anna".into(),
        target: run.map_or("all".into(), |run| format!("run:tester/{run}")),
        reason: "too long".into(),
        proof: Some(json!({"steps": [1, 2]})),
        expires_at: None,
        detail: None,
    };
    let origin = RunOrigin::Declared;
    let run = run.map(|run| RunRecord { id: key(run).id, step: 0, parent: None, origin });
    let agent = AgentName::parse("tester").unwrap();
    Event::of_act(id.to_owned(), Timestamp(1_700_000_000_500), EventKind::Admin, agent, run, act)
}

fn record(history: &History, event: &Event) {
    assert_eq!(history.record(event), Recorded::Whole);
    history.flush().unwrap();
}

fn stands(history: &History, run: &str) -> (RunStatus, Option<RunStopped>) {
    let run = history.run(&key(run)).unwrap().unwrap();
    (run.status, run.stopped)
}

fn acts_come_back_and_count_nowhere(home: &Home) {
    let history = home.open();
    record(&history, &step("1", "r", 1));
    let kill = act("2", ActKind::Kill, Some("r"));
    record(&history, &kill);
    let wide = act("3", ActKind::Lift, None);
    record(&history, &wide);
    let all = all_events(&history, &EventFilter::default());
    assert!(all.contains(&kill) && all.contains(&wide) && all.len() == 3);
    let of_run = EventFilter { run: Some(key("r")), requests_only: true, ..EventFilter::default() };
    assert_eq!(all_events(&history, &of_run).len(), 1);
    let run = history.run(&key("r")).unwrap().unwrap();
    assert_eq!((run.steps, run.cost, run.blocked), (1, NanoUsd(1000), 0));
    assert_eq!(history.totals(Timestamp(0), None).unwrap().requests, 1);
    assert_eq!(history.agents("", None, 500).unwrap().items[0].steps, 1);
}

fn a_killed_run_stays_killed_whatever_answers_come(home: &Home) {
    let history = home.open();
    record(&history, &step("1", "r", 1));
    assert_eq!(stands(&history, "r"), (RunStatus::Running, None));
    record(&history, &act("2", ActKind::Pause, Some("r")));
    assert_eq!(stands(&history, "r").0, RunStatus::Paused);
    record(&history, &act("3", ActKind::Kill, Some("r")));
    record(&history, &step("4", "r", 2));
    let stopped = RunStopped {
        through: None,
        reason: "too long".into(),
        by: "anna".into(),
        at: Timestamp(1_700_000_000_500),
        expires_at: None,
        proof: Some(json!({"steps": [1, 2]})),
    };
    assert_eq!(stands(&history, "r"), (RunStatus::Killed, Some(stopped)));
    let killed = RunFilter { status: Some(RunStatus::Killed), ..RunFilter::default() };
    assert_eq!(history.runs(&killed, None, 10).unwrap().items.len(), 1);
    record(&history, &act("5", ActKind::Resume, Some("r")));
    assert_eq!(stands(&history, "r"), (RunStatus::Running, None));
}

fn a_run_may_be_killed_before_its_first_answer(home: &Home) {
    let history = home.open();
    record(&history, &act("1", ActKind::Kill, Some("r")));
    assert_eq!(stands(&history, "r").0, RunStatus::Killed);
    record(&history, &step("2", "r", 1));
    assert_eq!(stands(&history, "r").0, RunStatus::Killed);
    let agents = history.agents("", None, 500).unwrap().items;
    assert_eq!((agents[0].runs, agents[0].steps), (1, 1));
    // The same where one statement writes it with others.
    record(&history, &act("3", ActKind::Kill, Some("m07")));
    for n in 0..20 {
        assert_eq!(history.record(&step(&format!("m{n}"), &format!("m{n:02}"), 1)), Recorded::Whole);
    }
    history.flush().unwrap();
    assert_eq!((stands(&history, "m06").0, stands(&history, "m07").0), (RunStatus::Running, RunStatus::Killed));
    let agents = history.agents("", None, 500).unwrap().items;
    assert_eq!((agents[0].runs, agents[0].steps), (21, 21));
}

fn a_full_spool_drops_acts_rather_than_count_them_as_calls(home: &Home) {
    let history = home.open_with(HistorySettings { spool_bytes: 1, ..patient() });
    assert_eq!(history.record(&act("1", ActKind::Kill, Some("r"))), Recorded::Dropped);
}
