use serde_json::json;
use sprag_core::event::RunOrigin;
use sprag_core::id::AgentName;
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;

use super::*;

fn tally() -> (Tally, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let handover = Handover::begin(dir.path(), "cmd-00000001").unwrap();
    (Tally::new(id("cmd-00000001"), handover), dir)
}

fn id(text: &str) -> RunId {
    RunId::parse(text).unwrap()
}

fn record(run: &str, parent: Option<&str>) -> RunRecord {
    RunRecord { id: id(run), step: 1, parent: parent.map(id), origin: RunOrigin::Conversation }
}

fn call(run: &str, parent: &str) -> Event {
    Event {
        run: Some(record(run, Some(parent))),
        cost: Some(NanoUsd(5)),
        usage: Some(Usage { output: 7, ..Usage::default() }),
        ..Event::new(format!("req_{run}"), Timestamp(1), EventKind::LlmCall)
    }
}

fn kill(run: &str) -> Event {
    let act = Act {
        what: ActKind::Kill,
        by: "sprag".to_owned(),
        target: format!("run:default/{run}"),
        reason: "loop_detected".to_owned(),
        proof: Some(json!({ "summary": "the same, five times" })),
        expires_at: None,
        detail: None,
    };
    let (agent, run) = (AgentName::default(), record(run, None));
    Event::of_act("req_act".to_owned(), Timestamp(2), EventKind::RunKilled, agent, Some(run), act)
}

#[test]
fn everything_is_summed() {
    let (tally, _dir) = tally();
    tally.take(&call("a", "cmd-00000001"));
    tally.take(&call("a", "cmd-00000001"));
    tally.take(&Event { blocked: true, block_reason: Some("budget_exceeded".to_owned()), ..call("b", "cmd-00000001") });
    tally.take(&Event::new("req_x".to_owned(), Timestamp(1), EventKind::Request));
    let Seen { sums, refusals, .. } = tally.seen();
    assert_eq!((sums.steps, sums.runs, sums.other_requests, sums.refused), (3, 2, 1, 1));
    assert_eq!((sums.cost, sums.output_tokens), (NanoUsd(15), 21));
    assert_eq!(refusals, [("budget_exceeded".to_owned(), 1)].into());
    assert_eq!(*tally.stops().borrow(), None);
}

#[test]
fn a_conversation_of_its_own_ends_the_command() {
    for killed in ["a", "cmd-00000001", "nobody-has-called-in-it"] {
        let (tally, _dir) = tally();
        tally.take(&call("a", "cmd-00000001"));
        tally.take(&kill(killed));
        let stop = tally.stops().borrow().clone().expect(killed);
        assert_eq!((stop.reason.as_str(), stop.summary.as_deref()), ("loop_detected", Some("the same, five times")));
    }
}

#[test]
fn a_part_of_a_conversation_does_not() {
    let (tally, _dir) = tally();
    tally.take(&call("a", "cmd-00000001"));
    tally.take(&call("a:sub", "a"));
    tally.take(&kill("a:sub"));
    assert_eq!(*tally.stops().borrow(), None);
    assert_eq!(tally.seen().stops.len(), 1, "it is told all the same");
    tally.take(&kill("a"));
    tally.take(&kill("cmd-00000001"));
    assert_eq!(tally.stops().borrow().as_ref().unwrap().run.as_deref(), Some("a"), "the first one counts");
}

#[test]
fn what_is_written_can_be_taken() {
    let (tally, dir) = tally();
    tally.take(&call("a", "cmd-00000001"));
    tally.hand_over();
    tally.take(&call("b", "cmd-00000001"));
    tally.close();
    tally.take(&call("c", "cmd-00000001"));
    let mut ids = Vec::new();
    sprag_store::history::HandedOver::default()
        .take(dir.path(), |event| {
            ids.push(event.id);
            true
        })
        .unwrap();
    assert_eq!(ids, ["req_a", "req_b"]);
    assert_eq!(tally.seen().sums.steps, 3);
}

#[test]
fn there_is_a_bound_on_what_is_told() {
    let (tally, _dir) = tally();
    for number in 0..=COMMAND_STOPS {
        tally.take(&Event { model: Some(format!("m{number}")), ..call(&format!("a{number}"), "cmd-00000001") });
        tally.take(&kill(&format!("a{number}")));
    }
    let seen = tally.seen();
    assert_eq!((seen.stops.len(), seen.models.len()), (COMMAND_STOPS, COMMAND_STOPS));
}
