//! Changes to a body that leave every other byte where it was.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use super::call::Call;
use super::nudge::note_edit;

/// The body to forward, when it must differ from the one that came: fields of ours removed, usage asked for, a note to
/// the model put in (see [`nudge`](super::nudge())).
///
/// None when the body is forwarded as it is.
#[must_use]
pub fn outgoing(call: &Call<'_>, body: &[u8], ask_for_usage: bool, note: Option<&str>) -> Option<Vec<u8>> {
    let must_ask = ask_for_usage && !call.stream_options.asks_for_usage();
    let asking = if must_ask { usage_edit(call, body) } else { None };
    let noting = note.and_then(|note| note_edit(call, body, note));
    let edits: Vec<Edit> = asking.into_iter().chain(noting).collect();
    if call.own.values.is_empty() && edits.is_empty() {
        return None;
    }
    Some(apply(body, call.own.values.iter().map(|v| range_of(body, v)).collect(), edits))
}

/// Bytes to put in the place of others; an empty range is an insertion.
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) with: Cow<'static, str>,
}

/// The body without the fields around these values, and with these edits. No edit reaches into such a field.
pub(super) fn apply(body: &[u8], mut removals: Vec<Range<usize>>, mut edits: Vec<Edit>) -> Vec<u8> {
    let mut out = body.to_vec();
    // From the back to the front, so that the ranges still to come stay true.
    removals.sort_by_key(|r| std::cmp::Reverse(r.start));
    edits.sort_by_key(|e| std::cmp::Reverse(e.range.start));
    let mut edits = edits.into_iter().peekable();
    for value in removals {
        while let Some(edit) = edits.next_if(|e| e.range.start > value.start) {
            out.splice(edit.range, edit.with.bytes());
        }
        let field = field_range(&out, value);
        out.drain(field);
    }
    for edit in edits {
        out.splice(edit.range, edit.with.bytes());
    }
    out
}

/// How to ask for usage in a chat stream.
fn usage_edit(call: &Call<'_>, body: &[u8]) -> Option<Edit> {
    if let Some(value) = call.stream_options.include_usage {
        return Some(Edit { range: range_of(body, value), with: "true".into() });
    }
    if let Some(value) = call.stream_options.value {
        let range = range_of(body, value);
        let inside = range.start + 1;
        return match value.get() {
            "null" => Some(Edit { range, with: "{\"include_usage\":true}".into() }),
            object if object.starts_with('{') => {
                let is_empty = object[1..].trim_start().starts_with('}');
                let with = if is_empty { "\"include_usage\":true" } else { "\"include_usage\":true," };
                Some(Edit { range: inside..inside, with: with.into() })
            }
            // Anything else is left for the provider to complain about.
            _ => None,
        };
    }
    let inside = memchr::memchr(b'{', body)? + 1;
    Some(Edit { range: inside..inside, with: "\"stream_options\":{\"include_usage\":true},".into() })
}

/// Where a raw value that borrows from `body` stands in it.
pub(super) fn range_of(body: &[u8], value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr() as usize - body.as_ptr() as usize;
    start..start + value.get().len()
}

/// The whole field around a value: its key, and the comma that goes with it.
fn field_range(body: &[u8], value: Range<usize>) -> Range<usize> {
    let is_space = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
    let skip_back = |from: usize| body[..from].iter().rposition(|b| !is_space(b)).map_or(0, |at| at + 1);
    let skip_on = |from: usize| body[from..].iter().position(|b| !is_space(b)).map_or(body.len(), |n| from + n);

    // `"key" :` stands before the value; the key may hold escapes but no bare quote.
    let key_end = skip_back(skip_back(value.start).saturating_sub(1));
    let mut start = key_end.saturating_sub(1);
    while let Some(quote) = body[..start].iter().rposition(|b| *b == b'"') {
        start = quote;
        let backslashes = body[..quote].iter().rev().take_while(|b| **b == b'\\').count();
        if backslashes % 2 == 0 {
            break;
        }
    }

    let next = skip_on(value.end);
    if body.get(next) == Some(&b',') {
        return start..skip_on(next + 1);
    }
    let before = skip_back(start);
    if before > 0 && body[before - 1] == b',' {
        return before - 1..value.end;
    }
    start..value.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Dialect;

    fn edited(body: &str, ask: bool) -> String {
        let call = Call::parse(Dialect::OpenaiChat, "/", body.as_bytes()).unwrap();
        outgoing(&call, body.as_bytes(), ask, None).map_or_else(|| body.to_owned(), |b| String::from_utf8(b).unwrap())
    }

    #[test]
    fn own_fields_go_and_nothing_else_does() {
        let cases = [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#"{"a": 1, "sprag_run_id": "x"}"#, r#"{"a": 1}"#),
            (r#"{"sprag_run_id": "x", "a": 1}"#, r#"{"a": 1}"#),
            (r#"{ "sprag_run_id" : "x" }"#, r#"{  }"#),
            (r#"{"a":1,"sprag_run_id":"x","agentwall_agent_id":"y"}"#, r#"{"a":1}"#),
            (r#"{"sprag_run_id":"x","agentwall_agent_id":"y","a":1}"#, r#"{"a":1}"#),
            (r#"{"sprag_run_id":"x","a":1,"agentwall_agent_id":"y"}"#, r#"{"a":1}"#),
            (r#"{"sprag_run_id":"x","agentwall_agent_id":"y"}"#, r#"{}"#),
            (r#"{"a":"sprag_run_id","sprag_run_id":null,"b":[1, 2]}"#, r#"{"a":"sprag_run_id","b":[1, 2]}"#),
            (r#"{"q\"":1,"sprag\u005frun_id":"x"}"#, r#"{"q\"":1}"#),
            ("{\n  \"a\": 1,\n  \"sprag_run_id\": \"x\"\n}", "{\n  \"a\": 1\n}"),
        ];
        for (body, expected) in cases {
            assert_eq!(edited(body, false), expected, "{body}");
        }
    }

    #[test]
    fn usage_is_asked_for_wherever_it_was_not() {
        let cases = [
            (r#"{"stream":true}"#, r#"{"stream_options":{"include_usage":true},"stream":true}"#),
            (r#"{"stream_options":{}}"#, r#"{"stream_options":{"include_usage":true}}"#),
            (r#"{"stream_options":{"x":1}}"#, r#"{"stream_options":{"include_usage":true,"x":1}}"#),
            (r#"{"stream_options":{"include_usage": false}}"#, r#"{"stream_options":{"include_usage": true}}"#),
            (r#"{"stream_options":{"include_usage":true}}"#, r#"{"stream_options":{"include_usage":true}}"#),
            (r#"{"stream_options":null}"#, r#"{"stream_options":{"include_usage":true}}"#),
            (r#"{"stream_options":7}"#, r#"{"stream_options":7}"#),
            (
                r#"{"sprag_run_id":"r","stream_options":{"x":1},"sprag_agent":"a"}"#,
                r#"{"stream_options":{"include_usage":true,"x":1}}"#,
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(edited(body, true), expected, "{body}");
        }
    }
}
