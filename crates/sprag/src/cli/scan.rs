//! `sprag scan`: looks for secrets and personal data in files, with the eyes of the proxy.

mod records;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use sprag_core::dlp::{
    Action, Direction, DlpPolicy, Entity, FAMILIES, Hiding, KINDS, Piece, Scanner, TextStream, hint,
};
use sprag_core::id::AgentName;

use super::table::{Column, print};
use crate::config::{Flags, Sources, load};

const READ_BYTES: usize = 64 << 10;

/// What to look at, and how to say what is there.
#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    /// Files; `-` or nothing stands for standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print findings, a line of JSON each, instead of the redacted text
    #[arg(long, conflicts_with = "jsonl")]
    json: bool,
    /// Read records, a line of JSON each with `id` and `text` or `sse`; write their `spans`, or the redacted `sse`
    #[arg(long)]
    jsonl: bool,
    /// Exit with 1 when something is found
    #[arg(long)]
    fail: bool,
    /// List the kinds that are known
    #[arg(long, conflicts_with_all = ["files", "jsonl"])]
    kinds: bool,
    /// By the policy of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

/// What is looked for, and what is done about it.
struct Eyes {
    scanner: Arc<Scanner>,
    policy: Arc<DlpPolicy>,
}

/// One finding, for programs.
#[derive(Serialize)]
struct Seen<'a> {
    file: &'a str,
    line: u64,
    entity: &'a str,
    /// Bytes from the beginning of the file.
    start: u64,
    end: u64,
    hint: String,
}

pub(super) fn scan(asked: &Asked) -> Result<ExitCode> {
    let eyes = eyes(asked)?;
    if asked.kinds {
        return list(&eyes, asked.json);
    }
    let standard_input = [PathBuf::from("-")];
    let files = if asked.files.is_empty() { &standard_input[..] } else { &asked.files };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut found = 0;
    for path in files {
        let file = open(path)?;
        let name = path.display().to_string();
        found += match asked.jsonl {
            true => records::scan(&eyes, file, &name, &mut out)?,
            false => text(&eyes, file, &name, asked.json, &mut out).with_context(|| name)?,
        };
    }
    out.flush()?;
    Ok(if asked.fail && found > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn eyes(asked: &Asked) -> Result<Eyes> {
    let settings = load(&Sources::process(asked.flags.clone()))?.settings;
    let policy = match asked.agent.as_deref().map(AgentName::parse).transpose()? {
        Some(name) => settings.policies.agents.get(&name).unwrap_or(&settings.policies.defaults),
        None => &settings.policies.defaults,
    };
    Ok(Eyes { scanner: settings.dlp.scanner.clone(), policy: Arc::new(policy.dlp.resolve()) })
}

/// Reads a text of any length, a piece at a time.
fn text(eyes: &Eyes, mut file: impl Read, name: &str, is_json: bool, out: &mut impl Write) -> Result<u64> {
    let mut stream = TextStream::default();
    let (mut at, mut line, mut found) = (0, 1, 0);
    let (mut bytes, mut pieces) = (vec![0; READ_BYTES], Vec::new());
    loop {
        let length = file.read(&mut bytes)?;
        stream.push(&eyes.scanner, &bytes[..length], length == 0, &mut pieces);
        for piece in pieces.drain(..) {
            let value: &[u8] = match &piece {
                Piece::Plain(value) => value,
                Piece::Found { value, .. } => value,
            };
            match &piece {
                Piece::Found { entity, .. } if eyes.policy.action(*entity, Direction::Request) != Action::Pass => {
                    found += 1;
                    let entity = eyes.scanner.id(*entity);
                    if is_json {
                        let (start, end) = (at, at + value.len() as u64);
                        let hint = hint(&String::from_utf8_lossy(value));
                        serde_json::to_writer(&mut *out, &Seen { file: name, line, entity, start, end, hint })?;
                        writeln!(out)?;
                    } else {
                        write!(out, "[REDACTED:{entity}]")?;
                    }
                }
                _ if is_json => {}
                _ => out.write_all(value)?,
            }
            at += value.len() as u64;
            line += memchr::memchr_iter(b'\n', value).count() as u64;
        }
        if length == 0 {
            return Ok(found);
        }
    }
}

/// A kind as it is listed.
#[derive(Serialize)]
struct Listed<'a> {
    entity: &'a str,
    family: &'static str,
    title: &'a str,
    form: &'static str,
    /// What is done about it in requests, and in answers; `not looked for` where it must be switched on first.
    request: &'static str,
    answer: &'static str,
}

fn list(eyes: &Eyes, is_json: bool) -> Result<ExitCode> {
    let family = |of| FAMILIES.iter().find(|(_, known)| *known == of).map_or("", |(name, _)| name);
    let kinds = (0..=u16::MAX).map_while(|place| Some((Entity(place), eyes.scanner.kind(Entity(place))?)));
    let rows = kinds.map(|(entity, kind)| {
        let way = |direction| match eyes.scanner.looks_for(entity) {
            true => word(eyes.policy.action(entity, direction)),
            false => "not looked for",
        };
        let (request, answer) = (way(Direction::Request), way(Direction::Answer));
        let form = KINDS.get(usize::from(entity.0)).map_or("own pattern", |known| known.form);
        Listed { entity: kind.id, family: family(kind.family), title: kind.title, form, request, answer }
    });
    if is_json {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &rows.collect::<Vec<_>>())?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    const COLUMNS: [Column; 5] =
        [("KIND", false), ("FAMILY", false), ("WHAT IT IS", false), ("REQUESTS", false), ("ANSWERS", false)];
    let cells =
        |row: Listed<'_>| [row.entity, row.family, row.title, row.request, row.answer].map(str::to_owned).into();
    print(&COLUMNS, rows.map(cells))?;
    Ok(ExitCode::SUCCESS)
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Stop | Action::StopIfSure => "strict",
        Action::Hide(Hiding::ForGood) => "redact",
        Action::Hide(Hiding::Reversible) => "redact, reversible",
        Action::Note => "log_only",
        Action::Pass => "off",
    }
}

fn open(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    if path.is_dir() {
        bail!("{} is a folder; name the files in it", path.display());
    }
    Ok(Box::new(File::open(path).with_context(|| format!("{} cannot be read", path.display()))?))
}
