//! Events for this crate's own tests.

use sprag_core::event::{Event, EventKind, RunOrigin, RunRecord};
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;
use sprag_core::wire::Dialect;

/// A request outside any run, without money.
pub(crate) fn request(id: &str) -> Event {
    Event {
        agent: AgentName::parse("tester").unwrap(),
        provider: "openai".into(),
        path: "GET /v1/models".into(),
        status: 200,
        total_ms: 7,
        first_byte_ms: Some(5),
        overhead_us: 90,
        ..Event::new(id.to_owned(), Timestamp(1_700_000_000_000), EventKind::Request)
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
