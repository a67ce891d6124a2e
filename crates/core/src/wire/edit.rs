//! Changes to a body that leave every other byte where it was.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use super::call::Call;
use super::nudge::note_edit;

/// The body to forward, when it must differ from the one that came: fields of ours removed, usage asked for, a note to
/// the model put in (see [`nudge`](super::nudge())), secrets hidden (`hidden`, as `dlp` gives them).
///
/// None when the body is forwarded as it is.
#[must_use]
pub fn outgoing(
    call: &Call<'_>,
    body: &[u8],
    ask_for_usage: bool,
    note: Option<&str>,
    hidden: Vec<(Range<usize>, String)>,
) -> Option<Vec<u8>> {
    let must_ask = ask_for_usage && !call.stream_options.asks_for_usage();
    let asking = if must_ask { usage_edit(call, body) } else { None };
    let noting = note.and_then(|note| note_edit(call, body, note));
    let removals: Vec<Range<usize>> = call.own.values.iter().map(|value| range_of(body, value)).collect();
    // What is removed or replaced needs no hiding.
    let replaced = asking.iter().chain(&noting).map(|edit| &edit.range).filter(|range| !range.is_empty());
    let gone: Vec<&Range<usize>> = removals.iter().chain(replaced).collect();
    let is_kept = |range: &Range<usize>| !gone.iter().any(|gone| range.start < gone.end && gone.start < range.end);
    let hiding = hidden.into_iter().filter(|(range, _)| is_kept(range));
    let hiding: Vec<Edit> = hiding.map(|(range, with)| Edit { range, with: with.into() }).collect();
    let edits: Vec<Edit> = asking.into_iter().chain(noting).chain(hiding).collect();
    if removals.is_empty() && edits.is_empty() {
        return None;
    }
    Some(apply(body, removals, edits))
}

/// Bytes to put in the place of others; an empty range is an insertion.
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) with: Cow<'static, str>,
}

/// The body without the fields around these values, and with these edits. No edit reaches into such a field. An edit that
/// begins inside of another is left out.
pub(super) fn apply(body: &[u8], mut removals: Vec<Range<usize>>, mut edits: Vec<Edit>) -> Vec<u8> {
    removals.sort_by_key(|value| value.start);
    // Of insertions at the same place the one asked for last comes first.
    edits.reverse();
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let added: usize = edits.iter().map(|edit| edit.with.len()).sum();
    let mut out = Vec::with_capacity(body.len() + added);
    let mut at = 0;
    let mut moved = removals.iter_mut().peekable();
    for edit in edits {
        if edit.range.start < at {
            continue;
        }
        while let Some(value) = moved.next_if(|value| value.start < edit.range.start) {
            shift(value, at, out.len());
        }
        out.extend_from_slice(&body[at..edit.range.start]);
        out.extend_from_slice(edit.with.as_bytes());
        at = edit.range.end;
    }
    moved.for_each(|value| shift(value, at, out.len()));
    out.extend_from_slice(&body[at..]);
    // There are only a few fields of ours. From the back to the front, so that the ranges still to come stay true.
    for value in removals.into_iter().rev() {
        let field = field_range(&out, value);
        out.drain(field);
    }
    out
}

/// Moves a range that stands behind `from` in the body to where it stands when `from` stands at `to`.
fn shift(range: &mut Range<usize>, from: usize, to: usize) {
    *range = range.start - from + to..range.end - from + to;
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
        outgoing(&call, body.as_bytes(), ask, None, Vec::new())
            .map_or_else(|| body.to_owned(), |b| String::from_utf8(b).unwrap())
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
    fn thousands_of_edits_are_one_pass() {
        const COUNT: usize = 50_000;
        let item = "\"secret\",";
        let body =
            format!("{{\"a\":[{}0],\"sprag_run_id\":\"r\",\"b\":[{}0]}}", item.repeat(COUNT), item.repeat(COUNT));
        let call = Call::parse(Dialect::OpenaiChat, "/", body.as_bytes()).unwrap();
        let hidden = body.match_indices("secret").map(|(at, word)| (at..at + word.len(), "[REDACTED:X]".to_owned()));
        let out = outgoing(&call, body.as_bytes(), false, None, hidden.collect()).unwrap();
        let expected = body.replace("secret", "[REDACTED:X]").replace("\"sprag_run_id\":\"r\",", "");
        assert!(out == expected.as_bytes());
    }

    #[test]
    fn what_is_replaced_needs_no_hiding() {
        let secret = "sk-1234567890abcdef";
        for value in [format!("\"{secret}\""), format!("{{\"a\":[\"{secret}\",\"{secret}\"]}}")] {
            let body = format!(r#"{{"stream":true,"stream_options":{{"include_usage":{value}}},"user":"{secret}"}}"#);
            let call = Call::parse(Dialect::OpenaiChat, "/", body.as_bytes()).unwrap();
            let hidden =
                || body.match_indices(secret).map(|(at, found)| (at..at + found.len(), "X".to_owned())).collect();
            let asked = outgoing(&call, body.as_bytes(), true, None, hidden()).unwrap();
            let expected = r#"{"stream":true,"stream_options":{"include_usage":true},"user":"X"}"#;
            assert_eq!(String::from_utf8(asked).unwrap(), expected);
            let only_hidden = outgoing(&call, body.as_bytes(), false, None, hidden()).unwrap();
            assert_eq!(String::from_utf8(only_hidden).unwrap(), body.replace(secret, "X"));
        }
        let edit = |range: Range<usize>, with: &'static str| Edit { range, with: with.into() };
        assert_eq!(apply(b"0123456789", Vec::new(), vec![edit(4..4, "in"), edit(2..6, "X")]), b"01X6789");
    }

    #[test]
    fn edits_at_one_place_and_beside_removals_keep_their_order() {
        let edit = |range: Range<usize>, with: &'static str| Edit { range, with: with.into() };
        let body = br#"{"a":"x","own":1,"b":"y"}"#;
        let edits = vec![edit(1..1, "second"), edit(1..1, "first "), edit(6..7, "xxx"), edit(22..23, "")];
        let own = 15..16;
        assert_eq!(apply(body, vec![own], edits), br#"{first second"a":"xxx","b":""}"#);
        assert_eq!(apply(body, vec![15..16, 21..24], Vec::new()), br#"{"a":"x"}"#);
        assert_eq!(apply(body, Vec::new(), Vec::new()), body);
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
