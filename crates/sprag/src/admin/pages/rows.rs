//! Runs and calls as texts, ready for a table.

use sprag_core::event::{Ending, Event, RunOrigin};
use sprag_core::policy::KillScope;
use sprag_core::time::Timestamp;
use sprag_store::history::{RunRow, RunStatus};

use super::link;
use crate::show;

/// A run in a table.
pub(super) struct RunLine {
    pub(super) agent: String,
    pub(super) id: String,
    pub(super) href: String,
    pub(super) status: &'static str,
    /// Why it was stopped.
    pub(super) why: Option<String>,
    /// What a kill of it is named by.
    pub(super) scope: String,
    pub(super) model: String,
    pub(super) steps: String,
    pub(super) input: String,
    pub(super) output: String,
    pub(super) cost: Money,
    pub(super) trouble: Vec<String>,
    pub(super) last: Moment,
    pub(super) lasted: String,
}

/// A call in a table.
pub(super) struct CallLine {
    pub(super) at: Moment,
    pub(super) agent: String,
    pub(super) run: Option<RunRef>,
    pub(super) step: String,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) status: String,
    /// `good`, `bad`, `odd`: how the status is coloured.
    pub(super) tone: &'static str,
    pub(super) input: String,
    pub(super) cached: String,
    pub(super) output: String,
    pub(super) is_estimated: bool,
    pub(super) cost: Money,
    pub(super) took: String,
    pub(super) first_byte: Option<String>,
    pub(super) tools: String,
    /// What is to be said about the end; empty when all went well.
    pub(super) ending: String,
    pub(super) error: Option<String>,
    /// What detection and limits in shadow said of it.
    pub(super) marks: Vec<Mark>,
    /// Its place in the time of its run, in thousandths.
    pub(super) bar: Bar,
}

/// What detection, or a limit in shadow, said of a call.
pub(super) struct Mark {
    pub(super) text: String,
    pub(super) tone: &'static str,
    /// The proof, or what the caller would have been told, in a sentence.
    pub(super) summary: String,
}

/// The run of a call.
pub(super) struct RunRef {
    pub(super) id: String,
    pub(super) href: String,
}

/// Money as shown, and exactly.
pub(super) struct Money {
    pub(super) shown: String,
    pub(super) exact: String,
    /// Some of it is not known.
    pub(super) is_partial: bool,
}

/// A moment as shown, and exactly.
pub(super) struct Moment {
    pub(super) shown: String,
    pub(super) exact: String,
}

/// A stretch of a line that is a thousand long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) start: u64,
    pub(super) length: u64,
}

impl RunLine {
    pub(super) fn new(run: &RunRow, now: Timestamp) -> RunLine {
        let counted = |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", show::count(count)));
        RunLine {
            agent: run.agent.to_string(),
            id: run.id.to_string(),
            href: link::to_run(run.agent.as_str(), run.id.as_str()),
            status: status(run.status),
            why: run.stopped.as_ref().map(|stopped| show::reason(&stopped.reason).to_owned()),
            scope: KillScope::run(&run.agent, &run.id).to_string(),
            model: run.model.clone().unwrap_or_default(),
            steps: show::count(run.steps),
            input: show::short_count(run.input_tokens),
            output: show::short_count(run.output_tokens),
            cost: Money::of_run(run.cost, run.unpriced_steps),
            trouble: [counted(run.errors, "failed"), counted(run.blocked, "blocked")].into_iter().flatten().collect(),
            last: Moment::new(run.last_at, now),
            lasted: show::duration_ms(run.last_at.since_ms(run.first_at)),
        }
    }
}

impl CallLine {
    pub(super) fn new(event: &Event, now: Timestamp) -> CallLine {
        let usage = event.usage.as_ref();
        let tokens = |count: Option<u64>| count.map_or("–".to_owned(), show::count);
        CallLine {
            at: Moment::new(event.at, now),
            agent: event.agent.to_string(),
            run: event.run.as_ref().map(|run| RunRef {
                id: run.id.to_string(),
                href: link::to_run(event.agent.as_str(), run.id.as_str()),
            }),
            step: event.run.as_ref().map_or("–".to_owned(), |run| run.step.to_string()),
            provider: event.provider.clone(),
            model: event.model.clone().unwrap_or_else(|| event.path.clone()),
            status: if event.status == 0 { "–".to_owned() } else { event.status.to_string() },
            tone: tone(event),
            input: tokens(usage.map(|usage| usage.prompt_tokens())),
            cached: tokens(usage.map(|usage| usage.cache_read)),
            output: tokens(usage.map(|usage| usage.output)),
            is_estimated: usage.is_some_and(|usage| usage.estimated),
            cost: Money::new(event.cost, event.unpriced),
            took: show::duration_ms(u64::from(event.total_ms)),
            first_byte: event.first_byte_ms.map(|ms| show::duration_ms(u64::from(ms))),
            tools: event.tools.join(", "),
            ending: ending(event),
            error: event
                .block_reason
                .as_deref()
                .map(|reason| show::reason(reason).to_owned())
                .or_else(|| event.error.clone()),
            marks: marks(event),
            bar: Bar::default(),
        }
    }

    /// The same with its place between the beginning and the end of its run.
    pub(super) fn within(self, event: &Event, from: Timestamp, to: Timestamp) -> CallLine {
        CallLine { bar: Bar::new(event.at.since_ms(from), u64::from(event.total_ms), to.since_ms(from)), ..self }
    }
}

impl Money {
    pub(super) fn new(amount: Option<sprag_core::money::NanoUsd>, is_partial: bool) -> Money {
        match amount {
            Some(amount) => Money { shown: show::usd_cell(amount), exact: format!("${amount}"), is_partial },
            None => Money { shown: "–".to_owned(), exact: String::new(), is_partial },
        }
    }
}

impl Money {
    /// What a run has cost; never a zero where no price is known.
    fn of_run(cost: sprag_core::money::NanoUsd, unpriced_steps: u64) -> Money {
        match (cost.0, unpriced_steps) {
            (0, 1..) => Money { shown: "no price".to_owned(), exact: String::new(), is_partial: false },
            _ => Money::new(Some(cost), unpriced_steps > 0),
        }
    }

    /// Beside a limit, where nobody counts fractions of a cent.
    pub(super) fn round(amount: Option<sprag_core::money::NanoUsd>) -> Money {
        let money = Money::new(amount, false);
        Money { shown: amount.map_or(money.shown, show::usd_round), ..money }
    }
}

impl Moment {
    pub(super) fn new(at: Timestamp, now: Timestamp) -> Moment {
        Moment { shown: show::moment(at, now), exact: at.to_rfc3339() }
    }
}

impl Bar {
    /// How long the line is.
    pub(super) const LINE: u64 = 1000;

    /// So much of the most; something is always visible unless it is nothing.
    pub(super) fn part(amount: u64, most: u64) -> Bar {
        if amount == 0 { Bar::default() } else { Bar::new(0, amount, most) }
    }

    /// Always visible, never beyond the end.
    fn new(offset_ms: u64, length_ms: u64, whole_ms: u64) -> Bar {
        const SHORTEST: u64 = 8;
        let part = |ms: u64| (ms.saturating_mul(Bar::LINE) / whole_ms.max(1)).min(Bar::LINE);
        let start = part(offset_ms).min(Bar::LINE - SHORTEST);
        Bar { start, length: part(length_ms).clamp(SHORTEST, Bar::LINE - start) }
    }
}

pub(super) fn status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "running",
        RunStatus::Finished => "finished",
        RunStatus::Killed => "killed",
        RunStatus::Paused => "paused",
        RunStatus::Expired => "expired",
    }
}

/// How a run was recognised, in words.
pub(super) fn origin(origin: RunOrigin) -> &'static str {
    match origin {
        RunOrigin::Declared => "Named by the caller",
        RunOrigin::Session => "Known by the client's session",
        RunOrigin::Previous => "Known by the id of an earlier answer",
        RunOrigin::Trace => "Known by a shared trace",
        RunOrigin::Conversation => "Known by its conversation",
    }
}

fn marks(event: &Event) -> Vec<Mark> {
    let enforced = event.verdict.as_ref().map(|verdict| {
        let tone = if verdict.action.stops() { "bad" } else { "odd" };
        Mark { text: show::verdict(verdict), tone, summary: verdict.finding.proof.summary.clone() }
    });
    let shadow = event.shadow.as_ref().map(|verdict| Mark {
        text: show::shadow(verdict),
        tone: "shadow",
        summary: verdict.finding.proof.summary.clone(),
    });
    let limits = event.would_block.iter().map(|would| Mark {
        text: show::would_block(would),
        tone: "shadow",
        summary: would.message.clone(),
    });
    let found = event.dlp.iter().flat_map(|sightings| {
        let places = sightings.list.iter().map(|seen| format!("{} in {}", seen.entity, seen.path));
        let summary = places.take(5).collect::<Vec<_>>().join("; ");
        show::sightings(sightings).into_iter().map(move |text| Mark { text, tone: "odd", summary: summary.clone() })
    });
    enforced.into_iter().chain(shadow).chain(limits).chain(found).collect()
}

fn tone(event: &Event) -> &'static str {
    match event.ending {
        Ending::Complete if event.status < 400 => "good",
        Ending::ClientGone => "odd",
        _ => "bad",
    }
}

fn ending(event: &Event) -> String {
    match (event.ending, &event.finish) {
        // That it ended with a call of a tool is told by the tool.
        (Ending::Complete, Some(finish)) if is_of_tools(finish) && !event.tools.is_empty() => String::new(),
        (Ending::Complete, Some(finish)) => finish.replace('_', " "),
        (Ending::Complete, None) => String::new(),
        (other, _) => show::ending(other).replace('_', " "),
    }
}

fn is_of_tools(finish: &str) -> bool {
    ["tool_calls", "tool_use", "function_call"].contains(&finish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_stays_within_its_line_and_visible() {
        assert_eq!(Bar::new(0, 1000, 1000), Bar { start: 0, length: 1000 });
        assert_eq!(Bar::new(250, 500, 1000), Bar { start: 250, length: 500 });
        assert_eq!(Bar::new(0, 0, 0), Bar { start: 0, length: 8 });
        assert_eq!(Bar::new(5000, 10, 1000), Bar { start: 992, length: 8 });
        assert_eq!(Bar::new(900, 900, 1000), Bar { start: 900, length: 100 });
    }
}
