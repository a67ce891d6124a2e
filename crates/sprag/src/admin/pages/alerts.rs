//! Alerts: where they go, what is told, and what became of what was told.

use askama::Template;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use sprag_core::alerts::AlertState;
use sprag_core::time::Timestamp;
use sprag_store::outbox::{DeliveryState, MadeKind, SentAlert};

use super::field::{self, Field, Form as Brings};
use super::rows::Moment;
use super::{Page, Shell, alert_forms, html, link};
use crate::admin::Shared;
use crate::admin::api::Params;
use crate::admin::api::model::{AlertCountsRecord, ChannelRecord, RuleRecord};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;
use crate::config::made_alerts;

const ROWS: u32 = 50;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    cursor: Option<String>,
    /// The channel that was tried just now.
    tested: Option<String>,
    /// The channel or the rule that is to be changed.
    channel: Option<String>,
    rule: Option<String>,
}

/// What is wanted of the page, and what a form brought that could not be used.
#[derive(Default)]
pub(super) struct Brought {
    pub(super) wanted: Wanted,
    pub(super) form: Brings,
    pub(super) complaints: Vec<(String, String)>,
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
    counts: AlertCountsRecord,
    channel_fields: Vec<Field>,
    rule_fields: Vec<Field>,
    /// Which form is open.
    is_channel_open: bool,
    is_rule_open: bool,
    complaint: Option<String>,
}

struct RuleLine {
    name: String,
    is_configured: bool,
    edit: String,
    on: &'static str,
    agents: String,
    channels: String,
    cooldown: String,
    /// Repetition, recovery, quiet hours.
    more: String,
}

struct AlertLine {
    id: String,
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
    is_given_up: bool,
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
    page(&admin, visitor, StatusCode::OK, Brought { wanted, ..Brought::default() }).await
}

/// The page, with what a form brought and what is wrong with it.
pub(super) async fn page(admin: &Shared, visitor: Visitor, status: StatusCode, brought: Brought) -> Page {
    let Brought { wanted, form, mut complaints } = brought;
    let (alerts, next) = admin.alerts(wanted.cursor.as_deref(), ROWS).await?;
    let now = admin.app.clock.now();
    // How it went stands on record: an address alone can make nobody believe anything.
    let tested = wanted.tested.and_then(|name| last_test(&alerts, name));
    let channels = admin.alert_channels();
    let channel = wanted.channel.filter(|name| channels.iter().any(|one| one.name == *name && !one.configured));
    let rule = wanted.rule.filter(|name| admin.app.alerts.written(MadeKind::Rule, name).is_some());
    let is_of = |prefix: &str| complaints.iter().any(|(key, _)| key.starts_with(prefix));
    let (is_channel_open, is_rule_open) = (channel.is_some() || is_of("channel-"), rule.is_some() || is_of("rule-"));
    let mut fields = |kind: MadeKind, name: Option<String>| -> Vec<Field> {
        let name = name.unwrap_or_default();
        let written = admin.app.alerts.written(kind, &name).unwrap_or_default();
        let shown = if kind == MadeKind::Channel { made_alerts::masked(&written) } else { written };
        let fields = alert_forms::fields(kind, &name, &shown).into_iter();
        fields.map(|field| field.brought(&without_secrets(&form), &mut complaints)).collect()
    };
    let (channel_fields, rule_fields) = (fields(MadeKind::Channel, channel), fields(MadeKind::Rule, rule));
    let page = Alerts {
        counts: admin.alert_counts().await?,
        channel_fields,
        rule_fields,
        is_channel_open,
        is_rule_open,
        complaint: field::rest(complaints),
        channels,
        rules: admin.alert_rules().iter().map(RuleLine::new).collect(),
        alerts: alerts.into_iter().map(|alert| AlertLine::new(alert, now)).collect(),
        error: tested.as_ref().and_then(|(_, error)| error.clone()),
        tested: tested.map(|(name, _)| name),
        first: wanted.cursor.is_some().then(|| "/alerts".to_owned()),
        more: next.map(|next| link::to("/alerts", &[("cursor", Some(&next))])),
        shell: admin.shell("alerts", visitor),
    };
    Ok(html(status, &page))
}

/// What was written into a field of a secret does not come back in the page.
fn without_secrets(form: &Brings) -> Brings {
    const SECRET: [&str; 5] = ["url", "secret", "token", "routing_key", "password"];
    let is_secret = |name: &str| name.strip_prefix("channel-").is_some_and(|key| SECRET.contains(&key));
    form.iter().filter(|(name, _)| !is_secret(name)).map(|(name, text)| (name.clone(), text.clone())).collect()
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
        more.extend(
            rule.thresholds
                .as_ref()
                .map(|at| format!("at {} %", at.iter().map(u8::to_string).collect::<Vec<_>>().join(", "))),
        );
        more.extend(rule.silent_minutes.map(|minutes| format!("after {minutes} min")));
        more.extend(rule.repeat_minutes.map(|minutes| format!("again every {minutes} min")));
        more.extend(rule.recovery.then(|| "recovery".to_owned()));
        more.extend(rule.ignore_quiet_hours.then(|| "in quiet hours too".to_owned()));
        RuleLine {
            name: rule.name.clone(),
            is_configured: rule.configured,
            edit: link::to("/alerts", &[("rule", Some(&rule.name))]),
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
            id: sent.alert.id.clone(),
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
                    let is_given_up = delivery.state == DeliveryState::GivenUp;
                    DeliveryLine {
                        channel: delivery.channel,
                        is_given_up,
                        state,
                        tone,
                        error: delivery.error.unwrap_or_default(),
                    }
                })
                .collect(),
        }
    }
}
