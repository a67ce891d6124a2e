//! Channels and rules of alerts that somebody makes, changes, tries or takes away, and alerts that are sent again.

use std::sync::Arc;

use serde_json::Value;
use sprag_core::event::{Act, ActKind, Event, EventKind};
use sprag_core::id::AgentName;
use sprag_core::limits::{ALERT_CHANNELS, ALERT_RULES};
use sprag_store::StoreError;
use sprag_store::outbox::MadeKind;

use crate::app::App;
use crate::config::agent_override::merged;
use crate::config::{MASK, Problems, made_alerts};

/// Why a channel or a rule was not changed.
#[derive(Debug, thiserror::Error)]
pub enum AlertsRefused {
    /// It makes no sense. Keys are relative to it: `url`.
    #[error(transparent)]
    Invalid(Problems),
    /// It stands in the configuration.
    #[error("it stands in the configuration and is changed there; what is made here needs another name")]
    Configured,
    /// One of that name was made before.
    #[error("there is one of this name already; change that, or choose another name")]
    Taken,
    /// There is none of that name.
    #[error("there is none of this name")]
    Unknown,
    /// Rules name the channel.
    #[error("rules tell this channel: {0}; change or delete them first")]
    Named(String),
    /// It could not be put on record.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl App {
    /// Makes a channel or a rule (`is_new`), or changes one by a merge patch, in the form of the configuration. It counts from
    /// the next alert on.
    ///
    /// # Errors
    /// When the outcome makes no sense or cannot be written; then nothing changes.
    pub async fn set_alerts(
        self: &Arc<Self>,
        kind: MadeKind,
        name: String,
        patch: Value,
        is_new: bool,
        by: String,
    ) -> Result<(), AlertsRefused> {
        self.blocking(move |app| app.set_alerts_now(kind, &name, &patch, is_new, by)).await
    }

    /// Takes a channel or a rule away that was made at run time.
    ///
    /// # Errors
    /// When there is none, when rules name it, or when it cannot be written; then it stays.
    pub async fn delete_alerts(
        self: &Arc<Self>,
        kind: MadeKind,
        name: String,
        by: String,
    ) -> Result<(), AlertsRefused> {
        self.blocking(move |app| {
            app.check_unconfigured(kind, &name)?;
            let configured = app.settings.load_full();
            app.alerts.change(kind, &name, &configured.alerts, |made| {
                if made.get(kind, &name).is_none() {
                    return Err(AlertsRefused::Unknown);
                }
                let naming = if kind == MadeKind::Channel { made.naming(&name) } else { Vec::new() };
                if naming.is_empty() { Ok(None) } else { Err(AlertsRefused::Named(naming.join(", "))) }
            })?;
            app.reconfigure_alerts();
            app.record_alerts_act(ActKind::SetAlerts, target(kind, &name), by, "deleted", None);
            Ok(())
        })
        .await
    }

    /// Lets what was given up of an alert be tried again; only to `channel`, where one is named. Says how many messages those
    /// are; nothing where there is no such alert.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn send_alert_again(
        self: &Arc<Self>,
        id: String,
        channel: Option<String>,
        by: String,
    ) -> Result<Option<usize>, StoreError> {
        self.blocking(move |app| {
            let again = app.alerts.outbox.again(&id, channel.as_deref(), app.clock.now())?;
            if again.is_some_and(|count| count > 0) {
                app.alerts.wake();
                let reason = channel.map_or_else(|| "to all channels".to_owned(), |channel| format!("to {channel}"));
                app.record_alerts_act(ActKind::ResendAlert, format!("alert:{id}"), by, &reason, None);
            }
            Ok(again)
        })
        .await
    }

    fn set_alerts_now(
        &self,
        kind: MadeKind,
        name: &str,
        patch: &Value,
        is_new: bool,
        by: String,
    ) -> Result<(), AlertsRefused> {
        self.check_unconfigured(kind, name)?;
        let invalid = |problems| AlertsRefused::Invalid(Problems(problems));
        let settings = self.settings.load_full();
        let mut shown = Value::Null;
        self.alerts.change(kind, name, &settings.alerts, |made| {
            let in_force = self.alerts.in_force();
            match (is_new, made.get(kind, name)) {
                (true, Some(_)) => return Err(AlertsRefused::Taken),
                (false, None) => return Err(AlertsRefused::Unknown),
                _ => {}
            }
            let written = merged(made.get(kind, name).unwrap_or(&Value::Null), &without_masks(patch));
            let (count, what, most) = match kind {
                MadeKind::Channel => {
                    made_alerts::channel(name, &written).map_err(invalid)?;
                    (in_force.channels.len().max(made.channels.len()), "channels of alerts", ALERT_CHANNELS)
                }
                MadeKind::Rule => {
                    made_alerts::rule(name, &written, &in_force.channels).map_err(invalid)?;
                    (in_force.rules.rules.len().max(made.rules.len()), "rules of alerts", ALERT_RULES)
                }
            };
            if is_new && count >= most {
                return Err(AlertsRefused::Store(StoreError::Full { what, most }));
            }
            shown = if kind == MadeKind::Channel { made_alerts::masked(&written) } else { written.clone() };
            Ok(Some(written))
        })?;
        self.reconfigure_alerts();
        self.alerts.wake();
        let done = if is_new { "created" } else { "changed" };
        self.record_alerts_act(ActKind::SetAlerts, target(kind, name), by, done, Some(shown));
        Ok(())
    }

    fn check_unconfigured(&self, kind: MadeKind, name: &str) -> Result<(), AlertsRefused> {
        let settings = self.settings.load();
        let is_configured = match kind {
            MadeKind::Channel => settings.alerts.channels.contains_key(name),
            MadeKind::Rule => settings.alerts.rules.rules.iter().any(|rule| rule.name == name),
        };
        if is_configured { Err(AlertsRefused::Configured) } else { Ok(()) }
    }

    /// Puts on record that a channel was tried, and how that went.
    pub(crate) fn record_alert_test(&self, channel: &str, by: &str, error: Option<&str>) {
        let target = format!("channel:{channel}");
        self.record_alerts_act(ActKind::TestAlert, target, by.to_owned(), error.unwrap_or("delivered"), None);
    }

    fn record_alerts_act(&self, what: ActKind, target: String, by: String, reason: &str, detail: Option<Value>) {
        let now = self.clock.now();
        let act = Act { what, by, target, reason: reason.to_owned(), proof: None, expires_at: None, detail };
        let agent = AgentName::default();
        self.record(&Event::of_act(self.ids.request(now), now, EventKind::Admin, agent, None, act));
    }
}

fn target(kind: MadeKind, name: &str) -> String {
    match kind {
        MadeKind::Channel => format!("channel:{name}"),
        MadeKind::Rule => format!("rule:{name}"),
    }
}

/// A secret that comes back as it was shown stays as it is. The name stands beside, not within.
fn without_masks(patch: &Value) -> Value {
    match patch {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, value)| *value != MASK && *key != "name");
            Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        other => other.clone(),
    }
}
