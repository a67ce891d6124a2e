//! From the file as written to the settings in use, with all problems at once.

pub(super) mod alerts;
mod budget;
mod detection;
mod dlp;
mod hours;
mod jwt;
mod models;
pub(super) mod policy;
mod price;
mod provider;
mod rate_limit;
mod reasons;
mod route;
mod state;
mod telemetry;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sprag_core::event::RunOrigin;
use sprag_core::wire::Family;
use sprag_store::history::{ClickHouseAddress, ClickHouseSettings, PATIENCE};
use tracing_subscriber::EnvFilter;

use super::environment::Environment;
use super::file::{self, File};
use super::problem::{Problem, nearest};
use super::secret::Secret;
use super::settings::{Admin, Events, Log, Prices, Proxy, Responses, Routing, Runs, Settings};
use super::values::Values;

/// Makes settings of a file whose values have the right types.
///
/// # Errors
/// Everything that is wrong, each with its key.
pub(crate) fn resolve(file: &File, environment: &Environment) -> Result<Settings, Vec<Problem>> {
    let mut problems = Vec::new();
    let listen = address("proxy.listen", &file.proxy.listen, &mut problems);
    let admin_listen = address("admin.listen", &file.admin.listen, &mut problems);
    if listen == admin_listen && listen.is_some_and(|address| address.port() != 0) {
        let problem = Problem::value("admin.listen", "the proxy listens there already");
        problems.push(problem.hint("give them two ports: agents must not reach the admin API"));
    }
    check_tokens(&file.admin, &mut problems);
    check_level(&file.log.level, &mut problems);
    let providers = provider::resolve_all(&file.providers, environment, &mut problems);
    let routing = routing(file, &providers, &mut problems);
    let routes = route::resolve_all(&file.routes, &providers, environment, &mut problems);
    let reasons = reasons::resolve_all(&file.responses.reasons, &mut problems);
    let overrides = price::resolve_all(&file.price, &mut problems);
    let policies = policy::resolve_all(file, &mut problems);
    let dlp = dlp::resolve(&file.dlp, &mut problems);
    let budget = policy::global_budget(file, &mut problems);
    let alerts = alerts::resolve(&file.alerts, environment, &mut problems);
    let jwt = jwt::resolve(&file.jwt, environment, &mut problems);
    let state = state::resolve(&file.state, &mut problems);
    let events = events(&file.events, &mut problems);
    let telemetry = telemetry::resolve(&file.telemetry, admin_listen, &mut problems);

    let (Some(listen), Some(admin_listen), true) = (listen, admin_listen, problems.is_empty()) else {
        return Err(problems);
    };
    Ok(Settings {
        proxy: proxy(&file.proxy, listen),
        admin: Admin {
            listen: admin_listen,
            token: file.admin.token.clone(),
            viewer_token: file.admin.viewer_token.clone(),
        },
        data_dir: data_dir(file.data.dir.as_deref(), environment),
        providers,
        routing,
        routes,
        runs: Runs {
            command: None,
            sources: sorted(&file.runs.sources).into_iter().map(RunOrigin::from).collect(),
            idle: Duration::from_secs(file.runs.idle_minutes.saturating_mul(60)),
            max_killed: file.runs.max_killed,
        },
        policies,
        dlp,
        budget,
        responses: Responses {
            metadata: file.responses.metadata,
            compat: sorted(&file.responses.compat),
            adapt: file.responses.adapt,
            reasons,
        },
        state,
        events,
        prices: Prices { unpriced: file.prices.unpriced, overrides },
        jwt,
        alerts,
        telemetry,
        log: Log { format: file.log.format, level: file.log.level.clone(), calls: file.log.calls },
        // Only who puts the layers together knows them.
        values: Values::default(),
    })
}

/// A path as written, with `~/` made the home directory.
pub(crate) fn expand(path: &str, environment: &Environment) -> PathBuf {
    match (path.strip_prefix("~/"), environment.get("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// A key in the table that stands at `key`.
fn place(key: &str, name: &str) -> String {
    format!("{key}.{name}")
}

/// An error that says what was expected after a semicolon.
fn told(key: impl Into<String>, error: &impl std::fmt::Display) -> Problem {
    let text = error.to_string();
    match text.split_once("; ") {
        Some((message, hint)) => Problem::value(key, message).hint(hint),
        None => Problem::value(key, text),
    }
}

fn proxy(file: &file::Proxy, listen: SocketAddr) -> Proxy {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Proxy {
        listen,
        max_connections: size(file.max_connections),
        max_body_bytes: size(file.max_body_bytes),
        max_header_bytes: size(file.max_header_bytes),
        header_read_timeout: Duration::from_millis(file.header_read_timeout_ms),
        max_requests_per_agent: size(file.max_requests_per_agent),
        drain: Duration::from_secs(file.drain_seconds),
        require_keys: file.require_keys,
    }
}

fn events(file: &file::Events, problems: &mut Vec<Problem>) -> Events {
    let days = |days: u64| Duration::from_secs(days.saturating_mul(24 * 60 * 60));
    let bytes = |mib: u64| mib.saturating_mul(1 << 20);
    Events {
        retention: days(file.retention_days),
        run_retention: days(file.run_retention_days),
        flush: Duration::from_millis(file.flush_ms),
        max_spool_bytes: bytes(file.max_spool_mib),
        max_db_bytes: (file.max_db_mib > 0).then(|| bytes(file.max_db_mib)),
        clickhouse: file.clickhouse.as_ref().and_then(|address| {
            let address = ClickHouseAddress::parse(address.reveal().trim());
            let address = address.map_err(|error| problems.push(told("events.clickhouse", &error))).ok()?;
            Some(ClickHouseSettings {
                address,
                batch_events: u32::try_from(file.batch_events).unwrap_or(u32::MAX),
                batch_age: Duration::from_millis(file.batch_ms),
                patience: PATIENCE,
            })
        }),
    }
}

fn address(key: &str, text: &str, problems: &mut Vec<Problem>) -> Option<SocketAddr> {
    let text = text.trim();
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    if let Ok(address) = numeric.as_deref().unwrap_or(text).parse() {
        return Some(address);
    }
    let problem = Problem::value(key, format!("\"{text}\" is not an address and a port"));
    problems.push(match text.strip_prefix(':') {
        Some(port) => problem.hint(format!("127.0.0.1:{port} for this machine only, 0.0.0.0:{port} for every one")),
        None if text.parse::<std::net::IpAddr>().is_ok() => problem.hint("add a port, as in 127.0.0.1:7070"),
        None => problem.hint("expected something like 127.0.0.1:7070 or [::1]:7070"),
    });
    None
}

/// Tokens travel in a header, and say who one is.
fn check_tokens(admin: &file::Admin, problems: &mut Vec<Problem>) {
    let is_bad = |token: &Secret| token.reveal().is_empty() || !token.reveal().bytes().all(|b| b.is_ascii_graphic());
    for (key, token) in [("admin.token", &admin.token), ("admin.viewer_token", &admin.viewer_token)] {
        if token.as_ref().is_some_and(is_bad) {
            problems.push(Problem::value(key, "a token is made of letters, digits and signs, without spaces"));
        }
    }
    if admin.token.is_some() && admin.token == admin.viewer_token {
        let problem = Problem::value("admin.viewer_token", "this is the admin token too");
        problems.push(problem.hint("give viewers a token of their own, or they could change everything"));
    }
}

fn check_level(level: &str, problems: &mut Vec<Problem>) {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    // A filter takes any single word for the name of a module, so a slip would silence everything.
    let is_word = !level.contains(['=', ',', '[', ':']);
    let is_known = LEVELS.contains(&level.to_lowercase().as_str());
    if (is_word && !is_known) || EnvFilter::builder().parse(level).is_err() {
        let problem = Problem::value("log.level", format!("\"{level}\" is not a log level"));
        problems.push(match nearest(level, &LEVELS) {
            Some((near, true)) => problem.hint(format!("did you mean \"{near}\"?")),
            _ => problem.hint("expected error, warn, info, debug, trace, or module=level,…"),
        });
    }
}

fn routing(file: &File, providers: &provider::Providers, problems: &mut Vec<Problem>) -> Routing {
    let mut pick = |key: &str, name: &str, family: Family| {
        let key = format!("routing.{key}");
        match providers.get(name) {
            // Its own problems are reported already.
            None if file.providers.contains_key(name) => {}
            None => {
                let names: Vec<&str> = providers.keys().map(|name| &**name).collect();
                let near = nearest(name, &names).map_or("openai", |(near, _)| near);
                let problem = Problem::value(key, format!("there is no provider \"{name}\""));
                problems.push(problem.hint(format!("the nearest name is \"{near}\"; others need [providers.NAME]")));
            }
            Some(provider) if provider.family != family => {
                let [is, should] = [provider.family, family].map(provider::family_name);
                problems.push(Problem::value(key, format!("\"{name}\" speaks the dialect {is}, not {should}")));
            }
            Some(_) => {}
        }
        Arc::from(name)
    };
    Routing {
        default_openai: pick("default_openai", &file.routing.default_openai, Family::Openai),
        default_anthropic: pick("default_anthropic", &file.routing.default_anthropic, Family::Anthropic),
        default_gemini: pick("default_gemini", &file.routing.default_gemini, Family::Gemini),
    }
}

fn data_dir(dir: Option<&str>, environment: &Environment) -> PathBuf {
    if let Some(dir) = dir {
        return expand(dir, environment);
    }
    // The XDG convention says to ignore a relative path.
    let xdg = environment.get("XDG_DATA_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let home = || environment.get("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    xdg.or_else(home).map_or_else(|| PathBuf::from("sprag-data"), |dir| dir.join("sprag"))
}

/// Each once, in the order of the enumeration.
fn sorted<T: Copy + Ord>(items: &[T]) -> Vec<T> {
    let mut items = items.to_vec();
    items.sort_unstable();
    items.dedup();
    items
}

#[cfg(test)]
mod tests;
