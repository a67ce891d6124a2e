//! What is recorded of a request. Never a prompt, an answer or a key.

mod write;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dlp::Sightings;
use crate::id::{AgentName, RunId};
use crate::loops::{StepEvidence, Verdict};
use crate::money::NanoUsd;
use crate::time::Timestamp;
use crate::usage::Usage;
use crate::wire::Dialect;

/// One request and how it ended, or one administrative act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Unique and ordered by time; the request id that the caller saw.
    pub id: String,
    /// When the request arrived.
    pub at: Timestamp,
    /// What kind of event this is.
    pub kind: EventKind,
    /// Who called.
    pub agent: AgentName,
    /// The virtual key that it came with, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The run; absent for requests outside any run, such as a list of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunRecord>,
    /// The provider that the request was for.
    pub provider: String,
    /// The wire format.
    pub dialect: Dialect,
    /// Method and path, without the query.
    pub path: String,
    /// The model that was asked for, or that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether the answer was a stream.
    #[serde(default)]
    pub stream: bool,
    /// The status the client received; 0 when it left before there was one.
    pub status: u16,
    /// How the call ended.
    pub ending: Ending,
    /// From the request's arrival to the last byte.
    pub total_ms: u32,
    /// From the request's arrival to the first byte of the answer's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u32>,
    /// Sprag's own share, in microseconds: from the request's last byte to the upstream call.
    pub overhead_us: u32,
    /// Tokens; absent where nothing was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost; absent for a model without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoUsd>,
    /// The call had a cost, but the model's price is not known.
    #[serde(default)]
    pub unpriced: bool,
    /// The provider's word for why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// Names of the tools that the answer called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Sprag refused the request.
    #[serde(default)]
    pub blocked: bool,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_reason: Option<String>,
    /// What detection found, and what followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What would have followed if the rules in shadow were in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<Verdict>,
    /// Why limits in shadow would have refused it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_block: Vec<WouldBlock>,
    /// Secrets and personal data that were found: kinds and places, never the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dlp: Option<Sightings>,
    /// How near the run is to the threshold of `progress`, which is 1; absent where there was nothing to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f32>,
    /// What detection saw, so that it can be shown and judged again: hashes and counts, never text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<StepEvidence>,
    /// What refusing it has saved. The history sets it, and only where the proof of a stop names what repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<NanoUsd>,
    /// What went wrong, in words that hold no content of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What was done, where the event is an act and no request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<Box<Act>>,
}

/// A limit in shadow that had no room for a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WouldBlock {
    /// The reason, as refusals call it.
    pub reason: String,
    /// Which limit: `max_steps`, `daily`, the name of a rate limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceeded_limit: Option<String>,
    /// What the caller would have been told.
    pub message: String,
}

/// Something that was done about a run, an agent or everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Act {
    /// What.
    pub what: ActKind,
    /// Who did it: a person, or `sprag` itself.
    pub by: String,
    /// To what, in the form of a [`KillScope`](crate::policy::KillScope), or `token:ID`.
    pub target: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Value>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What was set, for acts that set something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ActKind {
    /// Stopped for good.
    Kill,
    /// Stopped until somebody approves.
    Pause,
    /// A killed run may go on.
    Resume,
    /// A paused run may go on.
    Approve,
    /// A kill of something wider than a run was taken back.
    Lift,
    /// An agent may call again.
    Activate,
    /// An agent may no longer call.
    Deactivate,
    /// An agent's kill switch was set.
    SetKillSwitch,
    /// An agent was made ahead of its first call, or its policy was changed.
    SetPolicy,
    /// What a budget has spent was corrected.
    AdjustBudget,
    /// A part of a budget was used up.
    BudgetReached,
    /// A virtual key was made.
    CreateKey,
    /// A virtual key was taken back.
    RevokeKey,
    /// A virtual key got a new secret.
    RotateKey,
    /// A token for the admin side was made.
    CreateToken,
    /// A token for the admin side was taken back.
    RevokeToken,
    /// A channel of alerts was tried.
    TestAlert,
    /// `sprag run` started a command.
    StartCommand,
    /// A command ended by itself.
    EndCommand,
    /// A channel or a rule of alerts was made, changed or deleted.
    SetAlerts,
    /// An alert that was given up is sent again.
    ResendAlert,
}

/// The place of an event in its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunRecord {
    /// The run's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub id: RunId,
    /// 1 for the first call of the run.
    pub step: u32,
    /// The run that this one is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub parent: Option<RunId>,
    /// How the run was recognised.
    pub origin: RunOrigin,
}

/// How a request was found to belong to its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RunOrigin {
    /// The caller named it.
    Declared,
    /// The client's own session id.
    Session,
    /// It continued an answer by that answer's id.
    Previous,
    /// It shares a trace with an earlier call.
    Trace,
    /// It extends a conversation that Sprag has seen, or starts one.
    Conversation,
}

/// What kind of event this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum EventKind {
    /// A call to a model.
    LlmCall,
    /// Any other request that passed through.
    Request,
    /// Something that a person did.
    Admin,
    /// Sprag stopped a run by itself.
    RunKilled,
    /// Sprag set an agent inactive by itself.
    KillSwitch,
    /// A part of a budget was used up, or all of it.
    Budget,
}

impl EventKind {
    /// Whether the event is a request, rather than something that was done.
    #[must_use]
    pub fn is_request(self) -> bool {
        matches!(self, EventKind::LlmCall | EventKind::Request)
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Ending {
    /// The answer was whole.
    Complete,
    /// The upstream answered with an error status, or with an error inside a stream.
    UpstreamError,
    /// The upstream could not be reached, or broke off.
    UpstreamGone,
    /// The upstream did not answer in time.
    TimedOut,
    /// The client went away.
    ClientGone,
    /// Sprag refused the request.
    Refused,
    /// Sprag cut the answer, or the wait for it, because of a kill.
    Killed,
    /// Sprag cut the answer because it repeated itself, or because its budget was used up.
    CutOff,
    /// Sprag itself ended before the call did: it is charged what was reserved for it.
    Lost,
}

impl Event {
    /// An event of which nothing more is known yet.
    #[must_use]
    pub fn new(id: String, at: Timestamp, kind: EventKind) -> Event {
        Event {
            id,
            at,
            kind,
            agent: AgentName::default(),
            key: None,
            run: None,
            provider: String::new(),
            dialect: Dialect::Opaque,
            path: String::new(),
            model: None,
            stream: false,
            status: 0,
            ending: Ending::Complete,
            total_ms: 0,
            first_byte_ms: None,
            overhead_us: 0,
            usage: None,
            cost: None,
            unpriced: false,
            finish: None,
            tools: Vec::new(),
            blocked: false,
            block_reason: None,
            verdict: None,
            shadow: None,
            would_block: Vec::new(),
            dlp: None,
            level: None,
            evidence: None,
            saved: None,
            error: None,
            act: None,
        }
    }

    /// An event for something that was done. It costs nothing and counts nowhere.
    #[must_use]
    pub fn of_act(
        id: String,
        at: Timestamp,
        kind: EventKind,
        agent: AgentName,
        run: Option<RunRecord>,
        act: Act,
    ) -> Event {
        Event { agent, run, path: act.target.clone(), act: Some(Box::new(act)), ..Event::new(id, at, kind) }
    }
}
