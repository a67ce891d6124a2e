//! An event of ours for the rest of a text, in the shape of those that brought the text.
//!
//! It repeats what identifies the answer and the place in it, and nothing that clients add up: SDKs join every string
//! of a delta to the one before, so the id of a call or a role must not come twice.

use super::document::{Document, Kind};
use super::escape;

/// What stands on the way to the text is kept if it is one of these: at the top,
const OF_ANSWER: [&str; 19] = [
    "id",
    "object",
    "created",
    "model",
    "system_fingerprint",
    "service_tier",
    "provider",
    "type",
    "event_id",
    "response_id",
    "item_id",
    "output_index",
    "content_index",
    "summary_index",
    "index",
    "responseId",
    "modelVersion",
    "createTime",
    "traceId",
];
/// and further inside.
const OF_PLACE: [&str; 5] = ["index", "type", "thought", "jsonPath", "willContinue"];
/// Longer values are left out.
const VALUE_BYTES: usize = 256;

/// An event with a hole for the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Template {
    /// Up to and with the brace that opens the data.
    head: Vec<u8>,
    before: Vec<u8>,
    after: Vec<u8>,
    /// Events of this stream are numbered.
    pub(super) is_numbered: bool,
}

impl Template {
    /// From the event that brought the text at `node`.
    pub(super) fn of(document: &Document<'_>, node: usize, name: Option<&[u8]>) -> Template {
        let mut way = vec![node];
        while let Some(parent) = way.last().and_then(|last| document.nodes[*last].parent) {
            way.push(parent);
        }
        way.reverse();
        let mut template = Template::named(name);
        template.is_numbered = document.member(0, "sequence_number").is_some();
        for (depth, place) in way.iter().enumerate() {
            if depth > 0
                && let Some(key) = document.key(*place)
            {
                template.before.extend_from_slice(&[b"\"", key, b"\":"].concat());
            }
            let (open, close) = match document.nodes[*place].kind {
                Kind::Object => (&b"{"[..], b'}'),
                Kind::Array => (&b"["[..], b']'),
                _ => (&b"\""[..], b'"'),
            };
            if depth == 0 {
                template.head.extend_from_slice(open);
            } else {
                template.before.extend_from_slice(open);
            }
            template.after.insert(0, close);
            if let Some(next) = way.get(depth + 1) {
                template.keep_members(document, *place, *next, depth == 0);
            }
        }
        template.after.extend_from_slice(b"\n\n");
        template
    }

    /// Of a content block of Anthropic's: the event that brought the text may have been the one that began the block.
    pub(super) fn of_block(index: u64, form: &str, field: &str) -> Template {
        let mut template = Template::named(Some(b"content_block_delta"));
        template.head.push(b'{');
        let before = format!(r#""type":"content_block_delta","index":{index},"delta":{{"type":"{form}","{field}":""#);
        template.before = before.into_bytes();
        template.after = b"\"}}\n\n".to_vec();
        template
    }

    /// The event with this text in it.
    pub(super) fn event(&self, text: &[u8], number: Option<u64>) -> Vec<u8> {
        let mut event = self.head.clone();
        if let Some(number) = number.filter(|_| self.is_numbered) {
            event.extend_from_slice(format!("\"sequence_number\":{number},").as_bytes());
        }
        event.extend_from_slice(&self.before);
        escape::write(text, &mut event);
        event.extend_from_slice(&self.after);
        event
    }

    fn named(name: Option<&[u8]>) -> Template {
        let mut template = Template::default();
        if let Some(name) = name {
            template.head = [b"event: ", name, b"\n"].concat();
        }
        template.head.extend_from_slice(b"data: ");
        template
    }

    fn keep_members(&mut self, document: &Document<'_>, object: usize, but: usize, is_top: bool) {
        let is_gemini = document.member(0, "candidates").is_some();
        for member in document.children(object).filter(|member| *member != but) {
            let (Some(key), node) = (document.key(member), &document.nodes[member]) else { continue };
            let Ok(key) = std::str::from_utf8(key) else { continue };
            let quote = if node.kind == Kind::Text { "\"" } else { "" };
            let raw = match (key, node.kind) {
                ("finish_reason", _) => &b"null"[..],
                ("logprobs", Kind::Array) => b"[]",
                (_, Kind::Object | Kind::Array) => continue,
                ("role", _) if is_gemini => document.raw(member),
                _ if is_top && OF_ANSWER.contains(&key) => document.raw(member),
                _ if !is_top && OF_PLACE.contains(&key) => document.raw(member),
                _ => continue,
            };
            if raw.len() > VALUE_BYTES {
                continue;
            }
            let quote = if raw == b"null" { "" } else { quote };
            self.before.extend_from_slice(format!("\"{key}\":{quote}").as_bytes());
            self.before.extend_from_slice(raw);
            self.before.extend_from_slice(quote.as_bytes());
            self.before.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(event: &str, way: &[&str], name: Option<&[u8]>, number: Option<u64>) -> String {
        let document = Document::read(event.as_bytes()).unwrap();
        let mut node = 0;
        for step in way {
            node = match step.parse::<usize>() {
                Ok(place) => document.children(node).nth(place).unwrap(),
                Err(_) => document.member(node, step).unwrap(),
            };
        }
        String::from_utf8(Template::of(&document, node, name).event(b"a\"b", number)).unwrap()
    }

    #[test]
    fn an_event_of_the_same_shape_is_made() {
        let chat = r#"{"id":"c1","usage":{"a":1},"choices":[{"index":1,"delta":{"role":"assistant","tool_calls":[
            {"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{"}}]},"logprobs":null,
            "finish_reason":null}],"model":"gpt"}"#;
        assert_eq!(
            made(chat, &["choices", "0", "delta", "tool_calls", "0", "function", "arguments"], None, Some(7)),
            "data: {\"id\":\"c1\",\"model\":\"gpt\",\"choices\":[{\"index\":1,\"finish_reason\":null,\"delta\":{\
             \"tool_calls\":[{\"index\":0,\"type\":\"function\",\"function\":{\"arguments\":\"a\\\"b\"}}]}}]}\n\n"
        );
        let responses = r#"{"type":"response.output_text.delta","sequence_number":4,"item_id":"m","output_index":0,
            "delta":"x","obfuscation":"aZ","logprobs":[{"token":"x"}]}"#;
        assert_eq!(
            made(responses, &["delta"], Some(b"response.output_text.delta"), Some(9)),
            "event: response.output_text.delta\ndata: {\"sequence_number\":9,\"type\":\"response.output_text.delta\",\
             \"item_id\":\"m\",\"output_index\":0,\"logprobs\":[],\"delta\":\"a\\\"b\"}\n\n"
        );
        let gemini = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"x","thought":true,
            "thoughtSignature":"s"}]},"finishReason":"STOP"}],"responseId":"r"}"#;
        assert_eq!(
            made(gemini, &["candidates", "0", "content", "parts", "0", "text"], None, None),
            "data: {\"responseId\":\"r\",\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[\
             {\"thought\":true,\"text\":\"a\\\"b\"}]}}]}\n\n"
        );
    }
}
