//! `sprag budgets`

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use http::Method;
use serde_json::json;
use sprag_core::money::NanoUsd;

use super::client::Asking;
use super::table::{Column, money, print, word};
use crate::admin::api::model::{AccountRecord, Listing};
use crate::show;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Budgets {
    #[command(subcommand)]
    command: Option<BudgetsCommand>,
    /// Only those of this agent, its keys and its runs
    #[arg(long)]
    agent: Option<String>,
    /// Only those of this virtual key and its runs
    #[arg(long, value_name = "ID")]
    key: Option<String>,
    /// Those of runs under way too
    #[arg(long)]
    runs: bool,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum BudgetsCommand {
    /// Add to what was spent, or take from it, as in `sprag budgets adjust agent:bot daily -0.50 --reason refund`
    Adjust(Adjust),
}

#[derive(Debug, Args)]
struct Adjust {
    /// Whose: everything, agent:NAME, key:ID or run:AGENT/ID
    account: String,
    /// Of the present day or month, or of the run
    window: WindowWord,
    /// Dollars to add to what was spent; with a minus, to take away
    #[arg(value_name = "AMOUNT", value_parser = NanoUsd::parse_usd, allow_negative_numbers = true)]
    amount: NanoUsd,
    /// Why; it stays on record
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Clone, Copy, Debug, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum WindowWord {
    Daily,
    Monthly,
    Run,
}

pub(super) fn budgets(budgets: &Budgets) -> Result<ExitCode> {
    match &budgets.command {
        None => list(budgets)?,
        Some(BudgetsCommand::Adjust(order)) => adjust(order)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(budgets: &Budgets) -> Result<()> {
    const COLUMNS: [Column; 8] = [
        ("ACCOUNT", false),
        ("LIMIT", true),
        ("SETTLED", true),
        ("RESERVED", true),
        ("LEFT", true),
        ("USED", true),
        ("ENDS", false),
        ("MODE", false),
    ];
    let asking = &budgets.asking;
    let params = [
        ("agent", budgets.agent.as_deref()),
        ("key", budgets.key.as_deref()),
        ("runs", budgets.runs.then_some("true")),
        ("limit", Some("500")),
    ];
    let answer = asking.get(&["budgets"], &params)?;
    if asking.json {
        return answer.print();
    }
    let listing: Listing<AccountRecord> = answer.read()?;
    print(&COLUMNS, listing.items.iter().map(cells))?;
    if listing.next.is_some() {
        writeln!(std::io::stdout(), "… and more")?;
    }
    Ok(())
}

fn adjust(order: &Adjust) -> Result<()> {
    let body = json!({
        "account": format!("{} {}", order.account, word(&order.window)),
        "amount_usd": order.amount.to_string(),
        "reason": order.reason,
    });
    let answer = order.asking.order(Method::POST, &["budgets", "adjust"], &body)?;
    if order.asking.json {
        return answer.print();
    }
    let after: AccountRecord = answer.read()?;
    let mut out = std::io::stdout().lock();
    write!(out, "{}: ${} spent", show::plain(&after.account), after.settled_usd.0)?;
    if let Some(limit) = after.limit_usd {
        write!(out, " of ${}", limit.0)?;
    }
    let Some(adjustment) = &after.adjustment else { return Ok(writeln!(out)?) };
    writeln!(out, ", before ${}", adjustment.before_usd.0)?;
    if let Some(note) = &adjustment.note {
        writeln!(out, "Note: {}", show::plain(note))?;
    }
    Ok(())
}

fn cells(row: &AccountRecord) -> Vec<String> {
    let none = || "-".to_owned();
    vec![
        row.account.clone(),
        row.limit_usd.map_or_else(none, money),
        money(row.settled_usd),
        money(row.reserved_usd),
        row.remaining_usd.map_or_else(none, money),
        row.used_percent.map_or_else(none, |percent| format!("{percent:.1} %")),
        row.ends_at.clone().unwrap_or_else(none),
        row.mode.as_ref().map_or_else(none, word),
    ]
}
