//! What OpenTelemetry's conventions for generative AI call things.

use sprag_core::event::{Ending, Event};
use sprag_core::wire::Dialect;

use crate::config::Provider;

/// What a call does; nothing for one that is no call to a model.
pub(super) fn operation(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiResponses | Dialect::Anthropic => Some("chat"),
        Dialect::OpenaiCompletions => Some("text_completion"),
        Dialect::OpenaiEmbeddings => Some("embeddings"),
        Dialect::Gemini => Some("generate_content"),
        Dialect::Opaque => None,
    }
}

/// The provider by its name in the conventions, where it has one, and otherwise by the configured one.
pub(super) fn provider(provider: &Provider) -> String {
    let known = match &*provider.name {
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        "azure" => "azure.ai.openai",
        "moonshot" => "moonshot_ai",
        other => other,
    };
    known.to_owned()
}

/// Why a call failed, in one of a few words; nothing where it did not.
pub(super) fn error_type(event: &Event) -> Option<String> {
    if event.blocked {
        return event.block_reason.clone();
    }
    match event.ending {
        Ending::Complete => None,
        Ending::UpstreamError if event.status >= 400 => Some(event.status.to_string()),
        Ending::UpstreamError => Some("upstream_error".to_owned()),
        Ending::UpstreamGone => Some("upstream_gone".to_owned()),
        Ending::TimedOut => Some("timeout".to_owned()),
        Ending::ClientGone => Some("client_gone".to_owned()),
        // Refused without being stopped: a request that makes no sense. Its reason stands in `error`.
        Ending::Refused => Some(event.error.clone().unwrap_or_else(|| "refused".to_owned())),
        Ending::Killed => Some("run_killed".to_owned()),
        Ending::CutOff => Some("cut_off".to_owned()),
        Ending::Lost => Some("lost".to_owned()),
    }
}

/// What was decided about a call.
pub(super) fn verdict(event: &Event) -> &'static str {
    match &event.verdict {
        Some(verdict) => verdict.action.as_str(),
        None if event.blocked => "reject",
        None => "allow",
    }
}
