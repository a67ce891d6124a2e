//! The scripted provider as a program, for tests in other languages.
//!
//! Prints its address as one line and serves until its standard input closes or it is killed. What it says is steered
//! by directives in the requests (`[[mock:…]]`, `x-mock-…`), by the flags below, and watched through `/__requests`.

use sprag_testkit::{Provider, Reply, Script, When};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

const HELP: &str = "sprag-mock [--listen ADDR] [--text TEXT] [--agent-steps N] [--status CODE] [--lenient] [--stdin]

  --listen ADDR     where to listen (127.0.0.1:0)
  --text TEXT       always say TEXT in place of an echo
  --agent-steps N   call a tool N times in every conversation, then answer
  --status CODE     always fail with CODE
  --lenient         accept body fields that the real provider does not know
  --stdin           stop when standard input closes";

struct Options {
    listen: SocketAddr,
    script: Script,
    until_stdin_closes: bool,
}

fn main() -> ExitCode {
    let outcome = parse(std::env::args().skip(1)).and_then(|options| match options {
        Some(options) => serve(options),
        None => say(HELP),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "sprag-mock: {problem}");
            ExitCode::from(2)
        }
    }
}

fn serve(options: Options) -> Result<(), String> {
    let provider = Provider::start_on(options.listen, options.script).map_err(|error| error.to_string())?;
    say(&provider.address().to_string())?;
    if options.until_stdin_closes {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}

fn say(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

/// Nothing when help was asked for.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options =
        Options { listen: SocketAddr::from(([127, 0, 0, 1], 0)), script: Script::new(), until_stdin_closes: false };
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{flag} needs a value"));
        let bad = |text: &str| format!("{flag}: {text:?} is not valid");
        match flag.as_str() {
            "--listen" => {
                let text = value()?;
                options.listen = text.parse().map_err(|_| bad(&text))?;
            }
            "--text" => options.script = options.script.when(When::Always, [Reply::text(value()?)]),
            "--status" => {
                let text = value()?;
                let status = text.parse().map_err(|_| bad(&text))?;
                options.script = options.script.when(When::Always, [Reply::status(status)]);
            }
            "--agent-steps" => {
                let text = value()?;
                let steps = text.parse().map_err(|_| bad(&text))?;
                options.script = options.script.healthy_course(When::Always, steps, "All parts are read.");
            }
            "--lenient" => options.script = options.script.lenient(),
            "--stdin" => options.until_stdin_closes = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("unknown flag {flag}\n{HELP}")),
        }
    }
    Ok(Some(options))
}
