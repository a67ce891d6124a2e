//! How a refusal is put to the one who is refused: form, status, code and words, by configuration and by client.
//!
//! What is written in the configuration for a reason comes first, then the client's habits, then the table of reasons.

use std::collections::BTreeMap;

use super::agentwall;
use super::client::Client;
use super::dialect::Dialect;
use super::refusal::{Form, Reason, Refusal};

/// What configuration says about refusals.
#[derive(Clone, Copy, Debug)]
pub struct Manners<'a> {
    /// The status is chosen for the calling client.
    pub adapts: bool,
    /// Codes, words and statuses are AgentWall's.
    pub imitates_agentwall: bool,
    /// What is said of single reasons.
    pub reasons: &'a BTreeMap<Reason, Manner>,
}

/// What configuration says about one reason; what it leaves open is decided as usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// The form.
    pub form: Option<Form>,
    /// The status of the error form.
    pub status: Option<u16>,
    /// The text; `{message}` in it is what Sprag would have said.
    pub text: Option<String>,
}

impl Manners<'_> {
    /// Puts a refusal into the form that is meant for this client and dialect.
    ///
    /// Only stops by a policy are touched: what is wrong with a request or the network is said as it is.
    #[must_use]
    pub fn dress(&self, mut refusal: Refusal, client: Client, dialect: Dialect) -> Refusal {
        let reason = refusal.reason;
        if !reason.is_policy() {
            return refusal;
        }
        let unset = Manner::default();
        let manner = self.reasons.get(&reason).unwrap_or(&unset);
        refusal.form = if dialect.has_assistant() { manner.form.unwrap_or(reason.form()) } else { Form::Error };
        refusal.status = match refusal.form {
            Form::Assistant => 200,
            Form::Error => manner.status.unwrap_or_else(|| self.status(client, reason)),
        };
        if self.imitates_agentwall {
            agentwall::imitate(&mut refusal, manner.text.is_some());
        }
        match &manner.text {
            Some(text) => refusal.message = text.replace("{message}", &refusal.message),
            None if self.imitates_agentwall => {}
            None => sign(&mut refusal),
        }
        refusal
    }

    fn status(&self, client: Client, reason: Reason) -> u16 {
        let imitated = self.imitates_agentwall.then(|| agentwall::status(reason)).flatten();
        let usual = imitated.unwrap_or_else(|| reason.error_status());
        let preferred = self.adapts.then(|| client.prefers(reason, usual)).flatten();
        preferred.unwrap_or(usual)
    }
}

/// Many clients show the message and nothing else, so it must say who stopped what, and the word to look up.
fn sign(refusal: &mut Refusal) {
    let reason = refusal.reason.as_str();
    let signature = match refusal.fields.get("run_id").and_then(|id| id.as_str()) {
        Some(run) => format!(" [sprag: {reason}, run {run}]"),
        None => format!(" [sprag: {reason}]"),
    };
    refusal.message.push_str(&signature);
}

#[cfg(test)]
mod tests;
