//! The alert as programs get it.

use serde::Serialize;

use super::super::act_link::ActLink;
use super::super::alert::Alert;

/// The alert as it is on record, and links that are not: whoever may only look at the record must not find them there.
#[derive(Serialize)]
struct Webhook<'a> {
    #[serde(flatten)]
    alert: &'a Alert,
    #[serde(skip_serializing_if = "<[ActLink]>::is_empty")]
    actions: &'a [ActLink],
}

/// The body for a webhook of one's own.
#[must_use]
pub fn webhook(alert: &Alert, links: &[ActLink]) -> String {
    serde_json::to_string(&Webhook { alert, actions: links }).unwrap_or_default()
}
