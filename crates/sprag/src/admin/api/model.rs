//! What the API says, as the server writes it and as the commands read it.
//!
//! Times are RFC 3339 in UTC. Money stands twice: in dollars, exact to the nano-dollar, and as an integer for programs
//! whose numbers are floats.

mod alerts;
mod budgets;
mod evidence;
mod keys;
mod money;
mod policy;
mod prices;
mod shadow;
mod spend;
mod stops;
mod tokens;

use serde::{Deserialize, Serialize};
use sprag_core::dlp::Sightings;
use sprag_core::event::{Act, Ending, Event, EventKind, RunOrigin, RunRecord, WouldBlock};
use sprag_core::id::AgentName;
use sprag_core::loops::{StepFacts, Verdict};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AgentStanding, DeactivatedBy, KillSwitch};
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;
use sprag_core::wire::Dialect;
use sprag_store::history::{AgentRow, Page, RunRow, RunStatus, Totals};
use utoipa::ToSchema;

pub(crate) use self::alerts::{AgainRecord, AlertCountsRecord, AlertRecord, ChannelRecord, RuleRecord, TestRecord};
pub(crate) use self::budgets::AccountRecord;
pub(crate) use self::evidence::{PictureRecord, TrialRecord, TrialSums};
pub(crate) use self::keys::{KeyBudget, KeyRecord};
pub(crate) use self::money::Usd;
pub(in crate::admin::api) use self::policy::sources;
pub(crate) use self::policy::{Limits, PolicyRecord, PolicySource};
pub(crate) use self::prices::{PriceListing, PriceRecord};
pub(crate) use self::shadow::{ShadowSums, WouldHaveStopped};
pub(crate) use self::spend::SpendSeries;
pub(crate) use self::stops::{AgentDetail, KillRecord, StopRecord};
pub(crate) use self::tokens::{Me, TokenRecord};

/// A page of a listing.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Listing<T> {
    pub(crate) items: Vec<T>,
    /// Where the next page begins, to be given as `cursor`.
    pub(crate) next: Option<String>,
}

/// How the program is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Status {
    pub(crate) version: String,
    /// Where the proxy listens.
    pub(crate) proxy: String,
    pub(crate) started_at: String,
    pub(crate) uptime_seconds: u64,
    pub(crate) in_flight: u64,
    pub(crate) runs_in_memory: u64,
    /// Kills and pauses that stop something now.
    #[serde(default)]
    pub(crate) kills: u64,
    /// Requests that loop detection failed on, and let pass, since the start. Said only when there are any.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) detection_failures: u64,
    /// Calls that the process before left under way, charged what was set aside for them. Said only when there are any.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) lost_calls: u64,
    /// Daily and monthly budgets in force that are used up.
    #[serde(default)]
    pub(crate) budgets_used_up: u64,
    pub(crate) dlp: DlpStatus,
    pub(crate) recording: Recording,
    /// The Redis that several Sprags share; absent for a Sprag on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shared_state: Option<SharedState>,
    /// How kills, keys and policies are shared with the other Sprags; absent for a Sprag on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shared_catalog: Option<SharedCatalog>,
    pub(crate) today: Sums,
}

/// How far the look for secrets reaches: dialects, both ways, whole and streamed, by a canary at the start.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct DlpStatus {
    /// Ways that were tried.
    pub(crate) surfaces: u64,
    /// Those on which the canary was hidden.
    pub(crate) covered: u64,
    /// The others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) uncovered: Vec<String>,
}

/// How recording goes. Counts are since the start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Recording {
    pub(crate) ok: bool,
    pub(crate) problems: Vec<String>,
    pub(crate) waiting_bytes: u64,
    pub(crate) recorded: u64,
    pub(crate) money_only: u64,
    pub(crate) dropped: u64,
    pub(crate) lost: u64,
    pub(crate) in_database: u64,
    /// The way to the history that many nodes share; absent where this node has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shared: Option<SharedRecording>,
}

/// How events reach the history that many nodes share. Counts are since the start, but for `dropped`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SharedRecording {
    pub(crate) ok: bool,
    /// Why nothing arrives, or what was given up.
    pub(crate) problems: Vec<String>,
    /// Events that arrived.
    pub(crate) sent: u64,
    /// Events that wait on this node.
    pub(crate) waiting: u64,
    /// When the oldest of them happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) oldest_waiting: Option<String>,
    /// Events whose detail was given up; their money arrives all the same.
    pub(crate) dropped: u64,
}

/// How the link to what several Sprags share is. Counts are since the start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SharedState {
    /// Whether Redis is there. While it is not, this Sprag goes on by what it knows, but for controls that are closed then.
    pub(crate) connected: bool,
    /// For how long it has been so.
    pub(crate) since_seconds: u64,
    /// Where it is, without a password.
    pub(crate) redis: String,
    pub(crate) calls: u64,
    pub(crate) failures: u64,
    /// Calls that were not tried, because Redis was known to be away.
    pub(crate) not_sent: u64,
    /// Calls whose end Redis is still to be told.
    pub(crate) untold_calls: u64,
    /// Corrections of budgets that Redis is still to be told.
    #[serde(default)]
    pub(crate) untold_corrections: u64,
    /// Runs of which Redis is still to be told what happened while it was away.
    pub(crate) untold_runs: u64,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
}

/// How kills, keys, policies, corrections and alerts' setup reach the other Sprags, and theirs this one. Counts are since the
/// start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SharedCatalog {
    /// Whether changes go out and come in. While they do not, what is changed here holds here, and goes out later.
    pub(crate) connected: bool,
    /// Whether changes of others are heard of at once, not only when this Sprag looks.
    pub(crate) listening: bool,
    /// For how long it has been connected, or not.
    pub(crate) since_seconds: u64,
    /// How often the link was lost, or could not be had.
    pub(crate) failures: u64,
    /// Rows that went out.
    pub(crate) given_rows: u64,
    /// Rows that came in.
    pub(crate) taken_rows: u64,
    /// Rows of others that this version cannot read.
    pub(crate) unreadable_rows: u64,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
}

/// Sums since a moment.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Sums {
    pub(crate) since: String,
    pub(crate) requests: u64,
    pub(crate) input_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cost_usd: Usd,
    pub(crate) cost_nano_usd: NanoUsd,
    pub(crate) unpriced: u64,
    pub(crate) estimated: u64,
    pub(crate) blocked: u64,
    pub(crate) errors: u64,
    /// What stops have saved, counted only from proven repeats.
    pub(crate) saved_usd: Usd,
    pub(crate) saved_nano_usd: NanoUsd,
}

/// A run with its sums.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RunSummary {
    pub(crate) agent: String,
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) origin: RunOrigin,
    pub(crate) status: RunStatus,
    pub(crate) provider: String,
    pub(crate) model: Option<String>,
    pub(crate) steps: u64,
    pub(crate) input_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cost_usd: Usd,
    pub(crate) cost_nano_usd: NanoUsd,
    pub(crate) unpriced_steps: u64,
    pub(crate) estimated_steps: u64,
    pub(crate) blocked: u64,
    pub(crate) errors: u64,
    /// What stopping it has saved, counted only from proven repeats.
    pub(crate) saved_usd: Usd,
    pub(crate) saved_nano_usd: NanoUsd,
    pub(crate) first_at: String,
    pub(crate) last_at: String,
    /// Why it is killed or paused.
    pub(crate) stopped: Option<StopRecord>,
}

/// A run with what happened in it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RunDetail {
    pub(crate) run: RunSummary,
    /// Calls of the run and of all runs that are a part of it.
    pub(crate) tree_steps: u32,
    /// What they cost.
    pub(crate) tree_cost_usd: Usd,
    /// The same, exactly.
    pub(crate) tree_cost_nano_usd: NanoUsd,
    /// Where rules in shadow would have stopped it.
    pub(crate) would_have_stopped: Option<WouldHaveStopped>,
    /// Oldest first.
    pub(crate) steps: Listing<EventRecord>,
    pub(crate) children: Vec<RunSummary>,
}

/// An agent with its sums.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct AgentSummary {
    pub(crate) name: String,
    pub(crate) runs: u64,
    pub(crate) steps: u64,
    pub(crate) cost_usd: Usd,
    pub(crate) cost_nano_usd: NanoUsd,
    pub(crate) unpriced_steps: u64,
    pub(crate) blocked: u64,
    /// Absent for an agent that never called.
    pub(crate) first_at: Option<String>,
    pub(crate) last_at: Option<String>,
    pub(crate) active: bool,
    pub(crate) deactivated_by: Option<DeactivatedBy>,
    pub(crate) kill_switch: KillSwitch,
}

/// One event.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct EventRecord {
    pub(crate) id: String,
    pub(crate) at: String,
    pub(crate) kind: EventKind,
    pub(crate) agent: String,
    /// The virtual key that it came with, by its id.
    #[serde(default)]
    pub(crate) key: Option<String>,
    pub(crate) run: Option<RunRecord>,
    pub(crate) provider: String,
    pub(crate) dialect: Dialect,
    pub(crate) path: String,
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    /// 0 when the client left before there was one.
    pub(crate) status: u16,
    pub(crate) ending: Ending,
    pub(crate) total_ms: u32,
    pub(crate) first_byte_ms: Option<u32>,
    pub(crate) overhead_us: u32,
    /// Parts that do not overlap.
    pub(crate) usage: Option<Usage>,
    pub(crate) cost_usd: Option<Usd>,
    pub(crate) cost_nano_usd: Option<NanoUsd>,
    pub(crate) unpriced: bool,
    pub(crate) finish: Option<String>,
    pub(crate) tools: Vec<String>,
    pub(crate) blocked: bool,
    pub(crate) block_reason: Option<String>,
    pub(crate) error: Option<String>,
    /// What detection found, and what followed.
    #[serde(default)]
    pub(crate) verdict: Option<Verdict>,
    /// What would have followed if the rules in shadow were in force.
    #[serde(default)]
    pub(crate) shadow: Option<Verdict>,
    /// Why limits in shadow would have refused it.
    #[serde(default)]
    pub(crate) would_block: Vec<WouldBlock>,
    /// Secrets and personal data that were found: kinds, places and masked hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dlp: Option<Sightings>,
    /// How near the run was to the threshold of `progress`, which is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) level: Option<f32>,
    /// The step that the request finished, as detection saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<StepFacts>,
    /// What refusing it has saved; only where the proof of a stop names what repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) saved_nano_usd: Option<NanoUsd>,
    /// What was done, where the event is no request.
    pub(crate) act: Option<Box<Act>>,
}

impl<T> Listing<T> {
    pub(super) fn of<R>(page: Page<R>) -> Listing<T>
    where
        T: for<'a> From<&'a R>,
    {
        Listing { items: page.items.iter().map(T::from).collect(), next: page.next }
    }
}

fn is_none(number: &u64) -> bool {
    *number == 0
}

impl Sums {
    pub(super) fn new(since: Timestamp, totals: &Totals) -> Sums {
        Sums {
            since: since.to_rfc3339(),
            requests: totals.requests,
            input_tokens: totals.input_tokens,
            cached_tokens: totals.cached_tokens,
            output_tokens: totals.output_tokens,
            cost_usd: Usd(totals.cost),
            cost_nano_usd: totals.cost,
            unpriced: totals.unpriced,
            estimated: totals.estimated,
            blocked: totals.blocked,
            errors: totals.errors,
            saved_usd: Usd(totals.saved),
            saved_nano_usd: totals.saved,
        }
    }
}

impl From<&RunRow> for RunSummary {
    fn from(run: &RunRow) -> RunSummary {
        RunSummary {
            agent: run.agent.to_string(),
            id: run.id.to_string(),
            parent: run.parent.as_ref().map(ToString::to_string),
            origin: run.origin,
            status: run.status,
            provider: run.provider.clone(),
            model: run.model.clone(),
            steps: run.steps,
            input_tokens: run.input_tokens,
            cached_tokens: run.cached_tokens,
            output_tokens: run.output_tokens,
            cost_usd: Usd(run.cost),
            cost_nano_usd: run.cost,
            unpriced_steps: run.unpriced_steps,
            estimated_steps: run.estimated_steps,
            blocked: run.blocked,
            errors: run.errors,
            saved_usd: Usd(run.saved),
            saved_nano_usd: run.saved,
            first_at: run.first_at.to_rfc3339(),
            last_at: run.last_at.to_rfc3339(),
            stopped: run.stopped.as_ref().map(StopRecord::from),
        }
    }
}

impl AgentSummary {
    pub(super) fn new(
        name: &AgentName,
        row: Option<&AgentRow>,
        standing: Option<&AgentStanding>,
        kill_switch: KillSwitch,
    ) -> AgentSummary {
        let cost = row.map(|row| row.cost).unwrap_or_default();
        AgentSummary {
            name: name.to_string(),
            runs: row.map_or(0, |row| row.runs),
            steps: row.map_or(0, |row| row.steps),
            cost_usd: Usd(cost),
            cost_nano_usd: cost,
            unpriced_steps: row.map_or(0, |row| row.unpriced_steps),
            blocked: row.map_or(0, |row| row.blocked),
            first_at: row.map(|row| row.first_at.to_rfc3339()),
            last_at: row.map(|row| row.last_at.to_rfc3339()),
            active: standing.is_none_or(|standing| standing.active),
            deactivated_by: standing.and_then(|standing| standing.deactivated_by),
            kill_switch,
        }
    }
}

impl From<&Event> for EventRecord {
    fn from(event: &Event) -> EventRecord {
        let event = event.clone();
        let request = event.run.as_ref().map_or(0, |run| run.step);
        EventRecord {
            id: event.id,
            at: event.at.to_rfc3339(),
            kind: event.kind,
            agent: event.agent.to_string(),
            key: event.key,
            run: event.run,
            provider: event.provider,
            dialect: event.dialect,
            path: event.path,
            model: event.model,
            stream: event.stream,
            status: event.status,
            ending: event.ending,
            total_ms: event.total_ms,
            first_byte_ms: event.first_byte_ms,
            overhead_us: event.overhead_us,
            usage: event.usage,
            cost_usd: event.cost.map(Usd),
            cost_nano_usd: event.cost,
            unpriced: event.unpriced,
            finish: event.finish,
            tools: event.tools,
            blocked: event.blocked,
            block_reason: event.block_reason,
            error: event.error,
            verdict: event.verdict,
            shadow: event.shadow,
            would_block: event.would_block,
            dlp: event.dlp,
            level: event.level,
            evidence: event.evidence.and_then(|evidence| evidence.facts(request)),
            saved_nano_usd: event.saved,
            act: event.act,
        }
    }
}
