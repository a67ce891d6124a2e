//! Recorded exchanges: `{request: {method, path, headers, body}, response: {status, body | sse}}`, one per line.
//!
//! Which run an exchange belongs to is found as the proxy finds it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use serde::Deserialize;
use serde_json::value::RawValue;
use sprag_core::dlp::Scanner;
use sprag_core::event::{Ending, RunOrigin};
use sprag_core::run::at_settling;
use sprag_core::time::Timestamp;
use sprag_core::wire::sse::Splitter;
use sprag_core::wire::{Call, Dialect, Reply, Tap};
use sprag_store::state::{OpenRequest, Settlement, State};

use super::open_runs::OpenRuns;
use super::read::Listener;
use super::{BEGINNING, Follow, Judged, Replay, STEP_MS};
use crate::clock::Ids;
use crate::gateway::identify::{Caller, Known, Naming, identify};

/// Every way in which a run is recognised.
const ORIGINS: [RunOrigin; 5] =
    [RunOrigin::Declared, RunOrigin::Session, RunOrigin::Previous, RunOrigin::Trace, RunOrigin::Conversation];

/// The exchanges of one file.
pub(super) struct Captures<'a> {
    replay: &'a Replay,
    state: State,
    ids: Ids,
    runs: OpenRuns<Run<'a>>,
    /// The file's name begins the ids of runs that nobody named.
    name: String,
    now: Timestamp,
}

struct Run<'a> {
    agent: String,
    follow: Follow<'a>,
}

#[derive(Deserialize)]
struct Exchange<'a> {
    #[serde(borrow, default)]
    client: Option<Cow<'a, str>>,
    #[serde(default)]
    t_ms: Option<f64>,
    #[serde(borrow)]
    request: Request<'a>,
    #[serde(borrow)]
    response: Response<'a>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(default)]
    status: Option<u16>,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
    #[serde(default)]
    sse: Option<String>,
}

impl<'a> Captures<'a> {
    pub(super) fn new(replay: &'a Replay, name: &str) -> Captures<'a> {
        let ids = Ids::Counted(Arc::new(AtomicU64::new(1)));
        Captures { replay, state: State::memory(), ids, runs: OpenRuns::new(), name: name.to_owned(), now: BEGINNING }
    }

    /// Takes one exchange. Requests that are no calls to a model are passed over.
    pub(super) fn line(&mut self, line: &str, listener: &mut dyn Listener) -> io::Result<Result<(), String>> {
        let exchange: Exchange<'_> = match serde_json::from_str(line) {
            Ok(exchange) => exchange,
            Err(error) => return Ok(Err(format!("not a recorded exchange: {error}"))),
        };
        match self.take(&exchange) {
            Ok(Some((name, run))) => listener.judged(judged(name, run)).map(Ok),
            Ok(None) => Ok(Ok(())),
            Err(why) => Ok(Err(why)),
        }
    }

    /// The file is over, and all its runs.
    pub(super) fn end(&mut self, listener: &mut dyn Listener) -> io::Result<()> {
        self.runs.take().into_iter().try_for_each(|(name, run)| listener.judged(judged(name, run)))
    }

    fn take(&mut self, exchange: &Exchange<'_>) -> Result<Option<(String, Run<'a>)>, String> {
        let (request, response) = (&exchange.request, &exchange.response);
        let path = request.path.split_once('?').map_or(request.path.as_ref(), |(path, _)| path);
        let dialect = Dialect::of_request(&request.method, path);
        if !dialect.is_llm() {
            return Ok(None);
        }
        let body = request.body.ok_or("`request` has no `body`")?;
        let call = Call::parse(dialect, path, body.get().as_bytes()).map_err(|error| error.to_string())?;
        let now = exchange.t_ms.map(|ms| Timestamp(BEGINNING.0 + ms as i64));
        self.now = now.unwrap_or(Timestamp(self.now.0 + STEP_MS)).max(self.now);

        let history = self.replay.history(&call);
        let head = head(request)?;
        let with_history = Some((&call, history.as_ref()));
        let scanner = Scanner::default();
        let naming = Naming { scanner: &scanner, command: None };
        let caller = identify(naming, &ORIGINS, None, None, &head, with_history).map_err(|error| error.to_string())?;
        let Caller { agent, scope, run: Some(asked), leaves, .. } = caller else { return Ok(None) };
        let known = Known { state: &self.state, ids: &self.ids, is_over: &|_| false };
        let run = asked.found_here(known, self.now);
        self.state.keep(&leaves, &run.key);
        let open = OpenRequest {
            lineage: Vec::new(),
            key: run.key.clone(),
            parent: run.parent.clone(),
            origin: run.origin,
            seed: None,
            now: self.now,
        };
        self.state.open(&open).map_err(|full| full.to_string())?;

        let is_declared = run.origin == RunOrigin::Declared;
        let is_named = matches!(run.origin, RunOrigin::Declared | RunOrigin::Session);
        let client = exchange.client.as_deref().unwrap_or(agent.as_str());
        let id = if is_named { run.key.id.to_string() } else { format!("{}:{}", self.name, run.key.id) };
        let begin = || Run { agent: client.to_owned(), follow: self.replay.follow_as(is_declared) };
        let (followed, left) = self.runs.get(&id, begin);
        followed.follow.arrive(&call, history.as_ref().map(|history| history.end), self.now);

        let reply = reply(dialect, response);
        let is_answered = reply.complete && reply.error.is_none() && response.status.unwrap_or(200) < 400;
        followed.follow.depart(dialect, &reply, is_answered, self.now);
        self.state.keep(&at_settling(scope, history.as_ref(), &reply, is_answered, is_named), &run.key);
        let ending = if is_answered { Ending::Complete } else { Ending::UpstreamError };
        self.state.settle(&run.key, Settlement { cost: None, usage: None, ending, now: self.now });
        Ok(left)
    }
}

/// What the proxy would have seen in front of the body.
fn head(request: &Request<'_>) -> Result<Parts, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let name = http::HeaderName::from_bytes(name.as_bytes()).map_err(|error| format!("`{name}`: {error}"))?;
        let value = http::HeaderValue::from_bytes(value.as_bytes()).map_err(|error| format!("`{name}`: {error}"))?;
        headers.append(name, value);
    }
    let parts = http::Request::builder().method(request.method.as_ref()).uri(request.path.as_ref()).body(());
    let (mut head, ()) = parts.map_err(|error| error.to_string())?.into_parts();
    head.headers = headers;
    Ok(head)
}

fn reply(dialect: Dialect, response: &Response<'_>) -> Reply {
    let mut tap = Tap::new(dialect);
    if let Some(body) = response.body {
        tap.json(body.get().as_bytes());
    }
    if let Some(stream) = &response.sse {
        let mut splitter = Splitter::new();
        let block = splitter.push(Bytes::copy_from_slice(stream.as_bytes()));
        let mut start = 0;
        for end in block.ends {
            tap.event(&block.bytes[start..end]);
            start = end;
        }
        tap.event(&splitter.rest());
    }
    tap.into_reply()
}

fn judged(run_id: String, run: Run<'_>) -> Judged {
    Judged { run_id, agent: Some(run.agent), label: None, outcome: run.follow.finish() }
}
