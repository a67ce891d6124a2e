//! The variables by which SDKs and agents find their provider, and the addresses that stood in them before.
//!
//! Some want the version in the path and some add it themselves; the table says which. A base URL that the user had set
//! stays where the provider is: calls go through Sprag and on to there.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use serde::Serialize;
use sprag_core::id::AgentName;

use crate::config::{BaseUrl, Environment, Settings};

/// Whose base URL a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    Openai,
    Anthropic,
    Gemini,
}

/// A variable, whose base URL it is, and what stands behind the host in it.
const VARIABLES: [(&str, Api, &str); 9] = [
    // The SDKs of OpenAI, openai-agents, pydantic-ai, the AI SDK, LiteLLM.
    ("OPENAI_BASE_URL", Api::Openai, "/v1"),
    // LangChain, LlamaIndex, LiteLLM and what is built on it (aider), old SDKs.
    ("OPENAI_API_BASE", Api::Openai, "/v1"),
    // Claude Code, the SDKs of Anthropic, LangChain, LlamaIndex, pydantic-ai. The AI SDK adds the version where it is missing.
    ("ANTHROPIC_BASE_URL", Api::Anthropic, ""),
    // LangChain asks for this one first.
    ("ANTHROPIC_API_URL", Api::Anthropic, ""),
    // LiteLLM.
    ("ANTHROPIC_API_BASE", Api::Anthropic, ""),
    // Gemini CLI, google-genai, LangChain.
    ("GOOGLE_GEMINI_BASE_URL", Api::Gemini, ""),
    ("GEMINI_BASE_URL", Api::Gemini, ""),
    // LiteLLM; it takes the version from here.
    ("GEMINI_API_BASE", Api::Gemini, "/v1beta"),
    // What programs upon the AI SDK give to its Google provider.
    ("GOOGLE_GENERATIVE_AI_BASE_URL", Api::Gemini, "/v1beta"),
];

/// Variables that name a proxy for HTTP, which must not be asked for this machine.
const HTTP_PROXIES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];
const HERE: &str = "127.0.0.1";

/// What is set for the command.
#[derive(Clone, Debug)]
pub(super) struct Variables {
    /// Names and values.
    pub(super) set: Vec<(&'static str, String)>,
    /// The base URL for OpenAI's SDKs, for programs that read no variable.
    pub(super) openai: String,
}

/// An address that the user had set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Kept {
    pub(super) variable: &'static str,
    pub(super) provider: String,
    pub(super) url: String,
    /// It is Sprag's own, so the provider's usual address stays in force.
    pub(super) is_sprag: bool,
    /// The version stands in it though the variable is usually without.
    #[serde(skip)]
    has_version: bool,
}

/// The variables for a proxy at this address.
pub(super) fn of(proxy: SocketAddr, agent: &AgentName, kept: &[Kept], environment: &Environment) -> Variables {
    at(&proxy.to_string(), agent, kept, environment)
}

/// The same for an address that is not known yet.
pub(super) fn at(proxy: &str, agent: &AgentName, kept: &[Kept], environment: &Environment) -> Variables {
    let base = match *agent == AgentName::default() {
        true => format!("http://{proxy}"),
        false => format!("http://{proxy}/agents/{agent}"),
    };
    let variables = VARIABLES.iter().map(|(name, _, suffix)| {
        let has_version = kept.iter().any(|kept| kept.variable == *name && kept.has_version);
        (*name, format!("{base}{}", if has_version { "/v1" } else { suffix }))
    });
    let mut set: Vec<(&'static str, String)> = variables.collect();
    if HTTP_PROXIES.iter().any(|name| environment.get(name).is_some()) {
        for name in NO_PROXY {
            let before = environment.get(name).unwrap_or_default();
            if before.split(',').all(|host| host.trim() != HERE) {
                let comma = if before.is_empty() { "" } else { "," };
                set.push((name, format!("{before}{comma}{HERE}")));
            }
        }
    }
    Variables { set, openai: format!("{base}/v1") }
}

/// Makes addresses that the environment names those of the providers.
///
/// # Errors
/// When one of them is no base URL.
pub(super) fn keep_upstreams(settings: &mut Settings, environment: &Environment) -> Result<Vec<Kept>> {
    let mut kept: Vec<Kept> = Vec::new();
    let own = settings.proxy.listen;
    for (variable, api, suffix) in VARIABLES {
        let Some(url) = environment.get(variable) else { continue };
        let name = match api {
            Api::Openai => settings.routing.default_openai.clone(),
            Api::Anthropic => settings.routing.default_anthropic.clone(),
            Api::Gemini => settings.routing.default_gemini.clone(),
        };
        let base = BaseUrl::parse(url).map_err(|why| {
            anyhow!("the environment variable {variable} is not a base URL: {why}. Unset it, or set it to where the provider is")
        })?;
        let is_sprag = is_same(&base, own);
        let has_version = suffix.is_empty() && base.path.ends_with("/v1");
        let is_taken = kept.iter().any(|kept| *kept.provider == *name && !kept.is_sprag);
        if !is_sprag
            && !is_taken
            && let Some(provider) = settings.providers.get_mut(&name)
        {
            Arc::make_mut(provider).base = upstream(base, if has_version { "/v1" } else { suffix });
        }
        kept.push(Kept { variable, provider: name.to_string(), url: url.to_owned(), is_sprag, has_version });
    }
    Ok(kept)
}

/// Where calls go whose paths begin with `suffix`, so that they arrive where the client would have sent them.
fn upstream(base: BaseUrl, suffix: &str) -> BaseUrl {
    match base.path.strip_suffix(suffix) {
        Some(rest) => BaseUrl { path: rest.trim_end_matches('/').to_owned(), ..base },
        None => base.with_rewrite(&[(suffix.to_owned(), String::new())].into()),
    }
}

fn is_same(base: &BaseUrl, own: SocketAddr) -> bool {
    let is_here = matches!(base.host(), "127.0.0.1" | "localhost" | "[::1]");
    is_here && base.authority.port_u16() == Some(own.port())
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kept { variable, provider, url, is_sprag, .. } = self;
        match is_sprag {
            true => write!(f, "{variable} led to a Sprag at {url}; calls go to {provider} itself, through this one"),
            false => write!(f, "{variable} was set: calls to {provider} go on to {url}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().copied().collect()
    }

    fn value<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
        variables.set.iter().find(|(set, _)| *set == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn each_variable_has_the_form_that_its_readers_want() {
        let none = environment(&[]);
        let set = at("127.0.0.1:9", &AgentName::default(), &[], &none);
        for (name, expected) in [
            ("OPENAI_BASE_URL", Some("http://127.0.0.1:9/v1")),
            ("OPENAI_API_BASE", Some("http://127.0.0.1:9/v1")),
            ("ANTHROPIC_BASE_URL", Some("http://127.0.0.1:9")),
            ("GOOGLE_GEMINI_BASE_URL", Some("http://127.0.0.1:9")),
            ("GEMINI_API_BASE", Some("http://127.0.0.1:9/v1beta")),
            ("NO_PROXY", None),
        ] {
            assert_eq!(value(&set, name), expected, "{name}");
        }
        let named = at("127.0.0.1:9", &AgentName::parse("bot").unwrap(), &[], &none);
        assert_eq!(value(&named, "OPENAI_BASE_URL"), Some("http://127.0.0.1:9/agents/bot/v1"));
    }

    #[test]
    fn a_proxy_for_http_is_not_asked_for_this_machine() {
        let none = AgentName::default();
        let set = at("x", &none, &[], &environment(&[("HTTPS_PROXY", "http://p:3128"), ("NO_PROXY", "corp")]));
        assert_eq!((value(&set, "NO_PROXY"), value(&set, "no_proxy")), (Some("corp,127.0.0.1"), Some("127.0.0.1")));
        let known = environment(&[("http_proxy", "http://p"), ("NO_PROXY", "127.0.0.1"), ("no_proxy", "a, 127.0.0.1")]);
        assert_eq!(value(&at("x", &none, &[], &known), "NO_PROXY"), None);
    }

    /// Where a call to `path` arrives when these variables were set.
    fn arrives(pairs: &[(&str, &str)], provider: &str, path: &str) -> String {
        let mut settings = load(&Sources::default()).unwrap().settings;
        keep_upstreams(&mut settings, &environment(pairs)).unwrap();
        settings.providers[provider].url(path).unwrap().to_string()
    }

    #[test]
    fn an_address_that_was_set_is_where_calls_arrive() {
        let chat = "/v1/chat/completions";
        for (pairs, provider, path, expected) in [
            (vec![], "openai", chat, "https://api.openai.com/v1/chat/completions"),
            (vec![("OPENAI_BASE_URL", "http://gw/v1")], "openai", chat, "http://gw/v1/chat/completions"),
            (vec![("OPENAI_BASE_URL", "http://gw/a/v1/")], "openai", chat, "http://gw/a/v1/chat/completions"),
            (vec![("OPENAI_BASE_URL", "http://gw/llm")], "openai", chat, "http://gw/llm/chat/completions"),
            (vec![("OPENAI_API_BASE", "http://b/v1")], "openai", chat, "http://b/v1/chat/completions"),
            (
                vec![("OPENAI_BASE_URL", "http://a/v1"), ("OPENAI_API_BASE", "http://b/v1")],
                "openai",
                chat,
                "http://a/v1/chat/completions",
            ),
            (vec![("ANTHROPIC_BASE_URL", "http://gw/x")], "anthropic", "/v1/messages", "http://gw/x/v1/messages"),
            (vec![("ANTHROPIC_BASE_URL", "http://gw/v1")], "anthropic", "/v1/messages", "http://gw/v1/messages"),
            (vec![("GEMINI_API_BASE", "http://gw/v1beta")], "gemini", "/v1beta/models/m", "http://gw/v1beta/models/m"),
            // A Sprag that runs here is not asked a second time.
            (
                vec![("OPENAI_BASE_URL", "http://127.0.0.1:7070/v1")],
                "openai",
                chat,
                "https://api.openai.com/v1/chat/completions",
            ),
        ] {
            assert_eq!(arrives(&pairs, provider, path), expected, "{pairs:?}");
        }
        let mut settings = load(&Sources::default()).unwrap().settings;
        let refused = keep_upstreams(&mut settings, &environment(&[("OPENAI_BASE_URL", "gateway")]));
        assert!(refused.unwrap_err().to_string().contains("OPENAI_BASE_URL is not a base URL"));
    }

    #[test]
    fn a_variable_with_the_version_in_it_keeps_it() {
        let mut settings = load(&Sources::default()).unwrap().settings;
        let set = environment(&[("ANTHROPIC_BASE_URL", "http://gw/v1")]);
        let kept = keep_upstreams(&mut settings, &set).unwrap();
        let variables = at("127.0.0.1:9", &AgentName::default(), &kept, &set);
        assert_eq!(value(&variables, "ANTHROPIC_BASE_URL"), Some("http://127.0.0.1:9/v1"));
        assert!(kept[0].to_string().contains("go on to http://gw/v1"), "{}", kept[0]);
    }
}
