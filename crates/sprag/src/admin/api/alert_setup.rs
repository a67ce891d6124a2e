//! `/alerts/channels` and `/alerts/rules`: made, changed and deleted at run time. Those of the configuration are read-only.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use sprag_store::StoreError;
use sprag_store::outbox::MadeKind;
use utoipa::ToSchema;

use super::body::Body;
use super::model::{ChannelRecord, RuleRecord};
use super::params::{Names, Params};
use crate::acts::AlertsRefused;
use crate::admin::operator::Operator;
use crate::admin::problem::Problem;
use crate::admin::{Admin, Shared};

/// A channel to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewChannel {
    #[schema(required = true, value_type = String)]
    name: Option<String>,
    /// In the form of `[alerts.channels.NAME]`. Secrets are never told again.
    #[schema(required = true)]
    channel: Option<Value>,
    by: Option<String>,
}

/// What is to be changed of a channel.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChannelChange {
    /// A merge patch: what is not named stays, `null` takes a key back.
    #[schema(required = true)]
    channel: Option<Value>,
    by: Option<String>,
}

/// A rule to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRule {
    /// What alerts call it; without one, what it is about.
    name: Option<String>,
    /// In the form of `[[alerts.rules]]`.
    #[schema(required = true)]
    rule: Option<Value>,
    by: Option<String>,
}

/// What is to be changed of a rule.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleChange {
    /// A merge patch: what is not named stays, `null` takes a key back.
    #[schema(required = true)]
    rule: Option<Value>,
    by: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Plea {
    by: Option<String>,
}

/// Makes a channel. It counts from the next alert on.
#[utoipa::path(
    post,
    path = "/alerts/channels",
    operation_id = "create_alert_channel",
    tag = "alerts",
    request_body = NewChannel,
    responses(
        (status = 200, description = "The channel, without its secrets", body = ChannelRecord),
        (status = 409, description = "There is one of this name, or there are too many"),
        (status = 503, description = "It cannot be written; nothing has changed"),
    )
)]
pub(super) async fn add_channel(
    State(admin): State<Shared>,
    operator: Operator,
    Body(new): Body<NewChannel>,
) -> Result<Json<ChannelRecord>, Problem> {
    let name = new.name.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Problem::bad_request("`name`: say what the channel is called"))?;
    let channel = given("channel", new.channel)?;
    let by = operator.acting(new.by)?;
    admin.app.set_alerts(MadeKind::Channel, name.clone(), channel, true, by).await.map_err(refused("channel"))?;
    admin.channel(&name)
}

/// Changes a channel that was made here.
#[utoipa::path(
    patch,
    path = "/alerts/channels/{name}",
    operation_id = "change_alert_channel",
    tag = "alerts",
    params(("name" = String, Path, description = "The channel's name")),
    request_body = ChannelChange,
    responses(
        (status = 200, description = "The channel, without its secrets", body = ChannelRecord),
        (status = 404, description = "There is no such channel"),
        (status = 409, description = "It stands in the configuration"),
        (status = 503, description = "It cannot be written; nothing has changed"),
    )
)]
pub(super) async fn change_channel(
    State(admin): State<Shared>,
    operator: Operator,
    Names(name): Names<String>,
    Body(change): Body<ChannelChange>,
) -> Result<Json<ChannelRecord>, Problem> {
    let channel = given("channel", change.channel)?;
    let by = operator.acting(change.by)?;
    admin.app.set_alerts(MadeKind::Channel, name.clone(), channel, false, by).await.map_err(refused("channel"))?;
    admin.channel(&name)
}

/// Deletes a channel that was made here. What waits for it is given up.
#[utoipa::path(
    delete,
    path = "/alerts/channels/{name}",
    operation_id = "delete_alert_channel",
    tag = "alerts",
    params(("name" = String, Path, description = "The channel's name"), Plea),
    responses(
        (status = 200, description = "What it was, without its secrets", body = ChannelRecord),
        (status = 404, description = "There is no such channel"),
        (status = 409, description = "It stands in the configuration, or rules name it"),
        (status = 503, description = "It cannot be written; nothing has changed"),
    )
)]
pub(super) async fn delete_channel(
    State(admin): State<Shared>,
    operator: Operator,
    Names(name): Names<String>,
    Params(plea): Params<Plea>,
) -> Result<Json<ChannelRecord>, Problem> {
    let was = admin.channel(&name)?;
    let by = operator.acting(plea.by)?;
    admin.app.delete_alerts(MadeKind::Channel, name, by).await.map_err(refused("channel"))?;
    Ok(was)
}

/// Makes a rule. It counts from the next event on.
#[utoipa::path(
    post,
    path = "/alerts/rules",
    operation_id = "create_alert_rule",
    tag = "alerts",
    request_body = NewRule,
    responses(
        (status = 200, description = "The rule", body = RuleRecord),
        (status = 409, description = "There is one of this name, or there are too many"),
        (status = 503, description = "It cannot be written; nothing has changed"),
    )
)]
pub(super) async fn add_rule(
    State(admin): State<Shared>,
    operator: Operator,
    Body(new): Body<NewRule>,
) -> Result<Json<RuleRecord>, Problem> {
    let rule = given("rule", new.rule)?;
    let named = |text: Option<&str>| text.filter(|name| !name.is_empty()).map(str::to_owned);
    let name = named(new.name.as_deref()).or_else(|| named(rule.get("on").and_then(Value::as_str)));
    let name = name.ok_or_else(|| Problem::bad_request("`on`: say what the rule is about, such as loop_detected"))?;
    let by = operator.acting(new.by)?;
    admin.app.set_alerts(MadeKind::Rule, name.clone(), rule, true, by).await.map_err(refused("rule"))?;
    admin.rule(&name)
}

/// Changes a rule that was made here.
#[utoipa::path(
    patch,
    path = "/alerts/rules/{name}",
    operation_id = "change_alert_rule",
    tag = "alerts",
    params(("name" = String, Path, description = "The rule's name")),
    request_body = RuleChange,
    responses(
        (status = 200, description = "The rule", body = RuleRecord),
        (status = 404, description = "There is no such rule"),
        (status = 409, description = "It stands in the configuration"),
        (status = 503, description = "It cannot be written; nothing has changed"),
    )
)]
pub(super) async fn change_rule(
    State(admin): State<Shared>,
    operator: Operator,
    Names(name): Names<String>,
    Body(change): Body<RuleChange>,
) -> Result<Json<RuleRecord>, Problem> {
    let rule = given("rule", change.rule)?;
    let by = operator.acting(change.by)?;
    admin.app.set_alerts(MadeKind::Rule, name.clone(), rule, false, by).await.map_err(refused("rule"))?;
    admin.rule(&name)
}

/// Deletes a rule that was made here, with what it holds back.
#[utoipa::path(
    delete,
    path = "/alerts/rules/{name}",
    operation_id = "delete_alert_rule",
    tag = "alerts",
    params(("name" = String, Path, description = "The rule's name"), Plea),
    responses(
        (status = 200, description = "What it was", body = RuleRecord),
        (status = 404, description = "There is no such rule"),
        (status = 409, description = "It stands in the configuration"),
        (status = 503, description = "It cannot be written; nothing has changed"),
    )
)]
pub(super) async fn delete_rule(
    State(admin): State<Shared>,
    operator: Operator,
    Names(name): Names<String>,
    Params(plea): Params<Plea>,
) -> Result<Json<RuleRecord>, Problem> {
    let was = admin.rule(&name)?;
    let by = operator.acting(plea.by)?;
    admin.app.delete_alerts(MadeKind::Rule, name, by).await.map_err(refused("rule"))?;
    Ok(was)
}

impl Admin {
    fn channel(&self, name: &str) -> Result<Json<ChannelRecord>, Problem> {
        let found = self.alert_channels().into_iter().find(|channel| channel.name == name);
        found.map(Json).ok_or_else(|| Problem::not_found("there is no channel of this name"))
    }

    fn rule(&self, name: &str) -> Result<Json<RuleRecord>, Problem> {
        let found = self.alert_rules().into_iter().find(|rule| rule.name == name);
        found.map(Json).ok_or_else(|| Problem::not_found("there is no rule of this name"))
    }

    /// Makes a channel or a rule, or changes the one of that name that was made here.
    pub(in crate::admin) async fn set_alerts(
        &self,
        kind: MadeKind,
        name: String,
        patch: Value,
        by: String,
    ) -> Result<(), Problem> {
        let is_new = self.app.alerts.written(kind, &name).is_none();
        let what = if kind == MadeKind::Channel { "channel" } else { "rule" };
        let patch = if is_new { crate::config::agent_override::merged(&json!({}), &patch) } else { patch };
        self.app.set_alerts(kind, name, patch, is_new, by).await.map_err(refused(what))
    }

    pub(in crate::admin) async fn delete_alerts(
        &self,
        kind: MadeKind,
        name: String,
        by: String,
    ) -> Result<(), Problem> {
        let what = if kind == MadeKind::Channel { "channel" } else { "rule" };
        self.app.delete_alerts(kind, name, by).await.map_err(refused(what))
    }
}

fn given(key: &'static str, value: Option<Value>) -> Result<Value, Problem> {
    let value = value.filter(Value::is_object);
    value.ok_or_else(|| Problem::bad_request(format!("`{key}`: expected an object with the keys of the configuration")))
}

fn refused(what: &'static str) -> impl FnOnce(AlertsRefused) -> Problem {
    move |error| match error {
        AlertsRefused::Invalid(problems) => Problem::unusable(what, problems),
        AlertsRefused::Unknown => Problem::not_found(format!("there is no {what} of this name")),
        AlertsRefused::Store(StoreError::Full { .. })
        | AlertsRefused::Configured
        | AlertsRefused::Taken
        | AlertsRefused::Named(_) => Problem::conflict(error.to_string()),
        AlertsRefused::Store(error) => error.into(),
    }
}
