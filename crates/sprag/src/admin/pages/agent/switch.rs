//! The kill switch of an agent: on or off, how far it looks back, and what it trips above.
//!
//! Turning it on while nobody would hear of it asks first: an agent that is set inactive at night is a surprise.

use askama::Template;
use axum::extract::{Form as Sent, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use sprag_core::id::AgentName;

use super::{Draft, render, saved};
use crate::admin::Shared;
use crate::admin::api::desk;
use crate::admin::api::model::AgentDetail;
use crate::admin::operator::{Operator, Visitor};
use crate::admin::pages::field::{Reading, take, value_of};
use crate::admin::pages::span::Span;
use crate::admin::pages::{Page, Shell, agents, html, link};

/// The kill switch, as the form has it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(in crate::admin::pages) struct Switch {
    pub(in crate::admin::pages) name: String,
    /// Sent only when it is ticked.
    pub(in crate::admin::pages) enabled: Option<String>,
    pub(in crate::admin::pages) window_size: String,
    pub(in crate::admin::pages) threshold: String,
    /// Somebody was asked and said yes.
    #[serde(default)]
    pub(in crate::admin::pages) without_alerts: bool,
    #[serde(skip)]
    pub(in crate::admin::pages) window_complaint: Option<String>,
    #[serde(skip)]
    pub(in crate::admin::pages) threshold_complaint: Option<String>,
}

/// Asks before it is turned on while nobody would hear of it.
#[derive(Template)]
#[template(path = "kill_switch_ask.html")]
struct Ask {
    shell: Shell,
    href: String,
    switch: Switch,
}

pub(in crate::admin::pages) async fn set(
    State(admin): State<Shared>,
    visitor: Visitor,
    operator: Operator,
    Sent(switch): Sent<Switch>,
) -> Page {
    let agent = agents::agent(&switch.name)?;
    let detail = desk::agent(&admin, &agent).await?;
    let is_turned_on = switch.enabled.is_some() && !detail.agent.kill_switch.enabled;
    let change = json!({ "kill_switch": {
        "enabled": switch.enabled.is_some(),
        "window_size": value_of(Reading::Number, &switch.window_size),
        "threshold": value_of(Reading::Number, &switch.threshold),
    }});
    // Checked before anybody is asked: a slip must not come up after a yes.
    let complaints = complaints(&switch);
    if !complaints.is_empty() {
        let draft = Draft { switch: Some(switch), complaints, policy: None };
        return render(&admin, visitor, &agent, Span::default(), false, draft).await;
    }
    if is_turned_on && !switch.without_alerts && !admin.has_alert_channel() {
        let href = link::to("/agent", &[("name", Some(agent.as_str()))]);
        return Ok(html(StatusCode::OK, &Ask { shell: admin.shell("agents", visitor), href, switch }));
    }
    desk::change_agent(&admin, operator, &agent, change).await?;
    Ok(saved(&agent))
}

/// What is wrong with it, by field.
fn complaints(switch: &Switch) -> Vec<(String, String)> {
    use sprag_core::policy::KillSwitch;
    let is_window = switch.window_size.trim().parse().is_ok_and(|size| KillSwitch::WINDOWS.contains(&size));
    let is_threshold = switch.threshold.trim().parse().is_ok_and(|score| KillSwitch::THRESHOLDS.contains(&score));
    let complaint = |is_right: bool, field: &str, told: &str| (!is_right).then(|| (field.to_owned(), told.to_owned()));
    let window = complaint(is_window, "kill_switch.window_size", "a whole number from 5 to 100");
    window.into_iter().chain(complaint(is_threshold, "kill_switch.threshold", "a number from 1 to 50")).collect()
}

impl Switch {
    pub(super) fn of(agent: &AgentName, detail: &AgentDetail) -> Switch {
        let switch = detail.agent.kill_switch;
        Switch {
            name: agent.to_string(),
            enabled: switch.enabled.then(|| "on".to_owned()),
            window_size: switch.window_size.to_string(),
            threshold: switch.threshold.to_string(),
            ..Switch::default()
        }
    }

    pub(super) fn with_complaints(self, complaints: &mut Vec<(String, String)>) -> Switch {
        Switch {
            window_complaint: take(complaints, "kill_switch.window_size"),
            threshold_complaint: take(complaints, "kill_switch.threshold"),
            ..self
        }
    }
}
