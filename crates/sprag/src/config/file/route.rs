//! `[[routes]]`: any other HTTP API behind Sprag.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sprag_core::loops;

use super::detection::{Mode, WindowMode};
use super::{Http2, RateLimit, Timeouts};
use crate::config::secret::Secret;

/// An HTTP API that is no model: a tool server, an internal service. Set `path_prefix` or `path`. Routes stand before the providers; an exact path before a prefix, a longer prefix before a shorter one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// Its name in events, errors and limits.
    #[schemars(example = &"agent-tools")]
    pub name: Option<String>,
    /// Paths that begin with this go there: whole parts of a path, so "/v1/tools" is not "/v1/toolshed".
    #[schemars(example = &"/v1/tools/")]
    pub path_prefix: Option<String>,
    /// This path alone goes there.
    #[schemars(example = &"/v1/search")]
    pub path: Option<String>,
    /// Only these methods. Without any: all of them.
    #[schemars(example = &["GET", "POST"])]
    pub methods: Vec<String>,
    /// Stands before the path that the client sent.
    #[schemars(example = &"http://127.0.0.1:9000")]
    pub upstream: Option<String>,
    /// The same request again, byte for byte. Off unless its mode is set.
    pub repeat: RouteRepeat,
    /// How often. Beside the limits of the agent.
    pub rate_limits: Vec<RateLimit>,
    /// Headers to set on every request there.
    pub headers: BTreeMap<String, Secret>,
    /// Time-outs, in milliseconds.
    pub timeouts: Timeouts,
    /// HTTP/2: "auto" if the server offers it over TLS, "never", "prior_knowledge" always, without TLS too.
    pub http2: Http2,
    /// PEM file of certificate authorities to trust there, instead of the system's.
    #[schemars(example = &"/etc/ssl/company-ca.pem")]
    pub ca_file: Option<String>,
}

/// The same request again, byte for byte.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RouteRepeat {
    /// "off", "shadow" (report what would have happened, change nothing) or "enforce".
    #[schemars(example = &"enforce")]
    pub mode: Option<Mode>,
    /// What follows: "warn" (record it), "throttle" (each one waits longer than the one before) or "reject".
    #[schemars(example = &"throttle")]
    pub action: Option<RouteAction>,
    /// How long a request is remembered.
    #[schemars(range(min = 1, max = 86_400), example = 45)]
    pub window_seconds: Option<u32>,
    /// How the seconds count: "sliding", "refresh" (each hit begins them anew) or "fixed".
    #[schemars(example = &"refresh")]
    pub window_mode: Option<WindowMode>,
    /// Identical requests that trip it.
    #[schemars(range(min = 2, max = 10_000), example = 4)]
    pub threshold_identical_requests: Option<u32>,
}

/// What follows when a request to a route repeats itself: there are no runs and no models to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RouteAction {
    /// It is recorded.
    Warn,
    /// The request waits.
    Throttle,
    /// The request is refused.
    Reject,
}

impl From<RouteAction> for loops::Action {
    fn from(action: RouteAction) -> loops::Action {
        match action {
            RouteAction::Warn => loops::Action::Warn,
            RouteAction::Throttle => loops::Action::Throttle,
            RouteAction::Reject => loops::Action::Reject,
        }
    }
}
