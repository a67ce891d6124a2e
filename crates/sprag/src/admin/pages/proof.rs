//! A proof as a small table: what repeats, in which steps, and what it was held against.

use std::collections::BTreeSet;

use serde_json::Value;
use sprag_core::loops::Proof;

use crate::show;

/// Characters of a hash that are shown; the whole is in the title.
const HASH_CHARS: usize = 8;

/// A proof, ready for a page.
pub(super) struct ProofTable {
    pub(super) summary: String,
    pub(super) compared: String,
    pub(super) threshold: String,
    pub(super) value: String,
    pub(super) window: String,
    pub(super) steps: Vec<ProofRow>,
    /// Any step has tools, an action or a result to show.
    pub(super) has_calls: bool,
}

/// One step of it.
pub(super) struct ProofRow {
    pub(super) step: u32,
    /// Where on the page the step stands, if it is there.
    pub(super) href: Option<String>,
    pub(super) alike: String,
    pub(super) tools: String,
    pub(super) action: Hash,
    pub(super) result: Hash,
}

/// A hash in short and whole.
pub(super) struct Hash {
    pub(super) short: String,
    pub(super) whole: String,
}

impl ProofTable {
    /// `shown` are the steps that are on the page.
    pub(super) fn new(proof: &Proof, shown: &BTreeSet<u32>) -> ProofTable {
        let row = |step: &sprag_core::loops::ProofStep| ProofRow {
            step: step.step,
            href: shown.contains(&step.step).then(|| format!("#step-{}", step.step)),
            alike: step.alike.replace('_', " "),
            tools: step.tools.join(", "),
            action: Hash::new(&step.action),
            result: Hash::new(&step.result),
        };
        let has_calls =
            |s: &sprag_core::loops::ProofStep| !(s.tools.is_empty() && s.action.is_empty() && s.result.is_empty());
        let steps: Vec<ProofRow> = proof.steps.iter().map(row).collect();
        let has_calls = proof.steps.iter().any(has_calls);
        // Numbers of steps alone, of runs that are not on the page, tell nobody anything.
        let says_something = has_calls || steps.iter().any(|row| row.href.is_some());
        ProofTable {
            summary: proof.summary.clone(),
            compared: proof.compared.clone(),
            threshold: show::number(proof.threshold),
            value: show::number(proof.value),
            window: proof.window.clone(),
            steps: if says_something { steps } else { Vec::new() },
            has_calls,
        }
    }

    /// From a record; none where it has another form.
    pub(super) fn read(proof: &Value, shown: &BTreeSet<u32>) -> Option<ProofTable> {
        let proof: Proof = serde_json::from_value(proof.clone()).ok()?;
        Some(ProofTable::new(&proof, shown))
    }
}

impl Hash {
    fn new(whole: &str) -> Hash {
        Hash { short: whole.chars().take(HASH_CHARS).collect(), whole: whole.to_owned() }
    }
}
