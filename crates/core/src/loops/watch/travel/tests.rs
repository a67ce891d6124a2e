use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::loops::watch::tests::twins::{AgentTwins, Twins};
use crate::loops::{Arrival, Departure, Mode, Preset, PromptScope, Rules, Said, ToolResult, ToolUse, Turn};
use crate::money::NanoUsd;
use crate::time::Timestamp;
use crate::wire::{Reply, ToolCall};

/// What may be said, called and given back: so little that it comes again.
const TEXTS: [&str; 6] = [
    "Look at the second report and tell me what is wrong with the numbers in it",
    "Look at the second report and tell me what is right with the numbers in it",
    "Error: cannot open file /data/17.json: no such file or directory",
    "3 passed, 2 failed",
    "still running, 40 %",
    "ok",
];

/// One thing that happens to a run.
#[derive(Clone, Debug)]
enum Happens {
    Request {
        opening: u64,
        said: Option<usize>,
        calls: usize,
        results: usize,
        text: usize,
        is_continued: bool,
        end: u64,
    },
    Answer {
        text: usize,
        calls: usize,
        is_answered: bool,
    },
    Refusal,
    Forgetting,
    OtherRules(Preset),
    /// Another node had so many requests.
    Elsewhere(u32),
}

fn happens() -> impl Strategy<Value = Happens> {
    let text = || 0..TEXTS.len();
    let request = (0..3_u64, prop::option::of(text()), 0..3_usize, 0..3_usize, text(), any::<bool>(), 0..12_u64);
    let request = request.prop_map(|(opening, said, calls, results, text, is_continued, end)| Happens::Request {
        opening,
        said,
        calls,
        results,
        text,
        is_continued,
        end,
    });
    let answer = (text(), 0..3_usize, any::<bool>());
    let answer = answer.prop_map(|(text, calls, is_answered)| Happens::Answer { text, calls, is_answered });
    let other = select(vec![Preset::Strict, Preset::Observe, Preset::Agentwall]).prop_map(Happens::OtherRules);
    prop_oneof![20 => request, 20 => answer, 1 => Just(Happens::Refusal), 1 => Just(Happens::Forgetting), 1 => other]
}

/// All detectors, and all that they keep.
fn all_rules(preset: Preset) -> Rules {
    let mut rules = Rules::preset(preset);
    if preset == Preset::Strict {
        rules.similar.needs_second_signal = true;
        rules.velocity.max_tokens_per_minute = 5000;
    }
    rules.score.common.mode = Mode::Enforce;
    rules
}

/// Lets all of it happen to watches that stay and watches that travel, which must see the same; gives their bytes.
fn follow(events: &[Happens]) -> (Vec<u8>, Vec<u8>) {
    let (mut run, mut agent) = (Twins::default(), AgentTwins::default());
    let mut rules = all_rules(Preset::Strict);
    let mut step = 0;
    for (at, event) in events.iter().enumerate() {
        let now = Timestamp(1_770_000_000_000 + at as i64 * 1700);
        match event {
            Happens::Request { opening, said, calls, results, text, is_continued, end } => {
                step += 1;
                let id = |at: usize| format!("call-{at}").into();
                let call = |at: usize| ToolUse {
                    id: id(at),
                    name: ["search", "open_file"][at % 2].into(),
                    arguments: format!(r#"{{"path":"{text}","at":{at}}}"#).into(),
                };
                let result = |at: usize| ToolResult {
                    call_id: id(at),
                    text: TEXTS[(text + at) % TEXTS.len()].into(),
                    ..ToolResult::default()
                };
                let turn = Turn {
                    opening: *opening,
                    said: said.map(|said| Said { text: TEXTS[said].into(), calls: (0..*calls).map(call).collect() }),
                    results: (0..*results).map(result).collect(),
                    user_text: if *results == 0 { TEXTS[*text].into() } else { "".into() },
                    last_user_text: (rules.prompt_scope == PromptScope::LastUserMessage).then(|| TEXTS[*text].into()),
                    is_continued: *is_continued,
                    items: (step * 3 % 20) as usize,
                    ..Turn::default()
                };
                let arrival = Arrival { step, now, end: Some(*end), turn: &turn, is_declared: *end != 0 };
                if *opening != 0 {
                    run.share(step);
                }
                let mut findings = run.arrive(&arrival, &rules).findings;
                findings.extend(agent.arrive(*opening, run.is_retry(), &arrival, &rules));
                run.decide(findings, &rules, step);
            }
            Happens::Answer { text, calls, is_answered } => {
                let call = |at: usize| ToolCall {
                    id: format!("call-{at}"),
                    name: "search".into(),
                    arguments: format!(r#"{{"at":{at}}}"#),
                };
                let reply = Reply {
                    text: TEXTS[*text].into(),
                    tool_calls: (0..*calls).map(call).collect(),
                    ..Reply::default()
                };
                let (cost, tokens) = (Some(NanoUsd(*text as i64 * 1_000_000)), 700 * *text as u64);
                let departure = Departure { step, now, reply: &reply, is_answered: *is_answered, cost, tokens };
                run.depart(&departure);
                agent.depart(u64::from(step % 3), &departure, &rules);
            }
            Happens::Refusal => run.refused(step),
            Happens::Forgetting => run.forget(),
            Happens::OtherRules(preset) => rules = all_rules(*preset),
            Happens::Elsewhere(requests) => step += requests,
        }
    }
    (run.pack(), agent.pack())
}

/// The same with conversations that never come again.
fn without_retries(first: u64, mut events: Vec<Happens>) -> Vec<Happens> {
    for (event, number) in events.iter_mut().zip(first..) {
        if let Happens::Request { end, .. } = event {
            *end += 12 * number;
        }
    }
    events
}

/// Two watches that saw the same, and then each its own.
fn both(before: &[Happens], mine: &[Happens], theirs: &[Happens]) -> [(RunWatch, AgentWatch); 2] {
    [(0, mine), (40, theirs)].map(|(elsewhere, after)| {
        let (run, agent) = follow(&[before, &[Happens::Elsewhere(elsewhere)], after].concat());
        (RunWatch::unpack(&run).unwrap(), AgentWatch::unpack(&agent).unwrap())
    })
}

/// Reads bytes that somebody has touched: what comes of them is no larger than what detectors keep, and goes on.
fn read_touched(bytes: &[u8]) -> Result<(), TestCaseError> {
    let turn = Turn { user_text: TEXTS[0].into(), opening: 1, ..Turn::default() };
    let rules = all_rules(Preset::Strict);
    let arrival = Arrival { step: 9, now: Timestamp(1_770_000_000_000), end: Some(1), turn: &turn, is_declared: true };
    let reply = Reply { text: TEXTS[1].into(), ..Reply::default() };
    let departure = Departure { step: 9, now: arrival.now, reply: &reply, is_answered: true, cost: None, tokens: 7 };
    if let Some(mut watch) = RunWatch::unpack(bytes) {
        prop_assert!(watch.bytes() <= 2 * RUN_BYTES);
        let merged = RunWatch::merge(&watch, RunWatch::default());
        prop_assert!(RunWatch::unpack(&merged.pack()).is_some());
        watch.arrive(&arrival, &rules);
        watch.depart(&departure);
        prop_assert!(RunWatch::unpack(&watch.pack()).is_some());
    }
    if let Some(mut watch) = AgentWatch::unpack(bytes) {
        watch.arrive(1, false, &arrival, &rules);
        watch.depart(1, &departure, &rules);
        prop_assert!(AgentWatch::unpack(&watch.pack()).is_some());
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_watch_that_travels_sees_what_one_that_stays_does(events in prop::collection::vec(happens(), 0..120)) {
        let (run, agent) = follow(&events);
        prop_assert!(run.len() <= PACKED_RUN_BYTES && agent.len() <= PACKED_AGENT_BYTES);
        // Merged with itself, a watch stays as it is.
        let watch = RunWatch::unpack(&run).unwrap();
        prop_assert_eq!(RunWatch::merge(&watch, watch.clone()).pack(), run);
        let watch = AgentWatch::unpack(&agent).unwrap();
        prop_assert_eq!(AgentWatch::merge(&watch, watch.clone()).pack(), agent);
    }

    #[test]
    fn two_watches_that_come_together_stay_within_their_bounds(
        [before, mine, theirs] in prop::array::uniform3(prop::collection::vec(happens(), 0..40)),
    ) {
        let [(run, agent), (other_run, other_agent)] = both(&before, &mine, &theirs);
        let merged = RunWatch::merge(&run, other_run);
        prop_assert!(merged.bytes() <= 2 * RUN_BYTES);
        prop_assert!(RunWatch::unpack(&merged.pack()).is_some());
        let merged = AgentWatch::merge(&agent, other_agent);
        prop_assert!(AgentWatch::unpack(&merged.pack()).is_some());
    }

    #[test]
    fn what_comes_together_twice_changes_nothing(
        [before, mine, theirs] in prop::array::uniform3(prop::collection::vec(happens(), 0..6)),
    ) {
        // Which one of two is the retry of the other is told by the last requests only: here nobody tries again.
        let [before, mine, theirs] = [(0, before), (100, mine), (200, theirs)].map(|(first, events)| without_retries(first, events));
        let [(run, agent), (other_run, other_agent)] = both(&before, &mine, &theirs);
        let merged = RunWatch::merge(&run, other_run.clone());
        prop_assert_eq!(RunWatch::merge(&merged, other_run).pack(), merged.pack());
        prop_assert_eq!(RunWatch::merge(&merged, run).pack(), merged.pack());
        let merged = AgentWatch::merge(&agent, other_agent.clone());
        prop_assert_eq!(AgentWatch::merge(&merged, other_agent).pack(), merged.pack());
        prop_assert_eq!(AgentWatch::merge(&merged, agent).pack(), merged.pack());
    }

    #[test]
    fn bytes_that_somebody_touched_do_no_harm(
        events in prop::collection::vec(happens(), 1..60),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u8), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let (run, agent) = follow(&events);
        for bytes in [run, agent] {
            let mut flipped = bytes.clone();
            for (at, bit) in &flips {
                let at = at.index(flipped.len());
                flipped[at] ^= 1 << bit;
            }
            read_touched(&flipped)?;
            let shorter = &bytes[..cut.index(bytes.len())];
            prop_assert!(RunWatch::unpack(shorter).is_none() && AgentWatch::unpack(shorter).is_none(), "cut");
            let longer = [&bytes[..], &[0]].concat();
            prop_assert!(RunWatch::unpack(&longer).is_none() && AgentWatch::unpack(&longer).is_none(), "more");
        }
    }

    #[test]
    fn bytes_that_nobody_wrote_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        read_touched(&bytes)?;
        for form in [RUN_FORM, AGENT_FORM] {
            read_touched(&[&[form], &bytes[..]].concat())?;
        }
    }
}

#[test]
fn bytes_of_another_form_or_too_many_say_nothing() {
    for (mut run, mut agent) in [follow(&[]), follow(&[Happens::Forgetting])] {
        assert!(RunWatch::unpack(&run).is_some() && AgentWatch::unpack(&agent).is_some());
        (run[0], agent[0]) = (RUN_FORM + 1, AGENT_FORM + 1);
        assert!(RunWatch::unpack(&run).is_none() && AgentWatch::unpack(&agent).is_none());
    }
    assert!(RunWatch::unpack(&[]).is_none() && AgentWatch::unpack(&[]).is_none());
    let (at_most, past) = (vec![RUN_FORM; PACKED_RUN_BYTES], vec![RUN_FORM; PACKED_RUN_BYTES + 1]);
    assert!(opened(&at_most, RUN_FORM, PACKED_RUN_BYTES).is_some(), "at the bound");
    assert!(opened(&past, RUN_FORM, PACKED_RUN_BYTES).is_none(), "past it");
}

#[test]
fn the_form_has_not_changed_under_its_number() {
    let request = |text: usize, said: Option<usize>| Happens::Request {
        opening: 1,
        said,
        calls: 1,
        results: usize::from(said.is_some()),
        text,
        is_continued: false,
        end: text as u64,
    };
    let answer = |text: usize| Happens::Answer { text, calls: 1, is_answered: true };
    let events = [request(0, None), answer(1), request(2, Some(1)), answer(4), request(3, Some(4)), answer(5)];
    let (run, agent) = follow(&events);
    let hash = |bytes: &[u8]| (bytes.len(), xxhash_rust::xxh3::xxh3_64(bytes));
    let (run, agent) = (hash(&run), hash(&agent));
    assert_eq!(
        (run, agent),
        ((233, 11_699_853_072_624_623_057), (117, 1_621_185_089_764_293_646)),
        "nodes of two versions would read each other's bytes: take the next FORM"
    );
}
