//! Errors in the shape of each family.

use serde_json::{Value, json};
use sprag_core::wire::Family;

/// An error answer.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) status: u16,
    pub(super) message: String,
    /// The parameter at fault, where the family has a place for it.
    pub(super) param: Option<String>,
    /// A code of its own, where the family has a place for it.
    pub(super) code: Option<&'static str>,
}

impl Problem {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into(), param: None, code: None }
    }

    pub(super) fn unknown_field(family: Family, field: &str) -> Problem {
        let message = match family {
            Family::Openai => format!("Unrecognized request argument supplied: {field}"),
            Family::Anthropic => format!("{field}: Extra inputs are not permitted"),
            Family::Gemini => {
                format!("Invalid JSON payload received. Unknown name \"{field}\": Cannot find field.")
            }
        };
        let code = (family == Family::Openai).then_some("unknown_parameter");
        Problem { param: Some(field.into()), code, ..Problem::new(400, message) }
    }

    pub(super) fn json(&self, family: Family) -> Value {
        let Problem { status, message, param, code } = self;
        match family {
            Family::Openai => {
                let kind = openai_type(*status);
                json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
            }
            Family::Anthropic => {
                let mut error = json!({"type": anthropic_type(*status), "message": message});
                if let Some(code) = code {
                    error["details"] = json!({"error_code": code});
                }
                json!({"type": "error", "error": error, "request_id": "req_mock"})
            }
            Family::Gemini => json!({"error": {"code": status, "message": message, "status": gemini_status(*status)}}),
        }
    }
}

fn openai_type(status: u16) -> &'static str {
    match status {
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

fn gemini_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}
