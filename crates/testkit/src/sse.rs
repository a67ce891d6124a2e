//! Reads a recorded event stream for assertions. Not for production: it wants the whole text at once.

use serde_json::Value;

/// One server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event:` field, empty when there is none.
    pub event: String,
    /// The `data:` lines, joined by line feeds.
    pub data: String,
}

impl SseEvent {
    /// The data as JSON; null when it is none (`[DONE]`).
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or(Value::Null)
    }
}

/// The events of a stream. Comments are skipped; an event without its closing blank line does not count.
#[must_use]
pub fn events(body: &[u8]) -> Vec<SseEvent> {
    let text = String::from_utf8_lossy(body).replace("\r\n", "\n");
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while let Some((block, tail)) = rest.split_once("\n\n") {
        rest = tail;
        if let Some(event) = parse_block(block) {
            found.push(event);
        }
    }
    found
}

/// The comment lines of a stream, without their colon.
#[must_use]
pub fn comments(body: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(body).lines().filter_map(|line| line.strip_prefix(':')).map(|c| c.trim().into()).collect()
}

fn parse_block(block: &str) -> Option<SseEvent> {
    let mut event = SseEvent { event: String::new(), data: String::new() };
    let mut data: Vec<&str> = Vec::new();
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => event.event = value.into(),
            "data" => data.push(value),
            _ => {}
        }
    }
    if data.is_empty() && event.event.is_empty() {
        return None;
    }
    event.data = data.join("\n");
    Some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_comments_and_unfinished_events() {
        let body =
            b": hello\r\n\r\nevent: a\r\ndata: 1\r\ndata: 2\r\n\r\ndata:[DONE]\n\n: x\ndata: {\"k\":1}\n\ndata: lost";
        let list = events(body);
        let seen: Vec<(&str, &str)> = list.iter().map(|e| (e.event.as_str(), e.data.as_str())).collect();
        assert_eq!(seen, [("a", "1\n2"), ("", "[DONE]"), ("", "{\"k\":1}")]);
        assert_eq!(list[2].json()["k"], 1);
        assert_eq!(comments(body), ["hello", "x"]);
    }
}
