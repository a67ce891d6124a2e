//! Alerts, channels without their secrets, and rules.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sprag_core::alerts::{Alert, AlertKind, AlertRule, BUDGET_THRESHOLDS};
use sprag_core::time::Timestamp;
use sprag_store::outbox::{Backlog, DeliveryState, SentAlert};
use utoipa::ToSchema;

use crate::alerts::{AlertCounts, Health};
use crate::config::{Channel, Target, made_alerts};

const MINUTE: u64 = 60_000;

/// An alert with what became of it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct AlertRecord {
    /// What is sent.
    pub(crate) alert: Alert,
    pub(crate) deliveries: Vec<DeliveryRecord>,
}

/// An alert on its way to one channel.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DeliveryRecord {
    pub(crate) channel: String,
    pub(crate) state: DeliveryState,
    /// How often it was tried.
    pub(crate) attempts: u32,
    /// When it is tried next.
    pub(crate) next_at: Option<String>,
    /// Why the last try failed.
    pub(crate) error: Option<String>,
    /// When it was delivered or given up.
    pub(crate) done_at: Option<String>,
}

/// A place that alerts go to. Its secrets are never told.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ChannelRecord {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) host: String,
    pub(crate) allow_private: bool,
    /// Its messages carry a signature.
    pub(crate) signed: bool,
    /// Tries in a row that failed.
    pub(crate) failures: u32,
    /// Why the last one failed.
    pub(crate) error: Option<String>,
    /// Nothing is tried before.
    pub(crate) closed_until: Option<String>,
    /// It stands in the configuration, and is changed there.
    pub(crate) configured: bool,
    /// How it was made at run time; secrets are masked.
    pub(crate) written: Option<Value>,
}

/// What is told, about whom and how often.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RuleRecord {
    pub(crate) name: String,
    pub(crate) on: AlertKind,
    pub(crate) agents: Vec<String>,
    pub(crate) channels: Vec<String>,
    pub(crate) cooldown_minutes: u64,
    pub(crate) repeat_minutes: Option<u64>,
    pub(crate) recovery: bool,
    pub(crate) ignore_quiet_hours: bool,
    /// Of `error_rate`.
    pub(crate) percent: Option<u8>,
    pub(crate) min_requests: Option<u32>,
    pub(crate) window_minutes: Option<u64>,
    /// Of `agent_down`.
    pub(crate) silent_minutes: Option<u64>,
    /// Of `budget`: percentages at which it is told.
    pub(crate) thresholds: Option<Vec<u8>>,
    /// It stands in the configuration, and is changed there.
    pub(crate) configured: bool,
}

/// What is tried again.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct AgainRecord {
    /// The alert.
    pub(crate) id: String,
    /// To how many channels.
    pub(crate) messages: u32,
}

/// How many messages wait or were given up, and what was not told as it should have been.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct AlertCountsRecord {
    /// Messages that are tried, of those on record.
    pub(crate) waiting: u32,
    /// Messages that are no longer tried, of those on record.
    pub(crate) given_up: u32,
    /// How often something happened that cooldowns and quiet hours hold back.
    pub(crate) held_back: u64,
    /// Messages that were given up since the start.
    pub(crate) given_up_since_start: u64,
    /// Events that alerts did not look at since the start, because too many came at once.
    pub(crate) events_dropped: u64,
    /// Alerts that were not told since the start, because there was no room to remember more.
    pub(crate) untold: u64,
    /// Alerts that came later since the start, because their rule had told enough in that minute.
    pub(crate) delayed: u64,
}

impl AlertCountsRecord {
    pub(crate) fn new(backlog: Backlog, counts: AlertCounts) -> AlertCountsRecord {
        AlertCountsRecord {
            waiting: backlog.waiting,
            given_up: backlog.given_up,
            held_back: backlog.held_back,
            given_up_since_start: counts.given_up,
            events_dropped: counts.dropped,
            untold: counts.untold,
            delayed: counts.delayed,
        }
    }
}

/// How the try of a channel went.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct TestRecord {
    pub(crate) channel: String,
    pub(crate) delivered: bool,
    /// Why it did not arrive.
    pub(crate) error: Option<String>,
    /// What was sent.
    pub(crate) alert: Alert,
}

impl AlertRecord {
    pub(crate) fn new(sent: SentAlert) -> AlertRecord {
        let deliveries = sent.deliveries.into_iter().map(|delivery| DeliveryRecord {
            channel: delivery.channel,
            state: delivery.state,
            attempts: delivery.attempts,
            next_at: (delivery.state == DeliveryState::Waiting).then(|| delivery.next_at.to_rfc3339()),
            error: delivery.error,
            done_at: delivery.done_at.map(Timestamp::to_rfc3339),
        });
        AlertRecord { deliveries: deliveries.collect(), alert: sent.alert }
    }
}

impl ChannelRecord {
    pub(crate) fn new(name: &str, channel: &Channel, health: Health, written: Option<&Value>) -> ChannelRecord {
        ChannelRecord {
            name: name.to_owned(),
            kind: channel.target.kind().to_owned(),
            host: channel.target.host().to_owned(),
            allow_private: channel.allow_private,
            signed: matches!(channel.target, Target::Webhook { secret: Some(_), .. }),
            closed_until: (health.failures > 0).then(|| health.closed_until.to_rfc3339()),
            failures: health.failures,
            error: health.error,
            configured: written.is_none(),
            written: written.map(made_alerts::masked),
        }
    }
}

impl RuleRecord {
    pub(crate) fn new(rule: &AlertRule, configured: bool) -> RuleRecord {
        let rate = (rule.kind == AlertKind::ErrorRate).then_some(rule.error_rate);
        RuleRecord {
            name: rule.name.clone(),
            on: rule.kind,
            agents: rule.agents.clone(),
            channels: rule.channels.clone(),
            cooldown_minutes: rule.cooldown_ms / MINUTE,
            repeat_minutes: rule.repeat_ms.map(|every| every / MINUTE),
            recovery: rule.tells_recovery && rule.kind.recovers(),
            ignore_quiet_hours: !rule.keeps_quiet,
            percent: rate.map(|rate| rate.percent),
            min_requests: rate.map(|rate| rate.min_requests),
            window_minutes: rate.map(|rate| rate.window_ms / MINUTE),
            silent_minutes: (rule.kind == AlertKind::AgentDown).then_some(rule.silent_ms / MINUTE),
            thresholds: (rule.kind == AlertKind::Budget).then(|| match rule.thresholds.is_empty() {
                true => BUDGET_THRESHOLDS.to_vec(),
                false => rule.thresholds.clone(),
            }),
            configured,
        }
    }
}
