//! Evidence that ties one request to the run of another.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::event::RunOrigin;
use crate::id::{AgentName, RunId};
use crate::limits::RUN_CLUES;
use crate::wire::{Followed, History, Reply, call_id_hash};

/// Whose evidence it is: the agent, and the credential that the request came with.
///
/// Without it, anybody who sends somebody else's opening would join their run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope(u64);

impl Scope {
    /// The scope of an agent and the hash of its credential.
    #[must_use]
    pub fn new(agent: &AgentName, credential: Option<&[u8]>) -> Scope {
        let mut hash = Xxh3::new();
        hash.update(agent.as_str().as_bytes());
        hash.update(&[0]);
        hash.update(credential.unwrap_or_default());
        Scope(hash.digest())
    }

    /// The scope of a caller with a virtual key: a new secret of the same key changes nothing.
    #[must_use]
    pub fn of_key(agent: &AgentName, key: &str) -> Scope {
        let mut hash = Xxh3::new();
        hash.update(agent.as_str().as_bytes());
        // Not the byte of `new`: a credential that reads like the id of a key is not the key.
        hash.update(&[1]);
        hash.update(key.as_bytes());
        Scope(hash.digest())
    }

    /// The id of a run that begins with a trace: all calls of the trace find it, also those that begin at once.
    #[must_use]
    pub fn trace_run(self, trace: &str) -> RunId {
        let id = format!("run_trace_{:016x}", self.clue(Kind::Trace, xxh3_64(trace.as_bytes())));
        RunId::parse(&id).unwrap_or_else(|_| unreachable!("hexadecimal digits are printable"))
    }

    fn clue(self, kind: Kind, value: u64) -> u64 {
        let mut bytes = [0; 17];
        bytes[..8].copy_from_slice(&self.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&value.to_le_bytes());
        bytes[16] = kind as u8;
        xxh3_64(&bytes)
    }
}

/// One piece of evidence, how to look it up, and what a run that it leads to is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clue {
    /// The hash that the state store knows or does not know.
    pub hash: u64,
    /// How it leads to a run.
    pub lookup: Lookup,
    /// How a run found by it was recognised.
    pub origin: RunOrigin,
}

/// How a clue leads to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It names the run, however often it is asked.
    Known,
    /// A run waits for exactly one request that brings it.
    Claim,
    /// As `Claim`, but only a run that was active in the last [`RETRY_MS`]: a retry comes soon.
    Retry,
}

/// How long after a failed call the same request counts as its retry.
pub const RETRY_MS: u64 = 10 * 60 * 1000;

/// What a request brings that may tell its run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Brought<'a> {
    /// The id of an earlier answer.
    pub previous_id: Option<&'a str>,
    /// The trace id.
    pub trace: Option<&'a str>,
    /// The conversation.
    pub history: Option<&'a History>,
    /// Whether the client says that it sends the request again.
    pub is_retry: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    /// The id of an answer.
    AnswerId,
    /// A trace.
    Trace,
    /// A conversation up to and including an answer.
    Conversation,
    /// A conversation up to a request whose answer the client may have changed.
    Request,
    /// The id of a tool call.
    CallId,
    /// A request that failed, and may be sent again.
    Failed,
    /// A request in flight.
    Sent,
    /// A conversation whose last answer nobody has continued yet.
    Waiting,
    /// An answer with what was said before it, wherever in a conversation.
    Exchange,
}

/// The evidence in a request, the strongest first. Bounded by [`RUN_CLUES`].
#[must_use]
pub fn evidence(scope: Scope, brought: Brought<'_>, wanted: &[RunOrigin]) -> Vec<Clue> {
    let mut clues = Vec::with_capacity(8);
    let mut add = |origin: RunOrigin, lookup: Lookup, kind: Kind, value: u64| {
        if wanted.contains(&origin) {
            clues.push(Clue { hash: scope.clue(kind, value), lookup, origin });
        }
    };
    if let Some(id) = brought.previous_id {
        add(RunOrigin::Previous, Lookup::Known, Kind::AnswerId, xxh3_64(id.as_bytes()));
    }
    if let Some(trace) = brought.trace {
        add(RunOrigin::Trace, Lookup::Known, Kind::Trace, xxh3_64(trace.as_bytes()));
    }
    if let Some(history) = brought.history {
        let mut conversation = |lookup, kind, values: &[u64]| {
            values.iter().for_each(|v| add(RunOrigin::Conversation, lookup, kind, *v));
        };
        conversation(Lookup::Retry, Kind::Failed, &[history.end]);
        if brought.is_retry {
            conversation(Lookup::Retry, Kind::Sent, &[history.end]);
        }
        let newest = history.after_answers.get(..1).unwrap_or_default();
        conversation(Lookup::Claim, Kind::Waiting, newest);
        conversation(Lookup::Known, Kind::Conversation, &history.after_answers);
        conversation(Lookup::Known, Kind::CallId, &history.call_ids);
        conversation(Lookup::Known, Kind::Request, &history.before_answers);
        conversation(Lookup::Known, Kind::Exchange, &history.exchanges);
    }
    clues.truncate(RUN_CLUES);
    clues
}

/// The clue that is there as soon as the answer that a request goes on from is settled; None where it goes on from none.
#[must_use]
pub fn answer_before(scope: Scope, previous_id: Option<&str>, history: Option<&History>) -> Option<u64> {
    let by_id = previous_id.map(|id| scope.clue(Kind::AnswerId, xxh3_64(id.as_bytes())));
    by_id.or_else(|| Some(scope.clue(Kind::Conversation, *history?.after_answers.first()?)))
}

/// What a call leaves behind as evidence for the requests that follow it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remember {
    /// Clues that lead to this run from now on.
    pub clues: Vec<u64>,
    /// Clues that lead to this run only as long as no other run leaves the same one.
    pub unless_taken: Vec<u64>,
    /// Clues by which one request each may claim this run.
    pub offers: Vec<u64>,
    /// Offers of this run that no longer stand.
    pub withdrawn: Vec<u64>,
}

/// What to remember of a call that begins; `counts_retries` when its client says which requests it repeats.
#[must_use]
pub fn at_opening(scope: Scope, trace: Option<&str>, history: Option<&History>, counts_retries: bool) -> Remember {
    let sent = history.filter(|_| counts_retries).map(|history| scope.clue(Kind::Sent, history.end));
    let trace = trace.map(|trace| scope.clue(Kind::Trace, xxh3_64(trace.as_bytes())));
    Remember { clues: trace.into_iter().collect(), offers: sent.into_iter().collect(), ..Remember::default() }
}

/// What to remember of a call that is over: `history` of its request, and its answer as far as it came.
///
/// An answer that broke off is evidence too: clients keep what they received and go on from there. `is_named` when
/// the run's own requests name it: then nobody has to claim it.
#[must_use]
pub fn at_settling(scope: Scope, history: Option<&History>, reply: &Reply, is_whole: bool, is_named: bool) -> Remember {
    let mut remember = Remember::default();
    if let Some(id) = &reply.id
        && history.is_none_or(History::refers_to_answers)
    {
        remember.clues.push(scope.clue(Kind::AnswerId, xxh3_64(id.as_bytes())));
    }
    let ids = reply.tool_calls.iter().filter_map(|call| call_id_hash(&call.id));
    remember.clues.extend(ids.map(|id| scope.clue(Kind::CallId, id)));
    let Some(history) = history else { return remember };

    // Clients make up ids where the provider gave none.
    remember.clues.extend(history.call_ids.iter().map(|id| scope.clue(Kind::CallId, *id)));
    remember.withdrawn.push(scope.clue(Kind::Sent, history.end));
    let failed = scope.clue(Kind::Failed, history.end);
    if is_whole { &mut remember.withdrawn } else { &mut remember.offers }.push(failed);
    if is_whole || !reply.text.is_empty() || !reply.tool_calls.is_empty() {
        let Followed { after, exchange } = history.followed_by(reply);
        remember.unless_taken.push(scope.clue(Kind::Conversation, after));
        remember.unless_taken.extend(history.before().map(|before| scope.clue(Kind::Request, before)));
        remember.unless_taken.extend(exchange.map(|exchange| scope.clue(Kind::Exchange, exchange)));
        if !is_named {
            remember.offers.push(scope.clue(Kind::Waiting, after));
        }
    }
    remember
}

#[cfg(test)]
mod tests;
