//! An alert, put as its channel takes it, and sent.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use ring::hmac;
use serde_json::Value;
use sprag_core::alerts::{Alert, forms};
use sprag_core::time::Timestamp;

use super::post::post;
use super::{Failure, smtp};
use crate::config::{Channel, Secret, Target};

/// For the whole of one delivery.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends an alert to a channel.
pub(super) async fn send(channel: &Channel, alert: &Alert, now: Timestamp) -> Result<(), Failure> {
    let sent = tokio::time::timeout(PATIENCE, send_now(channel, alert, now)).await;
    sent.unwrap_or_else(|_| Err(Failure::MayPass(format!("not done within {} seconds", PATIENCE.as_secs()))))
}

async fn send_now(channel: &Channel, alert: &Alert, now: Timestamp) -> Result<(), Failure> {
    let (url, body) = match &channel.target {
        Target::Webhook { url, secret } => {
            let body = serde_json::to_string(alert).unwrap_or_default();
            let headers = webhook_headers(secret.as_ref(), &alert.id, &body, now);
            return post(channel, &url.0, headers, Bytes::from(body)).await;
        }
        Target::Slack(url) => (url, forms::slack(alert)),
        Target::Discord(url) => (url, forms::discord(alert)),
        Target::Teams(url) => (url, forms::teams(alert)),
        Target::Telegram { url, chat } => (url, forms::telegram(alert, chat)),
        Target::Pagerduty { url, routing_key } => (url, forms::pagerduty(alert, routing_key.reveal())),
        Target::Email(mail) => return smtp::send(channel, mail, &forms::email(alert), &alert.id, now).await,
    };
    post(channel, &url.0, HeaderMap::new(), Bytes::from(Value::to_string(&body))).await
}

fn webhook_headers(secret: Option<&Secret>, id: &str, body: &str, now: Timestamp) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut set = |name: &'static str, text: &str| {
        if let Ok(value) = HeaderValue::from_str(text) {
            headers.insert(name, value);
        }
    };
    set("x-sprag-id", id);
    if let Some(secret) = secret {
        set("x-sprag-signature", &signature(secret, body, now));
    }
    headers
}

/// `t=SECONDS,v1=HEX`: HMAC-SHA-256 over `SECONDS.BODY`.
fn signature(secret: &Secret, body: &str, now: Timestamp) -> String {
    let seconds = now.0 / 1000;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.reveal().as_bytes());
    let tag = hmac::sign(&key, format!("{seconds}.{body}").as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_what_others_compute() {
        // printf '1700000000.{}' | openssl dgst -sha256 -hmac secret
        let signed = signature(&Secret::new("secret"), "{}", Timestamp(1_700_000_000_999));
        assert_eq!(signed, "t=1700000000,v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163");
    }
}
