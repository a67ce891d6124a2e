//! Records, a line of JSON each: a text, or a stream of events as a provider sends it.

use std::io::{Read, Write};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sprag_core::dlp::{Action, Direction, Inspector, StreamFilter};
use sprag_core::wire::Dialect;
use sprag_core::wire::sse::{self, Splitter};

use super::Eyes;
use crate::replay::lines::Lines;

#[derive(Deserialize)]
struct Record {
    id: Value,
    text: Option<String>,
    sse: Option<String>,
}

#[derive(Serialize)]
struct Found {
    id: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    spans: Option<Vec<Span>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sse: Option<String>,
}

/// A finding by its bytes.
#[derive(Serialize)]
struct Span {
    start: usize,
    end: usize,
    entity: String,
}

pub(super) fn scan(eyes: &Eyes, file: impl Read, name: &str, out: &mut impl Write) -> Result<u64> {
    let mut lines = Lines::new(file).with_context(|| name.to_owned())?;
    let mut found = 0;
    while let Some((number, line)) = lines.next_line().with_context(|| name.to_owned())? {
        let place = || format!("{name}, line {number}");
        let record: Record = serde_json::from_str(line.with_context(place)?).with_context(place)?;
        let scanned = match (record.text, record.sse) {
            (Some(text), _) => Found { id: record.id, spans: Some(spans(eyes, &text)), sse: None },
            (None, Some(sse)) => Found { id: record.id, spans: None, sse: Some(filtered(eyes, &sse, &mut found)) },
            (None, None) => bail!("{}: a record has `id` and `text`, or `id` and `sse`", place()),
        };
        found += scanned.spans.as_ref().map_or(0, |spans| spans.len() as u64);
        serde_json::to_writer(&mut *out, &scanned)?;
        writeln!(out)?;
    }
    Ok(found)
}

fn spans(eyes: &Eyes, text: &str) -> Vec<Span> {
    let findings = eyes.scanner.scan(text.as_bytes(), 0, true).findings.into_iter();
    findings
        .filter(|finding| eyes.policy.action(finding.entity, Direction::Request) != Action::Pass)
        .map(|finding| Span {
            start: finding.start,
            end: finding.end,
            entity: eyes.scanner.id(finding.entity).to_owned(),
        })
        .collect()
}

/// The stream as the proxy would pass it on.
fn filtered(eyes: &Eyes, stream: &str, found: &mut u64) -> String {
    let inspector = Inspector { scanner: eyes.scanner.clone(), policy: Arc::clone(&eyes.policy), vault: None };
    let mut splitter = Splitter::new();
    let block = splitter.push(Bytes::copy_from_slice(stream.as_bytes()));
    let mut filter = StreamFilter::new(inspector, dialect(stream));
    let (mut out, mut start) = (Vec::new(), 0);
    for end in block.ends {
        // What may not pass ends the stream, as it would for a client.
        let _ = filter.push(block.bytes.slice(start..end), &mut out);
        start = end;
    }
    let rest = splitter.rest();
    if !rest.is_empty() {
        let _ = filter.push(rest, &mut out);
    }
    let _ = filter.end(&mut out);
    *found += filter.sightings().total;
    String::from_utf8_lossy(&out.concat()).into_owned()
}

/// Whose stream it is, by its first event that tells.
fn dialect(stream: &str) -> Dialect {
    let events = stream.split("\n\n").map(|event| sse::parse(event.as_bytes()).data.into_owned());
    let values = events.filter_map(|data| serde_json::from_slice::<Value>(&data).ok());
    let telling = values.filter_map(|value| {
        let kind = value["type"].as_str().unwrap_or_default();
        if value.get("choices").is_some() {
            let is_chat = value["choices"][0].get("text").is_none();
            Some(if is_chat { Dialect::OpenaiChat } else { Dialect::OpenaiCompletions })
        } else if value.get("candidates").is_some() {
            Some(Dialect::Gemini)
        } else if kind.starts_with("response.") {
            Some(Dialect::OpenaiResponses)
        } else {
            ["message_", "content_block_"].iter().any(|start| kind.starts_with(start)).then_some(Dialect::Anthropic)
        }
    });
    telling.take(1).next().unwrap_or(Dialect::OpenaiChat)
}
