//! The words of `sprag run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sprag_core::id::AgentName;
use sprag_core::loops::Preset;
use sprag_core::money::NanoUsd;

use crate::cli::replay::presets;
use crate::config::ProviderFlag;

/// What to run, and how far it may go.
#[derive(Debug, Args)]
pub struct Asked {
    /// Most dollars that the command may spend, all its conversations together
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(super) budget: Option<NanoUsd>,
    /// Most calls that it may make
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_steps: Option<u32>,
    /// Longest time that it may take
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) timeout: Option<u64>,
    /// The agent that it is, for policies and the record [default: default]
    #[arg(long, value_name = "NAME", value_parser = |name: &str| AgentName::parse(name))]
    pub(super) agent: Option<AgentName>,
    /// The rules by which loops are found [default: those of the configuration]
    #[arg(long, value_name = "PRESET", value_parser = presets())]
    pub(super) preset: Option<Preset>,
    /// Seconds between being told to end and being made to
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub(super) grace: u64,
    /// Where calls and cost are shown meanwhile: the title of the terminal, its last line, or nowhere
    #[arg(long, value_enum, default_value_t = StatusPlace::Auto)]
    pub(super) status: StatusPlace,
    /// Say nothing in the end, unless the command was stopped
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Report as JSON: to this file, or to standard error
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub(super) json: Option<Option<PathBuf>>,
    /// Print the variables that the command would get, and run nothing
    #[arg(long)]
    pub(super) print_env: bool,
    /// The port of the proxy on this machine; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(super) port: u16,
    /// Configuration file [default: sprag.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Directory of the record
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// Base URL of a provider, as NAME=URL or NAME=URL,dialect=anthropic; may be repeated
    #[arg(long = "provider", value_name = "NAME=URL")]
    pub(super) providers: Vec<ProviderFlag>,
    /// The command with its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) command: Vec<OsString>,
}

/// Where the status is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StatusPlace {
    /// In the title, where standard error is a terminal
    Auto,
    /// In the title of the terminal
    Title,
    /// On the last line; not for commands that use the whole screen
    Line,
    /// Nowhere
    Off,
}

fn dollars(text: &str) -> Result<NanoUsd, String> {
    let amount = NanoUsd::parse_usd(text.trim().trim_start_matches('$'));
    match amount {
        Ok(amount) if amount > NanoUsd::ZERO => Ok(amount),
        _ => Err("expected a number of dollars above zero, as in 1.50".to_owned()),
    }
}
