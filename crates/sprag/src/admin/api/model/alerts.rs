//! Alerts, channels without their secrets, and rules.

use serde::{Deserialize, Serialize};
use sprag_core::alerts::{Alert, AlertKind, AlertRule};
use sprag_core::time::Timestamp;
use sprag_store::outbox::{DeliveryState, SentAlert};
use utoipa::ToSchema;

use crate::alerts::Health;
use crate::config::{Channel, Target};

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
    pub(crate) fn new(name: &str, channel: &Channel, health: Health) -> ChannelRecord {
        ChannelRecord {
            name: name.to_owned(),
            kind: channel.target.kind().to_owned(),
            host: channel.target.host().to_owned(),
            allow_private: channel.allow_private,
            signed: matches!(channel.target, Target::Webhook { secret: Some(_), .. }),
            closed_until: (health.failures > 0).then(|| health.closed_until.to_rfc3339()),
            failures: health.failures,
            error: health.error,
        }
    }
}

impl RuleRecord {
    pub(crate) fn new(rule: &AlertRule) -> RuleRecord {
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
        }
    }
}
