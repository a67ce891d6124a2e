//! Events API v2 of PagerDuty.

use serde_json::{Value, json};

use xxhash_rust::xxh3::xxh3_64;

use super::super::act_link::ActLink;
use super::super::alert::{Alert, AlertState};
use super::super::rule::AlertKind;
use super::rows::title;
use super::text::plain;

/// What PagerDuty takes.
const KEY_CHARS: usize = 255;

/// The body for `/v2/enqueue`. What is over resolves the incident that it opened.
#[must_use]
pub fn pagerduty(alert: &Alert, routing_key: &str, links: &[ActLink]) -> Value {
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
        "dedup_key": dedup_key(alert),
        "client": "Sprag",
        "payload": {
            "summary": title(alert),
            "source": plain(&alert.occurrence.agent),
            "severity": severity,
            "timestamp": alert.at,
            "class": alert.kind.as_str(),
            "custom_details": details,
        },
    });
    let mut listed: Vec<Value> = links.iter().map(|link| json!({"href": link.url, "text": link.act.label()})).collect();
    if let Some(link) = &alert.link {
        event["client_url"] = json!(link);
        listed.push(json!({"href": link, "text": "Open in Sprag"}));
    }
    if !listed.is_empty() {
        event["links"] = json!(listed);
    }
    event
}

/// One incident for each rule and subject. Those that are too long differ in what they end with.
fn dedup_key(alert: &Alert) -> String {
    let whole = plain(&format!("sprag/{}/{}", alert.rule, alert.subject));
    if whole.chars().count() <= KEY_CHARS {
        return whole;
    }
    let begin: String = whole.chars().take(KEY_CHARS - 17).collect();
    format!("{begin}#{:016x}", xxh3_64(whole.as_bytes()))
}
