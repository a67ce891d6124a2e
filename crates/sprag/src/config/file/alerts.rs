//! `[alerts]`: who is told what happens.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sprag_core::alerts::AlertKind;

use crate::config::secret::Secret;

/// Who is told what happens.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Alerts {
    /// Windows of the week in which alerts wait, such as "22:00-07:00" or "sat,sun". What happens then is told when they end.
    pub quiet_hours: Vec<String>,
    /// Whose clocks count for them, by IANA name.
    pub time_zone: String,
    /// Where people reach the dashboard; links in alerts begin with it. Without one: the address of the admin listener.
    #[schemars(example = &"https://sprag.example.com")]
    pub dashboard_url: Option<String>,
    /// Messages about a run carry links that approve, kill or resume it, once, for so many hours; 0 for none. They need dashboard_url, and whoever has the message may use them.
    #[schemars(range(min = 0, max = 720))]
    pub link_hours: u64,
    /// Where alerts go, by name.
    pub channels: BTreeMap<String, AlertChannel>,
    /// What is told.
    pub rules: Vec<AlertRule>,
}

/// A place that alerts go to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AlertChannel {
    /// "webhook", "slack", "discord", "teams", "telegram", "pagerduty" or "email".
    #[serde(rename = "type")]
    #[schemars(example = &"slack")]
    pub kind: Option<ChannelType>,
    /// Where it is sent to; of Slack, Discord and Teams the address of the incoming webhook, which is a secret. Telegram and PagerDuty need none.
    #[schemars(example = &"https://hooks.slack.com/services/...")]
    pub url: Option<Secret>,
    /// Webhook: signs each message with HMAC-SHA-256.
    #[schemars(example = &"a-long-random-text")]
    pub secret: Option<Secret>,
    /// Telegram: the token of the bot.
    #[schemars(example = &"123456:ABC-DEF")]
    pub token: Option<Secret>,
    /// Telegram: the chat, by its number or @name.
    #[schemars(example = &"-1001234567890")]
    pub chat: Option<String>,
    /// PagerDuty: the integration key of the service.
    #[schemars(example = &"R0123456789")]
    pub routing_key: Option<Secret>,
    /// E-mail: the mail server, with a port behind a colon if it is not 587, or 465 with "tls".
    #[schemars(example = &"smtp.example.com")]
    pub server: Option<String>,
    /// E-mail: "starttls", "tls" from the first byte, or "none". Without one: starttls.
    #[schemars(example = &"starttls")]
    pub security: Option<MailSecurity>,
    /// E-mail: who signs in there. Without one, nobody does.
    #[schemars(example = &"sprag")]
    pub username: Option<String>,
    /// E-mail: with which password.
    #[schemars(example = &"a-password")]
    pub password: Option<Secret>,
    /// E-mail: the sender.
    #[schemars(example = &"sprag@example.com")]
    pub from: Option<String>,
    /// E-mail: who gets it.
    #[schemars(example = &["ops@example.com"])]
    pub recipients: Option<Vec<String>>,
    /// Allow an address in a private network, or this machine itself. Without it such a target is refused.
    #[schemars(example = true)]
    pub allow_private: Option<bool>,
    /// PEM file of certificate authorities to trust for this channel, instead of the system's.
    #[schemars(example = &"/etc/ssl/company-ca.pem")]
    pub ca_file: Option<String>,
}

/// What kind of channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ChannelType {
    /// JSON to an address.
    Webhook,
    /// An incoming webhook of Slack.
    Slack,
    /// A webhook of Discord.
    Discord,
    /// A workflow of Teams.
    Teams,
    /// A bot of Telegram.
    Telegram,
    /// The Events API v2 of PagerDuty.
    Pagerduty,
    /// Mail over SMTP.
    Email,
}

/// How a connection to a mail server is secured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum MailSecurity {
    /// In the clear first, then TLS; without TLS nothing is sent.
    #[default]
    Starttls,
    /// TLS from the first byte.
    Tls,
    /// In the clear.
    None,
}

/// One thing that is told.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AlertRule {
    /// What alerts call it. Without one: what it is about.
    #[schemars(example = &"loops")]
    pub name: Option<String>,
    /// What it is about: "kill_switch", "loop_detected", "run_killed", "budget" (parts of a budget that are used up), "error_rate", "agent_down", "dlp", "velocity" or "unpriced_model".
    #[schemars(
        example = &"loop_detected",
        with = "Option<String>",
        extend("enum" = ["kill_switch", "loop_detected", "run_killed", "budget", "error_rate", "agent_down", "dlp", "velocity", "unpriced_model"])
    )]
    pub on: Option<AlertKind>,
    /// Agents, in whose names * stands for anything. Without any: all.
    #[schemars(example = &["prod-*"])]
    pub agents: Option<Vec<String>>,
    /// Names of channels. Without any: all.
    #[schemars(example = &["ops"])]
    pub channels: Option<Vec<String>>,
    /// After an alert, the same is only counted for so long. Without one: 15.
    #[schemars(range(min = 0, max = 10080), example = 15)]
    pub cooldown_minutes: Option<u64>,
    /// Tell it again after so long while it lasts: kill_switch, error_rate, agent_down. Without one: it is not.
    #[schemars(range(min = 1, max = 10080), example = 60)]
    pub repeat_minutes: Option<u64>,
    /// Tell when it is over: kill_switch, loop_detected, error_rate, agent_down, velocity. Without one: true.
    #[schemars(example = true)]
    pub recovery: Option<bool>,
    /// Tell it in quiet hours too. Without one: false.
    #[schemars(example = true)]
    pub ignore_quiet_hours: Option<bool>,
    /// error_rate: failed calls in a hundred. Without one: 50.
    #[schemars(range(min = 1, max = 100), example = 50)]
    pub percent: Option<u8>,
    /// error_rate: fewer calls in the window say nothing. Without one: 20.
    #[schemars(range(min = 1, max = 1_000_000), example = 20)]
    pub min_requests: Option<u32>,
    /// error_rate: the window. Without one: 5.
    #[schemars(range(min = 1, max = 1440), example = 5)]
    pub window_minutes: Option<u64>,
    /// budget: at which percentages of a budget it is told, each once in a period. Without any: 50, 80, 100 and every stage.
    #[schemars(inner(range(min = 1, max = 100)), example = &[50, 80, 100])]
    pub thresholds: Option<Vec<u8>>,
    /// agent_down: after how long without a call. Without one: 15.
    #[schemars(range(min = 1, max = 10080), example = 15)]
    pub silent_minutes: Option<u64>,
}

impl Default for Alerts {
    fn default() -> Alerts {
        Alerts {
            quiet_hours: Vec::new(),
            time_zone: "UTC".to_owned(),
            dashboard_url: None,
            link_hours: 24,
            channels: BTreeMap::new(),
            rules: Vec::new(),
        }
    }
}
