//! The measuring side of Sprag: a mock provider, a load generator, and what puts the two around a proxy.
//!
//! `compare` measures Sprag beside nginx and holds it against the goals, `clicks` calls while somebody looks at pages, `soak` looks for what grows, `instructions`
//! counts under valgrind, `order` lists what runs at a start, `mock` and `load` are the two ends alone, for a proxy that somebody else has started.
//! Nothing here is a part of the program.

mod clicks;
mod compare;
mod cpu_clock;
mod instructions;
mod load;
mod mock;
mod order;
mod process;
mod prompt;
mod soak;
mod targets;
mod words;

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Sprag beside nginx and a direct connection.
    Compare(compare::Options),
    /// Calls while somebody looks at pages.
    Clicks(clicks::Options),
    /// Mixed traffic for long, and what grows.
    Soak(soak::Options),
    /// Instructions of whole requests, under valgrind.
    Instructions(instructions::Options),
    /// The functions that run at a start, for the linker.
    Order(order::Options),
    /// A provider that answers at once, until it is interrupted.
    Mock {
        #[arg(long, default_value = "127.0.0.1:19400")]
        listen: SocketAddr,
        #[command(flatten)]
        shape: mock::Shape,
    },
    /// Requests to one address, and what they took.
    Load(load::Options),
}

fn main() -> Result<ExitCode> {
    match Arguments::parse().what {
        What::Compare(options) => compare::run(&options),
        What::Clicks(options) => clicks::run(&options),
        What::Soak(options) => soak::run(&options),
        What::Instructions(options) => instructions::run(&options),
        What::Order(options) => order::run(&options),
        What::Mock { listen, shape } => {
            let mock = mock::Mock::start(listen)?;
            mock.set(shape);
            mock.join();
            Ok(ExitCode::SUCCESS)
        }
        What::Load(options) => {
            let seen = load::run(&options.plan()?)?;
            println!("{}", serde_json::to_string_pretty(&seen.summary())?);
            Ok(ExitCode::from(u8::from(seen.failed > 0)))
        }
    }
}
