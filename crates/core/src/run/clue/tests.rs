use super::*;
use crate::wire::{Call, Dialect, ToolCall, read_history};

const ALL: [RunOrigin; 3] = [RunOrigin::Previous, RunOrigin::Trace, RunOrigin::Conversation];

fn scope(agent: &str, key: &str) -> Scope {
    Scope::new(&AgentName::parse(agent).unwrap(), Some(key.as_bytes()))
}

fn history(messages: &str) -> History {
    let body = format!(r#"{{"messages":[{messages}]}}"#);
    let call = Call::parse(Dialect::OpenaiChat, "/", body.as_bytes()).unwrap();
    read_history(&call, |_| None).unwrap()
}

fn hashes(clues: &[Clue], lookup: Lookup) -> Vec<u64> {
    clues.iter().filter(|clue| clue.lookup == lookup).map(|clue| clue.hash).collect()
}

#[test]
fn evidence_belongs_to_agent_and_key() {
    let history = history(r#"{"role":"user","content":"hi"}"#);
    let brought = Brought { previous_id: Some("resp_1"), trace: Some("t"), history: Some(&history), is_retry: true };
    let mine = evidence(scope("a", "k"), brought, &ALL);
    assert_eq!(mine, evidence(scope("a", "k"), brought, &ALL));
    for other in [scope("a", "l"), scope("b", "k"), scope("ak", "")] {
        let theirs = evidence(other, brought, &ALL);
        assert!(mine.iter().all(|clue| !theirs.contains(clue)));
        assert_ne!(other.trace_run("t"), scope("a", "k").trace_run("t"));
    }
}

#[test]
fn only_what_is_wanted_counts() {
    let history = history(r#"{"role":"user","content":"hi"}"#);
    let brought = Brought { previous_id: Some("r"), trace: Some("t"), history: Some(&history), is_retry: false };
    for wanted in ALL {
        let clues = evidence(scope("a", "k"), brought, &[wanted]);
        assert!(!clues.is_empty() && clues.iter().all(|clue| clue.origin == wanted));
    }
}

#[test]
fn what_a_request_goes_on_from_is_left_by_the_answer() {
    let scope = scope("a", "k");
    let asked = history(r#"{"role":"user","content":"hi"}"#);
    assert_eq!(answer_before(scope, None, Some(&asked)), None);
    let next = history(
        r#"{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},{"role":"user","content":"so"}"#,
    );
    let answer = Reply { text: "yes".into(), id: Some("resp_1".into()), ..Reply::default() };
    for is_named in [true, false] {
        let left = at_settling(scope, Some(&asked), &answer, true, is_named);
        assert!(left.unless_taken.contains(&answer_before(scope, None, Some(&next)).unwrap()));
    }
}

#[test]
fn the_id_of_an_answer_is_left_where_requests_can_refer_to_it() {
    let scope = scope("a", "k");
    let answer = Reply { text: "yes".into(), id: Some("id_1".into()), ..Reply::default() };
    let of_id = answer_before(scope, Some("id_1"), None).unwrap();
    let user = r#"{"role":"user","content":"hi"}"#;
    for (dialect, list, is_left) in [
        (Dialect::OpenaiResponses, "input", true),
        (Dialect::Anthropic, "messages", true),
        (Dialect::OpenaiChat, "messages", false),
    ] {
        let body = format!(r#"{{"{list}":[{user}]}}"#);
        let call = Call::parse(dialect, "/", body.as_bytes()).unwrap();
        let asked = read_history(&call, |_| None).unwrap();
        let left = at_settling(scope, Some(&asked), &answer, true, false);
        assert_eq!(left.clues.contains(&of_id), is_left, "{dialect:?}");
    }
}

#[test]
fn an_answer_is_offered_and_a_failure_too() {
    let scope = scope("a", "k");
    let asked = history(r#"{"role":"user","content":"hi"}"#);
    let answer = Reply { text: "yes".into(), ..Reply::default() };
    let next = history(
        r#"{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},{"role":"user","content":"so"}"#,
    );
    let next = evidence(scope, Brought { history: Some(&next), ..Brought::default() }, &ALL);
    let again = evidence(scope, Brought { history: Some(&asked), is_retry: true, ..Brought::default() }, &ALL);
    let sent = at_opening(scope, None, Some(&asked), true).offers;

    let whole = at_settling(scope, Some(&asked), &answer, true, false);
    assert_eq!(hashes(&next, Lookup::Claim), whole.offers);
    let known = hashes(&next, Lookup::Known);
    assert!(whole.unless_taken.iter().filter(|clue| known.contains(clue)).count() == 2, "answer and request");
    assert_eq!(whole.withdrawn[0], sent[0]);
    assert_eq!(hashes(&again, Lookup::Retry), [whole.withdrawn[1], sent[0]]);
    assert_eq!(at_settling(scope, Some(&asked), &answer, true, true).offers, [0; 0], "a named run is not claimed");

    let failed = at_settling(scope, Some(&asked), &Reply::default(), false, false);
    assert_eq!(failed.offers, [hashes(&again, Lookup::Retry)[0]]);
    assert!(failed.unless_taken.is_empty() && failed.clues.is_empty());
    let cut = at_settling(scope, Some(&asked), &answer, false, false);
    assert!(cut.offers.contains(&whole.offers[0]), "what came is continued");
}

#[test]
fn evidence_is_bounded() {
    let mut messages = Vec::new();
    for n in 0..200 {
        messages.push(format!(r#"{{"role":"user","content":"{n}"}}"#));
        messages.push(format!(
            r#"{{"role":"assistant","tool_calls":[{{"id":"call_a1a1a1a1a1a1{n:04}","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        ));
    }
    let history = history(&messages.join(","));
    let brought = Brought { previous_id: Some("r"), trace: Some("t"), history: Some(&history), is_retry: true };
    assert_eq!(evidence(scope("a", "k"), brought, &ALL).len(), RUN_CLUES, "every kind has its place, and no more fit");
}

#[test]
fn ids_of_the_answer_lead_to_its_run() {
    let scope = scope("a", "k");
    let call = |id: &str| ToolCall { id: id.into(), ..ToolCall::default() };
    let calls = vec![call("call_1"), call("toolu_01S0ZYhDvSH9trBO")];
    let answer = Reply { id: Some("resp_1".into()), tool_calls: calls, ..Reply::default() };
    let left = at_settling(scope, None, &answer, true, false);
    let next = evidence(scope, Brought { previous_id: Some("resp_1"), ..Brought::default() }, &ALL);
    assert_eq!(left.clues.len(), 2, "the answer and the call whose id is unique");
    assert_eq!(next[0].hash, left.clues[0]);
}
