use serde_json::json;
use sprag_core::loops::{Preset, Rules};
use sprag_core::price::Prices;
use sprag_core::wire::Call;

use super::*;

const TRACES: &str = include_str!("../../../../../fixtures/replay/traces.jsonl");

fn replay(preset: Preset, is_declared: bool) -> Replay {
    Replay::new(Rules::preset(preset), Prices::embedded(), is_declared)
}

/// The same judgement by way of whole bodies, as the proxy gets them.
fn judge_bodies(trace: &Trace<'_>, replay: &Replay) -> super::super::Outcome {
    let mut follow = replay.follow();
    let mut now = BEGINNING;
    for (step, exchange) in trace.steps.iter().zip(trace.exchanges()) {
        let messages = match trace.is_scratchpad() {
            true => scratchpad(&exchange.request).unwrap().get().to_owned(),
            false => exchange.request.iter().map(|raw| raw.get()).collect::<Vec<&str>>().join(", "),
        };
        let model = json!(trace.model);
        let body = format!(r#"{{"stream": false, "messages": [ {messages} ], "model": {model}}}"#);
        let call = Call::parse(Dialect::OpenaiChat, "/v1/chat/completions", body.as_bytes()).unwrap();
        follow.arrive(&call, replay.history(&call).map(|history| history.end), now);
        now = step.time().unwrap_or(Timestamp(now.0 + STEP_MS)).max(now);
        let reply = reply(exchange.answer, step.usage, false);
        follow.depart(Dialect::OpenaiChat, &reply, exchange.answer.is_some(), now);
    }
    follow.finish()
}

#[test]
fn calls_made_of_slices_are_judged_as_whole_bodies_are() {
    let mut stopped = 0;
    for (preset, is_declared) in [(Preset::Balanced, false), (Preset::Strict, true), (Preset::Agentwall, true)] {
        for line in TRACES.lines() {
            let trace = Trace::parse(line).unwrap();
            let judged = judge(&trace, &replay(preset, is_declared)).outcome;
            assert_eq!(judged, judge_bodies(&trace, &replay(preset, is_declared)), "{} {preset:?}", trace.run_id);
            stopped += usize::from(judged.stop.is_some());
        }
    }
    assert!(stopped > 2, "something must be judged");
}

#[test]
fn only_new_messages_are_read() {
    let trace = TRACES.lines().map(|line| Trace::parse(line).unwrap()).find(|trace| trace.run_id == "fixture/healthy");
    let (trace, replay) = (trace.unwrap(), replay(Preset::Balanced, false));
    for (at, exchange) in trace.exchanges().enumerate() {
        let call = call_of(Dialect::OpenaiChat, None, exchange.request);
        let parsed = replay.history(&call).unwrap().parsed_items;
        assert!(parsed <= 2, "{parsed} messages at step {at}");
    }
}

#[test]
fn a_step_is_a_prefix_or_a_choice_of_messages() {
    let line = json!({"run_id": "x", "messages": [0, 1, 2, 3], "steps": [
        {"prefix_len": 2}, {"req": [3, 0], "resp": 1}, {"prefix_len": 4}, {"req": [2]},
    ]});
    let line = line.to_string();
    let trace = Trace::parse(&line).unwrap();
    let exchanges: Vec<_> = trace
        .exchanges()
        .map(|exchange| {
            (exchange.request.iter().map(|raw| raw.get()).collect::<String>(), exchange.answer.map(RawValue::get))
        })
        .collect();
    let expected = [("01", Some("2")), ("30", Some("1")), ("0123", None), ("2", None)];
    assert_eq!(exchanges, expected.map(|(request, answer)| (request.to_owned(), answer)));
}

#[test]
fn a_step_that_cannot_be_is_an_error_that_names_it() {
    let problem = |step: serde_json::Value| {
        let line = json!({"run_id": "x", "messages": [0, 1], "steps": [{"prefix_len": 1}, step]}).to_string();
        Trace::parse(&line).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(problem(json!({"prefix_len": 3})), "`steps[1]` names message 3, and there are 2");
    assert_eq!(problem(json!({"req": [0, 2]})), "`steps[1]` names message 2, and there are 2");
    assert_eq!(problem(json!({"req": [0], "resp": 9})), "`steps[1]` names message 9, and there are 2");
    assert_eq!(problem(json!({"t": 1})), "`steps[1]` needs `prefix_len`, or `req` and `resp`");
    assert!(Trace::parse("{}").unwrap_err().to_string().contains("missing field `run_id`"));
}

#[test]
fn a_scratchpad_is_one_text_of_all_messages() {
    let messages = [
        json!({"role": "user", "content": "a\n"}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "\"c"}]}),
        json!({"role": "assistant", "content": null}),
    ];
    let raw = messages.map(|message| to_raw_value(&message).unwrap());
    let pad = scratchpad(&raw.each_ref().map(AsRef::as_ref)).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(pad.get()).unwrap(),
        json!({"role": "user", "content": "a\nb\"c"})
    );
}
