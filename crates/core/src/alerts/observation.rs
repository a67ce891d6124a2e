//! What an event means for alerts. Small, so that it can be handed over while a request ends.

use serde_json::{Value, json};

use super::rule::AlertKind;
use crate::dlp::Sighting;
use crate::event::{ActKind, Ending, Event, EventKind};
use crate::id::{AgentName, RunId};
use crate::loops::{Detector, Verdict};
use crate::money::NanoUsd;
use crate::policy::Span;
use crate::time::Timestamp;

/// Kinds of data that a reason names.
const NAMED_ENTITIES: usize = 5;

/// One event, as alerts see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Who called, or who it was done to.
    pub agent: AgentName,
    /// Its run.
    pub run: Option<RunId>,
    /// It is a request.
    pub is_request: bool,
    /// The request failed upstream.
    pub is_failed: bool,
    /// The request was refused.
    pub is_blocked: bool,
    /// The agent was set active again.
    pub is_activated: bool,
    /// What the call cost.
    pub cost: Option<NanoUsd>,
    /// How often the same happened besides, where it was put together.
    pub again: u64,
    /// What may be told.
    pub signals: Vec<Signal>,
}

/// What observations are put together by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UrgentKey {
    agent: AgentName,
    kind: Option<AlertKind>,
    is_activated: bool,
}

/// Something that may be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// What it is about.
    pub kind: AlertKind,
    /// What is told once in a cooldown.
    pub subject: String,
    /// Why, in one sentence.
    pub reason: String,
    /// The value that reached the threshold.
    pub score: Option<f64>,
    /// The threshold.
    pub threshold: Option<f64>,
    /// Over which steps or time.
    pub window: Option<String>,
    /// What it rests on.
    pub proof: Option<Value>,
    /// It is told once in this time, which a budget covers.
    pub period: Option<Span>,
}

impl Observation {
    /// What it is put together by when there is no room for each: what people must hear of whatever happens, and what
    /// ends it.
    #[must_use]
    pub fn urgent_key(&self) -> Option<UrgentKey> {
        let is_urgent =
            |kind: AlertKind| matches!(kind, AlertKind::KillSwitch | AlertKind::RunKilled | AlertKind::LoopDetected);
        let signal = self.signals.iter().find(|signal| is_urgent(signal.kind));
        (signal.is_some() || self.is_activated).then(|| UrgentKey {
            agent: self.agent.clone(),
            kind: signal.map(|signal| signal.kind),
            is_activated: self.is_activated,
        })
    }

    /// What an event says.
    #[must_use]
    pub fn of(event: &Event) -> Observation {
        let is_request = event.kind.is_request();
        let is_failed =
            is_request && matches!(event.ending, Ending::UpstreamError | Ending::UpstreamGone | Ending::TimedOut);
        let mut signals = Vec::new();
        signals.extend(event.verdict.as_ref().map(|verdict| of_verdict(event, verdict)));
        signals.extend(of_act(event));
        signals.extend(of_dlp(event));
        if event.unpriced {
            let model = event.model.clone().unwrap_or_else(|| "unknown".to_owned());
            let reason = format!("{model} was used and has no price: its cost counts nowhere");
            signals.push(Signal { subject: model, ..plain(event, AlertKind::UnpricedModel, reason) });
        }
        Observation {
            agent: event.agent.clone(),
            run: event.run.as_ref().map(|run| run.id.clone()),
            is_request,
            is_failed,
            is_blocked: event.blocked,
            is_activated: event.act.as_ref().is_some_and(|act| act.what == ActKind::Activate),
            cost: event.cost,
            again: 0,
            signals,
        }
    }
}

fn plain(event: &Event, kind: AlertKind, reason: String) -> Signal {
    let subject = event.agent.to_string();
    Signal { kind, subject, reason, score: None, threshold: None, window: None, proof: None, period: None }
}

fn of_verdict(event: &Event, verdict: &Verdict) -> Signal {
    let (finding, proof) = (&verdict.finding, &verdict.finding.proof);
    let kind = if finding.detector == Detector::Velocity { AlertKind::Velocity } else { AlertKind::LoopDetected };
    let reason = if proof.summary.is_empty() { finding.loop_type.clone() } else { proof.summary.clone() };
    Signal {
        score: Some(finding.score),
        threshold: Some(proof.threshold),
        window: Some(proof.window.clone()).filter(|window| !window.is_empty()),
        proof: serde_json::to_value(proof).ok(),
        ..plain(event, kind, reason)
    }
}

fn of_act(event: &Event) -> Option<Signal> {
    let act = event.act.as_deref()?;
    let is_stop = matches!(act.what, ActKind::Kill | ActKind::Pause) && event.run.is_some();
    let kind = match event.kind {
        EventKind::KillSwitch => AlertKind::KillSwitch,
        EventKind::Budget => AlertKind::Budget,
        _ if is_stop => AlertKind::RunKilled,
        _ => return None,
    };
    let of_proof = |name: &str| act.proof.as_ref().and_then(|proof| proof.get(name));
    let reason = if act.by == "sprag" { act.reason.clone() } else { format!("{} (by {})", act.reason, act.by) };
    let mut signal = Signal {
        score: of_proof("value").or(of_proof("score")).and_then(Value::as_f64),
        threshold: of_proof("threshold").and_then(Value::as_f64),
        window: of_proof("window").and_then(Value::as_str).map(str::to_owned),
        proof: act.proof.clone(),
        ..plain(event, kind, reason)
    };
    if kind == AlertKind::Budget {
        let of_detail = |name: &str| act.detail.as_ref().and_then(|detail| detail.get(name));
        let percent = of_detail("percent").and_then(Value::as_f64);
        signal.subject = format!("{} at {} %", act.target, percent.unwrap_or(100.0));
        signal.score = percent;
        signal.window = of_detail("window").and_then(Value::as_str).map(str::to_owned);
        signal.proof = act.detail.clone();
        let moment = |name: &str| of_detail(name).and_then(Value::as_str)?.parse::<jiff::Timestamp>().ok();
        let until = moment("until").map_or(i64::MAX, jiff::Timestamp::as_millisecond);
        let since = moment("since").map_or(0, jiff::Timestamp::as_millisecond);
        signal.period = Some(Span { start: Timestamp(since), end: Timestamp(until) });
    }
    Some(signal)
}

fn of_dlp(event: &Event) -> Option<Signal> {
    let found = event.dlp.as_ref().filter(|found| found.total > 0)?;
    let mut entities: Vec<&str> = found.list.iter().map(|sighting| sighting.entity.as_str()).collect();
    entities.sort_unstable();
    entities.dedup();
    entities.truncate(NAMED_ENTITIES);
    let reason = format!("{} found in one call: {}", found.total, entities.join(", "));
    let proof = Some(counted(&found.list));
    Some(Signal { score: Some(found.total as f64), proof, ..plain(event, AlertKind::Dlp, reason) })
}

/// What was found and what became of it, counted. Where it stood, and what it begins with, is text of the run.
fn counted(list: &[Sighting]) -> Value {
    let mut counts: Vec<(&Sighting, u64)> = Vec::new();
    for one in list {
        let is_alike = |known: &Sighting| {
            (&known.entity, known.direction, known.outcome) == (&one.entity, one.direction, one.outcome)
        };
        match counts.iter_mut().find(|(known, _)| is_alike(known)) {
            Some((_, count)) => *count += 1,
            None => counts.push((one, 1)),
        }
    }
    let counted = counts.into_iter().map(
        |(of, count)| json!({"entity": of.entity, "direction": of.direction, "outcome": of.outcome, "count": count}),
    );
    counted.collect()
}
