use super::*;
use crate::loops::{Arrival, Departure, Mode, Preset, Rules, Said, ToolResult, ToolUse, Turn, decide};
use crate::time::Timestamp;
use crate::wire::{Reply, ToolCall};

/// Lets a watch see a request; gives why it would be stopped.
fn arrive(watch: &mut RunWatch, step: u32, end: u64, turn: &Turn<'_>) -> Option<String> {
    let rules = Rules::default();
    let now = Timestamp(i64::from(step) * 5000);
    let findings = watch.arrive(&Arrival { step, now, end: Some(end), turn, is_declared: true }, &rules).findings;
    let decision = decide(findings, &rules, watch.strikes(), step);
    let verdict = decision.enforced.filter(|verdict| verdict.action.stops())?;
    Some(verdict.finding.proof.summary)
}

fn depart(watch: &mut RunWatch, step: u32, reply: &Reply) {
    let now = Timestamp(i64::from(step) * 5000 + 1000);
    watch.depart(&Departure { step, now, reply, is_answered: true, cost: None, tokens: 9 });
}

/// A request that tells of a call and its result.
fn told(tool: &'static str, number: u32, result: &'static str) -> Turn<'static> {
    let call = ToolUse { id: "1".into(), name: tool.into(), arguments: format!(r#"{{"at":"{number}"}}"#).into() };
    let results = vec![ToolResult { call_id: "1".into(), text: result.into(), ..ToolResult::default() }];
    Turn { opening: 1, said: Some(Said { calls: vec![call], ..Said::default() }), results, ..Turn::default() }
}

const MISSING: &str = "Error: the file that you asked for is not there, and neither is the folder that it should be in";

#[test]
fn a_loop_is_stopped_though_two_nodes_had_its_steps_at_the_same_time() {
    // Two calls in turns.
    let ask = |watch: &mut RunWatch, step: u32| arrive(watch, step, u64::from(step), &told("open", step % 2, MISSING));
    let mut alone = RunWatch::default();
    let last = (1..40).find(|step| ask(&mut alone, *step).is_some()).unwrap();

    let mut base = RunWatch::default();
    assert!((1..last - 2).all(|step| ask(&mut base, step).is_none()));
    let (mut mine, mut theirs) = (base.clone(), base);
    assert_eq!((ask(&mut mine, last - 2), ask(&mut theirs, last - 1)), (None, None));
    for (one, other) in [(&mine, &theirs), (&theirs, &mine)] {
        let mut merged = RunWatch::merge(one, other.clone());
        assert!(ask(&mut merged, last).is_some());
        assert_eq!(ask(&mut one.clone(), last), None, "one of them alone does not know enough");
    }
}

#[test]
fn a_request_that_reached_two_nodes_is_one() {
    let turn = |text: &'static str| Turn { opening: 1, user_text: text.into(), ..Turn::default() };
    let (first, again) = ("Write the first chapter of the book", "Write the second chapter of the book");
    let mut base = RunWatch::default();
    arrive(&mut base, 1, 1, &turn(first));
    // Three of these in a row are a loop.
    let reply = Reply { text: "I am not able to find that file anywhere.".into(), ..Reply::default() };
    depart(&mut base, 1, &reply);
    for is_answered in [false, true] {
        let (mut mine, mut theirs) = (base.clone(), base.clone());
        assert_eq!(arrive(&mut mine, 2, 2, &turn(again)), None);
        assert_eq!(arrive(&mut theirs, 3, 2, &turn(again)), None);
        if is_answered {
            depart(&mut mine, 2, &reply);
            depart(&mut theirs, 3, &reply);
        }
        for (one, other) in [(&mine, &theirs), (&theirs, &mine)] {
            let mut merged = RunWatch::merge(one, other.clone());
            let next = arrive(&mut merged, 4, 3, &turn("Write the third and last chapter of the book"));
            assert_eq!(next, None, "answered {is_answered}");
            depart(&mut merged, 4, &reply);
            let next = arrive(&mut merged, 5, 4, &turn("Look for it somewhere else then"));
            assert_eq!(next.is_some(), is_answered, "that was the third");
        }
    }
}

#[test]
fn a_request_tried_again_at_another_node_is_one() {
    let turn = Turn { opening: 1, user_text: "Write the first chapter of the book".into(), ..Turn::default() };
    let mut base = RunWatch::default();
    arrive(&mut base, 1, 1, &turn);
    let mut mine = base.clone();
    assert_eq!(arrive(&mut mine, 2, 1, &turn), None, "a retry");
    for mut merged in [RunWatch::merge(&mine, base.clone()), RunWatch::merge(&base, mine.clone())] {
        depart(&mut merged, 2, &Reply { text: "There it is.".into(), ..Reply::default() });
        let next = Turn { opening: 1, user_text: "Write the second chapter of the book".into(), ..Turn::default() };
        assert_eq!(arrive(&mut merged, 3, 2, &next), None);
    }
}

#[test]
fn what_is_under_way_elsewhere_lies_between_two_prompts() {
    let turn = |text: &'static str| Turn { opening: 1, user_text: text.into(), ..Turn::default() };
    let (first, second) = ("Write the first chapter of the book", "Write the second chapter of the book");
    let (mut mine, mut theirs) = (RunWatch::default(), RunWatch::default());
    mine.share(1);
    assert_eq!(arrive(&mut mine, 1, 1, &turn(first)), None);
    theirs.share(2);
    assert_eq!(arrive(&mut theirs, 2, 2, &turn(second)), None);
    mine.share(3);
    assert_eq!(arrive(&mut mine.clone(), 3, 3, &turn(first)), None, "the second step is not known");
    let mut merged = RunWatch::merge(&mine, theirs);
    assert_eq!(arrive(&mut merged, 3, 3, &turn(first)), None, "and it is something else");
    merged.share(4);
    assert!(arrive(&mut merged, 4, 4, &turn(first)).is_some(), "one upon the other");
    let mut alone = RunWatch::default();
    assert_eq!(arrive(&mut alone, 1, 1, &turn(first)), None);
    assert!(arrive(&mut alone, 3, 3, &turn(first)).is_some(), "on one node nothing is under way elsewhere");
}

#[test]
fn steps_of_a_conversation_follow_one_upon_the_other_only_where_nothing_lies_between() {
    let ask = |watch: &mut RunWatch, step: u32, items: usize| {
        watch.share(step);
        arrive(watch, step, u64::from(step), &Turn { items, new_items: 2, ..told("open", 7, MISSING) })
    };
    let mut alone = RunWatch::default();
    let last = (1..40).find(|step| ask(&mut alone, *step, 2 * *step as usize + 1).is_some()).unwrap();
    let mut beside = RunWatch::default();
    let stop = (1..40).find(|step| ask(&mut beside, 2 * *step, 2 * *step as usize + 1).is_some());
    assert_eq!(stop, Some(last), "what is under way elsewhere is another conversation");
    let mut half = RunWatch::default();
    let stop = (1..40).find(|step| ask(&mut half, 2 * *step, 4 * *step as usize + 1).is_some());
    assert_eq!(stop, None, "every other step of this one is known elsewhere only, and may be new work");

    // Nor do they when nodes meet: each of them knew a half.
    let mut theirs = RunWatch::default();
    assert!((1..20).all(|step| ask(&mut theirs, 2 * step + 1, 4 * step as usize + 3).is_none()));
    for (one, other) in [(&half, &theirs), (&theirs, &half)] {
        let merged = RunWatch::merge(one, other.clone());
        let merged = RunWatch::unpack(&merged.pack()).unwrap();
        assert_eq!(ask(&mut merged.clone(), 80, 4 * 40 + 1), None);
        let mut goes_on = merged;
        let stop = (80..120).find(|step| ask(&mut goes_on, *step, 2 * *step as usize + 1).is_some());
        assert!(stop.is_some_and(|step| step <= 80 + last), "from there on it is caught: {stop:?}");
    }
}

#[test]
fn tools_keep_their_names() {
    let mut mine = RunWatch::default();
    let mut theirs = RunWatch::default();
    arrive(&mut mine, 1, 1, &told("search", 1, "There are two places where this is written"));
    for step in 2..5 {
        arrive(&mut theirs, step, u64::from(step), &told("open", 7, MISSING));
    }
    let mut merged = RunWatch::merge(&mine, theirs);
    let turn = told("open", 7, MISSING);
    let why = (5..40).find_map(|step| arrive(&mut merged, step, u64::from(step), &turn)).unwrap();
    assert!(why.contains("`open`"), "{why}");
}

#[test]
fn an_answer_that_one_node_keeps_is_carried_back_at_another() {
    let call = ToolCall { id: "call-1".into(), name: "open".into(), arguments: "{}".into() };
    let reply = Reply { tool_calls: vec![call], ..Reply::default() };
    let first = Turn { opening: 1, user_text: "Open the file".into(), ..Turn::default() };
    let result = ToolResult { call_id: "call-1".into(), text: MISSING.into(), ..ToolResult::default() };
    let second = Turn { opening: 2, results: vec![result], is_continued: true, ..Turn::default() };
    let mut mine = RunWatch::default();
    arrive(&mut mine, 1, 1, &first);
    let mut theirs = mine.clone();
    depart(&mut mine, 1, &reply);
    let beside = Turn { opening: 9, user_text: "Something else".into(), ..Turn::default() };
    arrive(&mut theirs, 2, 2, &beside);
    let mut merged = RunWatch::merge(&theirs, mine);
    let arrival = Arrival { step: 3, now: Timestamp(15_000), end: Some(3), turn: &second, is_declared: true };
    assert!(merged.arrive(&arrival, &Rules::default()).level.is_some(), "a step was finished");
}

#[test]
fn what_was_forgotten_stays_forgotten() {
    let turn = Turn { user_text: "Write the first chapter of the book".into(), ..Turn::default() };
    let mut theirs = RunWatch::default();
    arrive(&mut theirs, 1, 1, &turn);
    let mut mine = theirs.clone();
    mine.forget();
    for mut merged in [RunWatch::merge(&mine, theirs.clone()), RunWatch::merge(&theirs, mine)] {
        assert_eq!(arrive(&mut merged, 2, 2, &turn), None);
        assert!(arrive(&mut merged, 3, 3, &turn).is_some());
    }
    assert!(arrive(&mut theirs, 2, 2, &turn).is_some(), "otherwise it is known");
}

#[test]
fn who_has_seen_nothing_takes_all() {
    let mut theirs = RunWatch::default();
    let mut rules = Rules::preset(Preset::Strict);
    rules.similar.needs_second_signal = true;
    for step in 1..6 {
        let turn = told("open", step, MISSING);
        let arrival = Arrival { step, now: Timestamp(9), end: Some(3), turn: &turn, is_declared: true };
        theirs.arrive(&arrival, &rules);
        depart(&mut theirs, step, &Reply { text: "I will look.".into(), ..Reply::default() });
    }
    let both = [RunWatch::merge(&RunWatch::default(), theirs.clone()), RunWatch::merge(&theirs, RunWatch::default())];
    for merged in both {
        let next = told("open", 9, MISSING);
        let arrival = Arrival { step: 6, now: Timestamp(10), end: Some(9), turn: &next, is_declared: true };
        assert_eq!(merged.clone().arrive(&arrival, &rules), theirs.clone().arrive(&arrival, &rules));
        assert_eq!(merged.strikes, theirs.strikes);
    }
}

#[test]
fn an_agents_requests_come_together() {
    let mut rules = Rules::default();
    rules.score.common.mode = Mode::Enforce;
    let turn = Turn { user_text: "Look at the report again and tell me what it says".into(), ..Turn::default() };
    let ask = |watch: &mut AgentWatch, run: u64, step: u32| {
        let now = Timestamp(i64::from(step) * 1000);
        let arrival = Arrival { step, now, end: None, turn: &turn, is_declared: true };
        watch.arrive(run, false, &arrival, &rules);
        watch.tally().prompts
    };
    let mut base = AgentWatch::default();
    ask(&mut base, 1, 1);
    let (mut mine, mut theirs) = (base.clone(), base);
    ask(&mut mine, 1, 2);
    ask(&mut theirs, 2, 3);
    let mut merged = AgentWatch::merge(&mine, theirs.clone());
    assert_eq!(ask(&mut merged, 1, 4), 3, "each is counted once");
    mine.forget();
    for mut merged in [AgentWatch::merge(&mine, theirs.clone()), AgentWatch::merge(&theirs, mine)] {
        assert_eq!(ask(&mut merged, 1, 5), 0, "what was forgotten stays so");
    }
}
