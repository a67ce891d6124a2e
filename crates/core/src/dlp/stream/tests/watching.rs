//! Where findings are only put on record, not a byte changes.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use crate::dlp::inspector::Inspector;
use crate::dlp::kind::Entity;
use crate::dlp::policy::{Action, Direction, DlpPolicy};
use crate::dlp::stream::testing::*;
use crate::dlp::stream::{Flow, StreamFilter};
use crate::wire::Dialect::{Gemini, OpenaiChat, OpenaiResponses};

/// Does the same about every kind.
fn all(action: Action, inspector: Inspector) -> Inspector {
    let mut policy = DlpPolicy::default();
    for place in 0..crate::dlp::KINDS.len() {
        policy.set(Entity(u16::try_from(place).unwrap()), Direction::Answer, action);
    }
    Inspector { policy: Arc::new(policy), ..inspector }
}

fn chat(text: &str) -> String {
    let logprobs = json!({"content": [{"token": text, "logprob": -1}]});
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}, "logprobs": logprobs}]}))
}

#[test]
fn events_pass_at_once_and_as_they_came() {
    let chats = [chat("a sk-12345"), chat("67890abcdef"), chat(" b"), "data: [DONE]\n\n".to_owned()].concat();
    let delta = |number: u64, text: &str| {
        let event = json!({"type": "response.output_text.delta", "sequence_number": number, "delta": text});
        format!("event: response.output_text.delta\ndata: {event}\n\n")
    };
    let responses = delta(0, "a sk-12345") + &delta(1, "67890abcdef");
    for (dialect, sse) in [(OpenaiChat, chats), (OpenaiResponses, responses)] {
        for (action, found) in [(Action::Note, 1), (Action::Pass, 0)] {
            let (mut steps, filter) = steps(all(action, inspector()), dialect, &sse);
            assert_eq!(steps.pop(), Some(Vec::new()));
            let came: Vec<Vec<Bytes>> = events(&sse).into_iter().map(|event| vec![event]).collect();
            assert_eq!(steps, came, "{action:?}");
            assert_eq!((filter.sightings().total, filter.added()), (found, 0));
        }
    }
}

#[test]
fn bytes_that_are_no_events_pass_at_once() {
    let array = json!([{"candidates": [{"content": {"parts": [{"text": format!("a {KEY} b")}]}}]}]).to_string();
    for is_array in [false, true] {
        let mut filter = StreamFilter::new(all(Action::Note, inspector()), Gemini);
        for part in array.as_bytes().chunks(7) {
            let mut out = Vec::new();
            let flow = if is_array { filter.push_array(part, &mut out) } else { filter.push_unread(part, &mut out) };
            assert_eq!((flow, out), (Flow::Passed, vec![Bytes::copy_from_slice(part)]));
        }
        let mut out = Vec::new();
        assert_eq!((filter.end(&mut out), out.len()), (Flow::Passed, 0));
        assert_eq!(filter.sightings().total, 1, "{is_array}");
    }
}

#[test]
fn placeholders_still_come_back() {
    let sse = [chat("to [EMA"), chat("IL_1] ")].concat();
    let out = filtered(all(Action::Pass, with_vault()), OpenaiChat, &sse);
    assert_eq!(joined(&out, "/choices/0/delta/content"), "to \"mia\"@example.org ");
}

#[test]
fn one_kind_that_is_hidden_is_enough() {
    let mut policy = (*all(Action::Note, inspector()).policy).clone();
    policy.set(entity("OPENAI_KEY"), Direction::Answer, Action::StopIfSure);
    let inspector = Inspector { policy: Arc::new(policy), ..inspector() };
    let (steps, _) = steps(inspector, OpenaiChat, &[chat("a sk-12345"), chat("67890abcdef. ")].concat());
    assert_eq!(joined(std::str::from_utf8(&steps.concat().concat()).unwrap(), "/choices/0/delta/content"), "a ");
}
