//! `sprag tokens`

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use http::Method;
use serde_json::{Value, json};

use super::client::{Answer, Asking};
use super::keys::seconds;
use super::table::{Column, print, word};
use crate::admin::api::model::{Listing, TokenRecord};
use crate::show;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Tokens {
    #[command(subcommand)]
    command: Option<TokensCommand>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum TokensCommand {
    /// List tokens, those that ended too (what `sprag tokens` alone does)
    List {
        #[command(flatten)]
        asking: Asking,
    },
    /// Make a token; its secret is shown once
    Create {
        /// Whose it is: events name them
        #[arg(long)]
        name: String,
        /// What it allows
        #[arg(long, value_enum)]
        role: RoleWord,
        /// After how long it ends, such as 30d
        #[arg(long, value_name = "TIME", value_parser = seconds)]
        expires: Option<u32>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Take a token back: nothing opens with it any more, and browsers that used it are signed out
    Revoke {
        /// The id that `sprag tokens` shows
        id: String,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleWord {
    /// See everything, change nothing
    Viewer,
    /// See and change everything
    Admin,
}

pub(super) fn tokens(tokens: &Tokens) -> Result<ExitCode> {
    match &tokens.command {
        None => list(&tokens.asking)?,
        Some(TokensCommand::List { asking }) => list(asking)?,
        Some(TokensCommand::Create { name, role, expires, asking }) => {
            let role = match role {
                RoleWord::Viewer => "viewer",
                RoleWord::Admin => "admin",
            };
            let mut body = json!({"name": name, "role": role});
            if let Some(seconds) = expires {
                body["expires_in_seconds"] = json!(seconds);
            }
            let answer = asking.order(Method::POST, &["tokens"], &body)?;
            done(&answer, asking, "is made")?;
        }
        Some(TokensCommand::Revoke { id, asking }) => {
            let answer = asking.order(Method::DELETE, &["tokens", id], &Value::Null)?;
            done(&answer, asking, "is revoked")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(asking: &Asking) -> Result<()> {
    const COLUMNS: [Column; 7] = [
        ("ID", false),
        ("NAME", false),
        ("ROLE", false),
        ("STATE", false),
        ("BEGINS", false),
        ("ENDS", false),
        ("CREATED", false),
    ];
    let answer = asking.get(&["tokens"], &[("limit", Some("500"))])?;
    if asking.json {
        return answer.print();
    }
    let listing: Listing<TokenRecord> = answer.read()?;
    print(
        &COLUMNS,
        listing.items.into_iter().map(|token| {
            let ends = token.revoked_at.or(token.expires_at).unwrap_or_else(|| "-".to_owned());
            let begins = format!("{}…", token.prefix);
            vec![token.id, token.name, word(&token.role), word(&token.state), begins, ends, token.created_at]
        }),
    )?;
    if listing.next.is_some() {
        writeln!(std::io::stdout(), "… and more")?;
    }
    Ok(())
}

/// Tells what became of a token, and its secret where it is new.
fn done(answer: &Answer, asking: &Asking, what: &str) -> Result<()> {
    if asking.json {
        return answer.print();
    }
    let token: TokenRecord = answer.read()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} of {} ({}) {what}", token.id, show::plain(&token.name), word(&token.role))?;
    if let Some(secret) = &token.secret {
        writeln!(out, "\n    {}\n", show::plain(secret))?;
        writeln!(out, "This is shown once. It signs in to the dashboard, and commands take it as SPRAG_ADMIN_TOKEN.")?;
    }
    Ok(())
}
