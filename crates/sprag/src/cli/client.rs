//! Asks a running Sprag through its admin API: one request on a connection of its own.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sprag_core::limits::COMMAND_ANSWER_BYTES;
use tokio::net::TcpStream;

use crate::config::{Flags, Reads, Secret, Settings, Sources, kept_admin_token, load};
use crate::show;

/// Where to ask, and how to print the answer.
#[derive(Clone, Debug, Args)]
pub(super) struct Asking {
    /// Print the answer as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Configuration file [default: sprag.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address of the admin API, such as 127.0.0.1:7071
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// Data directory of that Sprag, for its admin token
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// An answer as it came.
pub(super) struct Answer(Bytes);

const PATIENCE: Duration = Duration::from_secs(15);

impl Asking {
    /// Asks for a path under `/api/v1`, with the parameters that have a value.
    ///
    /// # Errors
    /// When nobody answers, or not as hoped; the message says what to do.
    pub(super) fn get(&self, path: &[&str], params: &[(&str, Option<&str>)]) -> Result<Answer> {
        self.ask(Method::GET, target(path, params), Bytes::new())
    }

    /// Asks for something to be done.
    ///
    /// # Errors
    /// When nobody answers, or it is refused; the message says what to do.
    pub(super) fn order(&self, method: Method, path: &[&str], body: &Value) -> Result<Answer> {
        self.ask(method, target(path, &[]), Bytes::from(body.to_string()))
    }

    fn ask(&self, method: Method, target: String, body: Bytes) -> Result<Answer> {
        let flags = Flags {
            config: self.config.clone(),
            admin: self.admin.clone(),
            data: self.data.clone(),
            ..Flags::default()
        };
        let settings = settings(flags)?;
        let token = token(&settings);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let asked = fetch(reachable(settings.admin.listen), method, target, body, token);
        let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await });
        answer.with_context(|| format!("no answer from {} within 15 seconds", settings.admin.listen))?
    }
}

impl Answer {
    /// # Errors
    /// When the answer is not what this version of the command understands.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.0).context("the answer is not understood; is the running Sprag another version?")
    }

    /// Prints the answer as it came.
    ///
    /// # Errors
    /// When standard output is closed.
    pub(super) fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(&self.0)?;
        writeln!(out)?;
        Ok(())
    }
}

/// The settings to find a running Sprag by. One with a broken file goes on with its old settings, and must still be
/// reached: then the command line, the environment and the defaults have to do.
fn settings(flags: Flags) -> Result<Settings> {
    let sources = Sources::process(flags);
    let problems = match load(&sources) {
        Ok(loaded) => return Ok(loaded.settings),
        Err(problems) => problems,
    };
    // What is wrong need not concern a command: the key of a provider is in the service's environment, and not in this one.
    if let Ok(loaded) = load(&sources.reading(Reads::WhereItIs)) {
        return Ok(loaded.settings);
    }
    let Ok(loaded) = load(&sources.reading(Reads::Nothing)) else { return Err(problems.into()) };
    let _ =
        writeln!(std::io::stderr(), "sprag: the configuration has problems and is not used; `sprag check` names them");
    Ok(loaded.settings)
}

fn token(settings: &Settings) -> Result<Secret> {
    if let Some(token) = &settings.admin.token {
        return Ok(token.clone());
    }
    let dir = settings.data_dir.display();
    let kept = kept_admin_token(&settings.data_dir).with_context(|| format!("reading the admin token in {dir}"))?;
    kept.with_context(|| {
        format!("there is no admin token in {dir}; set SPRAG_ADMIN_TOKEN, or name the directory with --data DIR")
    })
}

/// A Sprag that listens everywhere is reached on this machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    SocketAddr::new(ip, listen.port())
}

fn target(path: &[&str], params: &[(&str, Option<&str>)]) -> String {
    let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let mut target = "/api/v1".to_owned();
    path.iter().for_each(|part| target.push_str(&format!("/{}", encode(part))));
    let given = params.iter().filter_map(|(name, value)| Some(format!("{name}={}", encode((*value)?))));
    let query = given.collect::<Vec<_>>().join("&");
    if query.is_empty() { target } else { format!("{target}?{query}") }
}

async fn fetch(
    address: SocketAddr,
    method: Method,
    target: String,
    body: Bytes,
    token: Result<Secret>,
) -> Result<Answer> {
    let stream = TcpStream::connect(address).await.with_context(|| {
        format!("nothing listens on {address}; start Sprag with `sprag`, or say where it listens with --admin ADDR")
    })?;
    // Where nothing runs there need not be a token either.
    let token = token?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(target)
        .header(CONTENT_TYPE, "application/json")
        .header(HOST, address.to_string())
        .header(AUTHORIZATION, format!("Bearer {}", token.reveal()))
        .body(Full::new(body))?;
    let response = sender.send_request(request).await.context("the connection broke off")?;
    let status = response.status();
    let body = Limited::new(response.into_body(), COMMAND_ANSWER_BYTES).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("{error}")).context("reading the answer")?.to_bytes();
    match status {
        StatusCode::OK => Ok(Answer(body)),
        StatusCode::UNAUTHORIZED => bail!(
            "the Sprag on {address} did not take the admin token; set SPRAG_ADMIN_TOKEN, or name its data directory \
             with --data DIR"
        ),
        _ => bail!("{}", detail(&body).unwrap_or_else(|| format!("the Sprag on {address} answered {status}"))),
    }
}

/// What a problem says about itself; where it names keys, each on a line of its own.
fn detail(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Problem {
        detail: String,
        #[serde(default)]
        errors: Vec<Slip>,
    }
    #[derive(Deserialize)]
    struct Slip {
        key: String,
        message: String,
        hint: Option<String>,
    }
    let problem: Problem = serde_json::from_slice(body).ok()?;
    if problem.errors.is_empty() {
        return Some(show::plain(&problem.detail));
    }
    let mut text = "refused, and nothing was changed".to_owned();
    for Slip { key, message, hint } in problem.errors {
        let key = if key.is_empty() { String::new() } else { format!("`{key}`: ") };
        text.push_str(&format!("\n  {key}{}", show::plain(&message)));
        if let Some(hint) = hint {
            text.push_str(&format!("\n    = help: {}", show::plain(&hint)));
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_kind_stay_one_part_of_the_path() {
        assert_eq!(target(&["runs", "bot", "a/../b?%"], &[]), "/api/v1/runs/bot/a%2F%2E%2E%2Fb%3F%25");
        assert_eq!(target(&["runs"], &[("agent", None), ("limit", Some("5"))]), "/api/v1/runs?limit=5");
    }

    #[test]
    fn everywhere_is_reached_here() {
        for (listen, expected) in [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:1", "[::1]:1"), ("10.0.0.1:1", "10.0.0.1:1")] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), expected);
        }
    }

    #[test]
    fn a_huge_answer_is_refused() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (bytes, is_read) in [(COMMAND_ANSWER_BYTES, true), (COMMAND_ANSWER_BYTES + 1, false)] {
            let body = Full::new(Bytes::from(vec![b' '; bytes]));
            let read = runtime.block_on(Limited::new(body, COMMAND_ANSWER_BYTES).collect());
            assert_eq!(read.is_ok(), is_read, "{bytes}");
        }
    }
}
