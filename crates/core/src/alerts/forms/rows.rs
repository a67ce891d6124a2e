//! What all forms for people show, in the order in which people ask for it.

use super::super::alert::{Alert, AlertState};
use super::super::rule::AlertKind;
use super::text::{as_is, fitted, plain};

/// Longest text in a row, before a form escapes it and cuts it for its chat.
const ROW_UNITS: usize = 900;
/// The same of a title.
const TITLE_UNITS: usize = 140;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Bad,
    Odd,
    Good,
}

pub(super) fn tone(alert: &Alert) -> Tone {
    match (alert.state, alert.kind) {
        (AlertState::Recovered | AlertState::Test, _) => Tone::Good,
        (_, AlertKind::Budget | AlertKind::Dlp | AlertKind::UnpricedModel) => Tone::Odd,
        _ => Tone::Bad,
    }
}

pub(super) fn title(alert: &Alert) -> String {
    fitted(&plain(&format!("Sprag: {}", alert.title)), TITLE_UNITS, as_is)
}

pub(super) fn rows(alert: &Alert) -> Vec<(&'static str, String)> {
    let told = &alert.occurrence;
    let score = told.score.map(|score| match told.threshold {
        Some(threshold) => format!("{} (threshold {})", number(score), number(threshold)),
        None => number(score),
    });
    let some = |count: u64| (count > 0).then(|| count.to_string());
    let rows = [
        ("Reason", Some(told.reason.clone()).filter(|reason| !reason.is_empty())),
        ("Agent", Some(told.agent.clone())),
        ("Run", told.run.clone()),
        ("Score", score),
        ("Window", told.window.clone()),
        ("Blocked requests", some(told.blocked_requests)),
        ("Cost", told.cost_usd.map(|usd| format!("${usd:.4}"))),
        ("Proof", proof(alert)),
        ("Not told before", some(alert.suppressed)),
        ("Rule", Some(format!("{} ({})", alert.rule, alert.kind.as_str()))),
        ("Time", Some(alert.at.clone())),
    ];
    rows.into_iter().filter_map(|(name, text)| Some((name, fitted(&plain(&text?), ROW_UNITS, as_is)))).collect()
}

/// The steps of a proof, or how many things it lists.
fn proof(alert: &Alert) -> Option<String> {
    let proof = alert.occurrence.proof.as_ref()?;
    if let Some(found) = proof.as_array() {
        let count: u64 = found.iter().filter_map(|one| one.get("count")?.as_u64()).sum();
        return Some(format!("{count} findings, without their values"));
    }
    let steps = proof.get("steps")?.as_array()?;
    let numbers: Vec<String> = steps.iter().filter_map(|step| Some(step.get("step")?.to_string())).collect();
    let compared = proof.get("compared").and_then(|compared| compared.as_str()).unwrap_or("steps");
    (!numbers.is_empty()).then(|| format!("{compared} alike in steps {}", numbers.join(", ")))
}

/// As many decimals as say something.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
