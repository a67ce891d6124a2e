//! `[providers.NAME]` over the presets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use sprag_core::limits;
use sprag_core::wire::Family;

use super::expand;
use crate::config::base_url::BaseUrl;
use crate::config::environment::Environment;
use crate::config::file;
use crate::config::presets::{PRESETS, Preset, is_reserved, preset};
use crate::config::problem::{Problem, nearest};
use crate::config::secret::Secret;
use crate::config::settings::{Auth, Provider, Timeouts};

/// Providers by name.
pub(super) type Providers = BTreeMap<Arc<str>, Arc<Provider>>;

/// Headers that belong to the connection, not to the configuration.
const NOT_SETTABLE: [&str; 10] = [
    "connection",
    "content-encoding",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
];

/// The presets and what the file adds or changes. A preset without a URL exists only once it is given one.
pub(super) fn resolve_all(
    written: &BTreeMap<String, file::Provider>,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Providers {
    let nothing = file::Provider::default();
    let untouched = PRESETS.iter().filter(|preset| preset.base_url.is_some() && !written.contains_key(preset.name));
    let entries = untouched.map(|preset| (preset.name, &nothing)).chain(written.iter().map(|(n, p)| (n.as_str(), p)));
    let mut providers = Providers::new();
    for (name, entry) in entries {
        check_name(name, written, problems);
        if let Some(provider) = resolve(name, entry, environment, problems) {
            providers.insert(Arc::from(name), Arc::new(provider));
        }
    }
    if providers.len() > limits::PROVIDERS {
        problems.push(Problem::name("providers", format!("more than {} providers", limits::PROVIDERS)));
    }
    providers
}

/// How the configuration calls a family.
pub(super) fn family_name(family: Family) -> &'static str {
    match family {
        Family::Openai => "openai",
        Family::Anthropic => "anthropic",
        Family::Gemini => "gemini",
    }
}

fn check_name(name: &str, written: &BTreeMap<String, file::Provider>, problems: &mut Vec<Problem>) {
    let key = format!("providers.{name}");
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > limits::PROVIDER_NAME_BYTES || !name.chars().all(is_allowed) {
        let message = format!(
            "a provider's name is 1 to {} lower-case letters, digits, '-' and '_'",
            limits::PROVIDER_NAME_BYTES
        );
        problems.push(Problem::name(key, message));
    } else if is_reserved(name) {
        problems.push(Problem::name(key, format!("/{name}/ means something else; choose another name")));
    } else if let Some(twin) =
        written.keys().find(|o| o.as_str() < name && o.replace('-', "_") == name.replace('-', "_"))
    {
        problems.push(Problem::name(key, format!("differs from \"{twin}\" only in '-' and '_'")));
    }
}

fn resolve(
    name: &str,
    entry: &file::Provider,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Option<Provider> {
    let key = |key: &str| format!("providers.{name}.{key}");
    let preset = preset(name);
    let before = problems.len();

    let base = base_url(&key("base_url"), entry, preset, problems);
    let family = entry.dialect.or(preset.map(|preset| preset.family));
    if family.is_none() {
        let problem = Problem::value(key("dialect"), "missing; no preset has this name");
        problems.push(problem.hint("add dialect = \"openai\", \"anthropic\" or \"gemini\""));
    }
    check_rewrite(&key("rewrite"), entry, problems);
    let auth_name = entry.auth.as_deref().or(preset.map(|preset| preset.auth));
    let auth = match auth_name {
        Some(text) => auth(&key("auth"), text, problems),
        None => Some(default_auth(family.unwrap_or(Family::Openai))),
    };
    let headers = headers(&key("headers"), &entry.headers, problems);
    let api_key = api_key(name, entry, environment, problems);
    let ca_file = entry.ca_file.as_deref().map(|path| expand(path, environment));
    if let Some(Err(error)) = ca_file.as_ref().map(std::fs::File::open) {
        problems.push(Problem::value(key("ca_file"), format!("cannot be read: {error}")));
    }
    if problems.len() > before {
        return None;
    }
    Some(Provider {
        name: Arc::from(name),
        base: base?,
        family: family?,
        auth: auth?,
        key: api_key,
        headers,
        stream_usage: entry.stream_usage.unwrap_or(preset.is_some_and(|preset| preset.stream_usage)),
        timeouts: timeouts(&entry.timeouts),
        http2: entry.http2,
        ca_file,
        price_as: Arc::from(entry.price_as.as_deref().unwrap_or(name)),
    })
}

fn base_url(
    key: &str,
    entry: &file::Provider,
    preset: Option<&Preset>,
    problems: &mut Vec<Problem>,
) -> Option<BaseUrl> {
    let Some(text) = entry.base_url.as_deref().or(preset.and_then(|preset| preset.base_url)) else {
        let problem = Problem::value(key, "missing");
        problems.push(match preset {
            Some(_) => problem.hint("everyone has one of their own, such as https://RESOURCE.openai.azure.com"),
            None => problem.hint("no preset has this name, so it needs a URL such as https://llm.example.com"),
        });
        return None;
    };
    match BaseUrl::parse(text) {
        Ok(base) => {
            let rewrite = entry.rewrite.clone().unwrap_or_else(|| usual_rewrite(&base, preset));
            Some(base.with_rewrite(&rewrite))
        }
        Err(message) => {
            problems.push(Problem::value(key, message).hint("expected something like https://llm.example.com"));
            None
        }
    }
}

/// A preset's own paths hold on its own host. A URL that ends in a version (`…/v1`) is what people copy from a
/// provider's page: the version is there already, so the client's is not added.
fn usual_rewrite(base: &BaseUrl, preset: Option<&Preset>) -> BTreeMap<String, String> {
    if let Some(preset) = preset
        && base.path.is_empty()
        && preset.is_at_home(base.host())
    {
        return preset.rewrite.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    }
    let last = base.path.rsplit('/').next().unwrap_or_default();
    let is_version = last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if !is_version {
        return BTreeMap::new();
    }
    [("/v1".to_owned(), String::new()), (format!("/{last}"), String::new())].into()
}

fn check_rewrite(key: &str, entry: &file::Provider, problems: &mut Vec<Problem>) {
    let Some(rewrite) = &entry.rewrite else { return };
    if rewrite.len() > limits::PROVIDER_REWRITES {
        problems.push(Problem::name(key, format!("more than {} rewrites", limits::PROVIDER_REWRITES)));
    }
    for (from, to) in rewrite {
        let is_path = |text: &str| text.starts_with('/') && !text.contains(['?', '#', ' ']);
        if !is_path(from) || !(to.is_empty() || is_path(to)) {
            let problem = Problem::value(key, format!("\"{from}\" = \"{to}\" is not a pair of paths"));
            problems.push(problem.hint("expected something like { \"/v1\" = \"/openai/v1\" }"));
        }
    }
}

fn auth(key: &str, text: &str, problems: &mut Vec<Problem>) -> Option<Auth> {
    const CHOICES: [&str; 6] = ["bearer", "x-api-key", "x-goog-api-key", "api-key", "header:NAME", "none"];
    let header = match text {
        "bearer" => return Some(Auth::Bearer),
        "none" => return Some(Auth::None),
        "x-api-key" | "x-goog-api-key" | "api-key" => Some(text),
        _ => text.strip_prefix("header:").map(str::trim),
    };
    if let Some(Ok(name)) = header.map(str::parse::<HeaderName>) {
        return Some(Auth::Header(name));
    }
    let near = nearest(text, &CHOICES).map_or("bearer", |(near, _)| near);
    let problem = Problem::value(key, format!("\"{text}\" is not a place for a key"));
    problems.push(problem.hint(format!("did you mean \"{near}\"? The choices are {}", CHOICES.join(", "))));
    None
}

fn default_auth(family: Family) -> Auth {
    match family {
        Family::Openai => Auth::Bearer,
        Family::Anthropic => Auth::Header(HeaderName::from_static("x-api-key")),
        Family::Gemini => Auth::Header(HeaderName::from_static("x-goog-api-key")),
    }
}

pub(super) fn headers(key: &str, written: &BTreeMap<String, Secret>, problems: &mut Vec<Problem>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if written.len() > limits::PROVIDER_HEADERS {
        problems.push(Problem::name(key, format!("more than {} headers", limits::PROVIDER_HEADERS)));
        return headers;
    }
    for (name, value) in written {
        let key = format!("{key}.{name}");
        match (name.parse::<HeaderName>(), HeaderValue::from_str(value.reveal())) {
            (Err(_), _) => problems.push(Problem::name(key, "not the name of a header")),
            (Ok(name), _) if NOT_SETTABLE.contains(&name.as_str()) => {
                problems.push(Problem::name(key, "belongs to the connection and cannot be set"));
            }
            (_, Err(_)) => problems.push(Problem::value(key, "holds characters that a header cannot carry")),
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
    }
    headers
}

fn api_key(
    name: &str,
    entry: &file::Provider,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Option<Secret> {
    let key = |key: &str| format!("providers.{name}.{key}");
    let sources = [entry.api_key.is_some(), entry.api_key_env.is_some(), entry.api_key_file.is_some()];
    if sources.iter().filter(|&&is_given| is_given).count() > 1 {
        let problem = Problem::name(key("api_key"), "more than one key is given");
        problems.push(problem.hint("keep one of api_key, api_key_env, api_key_file"));
        return None;
    }
    let (from, text) = if let Some(secret) = &entry.api_key {
        ("api_key", Ok(secret.reveal().to_owned()))
    } else if let Some(variable) = &entry.api_key_env {
        let value = environment.get(variable).map(str::to_owned);
        ("api_key_env", value.ok_or_else(|| format!("the environment variable {variable} is not set")))
    } else {
        let path = expand(entry.api_key_file.as_deref()?, environment);
        ("api_key_file", crate::config::load::read_bounded(&path, limits::SECRET_FILE_BYTES))
    };
    match text.map(|text| text.trim().to_owned()) {
        Ok(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic()) => Some(Secret::new(text)),
        Ok(_) => {
            problems
                .push(Problem::value(key(from), "the key is empty, or holds characters that a header cannot carry"));
            None
        }
        Err(message) => {
            problems.push(Problem::value(key(from), message));
            None
        }
    }
}

pub(super) fn timeouts(file: &file::Timeouts) -> Timeouts {
    Timeouts {
        connect: Duration::from_millis(file.connect_ms),
        first_byte: Duration::from_millis(file.first_byte_ms),
        idle: Duration::from_millis(file.idle_ms),
        total: (file.total_ms > 0).then(|| Duration::from_millis(file.total_ms)),
    }
}
