//! Two records of a run's progress, put together.

use super::{Oddities, PENDING, Pending, State, Thread};
use crate::limits::{PROGRESS_STEPS, PROGRESS_THREADS};
use crate::loops::Mode;
use crate::loops::progress::Step;
use crate::loops::progress::log::Log;
use crate::loops::progress::tool_names::ToolNames;
use crate::loops::seen_steps::SeenSteps;

impl State {
    /// What two nodes know of a run. `shared` are the steps that they have heard of together.
    pub(crate) fn merge(&self, theirs: &State, shared: Option<&SeenSteps>) -> State {
        if self.mode != theirs.mode {
            return if self.mode == Mode::Off { theirs.clone() } else { self.clone() };
        }
        let mut merged = self.clone();
        let places: Vec<Option<u8>> = theirs.tool_names.all().map(|name| merged.tool_names.add(name)).collect();
        let place = |at: Option<u8>| places.get(usize::from(at?)).copied().flatten();

        let their_steps = theirs.steps.steps(&theirs.tool_names).into_iter();
        let their_steps = their_steps.map(|step| Step { tool_name: place(step.tool_name), ..step });
        let unclear: Vec<Thread> = self.threads.iter().chain(&theirs.threads[..]).copied().collect();
        if let Some(log) = merge_steps(&self.steps, their_steps, &merged.tool_names, &unclear) {
            merged.steps = log;
        }
        let is_later = last_request(&theirs.threads) > last_request(&self.threads);
        merged.items = if is_later { theirs.items } else { self.items };
        merged.threads.change(|threads| merge_threads(threads, &theirs.threads, shared));
        let their_pending = theirs.pending.iter().map(|one| Pending { tool_name: place(one.tool_name), ..*one });
        let steps = merged.steps.steps(&merged.tool_names);
        let threads = &merged.threads;
        merged.pending.change(|pending| merge_pending(pending, their_pending, &steps, threads));

        // New work anywhere is new work.
        merged.has_new_work |= theirs.has_new_work;
        if self.oddities.is_some() || theirs.oddities.is_some() {
            let [own, other] = [&self.oddities, &theirs.oddities].map(|known| known.as_deref().copied());
            merged.oddities = Some(Box::new(own.unwrap_or_default().merge(&other.unwrap_or_default())));
        }
        merged
    }
}

impl Thread {
    /// What one of them cannot tell to follow is no evidence for the other either.
    fn missing_with(&self, other: &Thread) -> (u32, u32) {
        match (self.since, other.since) {
            (0, _) => (other.since, other.missing_from),
            (_, 0) => (self.since, self.missing_from),
            _ => (self.since.max(other.since), self.missing_from.min(other.missing_from)),
        }
    }
}

impl Oddities {
    fn merge(&self, other: &Oddities) -> Oddities {
        let (asked, asked_again) = match (self.asked, other.asked) {
            (None, _) => (other.asked, other.asked_again),
            (own, theirs) if theirs.is_none() || own == theirs => (own, self.asked_again.max(other.asked_again)),
            // One of them came last, and began anew.
            (own, theirs) => {
                let (again, asked) = (self.asked_again, own).min((other.asked_again, theirs));
                (asked, again)
            }
        };
        let least = if other.compactions < self.compactions { other } else { self };
        Oddities { asked, asked_again, compactions: least.compactions, replaced: least.replaced }
    }
}

/// The steps of both; None where the other one knows of none that is new.
fn merge_steps(own: &Log, theirs: impl Iterator<Item = Step>, names: &ToolNames, threads: &[Thread]) -> Option<Log> {
    let mut steps: Vec<(Step, bool)> = own.steps(names).into_iter().map(|step| (step, true)).collect();
    for step in theirs {
        if !steps.iter().any(|(known, is_own)| *is_own && is_one(known, &step, threads)) {
            steps.push((step, false));
        }
    }
    // Nodes count steps together; their clocks may differ.
    steps.sort_by_key(|(step, _)| (step.number, step.at));
    steps.drain(..steps.len().saturating_sub(PROGRESS_STEPS));
    steps.iter().any(|(_, is_own)| !is_own).then(|| {
        let mut log = Log::default();
        steps.iter().for_each(|(step, _)| log.push(step, names));
        log
    })
}

/// Whether both are the same step, as two nodes know it. The moment is not compared: one request may reach both. Nor is
/// the number where one of them did not know what came before.
fn is_one(a: &Step, b: &Step, threads: &[Thread]) -> bool {
    let told = |step: &Step| (step.thread, step.action.exact, step.outcome.exact);
    let is_unclear = |thread: &Thread| {
        let unclear = thread.missing_from..=thread.since;
        thread.since > 0 && thread.key == a.thread && unclear.contains(&a.number) && unclear.contains(&b.number)
    };
    told(a) == told(b) && (a.number == b.number || threads.iter().any(is_unclear))
}

fn last_request(threads: &[Thread]) -> u32 {
    threads.iter().map(|thread| thread.number).max().unwrap_or(0)
}

/// Of each conversation the latest request is known.
fn merge_threads(threads: &mut Vec<Thread>, theirs: &[Thread], shared: Option<&SeenSteps>) {
    let mut is_new = false;
    for other in theirs {
        match threads.iter_mut().find(|thread| thread.key == other.key) {
            Some(known) => {
                let missing = known.missing_with(other);
                if known.number < other.number {
                    (*known, is_new) = (*other, true);
                }
                (known.since, known.missing_from) = missing;
            }
            None => {
                threads.push(*other);
                is_new = true;
            }
        }
    }
    for thread in threads.iter_mut().filter(|thread| thread.since > 0) {
        // Together they know what one of them missed.
        let after = thread.since.saturating_add(1);
        if shared.is_some_and(|seen| seen.has_all_between(thread.missing_from, after)) {
            (thread.since, thread.missing_from) = (0, 0);
        }
    }
    if is_new {
        threads.sort_by_key(|thread| thread.number);
        threads.drain(..threads.len().saturating_sub(PROGRESS_THREADS));
    }
}

/// Answers that one of both waits for, unless the other one has seen them carried back.
fn merge_pending(
    pending: &mut Vec<Pending>,
    theirs: impl Iterator<Item = Pending>,
    steps: &[Step],
    threads: &[Thread],
) {
    let known = pending.len();
    for other in theirs {
        if !pending[..known].iter().any(|own| own.number == other.number && own.action.exact == other.action.exact) {
            pending.push(other);
        }
    }
    let is_new = pending.len() > known;
    let is_told = |one: &Pending| threads.iter().any(|thread| thread.key == one.thread && thread.is_told);
    let is_passed = |one: &Pending| steps.iter().any(|step| step.thread == one.thread && step.number > one.number);
    pending.retain(|one| !is_told(one) && !is_passed(one));
    if is_new {
        pending.sort_by_key(|one| one.number);
        pending.drain(..pending.len().saturating_sub(PENDING));
    }
}
