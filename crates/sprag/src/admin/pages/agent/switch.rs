//! The kill switch of an agent: on or off, how far it looks back, and what it trips above.
//!
//! Turning it on while nobody would hear of it asks first: an agent that is set inactive at night is a surprise.

use askama::Template;
use axum::extract::{Form as Sent, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sprag_core::id::AgentName;

use super::{ATTEMPTS, Draft, based_on, busy, render, saved};
use crate::admin::Shared;
use crate::admin::api::desk;
use crate::admin::api::model::AgentDetail;
use crate::admin::operator::{Operator, Visitor};
use crate::admin::pages::field::{Reading, take, value_of};
use crate::admin::pages::shown::{Shown, Written};
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
    /// What the fields held on the page that was sent.
    #[serde(default)]
    pub(in crate::admin::pages) shown: String,
    /// What is wrong with the whole.
    #[serde(skip)]
    pub(in crate::admin::pages) complaint: Option<String>,
    #[serde(skip)]
    pub(in crate::admin::pages) window_complaint: Option<String>,
    #[serde(skip)]
    pub(in crate::admin::pages) threshold_complaint: Option<String>,
}

/// Its fields, by the names that the API has for them too.
const FIELDS: [&str; 3] = ["enabled", "window_size", "threshold"];

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
    Sent(sent): Sent<Switch>,
) -> Page {
    let agent = agents::agent(&sent.name)?;
    let page = Shown::read(Some(&sent.shown))?;
    for _ in 0..ATTEMPTS {
        let detail = desk::agent(&admin, &agent).await?;
        let (mut switch, now) = (sent.clone(), Switch::of(&agent, &detail));
        let written = switch.written(page.as_ref(), &now);
        let refused = |switch, complaints, status| {
            let draft = Draft { switch: Some(switch), complaints, status, policy: None };
            render(&admin, visitor.clone(), &agent, Span::default(), false, draft)
        };
        switch.shown.clone_from(&now.shown);
        if written.contains(&Written::Overtaken) {
            let complaint = Some(now.overtaken());
            return refused(Switch { complaint, ..switch }, Vec::new(), StatusCode::CONFLICT).await;
        }
        // Checked before anybody is asked: a slip must not come up after a yes.
        let complaints = complaints(&switch);
        if !complaints.is_empty() {
            return refused(switch, complaints, StatusCode::BAD_REQUEST).await;
        }
        let is_turned_on = switch.enabled.is_some() && !detail.agent.kill_switch.enabled;
        if is_turned_on && !switch.without_alerts && !admin.has_alert_channel() {
            let href = link::to("/agent", &[("name", Some(agent.as_str()))]);
            return Ok(html(StatusCode::OK, &Ask { shell: admin.shell("agents", visitor), href, switch }));
        }
        let number = |text: &str| value_of(Reading::Number, text);
        let values = [switch.enabled.is_some().into(), number(&switch.window_size), number(&switch.threshold)];
        let new = FIELDS.into_iter().zip(values).zip(written).filter(|(_, written)| *written == Written::New);
        let change: Map<String, Value> = new.map(|((field, value), _)| (field.to_owned(), value)).collect();
        if change.is_empty() {
            return Ok(saved(&agent));
        }
        let order = json!({ "kill_switch": change });
        match desk::change_agent_if(&admin, operator.clone(), &agent, order, based_on(&detail)).await {
            Ok(()) => return Ok(saved(&agent)),
            Err(problem) if problem.status == StatusCode::PRECONDITION_FAILED => {}
            Err(problem) => return Err(problem.into()),
        }
    }
    Err(busy().into())
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
        let switch = Switch {
            name: agent.to_string(),
            enabled: switch.enabled.then(|| "on".to_owned()),
            window_size: switch.window_size.to_string(),
            threshold: switch.threshold.to_string(),
            ..Switch::default()
        };
        Switch { shown: switch.texts().to_string(), ..switch }
    }

    /// What its fields hold.
    fn texts(&self) -> Shown {
        let enabled = if self.enabled.is_some() { "on" } else { "" };
        let texts = [enabled, self.window_size.trim(), self.threshold.trim()];
        FIELDS.into_iter().zip(texts).map(|(field, text)| (field.to_owned(), text.to_owned())).collect()
    }

    /// What somebody wrote in each field. Those that nobody wrote in hold what holds now.
    fn written(&mut self, page: Option<&Shown>, now: &Switch) -> [Written; 3] {
        let (texts, in_force) = (self.texts(), now.texts());
        let written = FIELDS.map(|field| in_force.compare(page, field, texts.text(field)));
        let [enabled, window_size, threshold] = written.map(|written| written == Written::Untouched);
        if enabled {
            self.enabled.clone_from(&now.enabled);
        }
        if window_size {
            self.window_size.clone_from(&now.window_size);
        }
        if threshold {
            self.threshold.clone_from(&now.threshold);
        }
        written
    }

    /// What to say to somebody who would put something else in place of this unseen.
    fn overtaken(&self) -> String {
        let state = if self.enabled.is_some() { "on" } else { "off" };
        format!(
            "Nothing was saved, because somebody else has changed the Kill Switch since the page was opened: it is {state}, \
             with a window of {} and a threshold of {}. What you wrote is still here: save again to put it in place of that.",
            self.window_size, self.threshold
        )
    }

    pub(super) fn with_complaints(self, complaints: &mut Vec<(String, String)>) -> Switch {
        Switch {
            window_complaint: take(complaints, "kill_switch.window_size"),
            threshold_complaint: take(complaints, "kill_switch.threshold"),
            ..self
        }
    }
}
