//! `sprag agents`

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sprag_core::policy::DeactivatedBy;

use super::agent_policy;
use super::client::{Answer, Asking};
use super::table::{Column, print};
use crate::admin::api::model::{AgentSummary, Listing};
use crate::show;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Agents {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// Show what an agent may do, and where each part of that comes from
    Show {
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Make an agent ahead of its first call
    Create {
        name: String,
        /// What it may do, as for `set`
        #[arg(value_name = "KEY=VALUE")]
        settings: Vec<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Set what an agent may do, over the configuration, as in `budget.daily_limit=5 run_limits.max_steps=50`
    Set {
        name: String,
        /// A key of `[agents.NAME]` and a value as in TOML or JSON; words need no quotes
        #[arg(value_name = "KEY=VALUE", required = true)]
        settings: Vec<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Take back what was set, so that the configuration holds again
    Unset {
        name: String,
        /// A key, as in `budget.daily_limit`, or all below one, as in `budget`
        #[arg(value_name = "KEY", required = true)]
        keys: Vec<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Let an agent call again; what it did so far is no longer held against it
    Activate {
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Refuse an agent's calls from now on
    Deactivate {
        name: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Set an agent's kill switch
    KillSwitch {
        name: String,
        /// Turn it on
        #[arg(long, conflicts_with = "off")]
        on: bool,
        /// Turn it off
        #[arg(long)]
        off: bool,
        /// How many of its last requests are compared, 5 to 100
        #[arg(long, value_name = "N")]
        window: Option<u32>,
        /// The score above which it is set inactive, 1 to 50
        #[arg(long, value_name = "X")]
        threshold: Option<f64>,
        #[command(flatten)]
        asking: Asking,
    },
}

pub(super) fn agents(agents: &Agents) -> Result<ExitCode> {
    match &agents.command {
        None => list(&agents.asking),
        Some(AgentsCommand::Show { name, asking }) => agent_policy::show(name, asking),
        Some(AgentsCommand::Create { name, settings, asking }) => agent_policy::create(name, settings, asking),
        Some(AgentsCommand::Set { name, settings, asking }) => agent_policy::set(name, settings, asking),
        Some(AgentsCommand::Unset { name, keys, asking }) => agent_policy::unset(name, keys, asking),
        Some(AgentsCommand::Activate { name, asking }) => change(name, &json!({"active": true}), asking),
        Some(AgentsCommand::Deactivate { name, reason, asking }) => {
            let mut body = json!({"active": false});
            if let Some(reason) = reason {
                body["reason"] = json!(reason);
            }
            change(name, &body, asking)
        }
        Some(AgentsCommand::KillSwitch { name, on, off, window, threshold, asking }) => {
            let mut switch = Map::new();
            if *on || *off {
                switch.insert("enabled".to_owned(), json!(on));
            }
            window.map(|window| switch.insert("window_size".to_owned(), json!(window)));
            threshold.map(|threshold| switch.insert("threshold".to_owned(), json!(threshold)));
            change(name, &json!({ "kill_switch": switch }), asking)
        }
    }
}

fn list(asking: &Asking) -> Result<ExitCode> {
    const COLUMNS: [Column; 8] = [
        ("AGENT", false),
        ("STATE", false),
        ("KILL SWITCH", false),
        ("RUNS", true),
        ("CALLS", true),
        ("BLOCKED", true),
        ("COST", true),
        ("LAST CALL", false),
    ];
    let agents = all(asking)?;
    if asking.json {
        let whole = serde_json::to_string(&Listing { items: agents, next: None })?;
        writeln!(std::io::stdout(), "{whole}")?;
        return Ok(ExitCode::SUCCESS);
    }
    print(
        &COLUMNS,
        agents.iter().map(|agent| {
            vec![
                agent.name.clone(),
                state(agent).to_owned(),
                switch(agent),
                show::count(agent.runs),
                show::count(agent.steps),
                show::count(agent.blocked),
                show::usd_known(agent.cost_usd.0, agent.unpriced_steps),
                agent.last_at.clone().unwrap_or_else(|| "never".to_owned()),
            ]
        }),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Every agent, page by page.
fn all(asking: &Asking) -> Result<Vec<AgentSummary>> {
    let (mut agents, mut cursor) = (Vec::new(), None);
    loop {
        let wanted = [("limit", Some("500")), ("cursor", cursor.as_deref())];
        let page: Listing<AgentSummary> = asking.get(&["agents"], &wanted)?.read()?;
        agents.extend(page.items);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(agents),
        }
    }
}

fn change(name: &str, body: &Value, asking: &Asking) -> Result<ExitCode> {
    let answer: Answer = asking.order(Method::PATCH, &["agents", name], body)?;
    told(&answer, asking)
}

/// Says where an agent stands after a change.
pub(super) fn told(answer: &Answer, asking: &Asking) -> Result<ExitCode> {
    #[derive(Deserialize)]
    struct News {
        #[serde(default)]
        created: bool,
    }
    if asking.json {
        answer.print()?;
        return Ok(ExitCode::SUCCESS);
    }
    // The rest of the answer is not shown.
    let agent: AgentSummary = answer.read()?;
    let created = if answer.read::<News>()?.created { "created: " } else { "" };
    writeln!(std::io::stdout(), "{created}{} is {}; kill switch {}", agent.name, state(&agent), switch(&agent))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn state(agent: &AgentSummary) -> &'static str {
    match (agent.active, agent.deactivated_by) {
        (true, _) => "active",
        (false, Some(DeactivatedBy::KillSwitch)) => "deactivated by kill switch",
        (false, _) => "inactive",
    }
}

fn switch(agent: &AgentSummary) -> String {
    let switch = agent.kill_switch;
    let word = if switch.enabled { "on" } else { "off" };
    format!("{word}, {} requests, above {}", switch.window_size, switch.threshold)
}
