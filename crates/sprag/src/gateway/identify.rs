//! Who is calling, which run the call belongs to, and what it leaves behind for the calls that follow.

use std::borrow::Cow;

use http::HeaderMap;
use http::request::Parts;
use sha2::{Digest, Sha256};
use sprag_core::dlp::{Scanner, holds_secret};
use sprag_core::event::{Ending, RunOrigin, RunRecord};
use sprag_core::id::{AgentName, BadName, RunId};
use sprag_core::policy::VirtualKey;
use sprag_core::run::{
    Brought, Clue, Lookup, Named, RETRY_MS, Remember, Scope, Signs, answer_before, at_opening, at_settling, evidence,
    name_run,
};
use sprag_core::time::Timestamp;
use sprag_core::wire::{Call, History, Reply};
use sprag_store::RunKey;
use sprag_store::shared::Follows;
use sprag_store::state::State;

use super::credentials::{CREDENTIALS, credential_for, query_keys};
use super::headers::Meant;
use super::route::Route;
use super::ticket::TicketRun;
use crate::app::App;
use crate::clock::Ids;

/// Headers that are meant for Sprag: one that is no text is an error, not absent.
const RUN_HEADERS: [&str; 3] = ["x-sprag-run-id", "x-agentwall-run-id", "x-sprag-parent-run-id"];
const AGENT_HEADERS: [&str; 2] = ["x-sprag-agent", "x-agent-id"];

/// The caller of one request.
pub(crate) struct Caller {
    pub(crate) agent: AgentName,
    pub(crate) scope: Scope,
    /// None for requests outside any run.
    pub(crate) run: Option<AskedRun>,
    /// What it goes on from.
    pub(crate) follows: Follows,
    /// What the call leaves behind as soon as its run is known.
    pub(crate) leaves: Remember,
}

/// Which run a request asks for.
pub(crate) enum AskedRun {
    /// It names the run.
    Named(CallerRun),
    /// The first clue that leads to a run tells; without one, another begins.
    Evidence { clues: Vec<Clue>, otherwise: Unknown },
}

/// The run of a request whose evidence leads nowhere.
#[derive(Clone)]
pub(crate) struct Unknown {
    agent: AgentName,
    /// The run of its trace.
    trace: Option<RunId>,
    /// The virtual key that a new run belongs to.
    key_id: Option<String>,
    parent: Option<RunId>,
}

/// The run of one request.
#[derive(Clone)]
pub(crate) struct CallerRun {
    pub(crate) key: RunKey,
    pub(crate) parent: Option<RunId>,
    pub(crate) origin: RunOrigin,
    /// The run was begun by this request: nothing older is on record.
    pub(crate) is_fresh: bool,
}

/// What requests are told apart by.
#[derive(Clone, Copy)]
pub(crate) struct Naming<'a> {
    /// Tells what cannot be a name.
    pub(crate) scanner: &'a Scanner,
    /// The run that all others are a part of.
    pub(crate) command: Option<&'a RunId>,
}

/// Where runs are known.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) state: &'a State,
    pub(crate) ids: &'a Ids,
    /// Runs that a request no longer joins by being one that failed there.
    pub(crate) is_over: &'a dyn Fn(&RunKey) -> bool,
}

/// Finds the caller, and which run it asks for. One with a virtual key is the key's agent, and its runs are the key's. Requests that are no LLM calls belong to a run only when they name it.
///
/// # Errors
/// When an agent or a run is declared with a name that cannot be one.
pub(crate) fn identify(
    naming: Naming<'_>,
    wanted: &[RunOrigin],
    agent_in_path: Option<&str>,
    key: Option<&VirtualKey>,
    head: &Parts,
    call: Option<(&Call<'_>, Option<&History>)>,
) -> Result<Caller, BadName> {
    let Naming { scanner, command } = naming;
    let headers = &head.headers;
    let meant = Meant::of(headers);
    let header = |name: &str| meant.first(name).and_then(|v| std::str::from_utf8(v.as_bytes()).ok());
    refuse_unreadable(&meant)?;
    let (agent, scope) = match key {
        Some(key) => (key.agent.clone(), Scope::of_key(&key.agent, &key.id)),
        None => {
            let in_body = call.and_then(|(call, _)| call.own.agent.as_deref());
            let agent = named_agent(scanner, agent_in_path, &meant, in_body)?;
            let scope = Scope::new(&agent, credential(head).as_deref());
            (agent, scope)
        }
    };
    let key_id = key.map(|key| key.id.as_str());
    let own = |id: RunId| key_id.map_or_else(|| id.clone(), |key| id.of_key(key));
    let within = |id: RunId| command.map_or_else(|| id.clone(), |command| id.within(command));
    let signs = Signs::read(header);
    let run = match name_run(&signs, call.map(|(call, _)| call), wanted, key_id, |name| holds_secret(scanner, name))? {
        Some(Named { id, parent, origin }) => {
            let parent = parent.map(within).or_else(|| command.cloned());
            let key = RunKey { agent: agent.clone(), id: within(id) };
            Some(AskedRun::Named(CallerRun { key, parent, origin, is_fresh: false }))
        }
        None => call.map(|(call, history)| {
            let is_retry = signs.retries.is_some_and(|retries| retries > 0);
            let previous_id = call.previous_id.as_deref();
            let clues = evidence(scope, Brought { previous_id, trace: signs.trace, history, is_retry }, wanted);
            let trace = signs.trace.filter(|_| wanted.contains(&RunOrigin::Trace));
            let trace = trace.map(|trace| within(own(scope.trace_run(trace))));
            let (agent, key_id) = (agent.clone(), key_id.map(str::to_owned));
            AskedRun::Evidence { clues, otherwise: Unknown { agent, trace, key_id, parent: command.cloned() } }
        }),
    };
    let history = call.and_then(|(_, history)| history);
    let previous_id = call.and_then(|(call, _)| call.previous_id.as_deref());
    let follows = match (answer_before(scope, previous_id, history), &run) {
        (Some(clue), _) => Follows::Answer(clue),
        // Agents that name their runs need not resend what was said. A session of a client has calls beside its conversation, too.
        (None, Some(AskedRun::Named(run))) if run.origin == RunOrigin::Declared => Follows::Unsaid,
        (None, _) => Follows::Nothing,
    };
    let leaves = at_opening(scope, signs.trace, history, signs.retries.is_some());
    Ok(Caller { agent, scope, run, follows, leaves })
}

impl AskedRun {
    /// The run, as far as this node knows.
    pub(crate) fn found_here(self, known: Known<'_>, now: Timestamp) -> CallerRun {
        match self {
            AskedRun::Named(run) => run,
            AskedRun::Evidence { clues, otherwise } => {
                let found = clues.iter().find_map(|clue| Some((look_up(known, clue, now)?, clue.origin)));
                match found {
                    Some((key, origin)) => CallerRun { key, parent: otherwise.parent, origin, is_fresh: false },
                    None => otherwise.run(known.ids, now),
                }
            }
        }
    }
}

impl Unknown {
    /// The run that begins, or that its trace names.
    pub(crate) fn run(self, ids: &Ids, now: Timestamp) -> CallerRun {
        let Unknown { agent, trace, key_id, parent } = self;
        let (origin, is_fresh) = match trace {
            Some(_) => (RunOrigin::Trace, false),
            None => (RunOrigin::Conversation, true),
        };
        let new = || {
            let id = ids.run(now);
            key_id.map_or_else(|| id.clone(), |key| id.of_key(&key))
        };
        CallerRun { key: RunKey { agent, id: trace.unwrap_or_else(new) }, parent, origin, is_fresh }
    }
}

/// Who calls: named in the path, in a header or in the body.
///
/// # Errors
/// When the name cannot be one.
pub(crate) fn agent(
    scanner: &Scanner,
    in_path: Option<&str>,
    headers: &HeaderMap,
    in_body: Option<&str>,
) -> Result<AgentName, BadName> {
    named_agent(scanner, in_path, &Meant::of(headers), in_body)
}

fn named_agent(
    scanner: &Scanner,
    in_path: Option<&str>,
    meant: &Meant<'_>,
    in_body: Option<&str>,
) -> Result<AgentName, BadName> {
    let in_path = in_path.map(percent_decoded);
    let header = |name: &&str| meant.first(name).and_then(|v| std::str::from_utf8(v.as_bytes()).ok());
    let named = in_path.as_deref().or_else(|| AGENT_HEADERS.iter().find_map(header)).or(in_body);
    if named.is_some_and(|name| holds_secret(scanner, name)) {
        return Err(BadName::Secret);
    }
    Ok(named.map(AgentName::parse).transpose()?.unwrap_or_default())
}

/// Every agent that the headers name.
pub(crate) fn agents_named(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    AGENT_HEADERS.iter().flat_map(|name| headers.get_all(*name)).map(|value| value.as_bytes())
}

/// Leaves behind what ties later requests to the run of a call that is over. Only the first time does anything.
pub(crate) fn leave_evidence(
    app: &App,
    run: &mut TicketRun,
    record: Option<&RunRecord>,
    ending: Ending,
    reply: &Reply,
) {
    if run.left.is_some() {
        return;
    }
    let is_named = record.is_some_and(|run| matches!(run.origin, RunOrigin::Declared | RunOrigin::Session));
    let is_whole = ending == Ending::Complete;
    let left = at_settling(run.scope, run.history.as_ref(), reply, is_whole, is_named);
    app.state.keep(&left, &run.key);
    run.left = Some(left);
}

fn look_up(known: Known<'_>, clue: &Clue, now: Timestamp) -> Option<RunKey> {
    let state = known.state;
    match clue.lookup {
        Lookup::Known => state.resolve(&[clue.hash]).map(|(_, key)| key),
        Lookup::Claim => state.claim(clue.hash),
        Lookup::Retry => state.claim(clue.hash).filter(|key| {
            let last_at = state.totals(key).map(|totals| totals.last_at);
            last_at.is_some_and(|last_at| now.since_ms(last_at) <= RETRY_MS) && !(known.is_over)(key)
        }),
    }
}

fn refuse_unreadable(meant: &Meant<'_>) -> Result<(), BadName> {
    let is_unreadable = |name: &&str| meant.first(name).is_some_and(|v| std::str::from_utf8(v.as_bytes()).is_err());
    if RUN_HEADERS.iter().any(is_unreadable) {
        return Err(BadName::Run("has a character that is not printable"));
    }
    if AGENT_HEADERS.iter().any(is_unreadable) {
        return Err(BadName::Agent("has another character"));
    }
    Ok(())
}

/// What proves who the caller is: a header, or Gemini's `?key=`.
fn credential(head: &Parts) -> Option<Cow<'_, [u8]>> {
    let header = CREDENTIALS.iter().find_map(|name| head.headers.get(name)).map(|value| value.as_bytes().into());
    header.or_else(|| query_keys(head).next())
}

/// Names for everything in a request that may be its credential, by which it can be killed: the beginning of each
/// SHA-256. All of them, because the provider may look at another one than Sprag.
pub(crate) fn key_ids(head: &Parts) -> Vec<String> {
    let headers = CREDENTIALS.iter().flat_map(|name| head.headers.get_all(name)).map(|value| value.as_bytes().into());
    headers.chain(query_keys(head)).map(|credential: Cow<'_, [u8]>| key_id(&credential)).collect()
}

/// The name of the credential that counts where the request goes.
pub(crate) fn key_id_for(head: &Parts, route: &Route<'_>) -> Option<String> {
    credential_for(head, route).map(|credential| key_id(&credential))
}

fn key_id(credential: &[u8]) -> String {
    let bare = match credential.split_at_checked(7) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => key.trim_ascii(),
        _ => credential,
    };
    Sha256::digest(bare).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A part of a path as it was meant: clients write `%40` for `@`. What is not valid stays as it is.
pub(crate) fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_they_were_meant() {
        let cases = [("bot", "bot"), ("team%3Abot%40x", "team:bot@x"), ("50%", "50%"), ("%zz", "%zz"), ("%ff", "%ff")];
        for (path, meant) in cases {
            assert_eq!(percent_decoded(path), meant);
        }
    }
}
