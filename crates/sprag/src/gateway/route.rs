//! Where a request goes: which provider, under which path, in which dialect.

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;
use sprag_core::wire::{Dialect, Family};

use crate::config::{Provider, RouteRule, Settings};

/// The way of one request.
#[derive(Debug)]
pub(crate) struct Route<'a> {
    /// The provider it goes to, or the upstream of a route.
    pub(crate) provider: &'a Arc<Provider>,
    /// What the route allows, where it is one to another API.
    pub(crate) rule: Option<&'a RouteRule>,
    /// The agent, when the path names it.
    pub(crate) agent: Option<&'a str>,
    /// The path that the provider sees, before its base URL is put in front.
    pub(crate) path: &'a str,
    /// The same path as a server reads it. What a request is, is decided by this one.
    pub(crate) plain: Cow<'a, str>,
    /// The wire format.
    pub(crate) dialect: Dialect,
}

impl Route<'_> {
    /// The family whose error shape the caller understands.
    pub(crate) fn family(&self) -> Family {
        self.dialect.family().unwrap_or(self.provider.family)
    }

    /// Whether a provider may charge for the request though nobody here understands it.
    pub(crate) fn may_cost(&self, method: &Method) -> bool {
        self.rule.is_none() && Dialect::may_cost(method.as_str(), &self.plain)
    }
}

/// Finds the way of a request; None when its path belongs to no provider.
pub(crate) fn find<'a>(
    settings: &'a Settings,
    method: &Method,
    path: &'a str,
    headers: &HeaderMap,
) -> Option<Route<'a>> {
    let (agent, path) = match path.strip_prefix("/agents/") {
        Some(rest) => {
            let (agent, _) = rest.split_once('/')?;
            (Some(agent), &rest[agent.len()..])
        }
        None => (None, path),
    };
    if let Some(rule) = ruled(settings, method, path) {
        let (provider, plain) = (&rule.upstream, plain_path(path));
        return Some(Route { provider, rule: Some(rule), agent, path, plain, dialect: Dialect::Opaque });
    }
    let (provider, path, plain) = match named_provider(settings, path) {
        Some((provider, path)) => (provider, path, plain_path(path)),
        None => {
            let plain = plain_path(path);
            (settings.providers.get(default_provider(settings, method, &plain, headers)?)?, path, plain)
        }
    };
    let dialect = Dialect::of_request(method.as_str(), &plain);
    Some(Route { provider, rule: None, agent, path, plain, dialect })
}

/// A path as servers read it: decoded, without doubled slashes and without one at its end.
pub(crate) fn plain_path(path: &str) -> Cow<'_, str> {
    let ends_in_slash = path.len() > 1 && path.ends_with('/');
    let mut before = 0;
    let is_plain = path.bytes().all(|byte| {
        let is_doubled = byte == b'/' && before == b'/';
        before = byte;
        !is_doubled && !matches!(byte, b'%' | b'\\')
    });
    if !ends_in_slash && is_plain {
        return Cow::Borrowed(path);
    }
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let mut plain = String::with_capacity(decoded.len());
    for part in decoded.split(['/', '\\']).filter(|part| !part.is_empty()) {
        plain.push('/');
        plain.push_str(part);
    }
    if plain.is_empty() { Cow::Borrowed("/") } else { Cow::Owned(plain) }
}

/// What cannot be taken, and why.
///
/// # Errors
/// For a request that the upstream could understand otherwise than Sprag, or that would leave Sprag's sight.
pub(crate) fn check(route: &Route<'_>, headers: &HeaderMap) -> Result<(), &'static str> {
    if climbs(&route.plain) {
        return Err("the path has a `.` or `..` in it, which leads elsewhere than it says; write the path without");
    }
    if route.rule.is_none() {
        return Ok(());
    }
    if asks_for_websocket(headers) {
        return Err("routes carry HTTP requests and no WebSockets; let the client use HTTP, or connect it directly");
    }
    Ok(())
}

/// Whether a client wants to leave HTTP.
pub(crate) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let mut upgrades = headers.get_all(http::header::UPGRADE).iter();
    upgrades.any(|value| value.as_bytes().to_ascii_lowercase().starts_with(b"websocket"))
}

/// Whether a plain path leads elsewhere than it says, once somebody resolves its dots.
fn climbs(plain: &str) -> bool {
    // Some servers drop what stands behind a semicolon first.
    plain.split('/').filter_map(|part| part.split(';').next()).any(|part| part == "." || part == "..")
}

/// The first route that takes a path. The upstream decodes it too, so it is decoded to be compared.
fn ruled<'a>(settings: &'a Settings, method: &Method, path: &str) -> Option<&'a RouteRule> {
    if settings.routes.is_empty() {
        return None;
    }
    let plain = percent_decode_str(path).decode_utf8_lossy();
    let takes = |rule: &&Arc<RouteRule>| {
        rule.selector.takes(&plain) && (rule.methods.is_empty() || rule.methods.contains(method))
    };
    settings.routes.iter().find(takes).map(|rule| &**rule)
}

/// A load balancer that asks whether the process is alive. More than that is told on the admin listener only.
pub(crate) fn is_health_check(method: &Method, path: &str) -> bool {
    path == "/healthz" && matches!(*method, Method::GET | Method::HEAD)
}

/// `/{provider}/…`
fn named_provider<'a>(settings: &'a Settings, path: &'a str) -> Option<(&'a Arc<Provider>, &'a str)> {
    let rest = path.strip_prefix('/')?;
    let name = rest.split('/').next()?;
    let provider = settings.providers.get(name)?;
    let path = &rest[name.len()..];
    Some((provider, if path.is_empty() { "/" } else { path }))
}

/// The provider of a path that names none. `/v1/models` exists in three dialects, so headers have a say.
fn default_provider<'a>(settings: &'a Settings, method: &Method, path: &str, headers: &HeaderMap) -> Option<&'a str> {
    let routing = &settings.routing;
    if path.starts_with("/v1beta/")
        || path.starts_with("/v1alpha/")
        || (method == Method::POST && is_gemini_method(path))
    {
        return Some(&routing.default_gemini);
    }
    if !path.starts_with("/v1/") {
        return None;
    }
    if path == "/v1/messages" || path.starts_with("/v1/messages/") {
        return Some(&routing.default_anthropic);
    }
    let is_openai_only = ["/v1/chat/", "/v1/completions", "/v1/responses", "/v1/embeddings"];
    if is_openai_only.iter().any(|prefix| path.starts_with(prefix)) {
        return Some(&routing.default_openai);
    }
    if headers.contains_key("anthropic-version") {
        return Some(&routing.default_anthropic);
    }
    if headers.contains_key("x-goog-api-key") {
        return Some(&routing.default_gemini);
    }
    Some(&routing.default_openai)
}

/// `/models/NAME:verb`, as google-genai calls it also under `/v1`.
fn is_gemini_method(path: &str) -> bool {
    let Some((_, model)) = path.split_once("/models/") else { return false };
    let verb = model.rsplit_once(':').map(|(_, verb)| verb);
    verb.is_some_and(|verb| !verb.is_empty() && verb.bytes().all(|b| b.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};

    fn found(path: &str, header: Option<&'static str>) -> Option<(String, Option<String>, String)> {
        let settings = load(&Sources::default()).unwrap().settings;
        let mut headers = HeaderMap::new();
        if let Some(name) = header {
            headers.insert(name, "1".parse().unwrap());
        }
        let route = find(&settings, &Method::POST, path, &headers)?;
        Some((route.provider.name.to_string(), route.agent.map(str::to_owned), route.path.to_owned()))
    }

    #[test]
    fn paths_and_headers_choose_the_provider() {
        let cases = [
            ("/v1/chat/completions", None, "openai", "/v1/chat/completions"),
            ("/v1/chat/completions", Some("anthropic-version"), "openai", "/v1/chat/completions"),
            ("/openai/v1/chat/completions", None, "openai", "/v1/chat/completions"),
            ("/groq/v1/models", None, "groq", "/v1/models"),
            ("/v1/messages", None, "anthropic", "/v1/messages"),
            ("/v1/messages/count_tokens", None, "anthropic", "/v1/messages/count_tokens"),
            ("/v1/models", None, "openai", "/v1/models"),
            ("/v1/models", Some("anthropic-version"), "anthropic", "/v1/models"),
            ("/v1/models", Some("x-goog-api-key"), "gemini", "/v1/models"),
            ("/v1/models/g:generateContent", None, "gemini", "/v1/models/g:generateContent"),
            ("/v1/models/ft:gpt-4o:o1", None, "openai", "/v1/models/ft:gpt-4o:o1"),
            ("/v1beta/models/g:streamGenerateContent", None, "gemini", "/v1beta/models/g:streamGenerateContent"),
            ("/v1/files", None, "openai", "/v1/files"),
        ];
        for (path, header, provider, upstream) in cases {
            assert_eq!(found(path, header), Some((provider.into(), None, upstream.into())), "{path} {header:?}");
        }
    }

    #[test]
    fn a_path_may_name_the_agent() {
        let with_agent = |provider: &str, path: &str| Some((provider.into(), Some("bot".into()), path.into()));
        assert_eq!(found("/agents/bot/v1/messages", None), with_agent("anthropic", "/v1/messages"));
        assert_eq!(found("/agents/bot/mistral/v1/models", None), with_agent("mistral", "/v1/models"));
        assert_eq!(found("/agents/bot", None), None);
    }

    #[test]
    fn a_path_is_what_servers_read() {
        let settings = load(&Sources::default()).unwrap().settings;
        for (path, provider, dialect) in [
            ("/v1/chat/complet%69ons", "openai", Dialect::OpenaiChat),
            ("/v1/chat/completions//", "openai", Dialect::OpenaiChat),
            ("//v1//chat/completions", "openai", Dialect::OpenaiChat),
            ("/v1%2Fchat%2Fcompletions", "openai", Dialect::OpenaiChat),
            ("/v1/chat%5Ccompletions", "openai", Dialect::OpenaiChat),
            ("/groq/v1/chat/completion%73/", "groq", Dialect::OpenaiChat),
            ("/v1/%6Dessages", "anthropic", Dialect::Anthropic),
            ("/v1beta/models/g%3AgenerateContent", "gemini", Dialect::Gemini),
            ("/v1%62eta/models/g:generateContent", "gemini", Dialect::Gemini),
            ("/v1/images/generations", "openai", Dialect::Opaque),
        ] {
            let route = find(&settings, &Method::POST, path, &HeaderMap::new()).unwrap();
            assert_eq!((&*route.provider.name, route.dialect), (provider, dialect), "{path}");
            assert!(path.ends_with(route.path), "sent on as written: {path}");
            assert!(check(&route, &HeaderMap::new()).is_ok(), "{path}");
        }
        for path in ["/v1/chat/completions/.", "/v1/./x", "/openai/../v1/x", "/v1/a/%2e%2E/x", "/v1/a%2F..;x=1/b"] {
            let route = find(&settings, &Method::POST, path, &HeaderMap::new()).unwrap();
            assert!(check(&route, &HeaderMap::new()).is_err(), "{path}");
        }
        let route = find(&settings, &Method::POST, "/v1/..x/.y", &HeaderMap::new()).unwrap();
        assert!(check(&route, &HeaderMap::new()).is_ok());
    }

    #[test]
    fn other_paths_lead_nowhere() {
        for path in ["/", "/favicon.ico", "/v2/x", "/api/v1/runs", "/v1"] {
            assert_eq!(found(path, None), None, "{path}");
        }
    }
}
