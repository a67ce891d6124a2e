//! `sprag kill`, `sprag resume`, `sprag approve` and `sprag kills`

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::client::{Answer, Asking};
use super::runs::owner;
use super::table::{Column, print, word};
use crate::admin::api::model::{KillRecord, Listing};
use crate::show;

#[derive(Debug, Args)]
pub(super) struct Kill {
    /// The id of a run to stop
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// The agent to stop, or whose run it is
    #[arg(long)]
    agent: Option<String>,
    /// Stop everything
    #[arg(long, conflicts_with_all = ["run", "agent"])]
    all: bool,
    /// Stop every call with this header, such as x-tool-name=web_search
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = ["run", "agent", "all"])]
    header: Option<String>,
    /// Stop every call with this credential: the id of a virtual key, or the first 16 digits of its SHA-256
    #[arg(long, value_name = "ID", conflicts_with_all = ["run", "agent", "all", "header"])]
    key: Option<String>,
    /// Stop every call with this parameter in its query
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = ["run", "agent", "all", "header", "key"])]
    query: Option<String>,
    /// Stop every call whose bearer token claims this, such as org_id=acme
    #[arg(long, value_name = "CLAIM=VALUE", conflicts_with_all = ["run", "agent", "all", "header", "key", "query"])]
    jwt: Option<String>,
    /// Stop every call from this address
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["run", "agent", "all", "header", "key", "query", "jwt"])]
    ip: Option<String>,
    /// Only calls to this path, and to what lies below it
    #[arg(long, value_name = "PATH", conflicts_with = "run")]
    route: Option<String>,
    /// Why
    #[arg(long)]
    reason: Option<String>,
    /// Until somebody approves, rather than for good
    #[arg(long)]
    pause: bool,
    /// For so many seconds only
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u32>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Args)]
pub(super) struct Resume {
    /// The id of the run
    #[arg(value_name = "RUN")]
    run: String,
    /// Whose run it is
    #[arg(long)]
    agent: Option<String>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Kills {
    #[command(subcommand)]
    command: Option<KillsCommand>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum KillsCommand {
    /// Take a kill back
    Lift {
        /// The id that `sprag kills` shows
        id: String,
        #[command(flatten)]
        asking: Asking,
    },
}

pub(super) fn kill(order: &Kill) -> Result<ExitCode> {
    let mut body = json!({"pause": order.pause});
    if let Some(reason) = &order.reason {
        body["reason"] = json!(reason);
    }
    if let Some(seconds) = order.seconds {
        body["expires_in_seconds"] = json!(seconds);
    }
    if let Some(route) = &order.route {
        body["route"] = json!(route);
    }
    let scope = match order {
        Kill { run: Some(run), agent, asking, .. } => {
            // With its agent named, a run may be killed before it is on record.
            let agent = match agent {
                Some(agent) => agent.clone(),
                None => owner(run, None, asking)?,
            };
            let answer = asking.order(Method::POST, &["runs", &agent, run, "kill"], &body)?;
            return done(&answer, asking, "stopped");
        }
        Kill { all: true, .. } => "all".to_owned(),
        Kill { header: Some(header), .. } => format!("header:{header}"),
        Kill { key: Some(key), .. } => format!("key:{key}"),
        Kill { query: Some(query), .. } => format!("query:{query}"),
        Kill { jwt: Some(jwt), .. } => format!("jwt:{jwt}"),
        Kill { ip: Some(ip), .. } => format!("ip={ip}"),
        Kill { agent: Some(agent), .. } => format!("agent:{agent}"),
        _ => bail!("say what to stop: a run, --agent, --header, --query, --jwt, --ip, --key or --all"),
    };
    body["scope"] = json!(scope);
    let answer = order.asking.order(Method::POST, &["kills"], &body)?;
    done(&answer, &order.asking, "stopped")
}

pub(super) fn resume(plea: &Resume, how: &str) -> Result<ExitCode> {
    let agent = match &plea.agent {
        Some(agent) => agent.clone(),
        None => owner(&plea.run, None, &plea.asking)?,
    };
    let answer = plea.asking.order(Method::POST, &["runs", &agent, &plea.run, how], &json!({}))?;
    done(&answer, &plea.asking, "goes on")
}

pub(super) fn kills(kills: &Kills) -> Result<ExitCode> {
    if let Some(KillsCommand::Lift { id, asking }) = &kills.command {
        let answer = asking.order(Method::DELETE, &["kills", id], &Value::Null)?;
        return done(&answer, asking, "goes on");
    }
    const COLUMNS: [Column; 7] = [
        ("ID", false),
        ("SCOPE", false),
        ("KIND", false),
        ("REASON", false),
        ("BY", false),
        ("AT", false),
        ("UNTIL", false),
    ];
    let answer = kills.asking.get(&["kills"], &[("limit", Some("500"))])?;
    if kills.asking.json {
        answer.print()?;
        return Ok(ExitCode::SUCCESS);
    }
    let listing: Listing<KillRecord> = answer.read()?;
    print(
        &COLUMNS,
        listing.items.into_iter().map(|kill| {
            let until = kill.expires_at.unwrap_or_else(|| "-".to_owned());
            let scope = scope_of(&kill.scope, kill.route.as_deref());
            vec![kill.id, scope, word(&kill.kind), kill.reason, kill.by, kill.at, until]
        }),
    )?;
    if listing.next.is_some() {
        writeln!(std::io::stdout(), "… and more")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn done(answer: &Answer, asking: &Asking, what: &str) -> Result<ExitCode> {
    if asking.json {
        answer.print()?;
        return Ok(ExitCode::SUCCESS);
    }
    let kill: KillRecord = answer.read()?;
    let scope = scope_of(&kill.scope, kill.route.as_deref());
    writeln!(std::io::stdout(), "{} {what} ({})", show::plain(&scope), show::plain(&kill.reason))?;
    Ok(ExitCode::SUCCESS)
}

fn scope_of(scope: &str, route: Option<&str>) -> String {
    route.map_or_else(|| scope.to_owned(), |route| format!("{scope} on {route}"))
}
