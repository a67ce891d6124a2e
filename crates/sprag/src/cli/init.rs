//! `sprag init`: a commented configuration after three questions.

use std::fs::OpenOptions;
use std::io::{BufRead, ErrorKind, IsTerminal, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use sprag_core::money::NanoUsd;

use crate::config::{Flags, Sources, load};

/// Where to write, and whether to ask.
#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    /// The file to write
    #[arg(value_name = "FILE", default_value = "sprag.toml")]
    file: PathBuf,
    /// Ask nothing and take the defaults
    #[arg(long, short)]
    yes: bool,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

/// What the person said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Answers {
    is_observing: bool,
    daily_limit: Option<String>,
    webhook: Option<String>,
}

/// A wrong answer is asked for again, but not for ever.
const TRIES: usize = 5;

pub(super) fn init(asked: &Asked) -> Result<ExitCode> {
    if asked.file.exists() && !asked.force {
        let file = asked.file.display();
        bail!(
            "{file} is there already; look at it with `sprag check {file}`, write another with `sprag init OTHER.toml`, or this one anew with --force"
        );
    }
    let answers = if asked.yes {
        Answers::default()
    } else if stdin().is_terminal() {
        ask(&mut stdin().lock(), &mut stdout().lock())?
    } else {
        bail!("there is nobody to ask on this terminal; `sprag init --yes` takes the defaults");
    };
    write(&asked.file, &configuration(&answers), asked.force)?;
    // What was just written must be what the program takes.
    load(&Sources::process(Flags { config: Some(asked.file.clone()), ..Flags::default() }))?;
    let mut out = stdout().lock();
    writeln!(
        out,
        "Wrote {}. Every key there is, with its default: sprag.example.toml in the source.",
        asked.file.display()
    )?;
    writeln!(
        out,
        "Start it: sprag --config {}   (without --config where the file is called sprag.toml)",
        asked.file.display()
    )?;
    Ok(ExitCode::SUCCESS)
}

fn ask(input: &mut impl BufRead, out: &mut impl Write) -> Result<Answers> {
    writeln!(out, "Three questions; Enter takes what stands in brackets.\n")?;
    let loops =
        question(
            input,
            out,
            "1. A run that goes in circles: stop it, or only report it? [stop] ",
            |text| match text {
                "" | "stop" => Ok(false),
                "report" => Ok(true),
                _ => Err("Please say `stop` or `report`."),
            },
        )?;
    let limit = question(input, out, "2. Most dollars a day, all agents together? [no limit] ", |text| {
        let text = text.trim_start_matches('$');
        if matches!(text, "" | "no limit" | "none") {
            return Ok(None);
        }
        match NanoUsd::parse_usd(text) {
            Ok(amount) if amount > NanoUsd::ZERO => Ok(Some(text.to_owned())),
            _ => Err("Please give an amount such as 20 or 12.50."),
        }
    })?;
    let webhook = question(
        input,
        out,
        "3. Where to tell about stops: a Slack webhook's address? [nowhere] ",
        |text| match text {
            "" | "nowhere" | "none" => Ok(None),
            url if url.starts_with("https://") && !url.contains(['"', '\\', ' ']) => Ok(Some(url.to_owned())),
            _ => Err("Please give an address that begins with https://."),
        },
    )?;
    writeln!(out)?;
    Ok(Answers { is_observing: loops, daily_limit: limit, webhook })
}

fn question<T>(
    input: &mut impl BufRead,
    out: &mut impl Write,
    text: &str,
    read: impl Fn(&str) -> Result<T, &'static str>,
) -> Result<T> {
    for _ in 0..TRIES {
        write!(out, "{text}")?;
        out.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            bail!("the questions were not answered to the end; nothing was written");
        }
        match read(line.trim()) {
            Ok(answer) => return Ok(answer),
            Err(help) => writeln!(out, "   {help}")?,
        }
    }
    bail!("no answer that could be used; nothing was written")
}

fn configuration(answers: &Answers) -> String {
    let preset = if answers.is_observing { "observe" } else { "balanced" };
    let limit = match &answers.daily_limit {
        Some(limit) => format!("daily_limit = \"{limit}\""),
        None => "# daily_limit = \"20.00\"".to_owned(),
    };
    let alerts = alerts(answers.webhook.as_deref().unwrap_or("https://hooks.slack.com/services/..."));
    let alerts = match answers.webhook {
        Some(_) => alerts,
        None => alerts.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect(),
    };
    include_str!("init.toml").replace("{preset}", preset).replace("{limit}", &limit).replace("{alerts}", &alerts)
}

/// A channel and what it is told.
fn alerts(url: &str) -> String {
    let mut text = format!("[alerts.channels.team]\ntype = \"slack\"\nurl = \"{url}\"\n");
    for on in ["loop_detected", "run_killed", "kill_switch", "budget"] {
        text += &format!("[[alerts.rules]]\non = \"{on}\"\n");
    }
    text
}

/// The file may come to hold a secret, so it is the owner's alone. A link in its place is not followed when it is new.
fn write(file: &Path, text: &str, is_forced: bool) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    if is_forced {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let result = options.open(file).and_then(|mut open| open.write_all(text.as_bytes()));
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("there is no folder {}; make it first", file.parent().unwrap_or(file).display())
        }
        other => other.with_context(|| format!("writing {}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(lines: &str) -> (Result<Answers>, String) {
        let mut out = Vec::new();
        let answers = ask(&mut lines.as_bytes(), &mut out);
        (answers, String::from_utf8(out).unwrap())
    }

    #[test]
    fn enter_takes_the_defaults() {
        assert_eq!(answered("\n\n\n").0.unwrap(), Answers::default());
    }

    #[test]
    fn a_wrong_answer_is_asked_for_again_with_what_is_expected() {
        let (answers, said) = answered("maybe\nreport\nmuch\n$12.50\nhttp://plain\nhttps://hooks.example/x\n");
        let expected = Answers {
            is_observing: true,
            daily_limit: Some("12.50".into()),
            webhook: Some("https://hooks.example/x".into()),
        };
        assert_eq!(answers.unwrap(), expected);
        for help in ["`stop` or `report`", "such as 20 or 12.50", "begins with https://"] {
            assert!(said.contains(help), "{said}");
        }
    }

    #[test]
    fn an_end_in_the_middle_writes_nothing() {
        assert!(answered("\n").0.unwrap_err().to_string().contains("nothing was written"));
        assert!(answered(&"x\n".repeat(9)).0.is_err());
    }

    #[test]
    fn what_is_written_can_be_used_and_says_what_was_answered() {
        let dir = tempfile::tempdir().unwrap();
        let all = Answers {
            is_observing: true,
            daily_limit: Some("12.50".into()),
            webhook: Some("https://hooks.example.com/x".into()),
        };
        for (name, answers) in [("default.toml", Answers::default()), ("all.toml", all)] {
            let file = dir.path().join(name);
            write(&file, &configuration(&answers), false).unwrap();
            let flags = Flags { config: Some(file.clone()), ..Flags::default() };
            let settings = load(&Sources { flags, ..Sources::default() }).unwrap_or_else(|p| panic!("{p}")).settings;
            let limit = settings.budget.budget.daily_limit;
            assert_eq!(limit.is_some(), answers.daily_limit.is_some());
            assert_eq!(settings.alerts.channels.len(), usize::from(answers.webhook.is_some()));
            assert!(write(&file, "", false).is_err(), "a file that is there stays");
        }
    }
}
