//! Alerts: where they go, what is told, and what became of what was told.

use askama::Template;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use sprag_core::alerts::AlertState;
use sprag_core::time::Timestamp;
use sprag_store::outbox::{DeliveryState, SentAlert};

use super::rows::Moment;
use super::{Page, Shell, html, link};
use crate::admin::Shared;
use crate::admin::api::Params;
use crate::admin::api::model::{ChannelRecord, RuleRecord};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;

const ROWS: u32 = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    cursor: Option<String>,
    /// The channel that was tried just now.
    tested: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Named {
    name: String,
}

#[derive(Template)]
#[template(path = "alerts.html")]
struct Alerts {
    shell: Shell,
    channels: Vec<ChannelRecord>,
    rules: Vec<RuleLine>,
    alerts: Vec<AlertLine>,
    tested: Option<String>,
    error: Option<String>,
    first: Option<String>,
    more: Option<String>,
}

struct RuleLine {
    name: String,
    on: &'static str,
    agents: String,
    channels: String,
    cooldown: String,
    /// Repetition, recovery, quiet hours.
    more: String,
}

struct AlertLine {
    at: Moment,
    title: String,
    href: Option<String>,
    reason: String,
    rule: String,
    state: &'static str,
    /// How the state is coloured.
    tone: &'static str,
    deliveries: Vec<DeliveryLine>,
}

struct DeliveryLine {
    channel: String,
    state: &'static str,
    tone: &'static str,
    error: String,
}

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    let (alerts, next) = admin.alerts(wanted.cursor.as_deref(), ROWS).await?;
    let now = admin.app.clock.now();
    // How it went stands on record: an address alone can make nobody believe anything.
    let tested = wanted.tested.and_then(|name| last_test(&alerts, name));
    let page = Alerts {
        channels: admin.alert_channels(),
        rules: admin.alert_rules().iter().map(RuleLine::new).collect(),
        alerts: alerts.into_iter().map(|alert| AlertLine::new(alert, now)).collect(),
        error: tested.as_ref().and_then(|(_, error)| error.clone()),
        tested: tested.map(|(name, _)| name),
        first: wanted.cursor.is_some().then(|| "/alerts".to_owned()),
        more: next.map(|next| link::to("/alerts", &[("cursor", Some(&next))])),
        shell: admin.shell("alerts", visitor),
    };
    Ok(html(StatusCode::OK, &page))
}

pub(super) async fn test(State(admin): State<Shared>, operator: Operator, Form(named): Form<Named>) -> Page {
    let tested = admin.test_channel(named.name, &operator.name).await?;
    let to = link::to("/alerts", &[("tested", Some(&tested.channel))]);
    Ok(Redirect::to(&to).into_response())
}

/// How the last test of a channel went.
fn last_test(alerts: &[SentAlert], name: String) -> Option<(String, Option<String>)> {
    let last = alerts.iter().find(|sent| sent.alert.state == AlertState::Test && sent.alert.subject == name)?;
    Some((name, last.deliveries.first().and_then(|delivery| delivery.error.clone())))
}

impl RuleLine {
    fn new(rule: &RuleRecord) -> RuleLine {
        let mut more = Vec::new();
        more.extend(
            rule.percent.zip(rule.window_minutes).map(|(percent, minutes)| format!("{percent} % in {minutes} min")),
        );
        more.extend(rule.silent_minutes.map(|minutes| format!("after {minutes} min")));
        more.extend(rule.repeat_minutes.map(|minutes| format!("again every {minutes} min")));
        more.extend(rule.recovery.then(|| "recovery".to_owned()));
        more.extend(rule.ignore_quiet_hours.then(|| "in quiet hours too".to_owned()));
        RuleLine {
            name: rule.name.clone(),
            on: rule.on.as_str(),
            agents: rule.agents.join(", "),
            channels: rule.channels.join(", "),
            cooldown: format!("{} min", rule.cooldown_minutes),
            more: more.join(" · "),
        }
    }
}

impl AlertLine {
    fn new(sent: SentAlert, now: Timestamp) -> AlertLine {
        let told = &sent.alert.occurrence;
        AlertLine {
            at: Moment::new(sent.at, now),
            href: told.run.as_ref().map(|run| link::to_run(&told.agent, run)),
            reason: told.reason.clone(),
            rule: sent.alert.rule.clone(),
            state: sent.alert.state.as_str(),
            tone: match sent.alert.state {
                AlertState::Firing => "bad",
                AlertState::Repeated | AlertState::Digest => "odd",
                AlertState::Recovered | AlertState::Test => "good",
            },
            title: sent.alert.title,
            deliveries: sent
                .deliveries
                .into_iter()
                .map(|delivery| {
                    let (state, tone) = match delivery.state {
                        DeliveryState::Waiting => ("waiting", "odd"),
                        DeliveryState::Delivered => ("delivered", "good"),
                        DeliveryState::GivenUp => ("given up", "bad"),
                    };
                    DeliveryLine { channel: delivery.channel, state, tone, error: delivery.error.unwrap_or_default() }
                })
                .collect(),
        }
    }
}
