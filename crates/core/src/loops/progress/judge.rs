//! How a step resembles the earlier ones, and when that is too much.

use super::{Kind, Step};
use crate::loops::ProgressRule;

/// Steps back that a failure of the same kind may lie. A near step lies no farther back than words are kept.
const FAILURE_STEPS: usize = 12;
/// Steps back whose words count as said before.
const TALK_STEPS: usize = 6;
/// Share of new words up to which the reply to a call says nothing new, and up to which both sides of talk do: who
/// replies brings in what is talked about, be it one name in a sentence that stays.
const STALE_NOVELTY: f64 = 0.04;
const TALK_NOVELTY: f64 = 0.12;
const REPLY_NOVELTY: f64 = 0.06;
/// Steps of a cycle up to which a call without words gets credit.
const SHORT_CYCLE: usize = 4;
/// What a step counts during which something is under way: a wait of some twenty looks without a change is too long.
/// Who sleeps in between may wait longer.
const WAITING_SHARE: f64 = 0.1;
/// Steps that one look may take, the wait among them.
const STEPS_OF_A_LOOK: usize = 3;
/// What a search counts that found nothing: the next place may have it.
const NOTHING_SHARE: f64 = 0.6;

/// Why a run is stuck.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stuck {
    pub(super) cause: Cause,
    pub(super) value: f64,
    pub(super) threshold: f64,
    /// Steps at the end that it rests on.
    pub(super) steps: usize,
    /// Repetitions.
    pub(super) count: usize,
}

/// What was too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Steps that repeat those this many before them.
    Cycle(usize),
    /// One result to everything.
    SameResult,
    /// Steps that resemble earlier ones.
    Stall,
}

/// What the steps of a conversation come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Judgement {
    pub(super) stuck: Option<Stuck>,
    /// The share of its threshold that the account nearest to it has reached; 1 and above is stuck.
    pub(super) level: f64,
}

impl Judgement {
    /// Adds one account. `share` is below 1 where it is not stuck.
    fn weigh(&mut self, found: Stuck, share: f64, is_stuck: bool) {
        self.level = self.level.max(share);
        if is_stuck && self.stuck.is_none() {
            self.stuck = Some(found);
        }
    }
}

/// Looks at the steps of one conversation, oldest first. The last one has just finished. What is found first is what
/// explains most, and the rest is not looked at.
pub(super) fn judge(steps: &[&Step], rule: &ProgressRule) -> Judgement {
    let mut judgement = Judgement::default();
    for lag in 1..=steps.len() / 2 {
        cycle(steps, lag, rule, &mut judgement);
        if judgement.stuck.is_some() {
            return judgement;
        }
    }
    same_result(steps, rule, &mut judgement);
    if judgement.stuck.is_none() {
        stall(steps, rule, &mut judgement);
    }
    judgement
}

/// How the step `new` resembles those before it, oldest first.
pub(super) fn kind_of(new: &Step, past: &[&Step], rule: &ProgressRule) -> Kind {
    let Some(last) = past.last() else { return Kind::New };
    if new.is_waiting() || has_grown(new, last) {
        return Kind::Waiting;
    }
    if is_less_left(new, past) {
        return Kind::New;
    }
    let is_exact = past.iter().any(|step| is_same(new, step));
    if past.iter().any(|step| is_masked(new, step) && !is_same(new, step)) {
        return Kind::Masked;
    }
    if is_small_talk(new, past) {
        return Kind::SmallTalk;
    }
    let recent = || past.iter().rev().take(FAILURE_STEPS);
    let is_near = |step: &&&Step| {
        step.has_words
            && step.action.tool == new.action.tool
            && !is_enumeration(new, step)
            && !is_other_item(new, step)
            && new.action.words.likeness(&step.action.words) >= rule.likeness
            && new.outcome.words.likeness(&step.outcome.words) >= rule.likeness
    };
    if !is_exact && recent().any(|step| is_near(&step)) {
        return Kind::Near;
    }
    let failure = new.outcome.failure;
    let is_same_result = last.outcome.exact == new.outcome.exact && is_news_once(new);
    let is_same_error = failure != 0
        && (past.iter().any(|step| step.outcome.exact == new.outcome.exact)
            || recent().any(|step| step.outcome.failure == failure && step.action.tool == new.action.tool));
    if is_same_result || is_same_error {
        return Kind::SameError;
    }
    if is_stale(new, past) {
        return Kind::Stale;
    }
    if is_exact { Kind::Exact } else { Kind::New }
}

/// Steps that repeat the ones before them. A whole answer that is the same, word for word, weighs more than a call
/// that is: a model that says the same again will go on doing so, one that words it anew may find its way out.
fn cycle(steps: &[&Step], lag: usize, rule: &ProgressRule, judgement: &mut Judgement) {
    let (mut repeats, mut same_answers, mut bare_answers) = (Row::default(), Row::default(), Row::default());
    // Who sleeps and then looks, waits with both steps. Who sleeps before it fails does not.
    let lap = &steps[steps.len() - lag..];
    let waits = lap.iter().filter(|step| step.is_waiting()).count();
    let is_waiting = waits * STEPS_OF_A_LOOK >= lag && lap.iter().all(|step| step.outcome.failure == 0);
    let weight = if is_waiting { WAITING_SHARE / lag as f64 } else { 1.0 };
    for (new, old) in steps[lag..].iter().zip(steps).rev() {
        let is_same = is_same(new, old);
        let is_masked = is_masked(new, old);
        if !is_same && !is_masked {
            break;
        }
        // Words without a call are the whole answer. After a failure, though, they may still change.
        let is_all_said = !new.action.is_bare || !new.action.is_call() && new.outcome.failure == 0;
        let is_same_answer = is_same && new.action.answer == old.action.answer;
        repeats.extend(true, weight);
        same_answers.extend(is_same_answer && is_all_said, weight);
        bare_answers.extend(is_same_answer, weight);
    }
    let value = repeats
        .value
        .max(same_answers.with(weight * rule.same_answer_credit))
        .max(bare_answers.with(if lag <= SHORT_CYCLE { weight * rule.bare_answer_credit } else { 0.0 }));
    let (count, threshold) = (repeats.count, rule.repeats.max(lag as f64 + rule.cycle_extra));
    // Both must be reached: the value, and a whole lap.
    let share = (value / threshold).min(count as f64 / lag as f64);
    let found = Stuck { cause: Cause::Cycle(lag), value, threshold, steps: count + lag, count };
    judgement.weigh(found, share, count >= lag && value >= threshold);
}

/// One result, again and again, to whatever was asked for.
fn same_result(steps: &[&Step], rule: &ProgressRule, judgement: &mut Judgement) {
    let mut row = Row::default();
    for pair in steps.windows(2).rev() {
        let is_same = pair[0].outcome.exact == pair[1].outcome.exact && is_news_once(pair[1]);
        let weight = match pair[1] {
            step if step.is_waiting() => WAITING_SHARE,
            step if step.outcome.is_nothing => NOTHING_SHARE,
            _ => 1.0,
        };
        row.extend(is_same, weight);
    }
    let (value, threshold) = (row.value, rule.same_results);
    let stuck = Stuck { cause: Cause::SameResult, value, threshold, steps: row.count + 1, count: row.count };
    judgement.weigh(stuck, value / threshold, value >= threshold);
}

/// Steps that resemble earlier ones, with too little that is new in between.
fn stall(steps: &[&Step], rule: &ProgressRule, judgement: &mut Judgement) {
    let (mut value, mut first, mut count) = (0.0, 0, 0);
    for (at, step) in steps.iter().enumerate() {
        match step.kind {
            Kind::Waiting => {}
            // Counted by the row of the same result.
            Kind::SameError if step.outcome.is_nothing => {}
            Kind::New => value *= rule.stall_decay,
            kind => {
                if value < 1.0 {
                    (first, count) = (at, 0);
                }
                value += kind.weight();
                count += 1;
            }
        }
    }
    let stuck = Stuck { cause: Cause::Stall, value, threshold: rule.stall, steps: steps.len() - first, count };
    judgement.weigh(stuck, value / rule.stall, value >= rule.stall);
}

/// Steps in a row, from the last one back.
#[derive(Default)]
struct Row {
    count: usize,
    value: f64,
    is_over: bool,
}

impl Row {
    fn extend(&mut self, goes_on: bool, weight: f64) {
        self.is_over |= !goes_on;
        if !self.is_over {
            self.count += 1;
            self.value += weight;
        }
    }

    fn with(&self, credit: f64) -> f64 {
        if self.count == 0 { 0.0 } else { self.value + credit }
    }
}

fn is_same(a: &Step, b: &Step) -> bool {
    a.action.exact == b.action.exact && a.outcome.exact == b.outcome.exact
}

/// Whether the same result again is a repetition, whatever was asked for. That a call has worked is not: thirty rows
/// that were inserted are thirty times "one row was inserted".
fn is_news_once(step: &Step) -> bool {
    step.outcome.is_telling && !is_confirmed(step)
}

/// A call has worked, and there is no more to say about it.
fn is_confirmed(step: &Step) -> bool {
    step.action.is_call() && step.outcome.failure == 0 && step.outcome.is_short
}

/// The same but for digits in the arguments: looking for what is not there, under one number after the other.
fn is_masked(a: &Step, b: &Step) -> bool {
    let (new, old) = (&a.outcome, &b.outcome);
    let is_same_result = new.exact == old.exact || new.failure != 0 && new.masked == old.masked;
    a.action.masked == b.action.masked && is_same_result && is_news_once(a) && !has_grown(a, b)
}

/// One question under another number, or other numbers to one question, got another answer: page 2 is not page 1, and
/// 12 is not 19. A failure is no answer.
fn is_enumeration(new: &Step, old: &Step) -> bool {
    let is_other_result = new.outcome.exact != old.outcome.exact && new.outcome.failure == 0;
    let is_other_number = new.action.exact != old.action.exact && new.action.masked == old.action.masked;
    is_other_result && (is_other_number && new.action.is_call() || new.outcome.masked == old.outcome.masked)
}

/// The same call has found something else, or another call has worked too. Of long arguments it is not known whether
/// they ask for something else.
fn is_other_item(new: &Step, old: &Step) -> bool {
    if new.action.exact == old.action.exact {
        return new.action.is_call() && new.outcome.failure == 0 && new.outcome.exact != old.outcome.exact;
    }
    is_confirmed(new)
        && (new.action.words.differs(&old.action.words)
            || new.action.is_native && new.action.masked == old.action.masked)
}

/// The same question got a count that has grown.
fn has_grown(new: &Step, last: &Step) -> bool {
    new.action.exact == last.action.exact && new.outcome.has_grown(&last.outcome)
}

/// A report counts less to do than any before it: one failure fewer is progress, however alike the reports are.
fn is_less_left(new: &Step, past: &[&Step]) -> bool {
    let least = past.iter().filter_map(|step| step.outcome.left).min();
    new.outcome.left.zip(least).is_some_and(|(now, before)| now < before)
}

/// The same answer, and a reply to it that holds only words of the earlier replies. Results of native tools never are:
/// one that changes is news.
fn is_stale(new: &Step, past: &[&Step]) -> bool {
    if new.action.is_native || new.outcome.has_digit {
        return false;
    }
    let row = past.iter().rev().take_while(|step| step.action.exact == new.action.exact && step.has_words);
    let mut before = row.map(|step| &step.outcome.words).peekable();
    before.peek().is_some() && new.outcome.words.novelty(before) <= STALE_NOVELTY
}

/// Two parties that go on talking without a call, in words that they have just used.
fn is_small_talk(new: &Step, past: &[&Step]) -> bool {
    if new.action.is_call() || new.outcome.has_digit || past.last().is_none_or(|last| last.action.is_call()) {
        return false;
    }
    let recent = || past.iter().rev().take(TALK_STEPS);
    new.outcome.words.novelty(recent().map(|step| &step.outcome.words)) <= REPLY_NOVELTY
        && new.action.words.novelty(recent().map(|step| &step.action.words)) <= TALK_NOVELTY
}
