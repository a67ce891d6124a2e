//! Refusals as AgentWall words them, for callers that were written for it.

use serde_json::{Map, Value};

use super::refusal::{Reason, Refusal};
use crate::money::NanoUsd;

/// The fields that its errors have, `message`, `type` and `code` aside. Others stand next to the error.
const FIELDS: [&str; 8] =
    ["run_id", "loop_type", "confidence", "exceeded_limit", "current_cost", "limit", "kill_reason", "step"];
/// Those of its errors about money.
const BUDGET_FIELDS: [&str; 4] = ["run_id", "exceeded_limit", "current_cost", "limit"];

/// Its status for a reason, where it differs from Sprag's: it answers everything about a run with 429.
pub(super) fn status(reason: Reason) -> Option<u16> {
    match reason {
        Reason::LoopDetected | Reason::RunKilled | Reason::RunPaused | Reason::RunLimitExceeded => Some(429),
        Reason::BudgetExceeded => Some(429),
        _ => None,
    }
}

/// Gives the refusal its code and its fields, and its words where nobody chose others.
pub(super) fn imitate(refusal: &mut Refusal, keeps_message: bool) {
    refusal.code = code(refusal.reason);
    let its_own = match refusal.reason {
        Reason::BudgetExceeded => BUDGET_FIELDS.as_slice(),
        _ => FIELDS.as_slice(),
    };
    let (inside, beside): (Map<_, _>, Map<_, _>) =
        std::mem::take(&mut refusal.fields).into_iter().partition(|(name, _)| its_own.contains(&name.as_str()));
    refusal.fields = inside;
    refusal.beside.extend(beside);
    if let Some(message) = message(refusal).filter(|_| !keeps_message) {
        refusal.message = message;
    }
}

fn code(reason: Reason) -> &'static str {
    match reason {
        Reason::LoopDetected => "agentwall_loop",
        Reason::RunKilled => "agentwall_killed",
        Reason::RunPaused => "agentwall_paused",
        Reason::RunLimitExceeded => "agentwall_limit",
        Reason::BudgetExceeded => "agentwall_budget",
        Reason::AgentInactive => "agentwall_agent_inactive",
        Reason::OutsideAllowedHours => "agentwall_hours",
        Reason::RateLimited => "agentwall_rate_limit",
        Reason::ModelNotAllowed => "agentwall_model",
        Reason::DlpBlocked => "agentwall_dlp",
        Reason::AuthenticationError => "agentwall_auth",
        other => other.code(),
    }
}

fn message(refusal: &Refusal) -> Option<String> {
    let text = |name: &str| refusal.fields.get(name).and_then(Value::as_str);
    match refusal.reason {
        Reason::LoopDetected => {
            let what = match text("loop_type")? {
                "exact_prompt" => "Exact prompt repetition detected",
                "exact_response" => "Exact response repetition detected",
                "similar_prompt" => "Similar prompts detected",
                "oscillation" => "Oscillation pattern detected",
                _ => return None,
            };
            Some(format!("Loop detected: {what}"))
        }
        Reason::RunKilled => Some(format!("Run killed: {}", text("kill_reason")?)),
        Reason::BudgetExceeded => {
            let limit = refusal.fields.get("limit").and_then(Value::as_f64)?;
            let which = match text("exceeded_limit")? {
                "run" => "Run cost limit",
                "daily" => "Daily limit",
                "monthly" => "Monthly limit",
                _ => return None,
            };
            // Small limits have more than two places.
            let limit = NanoUsd((limit * 1e9).round() as i64);
            Some(format!("Budget exceeded: {which} (${limit})"))
        }
        _ => None,
    }
}
