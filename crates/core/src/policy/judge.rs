//! The order of judgement: the cheapest check first, and the first stop wins.

use crate::wire::{Reason, Refusal};

/// What the judge looks at.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    /// The model asked for.
    pub model: Option<&'a str>,
    /// The model has a price.
    pub is_priced: bool,
    /// Calls without a price are refused.
    pub blocks_unpriced: bool,
    /// Requests of the agent that are under way, this one included.
    pub agent_in_flight: u32,
    /// The most that may be.
    pub max_agent_in_flight: u32,
}

/// Proof that a call was judged and may be forwarded. Only [`judge`] makes one.
#[derive(Debug)]
pub struct Permit(());

/// Judges a call.
///
/// # Errors
/// The refusal, with its numbers.
pub fn judge(facts: &Facts<'_>) -> Result<Permit, Refusal> {
    check_concurrency(facts)?;
    check_price(facts)?;
    Ok(Permit(()))
}

fn check_concurrency(facts: &Facts<'_>) -> Result<(), Refusal> {
    if facts.agent_in_flight <= facts.max_agent_in_flight {
        return Ok(());
    }
    let message = format!(
        "the agent has {} requests under way and {} are allowed at once; wait for some to finish, or raise \
         `proxy.max_requests_per_agent`",
        facts.agent_in_flight - 1,
        facts.max_agent_in_flight
    );
    let mut refusal = Refusal::new(Reason::RateLimited, message).with("limit", facts.max_agent_in_flight);
    refusal.retry_after_seconds = Some(1);
    Err(refusal)
}

fn check_price(facts: &Facts<'_>) -> Result<(), Refusal> {
    match facts.model {
        Some(model) if facts.blocks_unpriced && !facts.is_priced => {
            let message = format!(
                "model `{model}` has no price and `prices.unpriced` is \"block\"; add a `[[price]]` for it, or set \
                 `unpriced = \"allow\"`"
            );
            Err(Refusal::new(Reason::ModelNotAllowed, message).with("model", model))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fine() -> Facts<'static> {
        Facts { model: Some("m"), is_priced: true, blocks_unpriced: true, agent_in_flight: 3, max_agent_in_flight: 3 }
    }

    #[test]
    fn what_breaks_no_rule_passes() {
        assert!(judge(&fine()).is_ok());
        assert!(judge(&Facts { is_priced: false, blocks_unpriced: false, ..fine() }).is_ok());
        assert!(judge(&Facts { is_priced: false, model: None, ..fine() }).is_ok());
    }

    #[test]
    fn one_request_too_many_is_refused_with_its_numbers() {
        let refusal = judge(&Facts { agent_in_flight: 4, ..fine() }).unwrap_err();
        assert_eq!((refusal.reason, refusal.retry_after_seconds), (Reason::RateLimited, Some(1)));
        assert_eq!(refusal.fields["limit"], 3);
    }

    #[test]
    fn a_model_without_a_price_is_refused_where_that_is_asked_for() {
        let refusal = judge(&Facts { is_priced: false, ..fine() }).unwrap_err();
        assert_eq!(refusal.reason, Reason::ModelNotAllowed);
        assert!(refusal.message.contains("`m`"));
    }
}
