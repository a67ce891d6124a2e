//! Messages for chats.

use serde_json::{Value, json};

use super::super::act_link::{ActLink, LinkAct};
use super::super::alert::Alert;
use super::rows::{Tone, rows, title, tone};
use super::text::{angle_free, discord as for_discord, fitted, html, markdown};

/// What a header of Slack takes.
const SLACK_HEADER: usize = 150;
/// What a field of Slack takes.
const SLACK_FIELD: usize = 2000;
/// Rows in one section of Slack: it takes ten fields, and a row is two.
const SLACK_ROWS: usize = 5;
/// What the title of an embed takes.
const DISCORD_TITLE: usize = 256;
/// An embed takes 1024 in a field and 6000 in all; with these all rows and the links are below.
const DISCORD_LONG: usize = 450;
const DISCORD_SHORT: usize = 160;
/// What a message of Telegram takes, as it is shown.
const TELEGRAM: usize = 4096;

/// The body for an incoming webhook of Slack. What comes from agents is in plain text, where nothing has a meaning.
#[must_use]
pub fn slack(alert: &Alert, links: &[ActLink]) -> Value {
    let mark = match tone(alert) {
        Tone::Bad => "🔴",
        Tone::Odd => "🟡",
        Tone::Good => "🟢",
    };
    let title = title(alert);
    let plain =
        |text: &str, most: usize| json!({"type": "plain_text", "text": fitted(text, most, angle_free), "emoji": false});
    let mut blocks = vec![json!({"type": "header", "text": plain(&format!("{mark} {title}"), SLACK_HEADER)})];
    for some in rows(alert).chunks(SLACK_ROWS) {
        let fields: Vec<Value> = some
            .iter()
            .flat_map(|(name, text)| [json!({"type": "mrkdwn", "text": format!("*{name}*")}), plain(text, SLACK_FIELD)])
            .collect();
        blocks.push(json!({"type": "section", "fields": fields}));
    }
    let mut buttons: Vec<Value> = links
        .iter()
        .map(|link| {
            let style = if link.act == LinkAct::Kill { "danger" } else { "primary" };
            json!({"type": "button", "text": plain(link.act.label(), 75), "url": link.url, "style": style})
        })
        .collect();
    if let Some(link) = &alert.link {
        buttons.push(json!({"type": "button", "text": plain("Open in Sprag", 75), "url": link}));
    }
    if !buttons.is_empty() {
        blocks.push(json!({"type": "actions", "elements": buttons}));
    }
    json!({
        "text": fitted(&title, SLACK_FIELD, angle_free),
        "mrkdwn": false,
        "parse": "none",
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": blocks,
    })
}

/// The body for a webhook of Discord. It mentions nobody, whatever an agent is called.
#[must_use]
pub fn discord(alert: &Alert, links: &[ActLink]) -> Value {
    let color = match tone(alert) {
        Tone::Bad => 0x00d1_3438,
        Tone::Odd => 0x00e3_a008,
        Tone::Good => 0x0018_8a42,
    };
    let fields: Vec<Value> = rows(alert)
        .into_iter()
        .map(|(name, text)| {
            let is_long = matches!(name, "Reason" | "Proof");
            let value = fitted(&text, if is_long { DISCORD_LONG } else { DISCORD_SHORT }, for_discord);
            json!({"name": name, "value": value, "inline": name != "Reason"})
        })
        .collect();
    let title = fitted(&title(alert), DISCORD_TITLE, for_discord);
    let mut embed = json!({"title": title, "color": color, "fields": fields, "timestamp": alert.at});
    if let Some(link) = &alert.link {
        embed["url"] = json!(link);
    }
    if !links.is_empty() {
        let linked: Vec<String> = links.iter().map(|link| format!("[{}](<{}>)", link.act.label(), link.url)).collect();
        embed["description"] = json!(linked.join(" · "));
    }
    json!({"embeds": [embed], "allowed_mentions": {"parse": []}})
}

/// The body for a workflow of Teams that takes adaptive cards.
#[must_use]
pub fn teams(alert: &Alert, links: &[ActLink]) -> Value {
    let color = match tone(alert) {
        Tone::Bad => "attention",
        Tone::Odd => "warning",
        Tone::Good => "good",
    };
    let for_card = |text: &str| fitted(text, SLACK_FIELD, markdown);
    let facts: Vec<Value> =
        rows(alert).into_iter().map(|(name, text)| json!({"title": name, "value": for_card(&text)})).collect();
    let mut card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {"type": "TextBlock", "text": for_card(&title(alert)), "weight": "bolder", "size": "medium", "color": color, "wrap": true},
            {"type": "FactSet", "facts": facts},
        ],
    });
    let mut actions: Vec<Value> = links
        .iter()
        .map(|link| {
            let style = if link.act == LinkAct::Kill { "destructive" } else { "positive" };
            json!({"type": "Action.OpenUrl", "title": link.act.label(), "url": link.url, "style": style})
        })
        .collect();
    if let Some(link) = &alert.link {
        actions.push(json!({"type": "Action.OpenUrl", "title": "Open in Sprag", "url": link}));
    }
    if !actions.is_empty() {
        card["actions"] = json!(actions);
    }
    let attachment = json!({"contentType": "application/vnd.microsoft.card.adaptive", "content": card});
    json!({"type": "message", "attachments": [attachment]})
}

/// The body for `sendMessage` of a Telegram bot. What comes from agents is code: there no name mentions or links.
#[must_use]
pub fn telegram(alert: &Alert, chat: &str, links: &[ActLink]) -> Value {
    let attribute = |url: &str| fitted(url, usize::MAX, html);
    let mut end = String::new();
    let mut shown = 0;
    for link in links {
        let label = link.act.label();
        end.push_str(&format!("\n<a href=\"{}\">{label}</a>", attribute(&link.url)));
        shown += 1 + label.encode_utf16().count();
    }
    if let Some(link) = &alert.link {
        end.push_str(&format!("\n{}", attribute(link)));
        shown += 1 + link.encode_utf16().count();
    }
    // A character becomes at most five; the whole is bounded as it is written, which is more than is shown.
    let title = fitted(&title(alert), 400, angle_free);
    let mut text = format!("<b>{title}</b>");
    shown += title.encode_utf16().count();
    for (name, row) in rows(alert) {
        let value = fitted(&row, 700, angle_free);
        let units = name.len() + 3 + value.encode_utf16().count();
        if shown + units > TELEGRAM {
            break;
        }
        shown += units;
        text.push_str(&format!("\n{name}: <code>{value}</code>"));
    }
    text.push_str(&end);
    json!({
        "chat_id": chat,
        "text": text,
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": true},
    })
}
