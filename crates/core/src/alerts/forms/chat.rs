//! Messages for chats.

use serde_json::{Value, json};

use super::super::alert::Alert;
use super::rows::{Tone, rows, title, tone};

/// The body for an incoming webhook of Slack.
#[must_use]
pub fn slack(alert: &Alert) -> Value {
    let mark = match tone(alert) {
        Tone::Bad => ":red_circle:",
        Tone::Odd => ":large_yellow_circle:",
        Tone::Good => ":large_green_circle:",
    };
    let title = title(alert);
    let fields: Vec<Value> = rows(alert)
        .into_iter()
        // Slack takes ten.
        .take(10)
        .map(|(name, text)| json!({"type": "mrkdwn", "text": format!("*{name}*\n{}", for_slack(&text))}))
        .collect();
    let mut blocks = vec![
        json!({"type": "section", "text": {"type": "mrkdwn", "text": format!("{mark} *{}*", for_slack(&title))}}),
        json!({"type": "section", "fields": fields}),
    ];
    if let Some(link) = &alert.link {
        let label = json!({"type": "plain_text", "text": "Open in Sprag"});
        blocks.push(json!({"type": "actions", "elements": [{"type": "button", "text": label, "url": link}]}));
    }
    json!({"text": for_slack(&title), "blocks": blocks})
}

/// The body for a webhook of Discord. It mentions nobody, whatever an agent is called.
#[must_use]
pub fn discord(alert: &Alert) -> Value {
    let color = match tone(alert) {
        Tone::Bad => 0x00d1_3438,
        Tone::Odd => 0x00e3_a008,
        Tone::Good => 0x0018_8a42,
    };
    let fields: Vec<Value> = rows(alert)
        .into_iter()
        .map(|(name, text)| json!({"name": name, "value": for_markdown(&text), "inline": name != "Reason"}))
        .collect();
    let mut embed =
        json!({"title": for_markdown(&title(alert)), "color": color, "fields": fields, "timestamp": alert.at});
    if let Some(link) = &alert.link {
        embed["url"] = json!(link);
    }
    json!({"embeds": [embed], "allowed_mentions": {"parse": []}})
}

/// The body for a workflow of Teams that takes adaptive cards.
#[must_use]
pub fn teams(alert: &Alert) -> Value {
    let color = match tone(alert) {
        Tone::Bad => "attention",
        Tone::Odd => "warning",
        Tone::Good => "good",
    };
    let facts: Vec<Value> =
        rows(alert).into_iter().map(|(name, text)| json!({"title": name, "value": for_markdown(&text)})).collect();
    let mut card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {"type": "TextBlock", "text": for_markdown(&title(alert)), "weight": "bolder", "size": "medium", "color": color, "wrap": true},
            {"type": "FactSet", "facts": facts},
        ],
    });
    if let Some(link) = &alert.link {
        card["actions"] = json!([{"type": "Action.OpenUrl", "title": "Open in Sprag", "url": link}]);
    }
    let attachment = json!({"contentType": "application/vnd.microsoft.card.adaptive", "content": card});
    json!({"type": "message", "attachments": [attachment]})
}

/// The body for `sendMessage` of a Telegram bot: plain text, so that no name can format it.
#[must_use]
pub fn telegram(alert: &Alert, chat: &str) -> Value {
    let mut text = title(alert);
    for (name, row) in rows(alert) {
        text.push_str(&format!("\n{name}: {row}"));
    }
    if let Some(link) = &alert.link {
        text.push_str(&format!("\n{link}"));
    }
    // Telegram takes 4096 units of UTF-16; a character is two of them at most.
    let text: String = text.chars().take(2000).collect();
    json!({"chat_id": chat, "text": text, "link_preview_options": {"is_disabled": true}})
}

/// The three characters that Slack gives a meaning.
fn for_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn for_markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '[' | ']' | '<' | '>' | '#') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
