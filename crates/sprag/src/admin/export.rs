//! Events as a file, written while it is sent: a page of them at a time, however many there are.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use sprag_core::event::Event;
use sprag_core::limits::PAGE_ROWS;
use sprag_store::RunKey;
use sprag_store::history::{EventFilter, History, Page};

use super::api::model::EventRecord;
use super::problem::Problem;
use super::{Admin, Shared};
use crate::show;

/// What the file is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ExportFormat)]
pub(super) enum Format {
    /// A table for spreadsheets.
    Csv,
    /// What the API says of an event, one in each line.
    Jsonl,
}

/// An export under way.
struct Export {
    admin: Arc<Admin>,
    /// What let it in, and may end before it does.
    headers: HeaderMap,
    filter: EventFilter,
    line: fn(&Event) -> String,
    next: Next,
}

enum Next {
    /// What stands before the first line, and the first page.
    Heading(String, Page<Event>),
    Page(Page<Event>),
    After(String),
    End,
}

/// The events that a filter lets through, newest first. What goes wrong with the first page is answered as a problem; later
/// the connection breaks off, so that nobody takes a part for the whole.
pub(super) async fn events(
    admin: Shared,
    headers: HeaderMap,
    filter: EventFilter,
    format: Format,
) -> Result<Response, Problem> {
    let first = first_page(&admin, &filter).await?;
    let (name, content_type, line): (_, _, fn(&Event) -> String) = match format {
        Format::Csv => ("sprag-events.csv", "text/csv; charset=utf-8", csv_line),
        Format::Jsonl => ("sprag-events.jsonl", "application/x-ndjson", json_line),
    };
    let heading = if format == Format::Csv { format!("{}\r\n", COLUMNS.join(",")) } else { String::new() };
    let export = Export { admin, headers, filter, line, next: Next::Heading(heading, first) };
    let headers =
        [(CONTENT_TYPE, content_type.to_owned()), (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""))];
    Ok((headers, export.body()).into_response())
}

/// All events of a run, oldest first. None where it has none.
pub(super) async fn run(admin: Shared, headers: HeaderMap, key: RunKey) -> Result<Option<Body>, Problem> {
    let filter = EventFilter { run: Some(key), is_oldest_first: true, ..EventFilter::default() };
    let first = first_page(&admin, &filter).await?;
    if first.items.is_empty() {
        return Ok(None);
    }
    Ok(Some(Export { admin, headers, filter, line: json_line, next: Next::Page(first) }.body()))
}

async fn first_page(admin: &Shared, filter: &EventFilter) -> Result<Page<Event>, Problem> {
    let filter = filter.clone();
    admin.records.read(move |history| history.events(&filter, None, PAGE_ROWS)).await
}

impl Export {
    fn body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut export| async move {
            let piece = export.piece().await?;
            if piece.is_err() {
                export.next = Next::End;
            }
            Some((piece.map(Bytes::from), export))
        }))
    }

    /// The next lines; none at the end.
    async fn piece(&mut self) -> Option<io::Result<String>> {
        let page = match std::mem::replace(&mut self.next, Next::End) {
            Next::Heading(heading, first) => {
                self.next = Next::Page(first);
                return Some(Ok(heading));
            }
            Next::Page(page) => page,
            Next::End => return None,
            Next::After(cursor) => match self.read(cursor).await {
                Ok(page) => page,
                Err(error) => return Some(Err(error)),
            },
        };
        if let Some(cursor) = page.next {
            self.next = Next::After(cursor);
        }
        Some(Ok(page.items.iter().map(self.line).collect()))
    }

    /// A further page. It may be long after the first: who was let in then may be out by now.
    async fn read(&self, cursor: String) -> io::Result<Page<Event>> {
        if self.admin.shutdown.is_cancelled() {
            return Err(io::Error::other("Sprag stops"));
        }
        if !self.admin.is_let_in(&self.headers) {
            return Err(io::Error::other("the token or the session that asked for it is over"));
        }
        let filter = self.filter.clone();
        let read = move |history: &History| history.events(&filter, Some(&cursor), PAGE_ROWS);
        self.admin.records.read_recorded(read).await.map_err(|problem| io::Error::other(problem.detail.into_owned()))
    }
}

fn json_line(event: &Event) -> String {
    serde_json::to_string(&EventRecord::from(event)).map(|line| line + "\n").unwrap_or_default()
}

const COLUMNS: [&str; 24] = [
    "at",
    "id",
    "kind",
    "agent",
    "key",
    "run",
    "step",
    "provider",
    "model",
    "path",
    "status",
    "ending",
    "total_ms",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "cost_usd",
    "blocked",
    "block_reason",
    "error",
    "tools",
    "findings",
    "act",
    "told",
];

fn csv_line(event: &Event) -> String {
    let usage = event.usage.as_ref();
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let text = |text: &Option<String>| cell(text.as_deref().unwrap_or_default());
    let word = |value: serde_json::Value| cell(value.as_str().unwrap_or_default());
    let findings = event.dlp.as_ref().map(|found| show::sightings(found).join("; ")).unwrap_or_default();
    let cells: [String; COLUMNS.len()] = [
        event.at.to_rfc3339(),
        cell(&event.id),
        word(serde_json::json!(event.kind)),
        cell(event.agent.as_str()),
        text(&event.key),
        cell(event.run.as_ref().map(|run| run.id.as_str()).unwrap_or_default()),
        number(event.run.as_ref().map(|run| u64::from(run.step))),
        cell(&event.provider),
        text(&event.model),
        cell(&event.path),
        event.status.to_string(),
        word(serde_json::json!(event.ending)),
        event.total_ms.to_string(),
        number(usage.map(|usage| usage.prompt_tokens())),
        number(usage.map(|usage| usage.cache_read)),
        number(usage.map(|usage| usage.output)),
        event.cost.map(|cost| cost.to_string()).unwrap_or_default(),
        event.blocked.to_string(),
        text(&event.block_reason),
        text(&event.error),
        cell(&event.tools.join(" ")),
        cell(&findings),
        event.act.as_ref().map(|act| word(serde_json::json!(act.what))).unwrap_or_default(),
        event.act.as_ref().map(|act| cell(&show::act_told(act))).unwrap_or_default(),
    ];
    cells.join(",") + "\r\n"
}

/// A text as a cell. One that a spreadsheet would take for a formula is made a text by the quote that stands for that.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let inert = if is_formula { format!("'{text}") } else { text.to_owned() };
    if inert.contains([',', '"', '\n', '\r']) { format!("\"{}\"", inert.replace('"', "\"\"")) } else { inert }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_hold_any_text_and_no_formula() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            ("a=b", "a=b"),
            ("", ""),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}
