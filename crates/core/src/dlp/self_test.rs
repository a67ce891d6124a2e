//! Proof at start-up that nothing passes unseen: a canary is sent through every dialect, whole and streamed, both ways.
//!
//! What does not hide it is named, so that nobody claims what is not so.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use super::inspector::Inspector;
use super::json::{apply_edits, inspect_json};
use super::policy::Direction;
use super::rules::DlpRules;
use super::scan::Scanner;
use super::sighting::Sightings;
use super::stream::StreamFilter;
use crate::wire::Dialect;

/// A way that data takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Surface {
    /// The wire format.
    pub dialect: Dialect,
    /// Which way.
    pub direction: Direction,
    /// As a stream of events.
    pub is_stream: bool,
    /// The canary did not get through.
    pub is_covered: bool,
}

/// Looks like a key, and is one of nobody.
const CANARY: &str = "sk-7Qm2Xv9Lr4Tn8Wb1Kd6Hs3";
/// Where it is cut in streams.
const CUT: usize = 9;

/// Sends a canary through every dialect × {whole, stream} × {request, answer}. Requests are never streams.
#[must_use]
pub fn self_test(scanner: &Arc<Scanner>) -> Vec<Surface> {
    let policy = Arc::new(DlpRules::default().resolve());
    let inspector = Inspector { scanner: scanner.clone(), policy, vault: None };
    let mut surfaces = Vec::new();
    for (dialect, request, answer, stream) in SAMPLES {
        let mut add = |direction, is_stream, is_covered| {
            surfaces.push(Surface { dialect, direction, is_stream, is_covered });
        };
        add(Direction::Request, false, hides(&inspector, dialect, Direction::Request, request));
        if let Some(answer) = answer {
            add(Direction::Answer, false, hides(&inspector, dialect, Direction::Answer, answer));
        }
        if let Some(stream) = stream {
            add(Direction::Answer, true, hides_in_stream(&inspector, dialect, stream));
        }
    }
    surfaces
}

fn hides(inspector: &Inspector, dialect: Dialect, direction: Direction, sample: &str) -> bool {
    let body = sample.replace('@', CANARY);
    let inspected = inspect_json(inspector, direction, dialect, body.as_bytes(), &[], None, &mut Sightings::default());
    is_hidden(&apply_edits(body.as_bytes(), &inspected.edits))
}

fn hides_in_stream(inspector: &Inspector, dialect: Dialect, events: [&str; 4]) -> bool {
    let (head, tail) = CANARY.split_at(CUT);
    let mut filter = StreamFilter::new(inspector.clone(), dialect);
    let mut out = Vec::new();
    for (event, part) in events.iter().zip(["", head, tail, ""]) {
        let name =
            event.split_once('"').and_then(|(_, rest)| rest.split_once("type\":\"")).map_or("", |(_, rest)| rest);
        let name = name.split('"').next().unwrap_or_default();
        let line = match name {
            "" => String::new(),
            name => format!("event: {name}\n"),
        };
        let event = format!("{line}data: {}\n\n", event.replace('@', part));
        let _ = filter.push(Bytes::from(event), &mut out);
    }
    let _ = filter.end(&mut out);
    let out = out.concat();
    is_hidden(&out) && memchr::memmem::find(&out, tail.as_bytes()).is_none()
}

fn is_hidden(bytes: &[u8]) -> bool {
    let has = |text: &str| memchr::memmem::find(bytes, text.as_bytes()).is_some();
    !has(CANARY) && !has(&CANARY[..CUT]) && has("[REDACTED:OPENAI_KEY]")
}

/// A dialect, a request, an answer, and a stream: its beginning, two pieces of a text, its end. `@` is the canary.
type Sample = (Dialect, &'static str, Option<&'static str>, Option<[&'static str; 4]>);

const SAMPLES: [Sample; 6] = [
    (
        Dialect::OpenaiChat,
        r#"{"model":"m","messages":[{"role":"user","content":"My key is @."}]}"#,
        Some(r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Your key is @."}}]}"#),
        Some([
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"Your key is @"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"@."}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        ]),
    ),
    (
        Dialect::OpenaiCompletions,
        r#"{"model":"m","prompt":"My key is @."}"#,
        Some(r#"{"choices":[{"index":0,"text":"Your key is @."}]}"#),
        Some([
            r#"{"choices":[{"index":0,"text":"Your "}]}"#,
            r#"{"choices":[{"index":0,"text":"key is @"}]}"#,
            r#"{"choices":[{"index":0,"text":"@."}]}"#,
            r#"{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}"#,
        ]),
    ),
    (
        Dialect::OpenaiResponses,
        r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"My key is @."}]}]}"#,
        Some(r#"{"output":[{"type":"message","content":[{"type":"output_text","text":"Your key is @."}]}]}"#),
        Some([
            r#"{"type":"response.content_part.added","item_id":"i","output_index":0,"content_index":0,"part":{"type":"output_text","text":""},"sequence_number":1}"#,
            r#"{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"Your key is @","sequence_number":2}"#,
            r#"{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"@.","sequence_number":3}"#,
            r#"{"type":"response.completed","response":{"id":"r","status":"completed"},"sequence_number":4}"#,
        ]),
    ),
    (Dialect::OpenaiEmbeddings, r#"{"model":"m","input":"My key is @."}"#, None, None),
    (
        Dialect::Anthropic,
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"My key is @."}]}]}"#,
        Some(r#"{"type":"message","content":[{"type":"text","text":"Your key is @."}]}"#),
        Some([
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Your key is @"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"@."}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
        ]),
    ),
    (
        Dialect::Gemini,
        r#"{"contents":[{"role":"user","parts":[{"text":"My key is @."}]}]}"#,
        Some(r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Your key is @."}]}}]}"#),
        Some([
            r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Your "}]}}]}"#,
            r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"key is @"}]}}]}"#,
            r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"@."}]}}]}"#,
            r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[]},"finishReason":"STOP"}]}"#,
        ]),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_covered() {
        let surfaces = self_test(&Arc::new(Scanner::default()));
        assert_eq!(surfaces.len(), 16);
        for surface in surfaces {
            assert!(surface.is_covered, "{surface:?}");
        }
    }

    #[test]
    fn what_is_not_covered_is_told() {
        let clean = "[REDACTED:OPENAI_KEY]".as_bytes();
        assert!(is_hidden(clean));
        assert!(!is_hidden(CANARY.as_bytes()) && !is_hidden(&CANARY.as_bytes()[..CUT]) && !is_hidden(b"nothing"));
    }
}
