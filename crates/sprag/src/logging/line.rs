//! The line of one call, as a person reads it.

use std::fmt::Write;

use sprag_core::event::{Ending, Event};

use crate::show;

/// Status, who, what, how much, how long, and what went wrong, in columns that mostly line up.
pub(super) fn of(event: &Event) -> String {
    let mut line = match event.status {
        0 => "---".to_owned(),
        status => status.to_string(),
    };
    // Writing into a string never fails.
    let _ = write!(line, "  {:<12}", event.agent.as_str());
    if let Some(run) = &event.run {
        let _ = write!(line, " {} #{:<3}", run.id, run.step);
    }
    let _ = write!(line, "  {}", event.model.as_deref().unwrap_or(&event.path));
    if let Some(usage) = event.usage {
        let about = if usage.estimated { "~" } else { "" };
        let _ = write!(line, "  {about}{} → {} tokens", show::count(usage.prompt_tokens()), show::count(usage.output));
    }
    match event.cost {
        Some(cost) => line.push_str(&format!("  {}", show::usd(cost))),
        None if event.unpriced => line.push_str("  no price"),
        None => {}
    }
    let _ = write!(line, "  {}", show::duration_ms(u64::from(event.total_ms)));
    if !event.tools.is_empty() {
        let _ = write!(line, "  calls {}", event.tools.join(", "));
    }
    if event.ending != Ending::Complete {
        let _ = write!(line, "  {}", show::ending(event.ending).replace('_', " "));
    }
    if let Some(why) = event.block_reason.as_ref().or(event.error.as_ref()) {
        let _ = write!(line, ": {why}");
    }
    // Models, tools and runs are named by callers: none of them writes a line of its own.
    show::plain(&line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(more: serde_json::Value) -> Event {
        let mut event = json!({
            "id": "req_1", "at": 0, "kind": "llm_call", "agent": "researcher", "provider": "openai",
            "dialect": "openai_chat", "path": "POST /v1/chat/completions", "model": "gpt-4o", "status": 200,
            "ending": "complete", "total_ms": 1234, "overhead_us": 90,
            "run": {"id": "task-7", "step": 3, "origin": "declared"},
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn reads_like_a_sentence() {
        let whole = event(json!({
            "usage": {"input": 1000, "cache_read": 204, "output": 88}, "cost": 3_120_000, "tools": ["search", "open"],
        }));
        assert_eq!(
            of(&whole),
            "200  researcher   task-7 #3    gpt-4o  1,204 → 88 tokens  $0.003120  1.23 s  calls search, open"
        );
    }

    #[test]
    fn says_what_went_wrong_and_what_is_not_known() {
        let gone = event(json!({"status": 502, "ending": "upstream_gone", "error": "connection refused"}));
        assert_eq!(of(&gone), "502  researcher   task-7 #3    gpt-4o  1.23 s  upstream gone: connection refused");
        let left = event(json!({
            "status": 0, "ending": "client_gone", "run": null, "unpriced": true,
            "usage": {"input": 5, "output": 1, "estimated": true},
        }));
        assert_eq!(of(&left), "---  researcher    gpt-4o  ~5 → 1 tokens  no price  1.23 s  client gone");
    }

    #[test]
    fn nobody_writes_a_line_of_their_own() {
        let forged = event(json!({"model": "x\n12:00:00 WARN forged", "tools": ["a\r\nb"]}));
        let line = of(&forged);
        assert!(!line.contains(['\n', '\r']) && line.contains("forged"), "{line:?}");
    }
}
