//! `sprag alerts`

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use http::Method;
use serde_json::json;

use super::alerts_setup::{What, add, remove, send_again, set};
use super::client::Asking;
use super::table::{Column, print, word};
use crate::admin::api::model::{AlertRecord, ChannelRecord, Listing, RuleRecord, TestRecord};
use crate::show;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Alerts {
    #[command(subcommand)]
    command: Option<AlertsCommand>,
    /// Where the page begins: what the page before named
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Rows of the page [default: 50]
    #[arg(long, value_name = "ROWS")]
    limit: Option<u32>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum AlertsCommand {
    /// List where alerts go
    Channels {
        #[command(flatten)]
        asking: Asking,
    },
    /// List what is told
    Rules {
        #[command(flatten)]
        asking: Asking,
    },
    /// Make a channel: type=slack url=@FILE
    AddChannel {
        /// Its name
        name: String,
        /// KEY=VALUE as in [alerts.channels.NAME]; KEY=@FILE takes a secret from a file
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Change a channel that was made here; what is not named stays
    SetChannel {
        /// Its name
        name: String,
        /// KEY=VALUE as in [alerts.channels.NAME]; KEY= takes it back
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Delete a channel that was made here
    RemoveChannel {
        /// Its name
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Make a rule: on=loop_detected agents=prod-*
    AddRule {
        /// Its name
        name: String,
        /// KEY=VALUE as in [[alerts.rules]]
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Change a rule that was made here; what is not named stays
    SetRule {
        /// Its name
        name: String,
        /// KEY=VALUE as in [[alerts.rules]]; KEY= takes it back
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Delete a rule that was made here
    RemoveRule {
        /// Its name
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Send an alert again that was given up
    SendAgain {
        /// The alert's id, as `sprag alerts --json` shows it
        id: String,
        /// Only to this channel
        #[arg(long)]
        channel: Option<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Send a message that only shows that a channel works
    Test {
        /// Only this channel [default: all of them]
        channel: Option<String>,
        #[command(flatten)]
        asking: Asking,
    },
}

pub(super) fn alerts(alerts: &Alerts) -> Result<ExitCode> {
    match &alerts.command {
        None => list(alerts)?,
        Some(AlertsCommand::Channels { asking }) => channels(asking)?,
        Some(AlertsCommand::Rules { asking }) => rules(asking)?,
        Some(AlertsCommand::AddChannel { name, settings, asking }) => add(What::Channel, name, settings, asking)?,
        Some(AlertsCommand::SetChannel { name, settings, asking }) => set(What::Channel, name, settings, asking)?,
        Some(AlertsCommand::RemoveChannel { name, asking }) => remove(What::Channel, name, asking)?,
        Some(AlertsCommand::AddRule { name, settings, asking }) => add(What::Rule, name, settings, asking)?,
        Some(AlertsCommand::SetRule { name, settings, asking }) => set(What::Rule, name, settings, asking)?,
        Some(AlertsCommand::RemoveRule { name, asking }) => remove(What::Rule, name, asking)?,
        Some(AlertsCommand::SendAgain { id, channel, asking }) => send_again(id, channel.as_deref(), asking)?,
        Some(AlertsCommand::Test { channel, asking }) => return test(channel.as_deref(), asking),
    }
    Ok(ExitCode::SUCCESS)
}

fn list(alerts: &Alerts) -> Result<()> {
    const COLUMNS: [Column; 6] =
        [("AT", false), ("RULE", false), ("STATE", false), ("ALERT", false), ("DELIVERY", false), ("ID", false)];
    let (asking, limit) = (&alerts.asking, alerts.limit.map(|limit| limit.to_string()));
    let params = [("cursor", alerts.cursor.as_deref()), ("limit", limit.as_deref())];
    let answer = asking.get(&["alerts"], &params)?;
    if asking.json {
        return answer.print();
    }
    let listing: Listing<AlertRecord> = answer.read()?;
    print(
        &COLUMNS,
        listing.items.into_iter().map(|record| {
            let told = record.deliveries.iter().map(|to| match &to.error {
                Some(why) => format!("{} {}: {}", to.channel, word(&to.state), show::plain(why)),
                None => format!("{} {}", to.channel, word(&to.state)),
            });
            let told = told.collect::<Vec<_>>().join(", ");
            vec![
                record.alert.at,
                record.alert.rule,
                word(&record.alert.state),
                record.alert.title,
                told,
                record.alert.id,
            ]
        }),
    )?;
    if let Some(next) = listing.next {
        writeln!(std::io::stdout(), "… and more: sprag alerts --cursor {}", show::plain(&next))?;
    }
    Ok(())
}

fn channels(asking: &Asking) -> Result<()> {
    const COLUMNS: [Column; 5] = [("NAME", false), ("TYPE", false), ("HOST", false), ("FROM", false), ("STATE", false)];
    let answer = asking.get(&["alerts", "channels"], &[])?;
    if asking.json {
        return answer.print();
    }
    let listing: Listing<ChannelRecord> = answer.read()?;
    print(
        &COLUMNS,
        listing.items.into_iter().map(|channel| {
            let state = channel.error.unwrap_or_else(|| "ok".to_owned());
            vec![channel.name, channel.kind, channel.host, from(channel.configured), state]
        }),
    )
}

fn rules(asking: &Asking) -> Result<()> {
    const COLUMNS: [Column; 6] =
        [("NAME", false), ("ON", false), ("AGENTS", false), ("CHANNELS", false), ("COOLDOWN", true), ("FROM", false)];
    let answer = asking.get(&["alerts", "rules"], &[])?;
    if asking.json {
        return answer.print();
    }
    let listing: Listing<RuleRecord> = answer.read()?;
    print(
        &COLUMNS,
        listing.items.into_iter().map(|rule| {
            let cooldown = format!("{} min", rule.cooldown_minutes);
            let from = from(rule.configured);
            vec![rule.name, word(&rule.on), rule.agents.join(", "), rule.channels.join(", "), cooldown, from]
        }),
    )
}

fn from(is_configured: bool) -> String {
    if is_configured { "configuration" } else { "made here" }.to_owned()
}

/// Ends with 1 when a message did not arrive.
fn test(channel: Option<&str>, asking: &Asking) -> Result<ExitCode> {
    let names = match channel {
        Some(name) => vec![name.to_owned()],
        None => {
            let all: Listing<ChannelRecord> = asking.get(&["alerts", "channels"], &[])?.read()?;
            all.items.into_iter().map(|channel| channel.name).collect()
        }
    };
    anyhow::ensure!(!names.is_empty(), "there is no channel; add [alerts.channels.NAME] to the configuration");
    let mut is_well = true;
    for name in names {
        let answer = asking.order(Method::POST, &["alerts", "channels", &name, "test"], &json!({}))?;
        let tested: TestRecord = answer.read()?;
        is_well &= tested.delivered;
        if asking.json {
            answer.print()?;
            continue;
        }
        let told = tested.error.as_deref().map_or("delivered".to_owned(), |error| format!("failed: {error}"));
        writeln!(std::io::stdout(), "{}: {}", show::plain(&tested.channel), show::plain(&told))?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
