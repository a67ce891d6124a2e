//! Events for this crate's own tests.

use sprag_core::event::{Ending, Event, EventKind, RunOrigin, RunRecord};
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;
use sprag_core::wire::Dialect;

/// A request outside any run, without money.
pub(crate) fn request(id: &str) -> Event {
    Event {
        id: id.to_owned(),
        at: Timestamp(1_700_000_000_000),
        kind: EventKind::Request,
        agent: AgentName::parse("tester").unwrap(),
        key: None,
        run: None,
        provider: "openai".into(),
        dialect: Dialect::Opaque,
        path: "GET /v1/models".into(),
        model: None,
        stream: false,
        status: 200,
        ending: Ending::Complete,
        total_ms: 7,
        first_byte_ms: Some(5),
        overhead_us: 90,
        usage: None,
        cost: None,
        unpriced: false,
        finish: None,
        tools: vec![],
        blocked: false,
        block_reason: None,
        would_block: Vec::new(),
        dlp: None,
        error: None,
        act: None,
        verdict: None,
        shadow: None,
    }
}

/// A call of a model in a run, costing 1000 nano-dollars.
pub(crate) fn step(id: &str, run: &str, step: u32) -> Event {
    Event {
        kind: EventKind::LlmCall,
        run: Some(RunRecord { id: RunId::parse(run).unwrap(), step, parent: None, origin: RunOrigin::Declared }),
        dialect: Dialect::OpenaiChat,
        path: "POST /v1/chat/completions".into(),
        model: Some("gpt-4o-mini".into()),
        stream: true,
        usage: Some(Usage { input: 100, cache_read: 20, output: 10, ..Usage::default() }),
        cost: Some(NanoUsd(1000)),
        finish: Some("tool_calls".into()),
        tools: vec!["read_file".into(), "write_file".into()],
        ..request(id)
    }
}
