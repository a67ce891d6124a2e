//! `sprag alerts`

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use http::Method;
use serde_json::json;

use super::client::Asking;
use super::table::{Column, print, word};
use crate::admin::api::model::{AlertRecord, ChannelRecord, Listing, RuleRecord, TestRecord};
use crate::show;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Alerts {
    #[command(subcommand)]
    command: Option<AlertsCommand>,
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
        None => list(&alerts.asking)?,
        Some(AlertsCommand::Channels { asking }) => channels(asking)?,
        Some(AlertsCommand::Rules { asking }) => rules(asking)?,
        Some(AlertsCommand::Test { channel, asking }) => return test(channel.as_deref(), asking),
    }
    Ok(ExitCode::SUCCESS)
}

fn list(asking: &Asking) -> Result<()> {
    const COLUMNS: [Column; 5] =
        [("AT", false), ("RULE", false), ("STATE", false), ("ALERT", false), ("DELIVERY", false)];
    let answer = asking.get(&["alerts"], &[])?;
    if asking.json {
        return answer.print();
    }
    let listing: Listing<AlertRecord> = answer.read()?;
    print(
        &COLUMNS,
        listing.items.into_iter().map(|record| {
            let told = record.deliveries.iter().map(|to| format!("{} {}", to.channel, word(&to.state)));
            let told = told.collect::<Vec<_>>().join(", ");
            vec![record.alert.at, record.alert.rule, word(&record.alert.state), record.alert.title, told]
        }),
    )?;
    if listing.next.is_some() {
        writeln!(std::io::stdout(), "… and more")?;
    }
    Ok(())
}

fn channels(asking: &Asking) -> Result<()> {
    const COLUMNS: [Column; 4] = [("NAME", false), ("TYPE", false), ("HOST", false), ("STATE", false)];
    let answer = asking.get(&["alerts", "channels"], &[])?;
    if asking.json {
        return answer.print();
    }
    let listing: Listing<ChannelRecord> = answer.read()?;
    print(
        &COLUMNS,
        listing.items.into_iter().map(|channel| {
            let state = channel.error.unwrap_or_else(|| "ok".to_owned());
            vec![channel.name, channel.kind, channel.host, state]
        }),
    )
}

fn rules(asking: &Asking) -> Result<()> {
    const COLUMNS: [Column; 5] =
        [("NAME", false), ("ON", false), ("AGENTS", false), ("CHANNELS", false), ("COOLDOWN", true)];
    let answer = asking.get(&["alerts", "rules"], &[])?;
    if asking.json {
        return answer.print();
    }
    let listing: Listing<RuleRecord> = answer.read()?;
    print(
        &COLUMNS,
        listing.items.into_iter().map(|rule| {
            let cooldown = format!("{} min", rule.cooldown_minutes);
            vec![rule.name, word(&rule.on), rule.agents.join(", "), rule.channels.join(", "), cooldown]
        }),
    )
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
