//! An alert, put as its channel takes it, and sent.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use ring::hmac;
use serde_json::Value;
use sprag_core::alerts::{ActLink, Alert, forms};
use sprag_core::time::Timestamp;

use super::post::post;
use super::wire::Wire;
use super::{Failure, smtp};
use crate::app::App;
use crate::config::{Channel, Secret, Target};

impl App {
    /// Sends an alert to a channel, with links that fit how its run stands now.
    pub(super) async fn send_alert(&self, channel: &Channel, alert: &Alert) -> Result<(), Failure> {
        let now = self.clock.now();
        let links = self.act_links(alert, now);
        Box::pin(send(&self.alerts.wire, channel, alert, &links, now)).await
    }
}

async fn send(wire: &Wire, channel: &Channel, alert: &Alert, links: &[ActLink], now: Timestamp) -> Result<(), Failure> {
    let (url, body) = match &channel.target {
        Target::Webhook { url, secret } => {
            let body = forms::webhook(alert, links);
            let headers = webhook_headers(secret.as_ref(), &alert.id, &body, now);
            return post(wire, channel, &url.0, headers, Bytes::from(body)).await;
        }
        Target::Slack(url) => (url, forms::slack(alert, links)),
        Target::Discord(url) => (url, forms::discord(alert, links)),
        Target::Teams(url) => (url, forms::teams(alert, links)),
        Target::Telegram { url, chat } => (url, forms::telegram(alert, chat, links)),
        Target::Pagerduty { url, routing_key } => (url, forms::pagerduty(alert, routing_key.reveal(), links)),
        Target::Email(mail) => {
            return smtp::send(wire, channel, mail, &forms::email(alert, links), &alert.id, now).await;
        }
    };
    post(wire, channel, &url.0, HeaderMap::new(), Bytes::from(Value::to_string(&body))).await
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
