//! `sprag keys`

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};
use sprag_core::money::NanoUsd;
use sprag_core::policy::KeyState;

use super::client::{Answer, Asking};
use super::table::{Column, money, print, word};
use crate::admin::api::model::{KeyBudget, KeyRecord, Listing};
use crate::show;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Keys {
    #[command(subcommand)]
    command: Option<KeysCommand>,
    /// Only keys of this agent
    #[arg(long)]
    agent: Option<String>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make a key; its secret is shown once
    Create(Create),
    /// Take a key back: no later request opens with it
    Revoke {
        /// The id that `sprag keys` shows
        id: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Give a key a new secret; it is shown once
    Rotate {
        /// The id that `sprag keys` shows
        id: String,
        /// How long the old secret still holds, such as 1h; at most 30d
        #[arg(long, value_name = "TIME", value_parser = seconds)]
        grace: Option<u32>,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Args)]
struct Create {
    /// Whom it speaks for
    #[arg(long)]
    agent: String,
    /// What people call it
    #[arg(long)]
    name: Option<String>,
    /// After how long it ends, such as 30d
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    expires: Option<u32>,
    /// Most dollars of one run
    #[arg(long, value_name = "USD", value_parser = NanoUsd::parse_usd)]
    max_run_cost: Option<NanoUsd>,
    /// Most dollars of a day
    #[arg(long, value_name = "USD", value_parser = NanoUsd::parse_usd)]
    daily_limit: Option<NanoUsd>,
    /// Most dollars of a month
    #[arg(long, value_name = "USD", value_parser = NanoUsd::parse_usd)]
    monthly_limit: Option<NanoUsd>,
    #[command(flatten)]
    asking: Asking,
}

pub(super) fn keys(keys: &Keys) -> Result<ExitCode> {
    match &keys.command {
        None => list(keys.agent.as_deref(), &keys.asking)?,
        Some(KeysCommand::Create(order)) => create(order)?,
        Some(KeysCommand::Revoke { id, asking }) => {
            let answer = asking.order(Method::DELETE, &["keys", id], &Value::Null)?;
            done(&answer, asking, "is revoked")?;
        }
        Some(KeysCommand::Rotate { id, grace, asking }) => {
            let body = json!({"grace_seconds": grace.unwrap_or(0)});
            let answer = asking.order(Method::POST, &["keys", id, "rotate"], &body)?;
            done(&answer, asking, "has a new secret")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(agent: Option<&str>, asking: &Asking) -> Result<()> {
    const COLUMNS: [Column; 8] = [
        ("ID", false),
        ("NAME", false),
        ("AGENT", false),
        ("STATE", false),
        ("ENDS", false),
        ("BUDGET", false),
        ("HINT", false),
        ("CREATED", false),
    ];
    let answer = asking.get(&["keys"], &[("agent", agent), ("limit", Some("500"))])?;
    if asking.json {
        return answer.print();
    }
    let listing: Listing<KeyRecord> = answer.read()?;
    print(
        &COLUMNS,
        listing.items.into_iter().map(|key| {
            let ends = ends(&key);
            let budget = key.budget.as_ref().map_or("-".to_owned(), budget);
            vec![key.id, key.name, key.agent, word(&key.state), ends, budget, format!("…{}", key.hint), key.created_at]
        }),
    )?;
    if listing.next.is_some() {
        writeln!(std::io::stdout(), "… and more")?;
    }
    Ok(())
}

fn create(order: &Create) -> Result<()> {
    let mut body = json!({"agent": order.agent});
    if let Some(name) = &order.name {
        body["name"] = json!(name);
    }
    if let Some(seconds) = order.expires {
        body["expires_in_seconds"] = json!(seconds);
    }
    let limits = [
        ("max_run_cost", order.max_run_cost),
        ("daily_limit", order.daily_limit),
        ("monthly_limit", order.monthly_limit),
    ];
    let mut budget = Map::new();
    for (name, limit) in limits {
        if let Some(limit) = limit {
            budget.insert(name.to_owned(), limit.to_string().into());
        }
    }
    if !budget.is_empty() {
        body["budget"] = Value::Object(budget);
    }
    let answer = order.asking.order(Method::POST, &["keys"], &body)?;
    done(&answer, &order.asking, "is made")
}

/// Tells what became of a key, and its secret where there is a new one.
fn done(answer: &Answer, asking: &Asking, what: &str) -> Result<()> {
    if asking.json {
        return answer.print();
    }
    let key: KeyRecord = answer.read()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} of agent {} {what}", key.id, show::plain(&key.agent))?;
    if let Some(previous) = &key.previous {
        writeln!(out, "The old secret (…{}) ends at {}.", show::plain(&previous.hint), previous.ends_at)?;
    }
    if let Some(secret) = &key.secret {
        writeln!(out, "\n    {}\n", show::plain(secret))?;
        writeln!(
            out,
            "This is shown once. Give it to the agent as its API key, with Sprag's address as the base URL."
        )?;
    }
    Ok(())
}

fn ends(key: &KeyRecord) -> String {
    let end = match key.state {
        KeyState::Revoked => key.revoked_at.as_ref(),
        KeyState::Active | KeyState::Expired => key.expires_at.as_ref(),
    };
    end.cloned().unwrap_or_else(|| "-".to_owned())
}

fn budget(budget: &KeyBudget) -> String {
    let limits = [(budget.max_run_cost, "run"), (budget.daily_limit, "day"), (budget.monthly_limit, "month")];
    let limits = limits.into_iter().filter_map(|(limit, of)| Some(format!("{}/{of}", money(limit?))));
    limits.collect::<Vec<_>>().join(", ")
}

/// A time such as `90`, `90s`, `15m`, `1h`, `30d` or `4w`, in seconds.
pub(super) fn seconds(text: &str) -> Result<u32> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let unit: u32 = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => bail!("expected a number and s, m, h, d or w, such as 30d"),
    };
    let number: u32 = number.parse().context("expected a number and s, m, h, d or w, such as 30d")?;
    number.checked_mul(unit).context("that is too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, expected) in [("90", 90), ("5s", 5), ("15m", 900), ("1h", 3600), ("30d", 2_592_000), ("1w", 604_800)]
        {
            assert_eq!(seconds(text).unwrap(), expected, "{text}");
        }
        for bad in ["", "d", "1y", "1.5h", "-1d", "99999d99", "99999999d"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
