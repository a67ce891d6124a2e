//! `/alerts`: what was told, where it goes, which rules there are, and trying a channel.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sprag_store::StoreError;
use sprag_store::outbox::SentAlert;

use super::body::Body;
use super::model::{AlertRecord, ChannelRecord, Listing, RuleRecord, TestRecord};
use super::params::{self, Names, Params};
use crate::admin::operator::Operator;
use crate::admin::problem::Problem;
use crate::admin::{Admin, Shared};

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
        channels.map(|(name, channel)| ChannelRecord::new(name, channel, self.app.alerts.health(name))).collect()
    }

    /// Every rule.
    pub(in crate::admin) fn alert_rules(&self) -> Vec<RuleRecord> {
        self.app.alerts.in_force().rules.rules.iter().map(RuleRecord::new).collect()
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
