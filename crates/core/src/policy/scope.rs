//! What a kill stops, and how that is written.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::id::{AgentName, BadName, RunId};
use crate::limits::KILL_VALUE_BYTES;

/// What a kill stops. Its text is `all`, `agent:NAME`, `run:AGENT/ID`, `key:ID`, `header:NAME=VALUE`,
/// `query:NAME=VALUE`, `jwt:CLAIM=VALUE` or `ip=ADDRESS`; one that holds for a path only has the path before it:
/// `/v1/embeddings agent:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KillScope {
    /// Everything that passes through.
    Everything,
    /// All calls of an agent.
    Agent(AgentName),
    /// A run, and the runs that are a part of it.
    Run {
        /// Whose run it is.
        agent: AgentName,
        /// Its id.
        run: RunId,
    },
    /// All calls that come with a credential, by the credential's id.
    Key(String),
    /// All calls that carry something of this value.
    Carrying {
        /// Where it stands.
        descriptor: Descriptor,
        /// The value.
        value: String,
    },
    /// A part of another scope: its calls to one path, or to what lies below it.
    On {
        /// The path, beginning with `/`.
        route: String,
        /// Any scope but a run, or a part itself.
        scope: Box<KillScope>,
    },
}

/// Something that a request carries, by which calls can be killed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Descriptor {
    /// A header, by its name in lower case.
    Header(String),
    /// A parameter of the query.
    Query(String),
    /// A claim of the bearer token, unverified: a kill only takes away.
    Jwt(String),
    /// The address that the connection comes from.
    Ip,
}

/// A text that names no scope, with what is wrong about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadScope {
    /// Not one of the forms.
    #[error(
        "a scope is `all`, `agent:NAME`, `run:AGENT/ID`, `key:ID`, `header:NAME=VALUE`, `query:NAME=VALUE`, \
         `jwt:CLAIM=VALUE` or `ip=ADDRESS`"
    )]
    Form,
    /// A descriptor without a value.
    #[error("a value is missing: write `{0}:NAME=VALUE`")]
    NoValue(String),
    /// A name in it cannot be one.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A name or value that cannot be one.
    #[error("a name, value or key in a scope has 1 to {KILL_VALUE_BYTES} printable characters")]
    Value,
    /// No address.
    #[error("`ip=` is followed by an address such as 192.0.2.7 or 2001:db8::7")]
    Address,
    /// A path that cannot be one.
    #[error("a route is a path that begins with `/`, has at most {KILL_VALUE_BYTES} characters and no spaces or query")]
    Route,
    /// A run with a path.
    #[error("a run is stopped as a whole, not on one route")]
    PartOfRun,
}

impl KillScope {
    /// The scope of a run.
    #[must_use]
    pub fn run(agent: &AgentName, run: &RunId) -> KillScope {
        KillScope::Run { agent: agent.clone(), run: run.clone() }
    }

    /// The part of this scope that lies on a path.
    ///
    /// # Errors
    /// When the path cannot be one, or the scope has no parts.
    pub fn on(self, route: &str) -> Result<KillScope, BadScope> {
        let is_path = route.starts_with('/')
            && route.len() <= KILL_VALUE_BYTES
            && !route.contains(|c: char| c.is_control() || c.is_whitespace() || c == '?' || c == '#');
        match self {
            _ if !is_path => Err(BadScope::Route),
            KillScope::Run { .. } | KillScope::On { .. } => Err(BadScope::PartOfRun),
            scope => Ok(KillScope::On { route: route.to_owned(), scope: Box::new(scope) }),
        }
    }

    /// The agent that it concerns, where it concerns one.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            KillScope::Agent(agent) | KillScope::Run { agent, .. } => Some(agent),
            KillScope::On { scope, .. } => scope.agent(),
            KillScope::Everything | KillScope::Key(_) | KillScope::Carrying { .. } => None,
        }
    }

    /// The path that it is limited to, and the rest.
    #[must_use]
    pub fn parts(&self) -> (Option<&str>, &KillScope) {
        match self {
            KillScope::On { route, scope } => (Some(route), scope),
            whole => (None, whole),
        }
    }
}

impl FromStr for KillScope {
    type Err = BadScope;

    fn from_str(text: &str) -> Result<KillScope, BadScope> {
        if text.starts_with('/') {
            let (route, scope) = text.split_once(' ').ok_or(BadScope::Form)?;
            return scope.parse::<KillScope>()?.on(route);
        }
        if text == "all" {
            return Ok(KillScope::Everything);
        }
        if let Some(address) = text.strip_prefix("ip=") {
            // In its own form, so that one address is one scope.
            let address: IpAddr = address.parse().map_err(|_| BadScope::Address)?;
            let value = address.to_canonical().to_string();
            return Ok(KillScope::Carrying { descriptor: Descriptor::Ip, value });
        }
        let (kind, rest) = text.split_once(':').ok_or(BadScope::Form)?;
        let pair = || {
            let (name, value) = rest.split_once('=').ok_or_else(|| BadScope::NoValue(kind.to_owned()))?;
            if value.is_empty() {
                return Err(BadScope::NoValue(kind.to_owned()));
            }
            Ok((bounded_value(name)?, bounded_value(value)?))
        };
        let (descriptor, value) = match kind {
            "agent" => return Ok(KillScope::Agent(AgentName::parse(rest)?)),
            "run" => {
                let (agent, run) = rest.split_once('/').ok_or(BadScope::Form)?;
                return Ok(KillScope::Run { agent: AgentName::parse(agent)?, run: RunId::parse(run)? });
            }
            "key" => return Ok(KillScope::Key(bounded_value(rest)?)),
            "header" => pair().map(|(name, value)| (Descriptor::Header(name.to_ascii_lowercase()), value))?,
            "query" => pair().map(|(name, value)| (Descriptor::Query(name), value))?,
            "jwt" => pair().map(|(name, value)| (Descriptor::Jwt(name), value))?,
            _ => return Err(BadScope::Form),
        };
        Ok(KillScope::Carrying { descriptor, value })
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Descriptor::Header(name) => write!(f, "header:{name}"),
            Descriptor::Query(name) => write!(f, "query:{name}"),
            Descriptor::Jwt(claim) => write!(f, "jwt:{claim}"),
            Descriptor::Ip => f.write_str("ip"),
        }
    }
}

impl fmt::Display for KillScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KillScope::Everything => f.write_str("all"),
            KillScope::Agent(agent) => write!(f, "agent:{agent}"),
            KillScope::Run { agent, run } => write!(f, "run:{agent}/{run}"),
            KillScope::Key(id) => write!(f, "key:{id}"),
            KillScope::Carrying { descriptor, value } => write!(f, "{descriptor}={value}"),
            KillScope::On { route, scope } => write!(f, "{route} {scope}"),
        }
    }
}

impl Serialize for KillScope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KillScope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KillScope, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

fn bounded_value(text: &str) -> Result<String, BadScope> {
    let is_fine = (1..=KILL_VALUE_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
    if is_fine { Ok(text.to_owned()) } else { Err(BadScope::Value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_comes_back_from_its_text() {
        for text in [
            "all",
            "agent:bot",
            "agent:team:bot@x",
            "run:bot/a/b c=1",
            "key:0123abcd",
            "header:x-tool-name=web_search",
            "header:x-a=b=c",
            "query:tenant=Acme & Co",
            "jwt:org_id=org_xyz",
            "jwt:https://x.example/org=1",
            "ip=192.0.2.7",
            "ip=2001:db8::7",
            "/v1/embeddings all",
            "/v1 jwt:org_id=a b",
        ] {
            let scope: KillScope = text.parse().unwrap();
            assert_eq!(scope.to_string(), text);
            let json = serde_json::to_string(&scope).unwrap();
            assert_eq!(serde_json::from_str::<KillScope>(&json).unwrap(), scope);
        }
        assert_eq!("header:X-Tool=A".parse::<KillScope>().unwrap().to_string(), "header:x-tool=A");
        assert_eq!("ip=::ffff:192.0.2.7".parse::<KillScope>().unwrap().to_string(), "ip=192.0.2.7");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "everything", "run:bot", "run:b t/x", "agent:", "key:", "header:=v", "tool:x=y", "ip:1.2.3.4"]
        {
            assert!(text.parse::<KillScope>().is_err(), "{text}");
        }
        let error = |text: &str| text.parse::<KillScope>().unwrap_err();
        assert_eq!(error("jwt:org_id"), BadScope::NoValue("jwt".into()));
        assert_eq!(error("header:x="), BadScope::NoValue("header".into()));
        assert_eq!(error("ip=localhost"), BadScope::Address);
        assert_eq!(error("/v1 run:bot/a"), BadScope::PartOfRun);
        assert_eq!(error("/v1 /v2 all"), BadScope::PartOfRun);
        assert_eq!(error("/v1"), BadScope::Form);
        for route in ["v1/inference", "", "/a b", "/a?b=c"] {
            assert_eq!(KillScope::Everything.on(route), Err(BadScope::Route), "{route}");
        }
    }

    #[test]
    fn names_values_and_routes_are_bounded() {
        let value = |bytes: usize| format!("header:x={}", "v".repeat(bytes)).parse::<KillScope>();
        assert!(value(KILL_VALUE_BYTES).is_ok());
        assert_eq!(value(KILL_VALUE_BYTES + 1), Err(BadScope::Value));
        let route = |bytes: usize| KillScope::Everything.on(&format!("/{}", "r".repeat(bytes - 1)));
        assert!(route(KILL_VALUE_BYTES).is_ok());
        assert_eq!(route(KILL_VALUE_BYTES + 1), Err(BadScope::Route));
    }
}
