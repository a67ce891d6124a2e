//! Events API v2 of PagerDuty.

use serde_json::{Value, json};

use super::super::alert::{Alert, AlertState};
use super::super::rule::AlertKind;
use super::rows::title;

/// The body for `/v2/enqueue`. What is over resolves the incident that it opened.
#[must_use]
pub fn pagerduty(alert: &Alert, routing_key: &str) -> Value {
    let action = if alert.state == AlertState::Recovered { "resolve" } else { "trigger" };
    let severity = match alert.kind {
        AlertKind::KillSwitch | AlertKind::AgentDown => "critical",
        AlertKind::LoopDetected | AlertKind::RunKilled | AlertKind::Velocity | AlertKind::ErrorRate => "error",
        AlertKind::Budget | AlertKind::Dlp => "warning",
        AlertKind::UnpricedModel | AlertKind::Test => "info",
    };
    let mut details = serde_json::to_value(alert).unwrap_or_default();
    if let Some(details) = details.as_object_mut() {
        details.remove("link");
    }
    let mut event = json!({
        "routing_key": routing_key,
        "event_action": action,
        "dedup_key": format!("sprag/{}/{}", alert.rule, alert.subject).chars().take(255).collect::<String>(),
        "client": "Sprag",
        "payload": {
            "summary": title(alert),
            "source": alert.occurrence.agent,
            "severity": severity,
            "timestamp": alert.at,
            "class": alert.kind.as_str(),
            "custom_details": details,
        },
    });
    if let Some(link) = &alert.link {
        event["client_url"] = json!(link);
        event["links"] = json!([{"href": link, "text": "Open in Sprag"}]);
    }
    event
}
