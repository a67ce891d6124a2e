//! How Sprag itself says no, in the caller's dialect.
//!
//! A refusal is data: the judge and the gateway make one, and only here does it become bytes. Each shape is the one
//! that the dialect's SDKs turn into their usual exception. Which form and status a refusal takes is decided in
//! [`Manners`](super::Manners); the form of an assistant message is in [`super::assistant`]; headers are the gateway's.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::dialect::Family;

mod stream;

pub use stream::stream_error;

/// A request that is not answered by a provider, or an answer that Sprag ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// What happened and what to do about it.
    pub message: String,
    /// Whether it is an error, or an answer of the assistant.
    pub form: Form,
    /// The HTTP status, already chosen for the client.
    pub status: u16,
    /// The `code` of the error.
    pub code: &'static str,
    /// When asking again could help.
    pub retry_after_seconds: Option<u32>,
    /// What else the error says: `run_id`, `agent`, `proof`, `limit` and so on.
    pub fields: Map<String, Value>,
    /// What stands next to the error rather than in it.
    pub beside: Map<String, Value>,
}

/// How a refusal is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// An error in the dialect's own shape.
    #[default]
    Error,
    /// An answer of the assistant that ends its turn: an agent that gets it stops in good order.
    Assistant,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A detector with action reject or kill tripped.
    LoopDetected,
    /// The run was killed before.
    RunKilled,
    /// The run waits for approval.
    RunPaused,
    /// Step or time limit of the run.
    RunLimitExceeded,
    /// A budget has no room for the request.
    BudgetExceeded,
    /// The agent is deactivated.
    AgentInactive,
    /// Outside the agent's hours.
    OutsideAllowedHours,
    /// Too many requests or tokens in a window.
    RateLimited,
    /// The model is not on the agent's list.
    ModelNotAllowed,
    /// Sensitive data met a strict policy.
    DlpBlocked,
    /// Missing or wrong key.
    AuthenticationError,
    /// The request is not one.
    InvalidRequest,
    /// The body is over the limit.
    BodyTooLarge,
    /// No such route or provider.
    NotFound,
    /// Sprag has no room for another request.
    Overloaded,
    /// What several nodes share cannot be reached, and the call depends on it.
    StateUnavailable,
    /// The upstream could not be reached.
    UpstreamUnreachable,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The upstream broke off in the middle of its answer.
    UpstreamCut,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 19] = [
        Reason::LoopDetected,
        Reason::RunKilled,
        Reason::RunPaused,
        Reason::RunLimitExceeded,
        Reason::BudgetExceeded,
        Reason::AgentInactive,
        Reason::OutsideAllowedHours,
        Reason::RateLimited,
        Reason::ModelNotAllowed,
        Reason::DlpBlocked,
        Reason::AuthenticationError,
        Reason::InvalidRequest,
        Reason::BodyTooLarge,
        Reason::NotFound,
        Reason::Overloaded,
        Reason::StateUnavailable,
        Reason::UpstreamUnreachable,
        Reason::UpstreamTimeout,
        Reason::UpstreamCut,
    ];

    /// The word that errors, events and headers carry.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The `code` of the error.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.row().1
    }

    /// The status, unless configured or adapted to the client.
    #[must_use]
    pub fn status(self) -> u16 {
        self.row().2
    }

    /// The form, unless configured.
    #[must_use]
    pub fn form(self) -> Form {
        if self.status() < 300 { Form::Assistant } else { Form::Error }
    }

    /// The status of the error form.
    #[must_use]
    pub fn error_status(self) -> u16 {
        match self.form() {
            Form::Error => self.status(),
            Form::Assistant => 403,
        }
    }

    /// A policy said no, rather than the request or the network being at fault.
    #[must_use]
    pub fn is_policy(self) -> bool {
        match self {
            Reason::LoopDetected
            | Reason::RunKilled
            | Reason::RunPaused
            | Reason::RunLimitExceeded
            | Reason::BudgetExceeded
            | Reason::AgentInactive
            | Reason::OutsideAllowedHours
            | Reason::RateLimited
            | Reason::ModelNotAllowed
            | Reason::DlpBlocked
            | Reason::AuthenticationError => true,
            Reason::InvalidRequest
            | Reason::BodyTooLarge
            | Reason::NotFound
            | Reason::Overloaded
            | Reason::StateUnavailable
            | Reason::UpstreamUnreachable
            | Reason::UpstreamTimeout
            | Reason::UpstreamCut => false,
        }
    }

    fn row(self) -> (&'static str, &'static str, u16) {
        match self {
            Reason::LoopDetected => ("loop_detected", "sprag_loop", 429),
            Reason::RunKilled => ("run_killed", "sprag_run_killed", 403),
            Reason::RunPaused => ("run_paused", "sprag_run_paused", 403),
            Reason::RunLimitExceeded => ("run_limit_exceeded", "sprag_run_limit", 429),
            Reason::BudgetExceeded => ("budget_exceeded", "sprag_budget", 402),
            Reason::AgentInactive => ("agent_inactive", "sprag_agent_inactive", 200),
            Reason::OutsideAllowedHours => ("outside_allowed_hours", "sprag_hours", 200),
            Reason::RateLimited => ("rate_limited", "sprag_rate_limit", 429),
            Reason::ModelNotAllowed => ("model_not_allowed", "sprag_model", 403),
            Reason::DlpBlocked => ("dlp_blocked", "sprag_dlp", 403),
            Reason::AuthenticationError => ("authentication_error", "sprag_auth", 401),
            Reason::InvalidRequest => ("invalid_request", "sprag_invalid_request", 400),
            Reason::BodyTooLarge => ("body_too_large", "sprag_body_too_large", 413),
            Reason::NotFound => ("not_found", "sprag_not_found", 404),
            Reason::Overloaded => ("overloaded", "sprag_overloaded", 503),
            Reason::StateUnavailable => ("state_unavailable", "sprag_state_unavailable", 503),
            Reason::UpstreamUnreachable => ("upstream_unreachable", "sprag_upstream_unreachable", 502),
            Reason::UpstreamTimeout => ("upstream_timeout", "sprag_upstream_timeout", 504),
            Reason::UpstreamCut => ("upstream_cut", "sprag_upstream_cut", 502),
        }
    }
}

impl Refusal {
    /// A refusal with the reason's own status and nothing else to say.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Refusal {
        Refusal {
            reason,
            message: message.into(),
            form: reason.form(),
            status: reason.status(),
            code: reason.code(),
            retry_after_seconds: None,
            fields: Map::new(),
            beside: Map::new(),
        }
    }

    /// Adds a field to the error.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Refusal {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}

/// The JSON body of the refusal. The error is its first field.
#[must_use]
pub fn body(family: Family, refusal: &Refusal) -> Vec<u8> {
    let mut error = Map::new();
    error.insert("message".into(), refusal.message.as_str().into());
    error.insert("type".into(), refusal.reason.as_str().into());
    error.insert("code".into(), refusal.code.into());
    let mut body = Map::new();
    match family {
        // Another gateway's error has its own fields and no more.
        Family::Openai if refusal.code != refusal.reason.code() => {}
        Family::Openai => {
            error.insert("param".into(), Value::Null);
        }
        Family::Anthropic => {
            error.insert("type".into(), anthropic_type(refusal.reason).into());
            body.insert("type".into(), "error".into());
        }
        Family::Gemini => {
            error.insert("code".into(), refusal.status.into());
            error.insert("status".into(), google_status(refusal.status).into());
            error.insert("details".into(), Value::Array(vec![google_details(refusal)]));
        }
    }
    add_fields(&mut error, refusal);
    add_block(&mut body, refusal);
    error_first(&error, &body)
}

/// In a stream google-genai takes for an error only what begins with one.
fn error_first(error: &Map<String, Value>, beside: &Map<String, Value>) -> Vec<u8> {
    let fields = beside.iter().map(|(name, value)| format!(",{}:{value}", Value::from(name.as_str())));
    format!("{{\"error\":{}{}}}", Value::from(error.clone()), fields.collect::<String>()).into_bytes()
}

/// The refusal's own fields never replace one of the dialect.
fn add_fields(object: &mut Map<String, Value>, refusal: &Refusal) {
    for (name, value) in &refusal.fields {
        object.entry(name).or_insert_with(|| value.clone());
    }
}

fn add_block(object: &mut Map<String, Value>, refusal: &Refusal) {
    if refusal.reason.is_policy() {
        object.insert("block_reason".into(), refusal.reason.as_str().into());
    }
    if let Some(seconds) = refusal.retry_after_seconds {
        object.insert("retry_after_seconds".into(), seconds.into());
    }
    for (name, value) in &refusal.beside {
        object.entry(name).or_insert_with(|| value.clone());
    }
}

/// Policy stops go by their reason; for everything else clients act on Anthropic's own names.
fn anthropic_type(reason: Reason) -> &'static str {
    match reason {
        Reason::InvalidRequest => "invalid_request_error",
        Reason::BodyTooLarge => "request_too_large",
        Reason::NotFound => "not_found_error",
        Reason::Overloaded | Reason::StateUnavailable => "overloaded_error",
        Reason::UpstreamUnreachable | Reason::UpstreamCut => "api_error",
        Reason::UpstreamTimeout => "timeout_error",
        stop => stop.as_str(),
    }
}

/// <https://cloud.google.com/apis/design/errors#handling_errors>
fn google_status(status: u16) -> &'static str {
    match status {
        400 | 413 | 422 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        402 | 429 => "RESOURCE_EXHAUSTED",
        403 | 451 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        409 => "ABORTED",
        502 | 503 => "UNAVAILABLE",
        500.. => "INTERNAL",
        _ => "FAILED_PRECONDITION",
    }
}

/// No `RetryInfo`: Gemini's own clients would retry by it.
fn google_details(refusal: &Refusal) -> Value {
    serde_json::json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": refusal.reason.as_str().to_ascii_uppercase(),
        "domain": "sprag",
        "metadata": { "code": refusal.code },
    })
}

#[cfg(test)]
mod every_stop;
#[cfg(test)]
mod tests;
