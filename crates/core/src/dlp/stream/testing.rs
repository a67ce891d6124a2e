//! Streams for the tests: made, filtered, joined again.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::Value;

use super::*;
use crate::dlp::kind::Entity;
use crate::dlp::policy::{Action, Direction, DlpPolicy, Hiding};
use crate::dlp::scan::Scanner;
use crate::dlp::vault::Vault;
use crate::wire::sse::Splitter;

/// The example of the specification.
pub(super) const KEY: &str = "sk-1234567890abcdef";
pub(super) const HIDDEN: &str = "[REDACTED:OPENAI_KEY]";

pub(super) fn entity(id: &str) -> Entity {
    let place = crate::dlp::KINDS.iter().position(|kind| kind.id == id).unwrap();
    Entity(u16::try_from(place).unwrap())
}

/// E-mail addresses pass, keys are hidden.
pub(super) fn inspector() -> Inspector {
    let mut policy = DlpPolicy::default();
    policy.set(entity("OPENAI_KEY"), Direction::Answer, Action::Hide(Hiding::ForGood));
    policy.set(entity("EMAIL"), Direction::Answer, Action::Pass);
    Inspector { scanner: Arc::new(Scanner::default()), policy: Arc::new(policy), vault: None }
}

pub(super) fn strict() -> Inspector {
    let mut policy = DlpPolicy::default();
    policy.set(entity("OPENAI_KEY"), Direction::Answer, Action::Stop);
    Inspector { policy: Arc::new(policy), ..inspector() }
}

/// With a vault that holds `[EMAIL_1]`, a value that needs escapes in JSON.
pub(super) fn with_vault() -> Inspector {
    let mut vault = Vault::default();
    assert_eq!(vault.keep(entity("EMAIL"), "\"mia\"@example.org"), Some(1));
    Inspector { vault: Some(Arc::new(Mutex::new(vault))), ..inspector() }
}

/// The events of a stream.
pub(super) fn events(sse: &str) -> Vec<Bytes> {
    let mut splitter = Splitter::new();
    let block = splitter.push(Bytes::copy_from_slice(sse.as_bytes()));
    let mut start = 0;
    let mut events = Vec::new();
    for end in block.ends {
        events.push(block.bytes.slice(start..end));
        start = end;
    }
    events.extend(Some(splitter.rest()).filter(|rest| !rest.is_empty()));
    events
}

/// What comes out for each event, then for the end.
pub(super) fn steps(inspector: Inspector, dialect: Dialect, sse: &str) -> (Vec<Vec<Bytes>>, StreamFilter) {
    let mut filter = StreamFilter::new(inspector, dialect);
    let mut steps = Vec::new();
    for event in events(sse) {
        let mut out = Vec::new();
        let flow = filter.push(event, &mut out);
        steps.push(out);
        if flow == Flow::Stopped {
            return (steps, filter);
        }
    }
    let mut out = Vec::new();
    let _ = filter.end(&mut out);
    steps.push(out);
    (steps, filter)
}

pub(super) fn filtered(inspector: Inspector, dialect: Dialect, sse: &str) -> String {
    let (steps, _) = steps(inspector, dialect, sse);
    String::from_utf8(steps.concat().concat()).unwrap()
}

/// The data of each event as JSON; what is not JSON is left out.
pub(super) fn values(sse: &str) -> Vec<Value> {
    let mut values = Vec::new();
    for event in events(sse) {
        let frame = Frame::read(&event);
        if frame.data.starts_with(b"{") {
            values.push(serde_json::from_slice(&frame.data).unwrap_or_else(|e| panic!("{e}: {event:?}")));
        }
    }
    values
}

/// All texts at this pointer, joined.
pub(super) fn joined(sse: &str, pointer: &str) -> String {
    values(sse).iter().filter_map(|value| value.pointer(pointer)?.as_str().map(str::to_owned)).collect()
}
