//! `/alerts`: what was told and what became of it, where it goes, which rules there are, trying a channel, sending again.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sprag_core::alerts::AlertRule;
use sprag_store::StoreError;
use sprag_store::outbox::{MadeKind, SentAlert};

use super::body::Body;
use super::model::{AgainRecord, AlertCountsRecord, AlertRecord, ChannelRecord, Listing, RuleRecord, TestRecord};
use super::params::{self, Names, Params};
use crate::admin::operator::Operator;
use crate::admin::problem::Problem;
use crate::admin::{Admin, Shared};
use crate::config::Channel;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Where the page begins: `next` of the one before.
    cursor: Option<String>,
    /// Rows of the page; 50 unless given.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// Who tries.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TestOrder)]
pub(super) struct Order {
    by: Option<String>,
}

/// What is to be sent again.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgainOrder {
    /// Only to this channel.
    channel: Option<String>,
    by: Option<String>,
}

impl Admin {
    /// A page of alerts, the latest first, and where the next one begins.
    pub(in crate::admin) async fn alerts(
        &self,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<SentAlert>, Option<String>), Problem> {
        let bad = |text: &str| Problem::from(StoreError::BadCursor(text.to_owned()));
        let before = cursor.map(|text| text.parse::<i64>().map_err(|_| bad(text))).transpose()?;
        let outbox = self.app.alerts.outbox.clone();
        let read = tokio::task::spawn_blocking(move || outbox.list(before, limit + 1)).await;
        let mut alerts = read.unwrap_or(Err(StoreError::WriterGone))?;
        let has_more = alerts.len() > limit as usize;
        alerts.truncate(limit as usize);
        let next = alerts.last().filter(|_| has_more).map(|last| last.seq.to_string());
        Ok((alerts, next))
    }

    /// Every channel, without its secrets.
    pub(in crate::admin) fn alert_channels(&self) -> Vec<ChannelRecord> {
        let in_force = self.app.alerts.in_force();
        let channels = in_force.channels.iter();
        let configured = self.app.settings.load();
        let record = |name: &str, channel: &Channel| {
            let written = self.app.alerts.written(MadeKind::Channel, name);
            let written = written.filter(|_| !configured.alerts.channels.contains_key(name));
            ChannelRecord::new(name, channel, self.app.alerts.health(name), written.as_ref())
        };
        channels.map(|(name, channel)| record(name, channel)).collect()
    }

    /// Every rule.
    pub(in crate::admin) fn alert_rules(&self) -> Vec<RuleRecord> {
        let configured = self.app.settings.load();
        let is_configured = |name: &str| configured.alerts.rules.rules.iter().any(|rule| rule.name == name);
        let record = |rule: &AlertRule| RuleRecord::new(rule, is_configured(&rule.name));
        self.app.alerts.in_force().rules.rules.iter().map(record).collect()
    }

    /// Lets what was given up of an alert be tried again.
    pub(in crate::admin) async fn send_again(
        &self,
        id: String,
        channel: Option<String>,
        by: String,
    ) -> Result<AgainRecord, Problem> {
        let again = self.app.send_alert_again(id.clone(), channel, by).await?;
        match again.ok_or_else(|| Problem::not_found("there is no alert of this id"))? {
            0 => Err(Problem::conflict("nothing of this alert was given up: it is delivered, or still tried")),
            messages => Ok(AgainRecord { id, messages: u32::try_from(messages).unwrap_or(u32::MAX) }),
        }
    }

    /// How many messages wait or were given up, and what was not told as it should have been.
    pub(in crate::admin) async fn alert_counts(&self) -> Result<AlertCountsRecord, Problem> {
        let outbox = self.app.alerts.outbox.clone();
        let read = tokio::task::spawn_blocking(move || outbox.backlog()).await;
        let backlog = read.unwrap_or(Err(StoreError::WriterGone))?;
        Ok(AlertCountsRecord::new(backlog, self.app.alerts.counts()))
    }

    /// Tries a channel.
    pub(in crate::admin) async fn test_channel(&self, name: String, by: &str) -> Result<TestRecord, Problem> {
        let tried = self.app.test_channel(&name, by).await?;
        let (alert, error) = tried.ok_or_else(|| Problem::not_found("there is no channel of this name"))?;
        Ok(TestRecord { channel: name, delivered: error.is_none(), error, alert })
    }
}

/// Alerts, the latest first, with what became of them.
#[utoipa::path(
    get,
    path = "/alerts",
    operation_id = "list_alerts",
    tag = "alerts",
    params(Wanted),
    responses(
        (status = 200, description = "A page of alerts", body = Listing<AlertRecord>),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn list(
    State(admin): State<Shared>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Listing<AlertRecord>>, Problem> {
    let (alerts, next) = admin.alerts(wanted.cursor.as_deref(), params::rows(wanted.limit)?).await?;
    Ok(Json(Listing { items: alerts.into_iter().map(AlertRecord::new).collect(), next }))
}

/// How many messages wait or were given up, and what was not told as it should have been.
#[utoipa::path(
    get,
    path = "/alerts/counts",
    operation_id = "count_alerts",
    tag = "alerts",
    responses(
        (status = 200, description = "Counts", body = AlertCountsRecord),
        (status = 503, description = "The record cannot be read"),
    )
)]
pub(super) async fn counts(State(admin): State<Shared>) -> Result<Json<AlertCountsRecord>, Problem> {
    Ok(Json(admin.alert_counts().await?))
}

/// Lets an alert that was given up be tried again, with the same id.
#[utoipa::path(
    post,
    path = "/alerts/{id}/resend",
    operation_id = "resend_alert",
    tag = "alerts",
    params(("id" = String, Path, description = "The alert's id")),
    request_body = AgainOrder,
    responses(
        (status = 200, description = "How many messages are tried again", body = AgainRecord),
        (status = 404, description = "There is no such alert"),
        (status = 409, description = "Nothing of it was given up"),
        (status = 503, description = "It cannot be written"),
    )
)]
pub(super) async fn send_again(
    State(admin): State<Shared>,
    operator: Operator,
    Names(id): Names<String>,
    Body(order): Body<AgainOrder>,
) -> Result<Json<AgainRecord>, Problem> {
    let by = operator.acting(order.by)?;
    Ok(Json(admin.send_again(id, order.channel, by).await?))
}

/// Where alerts go. Secrets are not told.
#[utoipa::path(
    get,
    path = "/alerts/channels",
    operation_id = "list_alert_channels",
    tag = "alerts",
    responses((status = 200, description = "All channels", body = Listing<ChannelRecord>))
)]
pub(super) async fn channels(State(admin): State<Shared>) -> Json<Listing<ChannelRecord>> {
    Json(Listing { items: admin.alert_channels(), next: None })
}

/// What is told, about whom and how often.
#[utoipa::path(
    get,
    path = "/alerts/rules",
    operation_id = "list_alert_rules",
    tag = "alerts",
    responses((status = 200, description = "All rules", body = Listing<RuleRecord>))
)]
pub(super) async fn rules(State(admin): State<Shared>) -> Json<Listing<RuleRecord>> {
    Json(Listing { items: admin.alert_rules(), next: None })
}

/// Sends a message that only shows that a channel works, and tells whether it arrived.
#[utoipa::path(
    post,
    path = "/alerts/channels/{name}/test",
    operation_id = "test_alert_channel",
    tag = "alerts",
    params(("name" = String, Path, description = "The channel's name")),
    request_body = Order,
    responses(
        (status = 200, description = "How it went", body = TestRecord),
        (status = 404, description = "There is no such channel"),
        (status = 503, description = "It cannot be put on record"),
    )
)]
pub(super) async fn test(
    State(admin): State<Shared>,
    operator: Operator,
    Names(name): Names<String>,
    Body(order): Body<Order>,
) -> Result<Json<TestRecord>, Problem> {
    Ok(Json(admin.test_channel(name, &operator.acting(order.by)?).await?))
}
