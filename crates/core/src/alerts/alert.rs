//! An alert: what receivers of a webhook get, and what all other forms are made of.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use super::rule::AlertKind;
use crate::money::NanoUsd;
use crate::time::Timestamp;

/// Why an alert is sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum AlertState {
    /// It happened.
    Firing,
    /// It still lasts.
    Repeated,
    /// What was held back since the last alert.
    Digest,
    /// It is over.
    Recovered,
    /// Somebody tries the channel.
    Test,
}

impl AlertState {
    /// The name in payloads.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            AlertState::Firing => "firing",
            AlertState::Repeated => "repeated",
            AlertState::Digest => "digest",
            AlertState::Recovered => "recovered",
            AlertState::Test => "test",
        }
    }
}

/// What happened, the latest time that it did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Occurrence {
    /// Which agent.
    pub agent: String,
    /// Which run, where it is about one.
    pub run: Option<String>,
    /// Why, in one sentence.
    pub reason: String,
    /// The value that reached the threshold.
    pub score: Option<f64>,
    /// The threshold.
    pub threshold: Option<f64>,
    /// Over which steps or time.
    pub window: Option<String>,
    /// Requests of the agent that were refused since this began.
    pub blocked_requests: u64,
    /// What the run has cost so far, in dollars; without a run, what the call did.
    pub cost_usd: Option<f64>,
    /// What it rests on.
    pub proof: Option<Value>,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Alert {
    /// The form of this object.
    pub version: u32,
    /// The same each time this alert is sent: whoever has seen it drops it.
    pub id: String,
    /// Why it is sent now.
    pub state: AlertState,
    /// The rule.
    pub rule: String,
    /// What the rule is about.
    pub kind: AlertKind,
    /// What is told once in a cooldown: an agent, a budget and its stage, a model.
    pub subject: String,
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// One line for a person.
    pub title: String,
    /// How often the same happened since the last alert without being told.
    pub suppressed: u64,
    /// Where to look.
    pub link: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub occurrence: Occurrence,
}

impl Alert {
    /// An alert of a rule.
    #[must_use]
    pub fn new(
        (rule, kind): (&str, AlertKind),
        subject: &str,
        state: AlertState,
        at: Timestamp,
        suppressed: u64,
        occurrence: Occurrence,
    ) -> Alert {
        let named = format!("{rule}\n{subject}\n{}\n{}", state.as_str(), at.0);
        Alert {
            version: 1,
            id: format!("alert_{:032x}", xxh3_128(named.as_bytes())),
            state,
            rule: rule.to_owned(),
            kind,
            subject: subject.to_owned(),
            at: at.to_rfc3339(),
            title: title(kind, subject, state, suppressed, &occurrence),
            suppressed,
            link: None,
            occurrence,
        }
    }

    /// A number for what it is about: the same for all alerts of a rule about one subject.
    #[must_use]
    pub fn about(&self) -> i64 {
        xxh3_128(format!("{}\n{}", self.rule, self.subject).as_bytes()) as i64
    }

    /// The same with an id of its own: it is not the first of its kind at that moment.
    #[must_use]
    pub fn numbered(self, number: u64) -> Alert {
        if number == 0 {
            return self;
        }
        let named = format!("{}\n{number}", self.id);
        Alert { id: format!("alert_{:032x}", xxh3_128(named.as_bytes())), ..self }
    }

    /// A message that only shows that a channel works.
    #[must_use]
    pub fn test(channel: &str, by: &str, at: Timestamp) -> Alert {
        let reason = format!("{by} tries the channel {channel}; nothing has happened");
        let occurrence = Occurrence { agent: "test".to_owned(), reason, ..Occurrence::default() };
        Alert::new(("test", AlertKind::Test), channel, AlertState::Test, at, 0, occurrence)
    }
}

impl Occurrence {
    /// With what it cost.
    #[must_use]
    pub fn costing(self, cost: Option<NanoUsd>) -> Occurrence {
        Occurrence { cost_usd: cost.map(NanoUsd::as_usd), ..self }
    }
}

fn title(kind: AlertKind, subject: &str, state: AlertState, suppressed: u64, occurrence: &Occurrence) -> String {
    let agent = &occurrence.agent;
    let what = match kind {
        AlertKind::KillSwitch => format!("{agent} was deactivated by its kill switch"),
        AlertKind::LoopDetected => format!("{agent} is in a loop"),
        AlertKind::RunKilled => format!("a run of {agent} was stopped"),
        AlertKind::Budget => format!("budget {subject}"),
        AlertKind::ErrorRate => format!("calls of {agent} fail"),
        AlertKind::AgentDown => format!("{agent} is silent"),
        AlertKind::Dlp => format!("secrets or personal data in calls of {agent}"),
        AlertKind::Velocity => format!("{agent} spends far faster than usual"),
        AlertKind::UnpricedModel => format!("model {subject} has no price"),
        AlertKind::Test => format!("test of {subject}"),
    };
    match state {
        AlertState::Firing | AlertState::Test => what,
        AlertState::Repeated => format!("still: {what}"),
        AlertState::Digest => format!("{suppressed} more: {what}"),
        AlertState::Recovered => format!("over: {what}"),
    }
}
