//! The object that Sprag adds to an answer, and how it gets in without re-serialising anything.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::id::RunId;
use crate::json::{put_number, put_text};
use crate::money::NanoUsd;

/// What an answer tells its caller about the run.
#[derive(Clone, Debug)]
pub struct Metadata<'a> {
    /// The run.
    pub run_id: &'a RunId,
    /// This call's place in it.
    pub step: u32,
    /// This call's cost; None when the model has no price.
    pub cost: Option<NanoUsd>,
    /// Cost of the run so far; None when nothing of it has a price.
    pub total_run_cost: Option<NanoUsd>,
    /// Steps of the run so far.
    pub total_run_steps: u32,
    /// Sprag's own share of the time.
    pub overhead_us: u32,
    /// The provider that answered.
    pub provider: &'a str,
    /// Something the caller should know.
    pub warning: Option<&'a str>,
}

/// The object has so many bytes as a rule.
const ROOM: usize = 320;

impl Metadata<'_> {
    /// The object as a JSON field, with its key: `"sprag":{…}`; a second time under each name in `also`.
    #[must_use]
    pub fn to_field(&self, also: &[&str]) -> String {
        let mut field = Vec::with_capacity(ROOM * (1 + also.len()));
        field.extend_from_slice(b"\"sprag\":");
        let start = field.len();
        self.put(&mut field);
        let object = start..field.len();
        for name in also {
            field.push(b',');
            put_text(&mut field, name);
            field.push(b':');
            field.extend_from_within(object.clone());
        }
        // It is made of texts.
        String::from_utf8(field).unwrap_or_default()
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"run_id\":");
        put_text(out, self.run_id.for_caller());
        out.extend_from_slice(b",\"step\":");
        put_number(out, self.step);
        out.extend_from_slice(b",\"cost_usd\":");
        put_amount(out, self.cost);
        out.extend_from_slice(b",\"total_run_cost\":");
        put_amount(out, self.total_run_cost);
        out.extend_from_slice(b",\"total_run_steps\":");
        put_number(out, self.total_run_steps);
        out.extend_from_slice(b",\"overhead_ms\":");
        put_number(out, self.overhead_us / 1000);
        // Three places, also of a small number.
        let thousandths = 1000 + self.overhead_us % 1000;
        let point = out.len();
        put_number(out, thousandths);
        out[point] = b'.';
        out.extend_from_slice(b",\"provider\":");
        put_text(out, self.provider);
        out.extend_from_slice(b",\"warning\":");
        match self.warning {
            Some(warning) => put_text(out, warning),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    }
}

/// An amount as JSON has it.
fn put_amount(out: &mut Vec<u8>, amount: Option<NanoUsd>) {
    match amount {
        Some(amount) => out.extend_from_slice(amount.spelled().as_bytes()),
        None => out.extend_from_slice(b"null"),
    }
}

/// Puts `field` before the closing brace of the object that ends in `range` of `bytes`.
///
/// None when no object ends there.
#[must_use]
pub fn splice(bytes: &[u8], range: Range<usize>, field: &str) -> Option<Bytes> {
    let object = bytes.get(range.clone())?;
    let kept = object.trim_ascii_end();
    let brace = range.start + kept.len().checked_sub(1)?;
    if bytes[brace] != b'}' || !object.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let is_empty = kept.trim_ascii_start()[1..kept.trim_ascii_start().len() - 1].trim_ascii().is_empty();
    let mut out = BytesMut::with_capacity(bytes.len() + field.len() + 1);
    out.extend_from_slice(&bytes[..brace]);
    if !is_empty {
        out.extend_from_slice(b",");
    }
    out.extend_from_slice(field.as_bytes());
    out.extend_from_slice(&bytes[brace..]);
    Some(out.freeze())
}

/// Holds back the end of a JSON object while its bytes pass, so that a field can be put in before it closes.
#[derive(Debug, Default)]
pub struct JsonTail {
    /// A closing brace and the white space behind it, if that is how the bytes so far ended.
    held: BytesMut,
    /// The last byte passed on that was not white space: `{` when the object is empty.
    last: u8,
    first: u8,
}

impl JsonTail {
    /// Takes the next bytes and gives back those that can pass.
    pub fn push(&mut self, chunk: Bytes) -> Bytes {
        if self.first == 0 {
            self.first = chunk.trim_ascii_start().first().copied().unwrap_or(0);
        }
        let kept = chunk.trim_ascii_end();
        if kept.is_empty() {
            if self.held.is_empty() {
                return chunk;
            }
            self.held.extend_from_slice(&chunk);
            return Bytes::new();
        }
        // Only an object can take a field; the elements of a list pass whole.
        let passes_to = if self.first == b'{' && kept.ends_with(b"}") { kept.len() - 1 } else { chunk.len() };
        let passing = chunk.slice(..passes_to);
        let held_before = std::mem::take(&mut self.held);
        self.held.extend_from_slice(&chunk[passes_to..]);
        let out = if held_before.is_empty() {
            passing
        } else {
            let mut joined = held_before;
            joined.extend_from_slice(&passing);
            joined.freeze()
        };
        if let Some(byte) = out.trim_ascii_end().last() {
            self.last = *byte;
        }
        out
    }

    /// The end of the body, with `field` in it when the body was an object.
    pub fn finish(&mut self, field: Option<&str>) -> Bytes {
        let held = std::mem::take(&mut self.held);
        let Some(field) = field.filter(|_| !held.is_empty() && self.first == b'{') else { return held.freeze() };
        let mut out = BytesMut::with_capacity(field.len() + held.len() + 1);
        if self.last != b'{' {
            out.extend_from_slice(b",");
        }
        out.extend_from_slice(field.as_bytes());
        out.extend_from_slice(&held);
        out.freeze()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn metadata(run_id: &RunId) -> Metadata<'_> {
        Metadata {
            run_id,
            step: 3,
            cost: Some(NanoUsd(123_000)),
            total_run_cost: Some(NanoUsd(4_560_000)),
            total_run_steps: 3,
            overhead_us: 1_042,
            provider: "openai",
            warning: None,
        }
    }

    #[test]
    fn the_field_is_json_with_exact_amounts() {
        let run = RunId::parse("a\"b").unwrap();
        let field = metadata(&run).to_field(&["agentwall"]);
        let parsed: serde_json::Value = serde_json::from_str(&format!("{{{field}}}")).unwrap();
        assert_eq!(parsed["sprag"], parsed["agentwall"]);
        let expected = serde_json::json!({
            "run_id": "a\"b", "step": 3, "cost_usd": 0.000123, "total_run_cost": 0.00456,
            "total_run_steps": 3, "overhead_ms": 1.042, "provider": "openai", "warning": null
        });
        assert_eq!(parsed["sprag"], expected);
    }

    #[test]
    fn an_unpriced_call_says_null() {
        let run = RunId::parse("r").unwrap();
        let unpriced = Metadata { cost: None, warning: Some("no price"), ..metadata(&run) };
        let field = unpriced.to_field(&[]);
        assert!(field.contains(r#""cost_usd":null"#) && field.contains(r#""warning":"no price""#));
    }

    #[test]
    fn splices_into_objects_only() {
        let text = |bytes: &str, range| {
            splice(bytes.as_bytes(), range, "\"k\":1").map(|b| String::from_utf8(b.to_vec()).unwrap())
        };
        assert_eq!(text("{\"a\":1} ", 0..8).as_deref(), Some("{\"a\":1,\"k\":1} "));
        assert_eq!(text("{ }", 0..3).as_deref(), Some("{ \"k\":1}"));
        assert_eq!(text("data: {\"a\":{}}\n\n", 6..14).as_deref(), Some("data: {\"a\":{},\"k\":1}\n\n"));
        for not_object in ["[1]", "", "}", "\"}\"", "x}"] {
            assert_eq!(text(not_object, 0..not_object.len()), None, "{not_object}");
        }
    }

    #[test]
    fn elements_of_a_list_pass_at_once() {
        let mut tail = JsonTail::default();
        assert_eq!(tail.push(Bytes::from_static(b"[{\"a\":1}")), "[{\"a\":1}");
        assert_eq!(tail.push(Bytes::from_static(b",{\"a\":2}")), ",{\"a\":2}");
    }

    fn through(body: &str, cuts: &[usize], field: Option<&str>) -> String {
        let mut tail = JsonTail::default();
        let mut out = Vec::new();
        let mut from = 0;
        for cut in cuts.iter().copied().chain([body.len()]) {
            out.extend_from_slice(&tail.push(Bytes::copy_from_slice(&body.as_bytes()[from..cut])));
            from = cut;
        }
        out.extend_from_slice(&tail.finish(field));
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_tail_is_the_same(cuts in proptest::collection::vec(0usize..40, 0..6), which in 0usize..6) {
            let bodies = [
                ("\n {\"a\":{\"b\":{}}} \n", "\n {\"a\":{\"b\":{}},\"k\":1} \n"),
                ("{}", "{\"k\":1}"),
                ("{ \"a\" : \"} \" }", "{ \"a\" : \"} \" ,\"k\":1}"),
                ("[{}]", "[{}]"),
                ("", ""),
                ("text }", "text }"),
            ];
            let (body, expected) = bodies[which];
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c % (body.len() + 1)).collect();
            cuts.sort_unstable();
            prop_assert_eq!(through(body, &cuts, None), body);
            prop_assert_eq!(through(body, &cuts, Some("\"k\":1")), expected);
        }
    }
}
