//! Who is told what happens, ready for use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use http::Uri;
use sprag_core::alerts::AlertRules;

use super::file::MailSecurity;
use super::secret::Secret;

/// Who is told what happens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alerts {
    /// What is told, and when it is quiet.
    pub rules: Arc<AlertRules>,
    /// Where alerts go, by name.
    pub channels: BTreeMap<String, Arc<Channel>>,
    /// What links begin with, without a slash at the end.
    pub dashboard_url: Option<String>,
    /// How long links that act work, in milliseconds; 0: messages carry none.
    pub link_ms: u64,
}

/// A place that alerts go to.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// What it is, and what only it needs.
    pub target: Target,
    /// It may be in a private network.
    pub allow_private: bool,
    /// Certificate authorities to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
}

/// An address with a secret in it. It prints nothing but its host.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl(pub(crate) Uri);

impl std::fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/***", self.0.host().unwrap_or_default())
    }
}

/// What a channel is, and what only it needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// JSON to an address, signed.
    Webhook {
        /// Where.
        url: SecretUrl,
        /// What it is signed with.
        secret: Option<Secret>,
    },
    /// An incoming webhook of Slack.
    Slack(SecretUrl),
    /// A webhook of Discord.
    Discord(SecretUrl),
    /// A workflow of Teams.
    Teams(SecretUrl),
    /// A bot of Telegram.
    Telegram {
        /// With the token in its path.
        url: SecretUrl,
        /// The chat.
        chat: String,
    },
    /// PagerDuty.
    Pagerduty {
        /// Where.
        url: SecretUrl,
        /// The integration key.
        routing_key: Secret,
    },
    /// Mail.
    Email(Box<Mail>),
}

/// How mail is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Mail {
    /// The mail server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is secured.
    pub security: MailSecurity,
    /// Who signs in, with which password.
    pub login: Option<(String, Secret)>,
    /// The sender.
    pub from: String,
    /// Who gets it.
    pub to: Vec<String>,
}

impl Target {
    /// How the configuration calls it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Target::Webhook { .. } => "webhook",
            Target::Slack(_) => "slack",
            Target::Discord(_) => "discord",
            Target::Teams(_) => "teams",
            Target::Telegram { .. } => "telegram",
            Target::Pagerduty { .. } => "pagerduty",
            Target::Email(_) => "email",
        }
    }

    /// The host, which may be shown.
    #[must_use]
    pub fn host(&self) -> &str {
        match self {
            Target::Webhook { url, .. }
            | Target::Slack(url)
            | Target::Discord(url)
            | Target::Teams(url)
            | Target::Telegram { url, .. }
            | Target::Pagerduty { url, .. } => url.0.host().unwrap_or_default(),
            Target::Email(mail) => &mail.host,
        }
    }
}
