//! The commands, and what each of them does.

mod agent_policy;
mod agents;
mod alerts;
mod alerts_setup;
mod budgets;
mod check;
mod client;
mod demo;
mod events;
mod init;
mod keys;
mod kill;
mod prices;
pub(crate) mod replay;
mod runs;
mod scan;
mod serve;
mod session_logs;
mod shell;
mod status;
mod table;
mod tokens;
mod top;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use sprag_core::limits::PAGE_ROWS;

use self::client::Asking;
use crate::admin::api::document;
use crate::config::{Flags, schema};
use crate::demo::Wish;
use crate::run_command;

/// What `--version` says; `-V` says the version alone.
const BUILD: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit   ",
    env!("BUILT_COMMIT"),
    "\ntarget   ",
    env!("BUILT_TARGET"),
    "\nprofile  ",
    env!("BUILT_PROFILE"),
    "\ncompiler ",
    env!("BUILT_RUSTC"),
);

/// Stands between AI agents and the LLM APIs they call.
#[derive(Debug, Parser)]
#[command(name = "sprag", version, long_version = BUILD, about, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the proxy and the dashboard (what `sprag` alone does)
    Serve {
        #[command(flatten)]
        flags: Flags,
    },
    /// Watch loops being caught: scripted models, simulated agents, the real thing in between; needs no key
    Demo(Wish),
    /// Write a commented configuration after three questions
    Init(init::Asked),
    /// Check a configuration and say everything that is wrong with it
    Check {
        /// The file to check [default: the one that `sprag serve` would read]
        #[arg(value_name = "CONFIG")]
        file: Option<PathBuf>,
        /// Print the problems as JSON
        #[arg(long)]
        json: bool,
        /// Also list every value, and whether a line of the file, a variable, a flag or the default says so
        #[arg(long)]
        values: bool,
        #[command(flatten)]
        flags: Flags,
    },
    /// Show how a running Sprag is, and what passed through today
    Status {
        #[command(flatten)]
        asking: Asking,
    },
    /// Watch runs, spend and stops live in the terminal, and stop a run
    Top(top::Top),
    /// List runs, or show one with its steps
    Runs {
        /// The id of a run to show
        #[arg(value_name = "RUN")]
        id: Option<String>,
        /// Only runs of this agent
        #[arg(long)]
        agent: Option<String>,
        /// At most this many rows
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(PAGE_ROWS)))]
        limit: u32,
        #[command(flatten)]
        asking: Asking,
    },
    /// List calls and what was done by hand, the latest first
    Events {
        /// Only calls of this run
        #[arg(long)]
        run: Option<String>,
        /// Only calls of this agent
        #[arg(long)]
        agent: Option<String>,
        /// At most this many rows
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(PAGE_ROWS)))]
        limit: u32,
        #[command(flatten)]
        asking: Asking,
    },
    /// Run a command with its calls guarded: no server, no configuration
    Run(Box<run_command::Asked>),
    /// Judge recorded runs: where each would have been stopped, why, and what that would have saved
    Replay(replay::Asked),
    /// Stop a run, an agent, every call with a header, or everything
    Kill(kill::Kill),
    /// Let a killed or paused run go on; what it did so far is no longer held against it
    Resume(kill::Resume),
    /// Let a run go on that waits for approval
    Approve(kill::Resume),
    /// List what is stopped, or take a kill back
    Kills(kill::Kills),
    /// List agents, show and set what they may do, or set them active or inactive
    Agents(agents::Agents),
    /// List virtual keys, make one, take one back, or give one a new secret
    Keys(keys::Keys),
    /// List tokens for the dashboard and the admin API, make one, or take one back
    Tokens(tokens::Tokens),
    /// Show budgets with what is spent and set aside, or correct what was spent
    Budgets(budgets::Budgets),
    /// List alerts with what became of them, or try a channel
    Alerts(alerts::Alerts),
    /// Show what models cost, or take a newer list of prices
    Prices {
        #[command(subcommand)]
        command: Option<PricesCommand>,
    },
    /// Look for secrets and personal data in files or standard input, and print the text without them
    Scan(scan::Asked),
    /// Print the JSON Schema of the configuration
    Schema,
    /// Print the description of the admin API: OpenAPI 3.1, as JSON
    Openapi,
    /// Print what makes a shell complete these commands, as in `sprag completions bash`
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write one for every command into a folder
    Man {
        /// The folder
        #[arg(value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
enum PricesCommand {
    /// List prices in dollars per million tokens, those of the configuration first
    List {
        /// A part of the model's name
        model: Option<String>,
        /// Only this provider's
        #[arg(long = "of", value_name = "PROVIDER")]
        of: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Flags,
    },
    /// Check a list of prices and use it instead of the built-in one
    Update {
        /// The list, in the form of prices.tsv
        file: PathBuf,
        #[command(flatten)]
        flags: Flags,
    },
}

/// Runs a command; the exit code is 0 when all is well, 1 when the command failed, 2 when its words were off.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let result = match cli.command {
        None => serve::serve(cli.flags),
        Some(Command::Serve { flags }) => serve::serve(flags),
        Some(Command::Demo(wish)) => demo::play(&wish),
        Some(Command::Init(asked)) => init::init(&asked),
        Some(Command::Check { file, json, values, flags }) => check::check(file, json, values, flags),
        Some(Command::Status { asking }) => status::status(asking),
        Some(Command::Top(asked)) => top::top(asked),
        Some(Command::Runs { id, agent, limit, asking }) => runs::runs(id, agent, limit, asking),
        Some(Command::Events { run, agent, limit, asking }) => events::events(run, agent, limit, asking),
        Some(Command::Run(asked)) => run_command::run(*asked),
        Some(Command::Replay(asked)) => replay::replay(&asked),
        Some(Command::Kill(order)) => kill::kill(&order),
        Some(Command::Resume(plea)) => kill::resume(&plea, "resume"),
        Some(Command::Approve(plea)) => kill::resume(&plea, "approve"),
        Some(Command::Kills(kills)) => kill::kills(&kills),
        Some(Command::Agents(agents)) => agents::agents(&agents),
        Some(Command::Keys(keys)) => keys::keys(&keys),
        Some(Command::Tokens(tokens)) => tokens::tokens(&tokens),
        Some(Command::Budgets(budgets)) => budgets::budgets(&budgets),
        Some(Command::Alerts(alerts)) => alerts::alerts(&alerts),
        Some(Command::Prices { command: None }) => prices::list(None, None, false, Flags::default()),
        Some(Command::Prices { command: Some(PricesCommand::List { model, of, json, flags }) }) => {
            prices::list(model.as_deref(), of.as_deref(), json, flags)
        }
        Some(Command::Prices { command: Some(PricesCommand::Update { file, flags }) }) => prices::update(&file, flags),
        Some(Command::Scan(asked)) => scan::scan(&asked),
        Some(Command::Schema) => print_json(&schema()),
        Some(Command::Openapi) => print_json(document()),
        Some(Command::Completions { shell }) => shell::completions(shell),
        Some(Command::Man { dir }) => shell::man(dir),
    };
    match result {
        Ok(code) => code,
        // Whoever read the output (`| head`) has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "sprag: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let json = error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    io.or(json) == Some(std::io::ErrorKind::BrokenPipe)
}

fn print_json(value: &serde_json::Value) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    Ok(ExitCode::SUCCESS)
}
