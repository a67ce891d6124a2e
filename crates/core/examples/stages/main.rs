//! One stage of the line at a time, for counting its instructions: `bench/instructions` runs this under callgrind.
//!
//!     stages                  names of all stages
//!     stages NAME [COUNT]     the stage so many times, after a warm-up that is not counted
//!
//! Only what happens inside `measured_stage` is counted: what a stage needs is made before. Times are not measured here,
//! nor is what the program does around the decisions (sockets, files, locks); whole requests are counted elsewhere.
#![expect(clippy::print_stdout, clippy::unwrap_used, clippy::panic, reason = "a tool for measuring")]

mod conversation;

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use conversation::Conversation;
use sprag_core::dlp::{
    Direction, DlpPolicy, Flow, Inspector, Scanner, Seen, Sightings, StreamFilter, inspect_json, ranges_of,
};
use sprag_core::event::{Ending, Event, EventKind, RunOrigin, RunRecord};
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::{AgentWatch, Arrival, Decision, Departure, Rules, RunWatch, read_turn};
use sprag_core::policy::{Facts, Policy, RunProgress, Weighed, judge};
use sprag_core::price::{Prices, cost};
use sprag_core::run::{Brought, Scope, Signs, at_opening, at_settling, evidence, name_run};
use sprag_core::time::Timestamp;
use sprag_core::wire::sse::Splitter;
use sprag_core::wire::{Call, Dialect, Reply, Tap, read_history};

const PATH: &str = "/v1/chat/completions";
/// Records, caches and pools are full by then.
const WARM_UP: usize = 50;
const SOURCES: [RunOrigin; 5] =
    [RunOrigin::Declared, RunOrigin::Session, RunOrigin::Previous, RunOrigin::Trace, RunOrigin::Conversation];

type Stage = (&'static str, fn(usize));

const STAGES: [Stage; 14] = [
    ("parse_1kb", |count| parse(0, 650, count)),
    ("parse_100kb", |count| parse(100, 2048, count)),
    ("identify_step_10", |count| identify(10, count)),
    ("identify_step_1000", |count| identify(1000, count)),
    ("detect_step_10", |count| detect(10, count)),
    ("detect_step_1000", |count| detect(1000, count)),
    ("dlp_1kb", |count| inspect_request(0, count)),
    ("dlp_2kb_new_of_100kb", |count| inspect_request(100, count)),
    ("judge", weigh),
    ("read_answer", read_answer),
    ("dlp_answer", inspect_answer),
    ("settle", settle),
    ("event_as_json", write_event),
    ("chunk_through_filter_and_tap", stream),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = words.first() else {
        STAGES.iter().for_each(|(name, _)| println!("{name}"));
        return;
    };
    let Some((_, run)) = STAGES.iter().find(|(known, _)| known == name) else { panic!("there is no stage {name:?}") };
    run(words.get(1).map_or(100, |count| count.parse().unwrap()));
}

/// Lets `work` loose on what `make` gives, and counts only the former.
fn count<I>(times: usize, mut make: impl FnMut(usize) -> I, mut work: impl FnMut(&I)) {
    for nth in 0..WARM_UP {
        work(&make(nth));
    }
    for nth in WARM_UP..WARM_UP + times {
        let given = make(nth);
        measured_stage(&mut work, &given);
    }
}

/// The name by which callgrind knows what to count.
#[inline(never)]
fn measured_stage<I>(work: &mut dyn FnMut(&I), given: &I) {
    work(black_box(given));
    // Nothing may stand in for the return: callgrind would miss where the function ends.
    black_box(given);
}

fn parse(kb: usize, new_bytes: usize, times: usize) {
    let mut conversation = Conversation::with_history(kb << 10);
    count(
        times,
        |_| conversation.next_body(new_bytes),
        |body| {
            black_box(Call::parse(Dialect::OpenaiChat, PATH, body).unwrap());
        },
    );
}

/// Who calls and which run it is, by the evidence in the conversation: what is known of the history is not read again.
fn identify(step: usize, times: usize) {
    let mut conversation = Conversation::of_steps(step);
    let scope = Scope::new(&AgentName::default(), Some(b"key"));
    let mut marks = HashMap::new();
    let make = |_| {
        let body: &'static [u8] = conversation.next_body(400).leak();
        Call::parse(Dialect::OpenaiChat, PATH, body).unwrap()
    };
    count(times, make, |call| {
        let signs = Signs::read(|_| None);
        let named = name_run(&signs, Some(call), &SOURCES, None, |_| false).unwrap();
        assert!(named.is_none());
        let history = read_history(call, |raw| marks.get(&raw).copied());
        let brought = Brought { history: history.as_ref(), ..Brought::default() };
        black_box(evidence(scope, brought, &SOURCES));
        black_box(at_opening(scope, None, history.as_ref(), false));
        marks.extend(history.unwrap().marks);
    });
}

/// All detectors that look at a request, at a certain step of a run.
fn detect(step: usize, times: usize) {
    let rules = Rules::default();
    let (mut run, mut agent) = (RunWatch::default(), AgentWatch::default());
    // The watch does not see the history, so it may be short until it counts.
    let mut short = Conversation::of_steps(2);
    for number in 1..step.max(WARM_UP) {
        let body = short.latest_only(2000);
        let call = Call::parse(Dialect::OpenaiChat, PATH, &body).unwrap();
        look(&call, number, &rules, &mut run, &mut agent);
        leave(&short.reply(), number, &rules, &mut run, &mut agent);
    }
    let mut conversation = Conversation::of_steps(step);
    let mut number = step;
    let make = |_| {
        let body: &'static [u8] = conversation.next_body(2000).leak();
        number += 1;
        (Call::parse(Dialect::OpenaiChat, PATH, body).unwrap(), number)
    };
    count(times, make, |(call, number)| look(call, *number, &rules, &mut run, &mut agent));
}

fn look(call: &Call<'_>, number: usize, rules: &Rules, run: &mut RunWatch, agent: &mut AgentWatch) {
    let turn = read_turn(call, false);
    let (step, now) = (u32::try_from(number).unwrap(), Timestamp(number as i64 * 1000));
    let arrival = Arrival { step, now, end: Some(number as u64), turn: &turn, is_declared: false };
    let found = run.arrive(&arrival, rules);
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    assert!(agent.arrive(1, run.is_retry(), &arrival, rules).is_empty());
}

fn leave(reply: &Reply, number: usize, rules: &Rules, run: &mut RunWatch, agent: &mut AgentWatch) {
    let (step, now) = (u32::try_from(number).unwrap(), Timestamp(number as i64 * 1000));
    let departure = Departure { step, now, reply, is_answered: true, cost: None, tokens: 1000 };
    run.depart(&departure);
    agent.depart(1, &departure, rules);
}

fn inspector() -> Inspector {
    Inspector {
        scanner: Arc::new(Scanner::default()),
        policy: Arc::new(DlpPolicy::default()),
        vault: Some(Arc::default()),
    }
}

/// Secrets in a request whose history was looked at before.
fn inspect_request(history_kb: usize, times: usize) {
    let (inspector, seen) = (inspector(), Seen::new(7));
    let mut conversation = Conversation::with_history(history_kb << 10);
    let new_bytes = if history_kb == 0 { 650 } else { 2048 };
    let make = |_| {
        let body: &'static [u8] = conversation.next_body(new_bytes).leak();
        (body, Call::parse(Dialect::OpenaiChat, PATH, body).unwrap())
    };
    count(times, make, |(body, call)| {
        let items = ranges_of(body, call.items.iter().chain(&call.fixed).copied());
        let mut sightings = Sightings::default();
        let way = Direction::Request;
        let inspected = inspect_json(&inspector, way, Dialect::OpenaiChat, body, &items, Some(&seen), &mut sightings);
        assert!(inspected.edits.is_empty());
    });
}

/// The order of judgement, with nothing that stops the call. What its closures do has figures of its own.
fn weigh(times: usize) {
    let policy = Policy::default();
    let runs = [RunProgress { run: RunId::parse("run-1").unwrap(), steps: 3, age_ms: 500, is_declared: true }];
    count(
        times,
        |_| (),
        |()| {
            let facts = Facts {
                now: Timestamp(1_770_000_000_000),
                kill: None,
                standing: None,
                policy: &policy,
                is_llm: true,
                model: Some("gpt-4o"),
                other_models: &[],
                is_priced: true,
                blocks_unpriced: false,
                agent_in_flight: 1,
                max_agent_in_flight: 1000,
                runs: &runs,
            };
            let judgement = judge(&facts, Weighed::default, Decision::default, || None, || Some(Weighed::default()));
            assert!(judgement.unwrap().verdict.is_ok());
        },
    );
}

fn read_answer(times: usize) {
    let mut conversation = Conversation::of_steps(1);
    count(
        times,
        |_| conversation.answer(),
        |answer| {
            let mut tap = Tap::new(Dialect::OpenaiChat);
            tap.json(answer);
            assert!(black_box(tap.into_reply()).complete);
        },
    );
}

fn inspect_answer(times: usize) {
    let inspector = inspector();
    let mut conversation = Conversation::of_steps(1);
    count(
        times,
        |_| conversation.answer(),
        |answer| {
            let mut sightings = Sightings::default();
            let way = Direction::Answer;
            let inspected = inspect_json(&inspector, way, Dialect::OpenaiChat, answer, &[], None, &mut sightings);
            assert!(inspected.edits.is_empty());
        },
    );
}

/// What an answer changes: its cost, what detection keeps of it, and the evidence for later requests.
fn settle(times: usize) {
    let (rules, prices) = (Rules::default(), Prices::embedded());
    let (mut run, mut agent) = (RunWatch::default(), AgentWatch::default());
    let scope = Scope::new(&AgentName::default(), Some(b"key"));
    let mut conversation = Conversation::of_steps(10);
    let mut number = 0;
    let make = |_| {
        let body: &'static [u8] = conversation.next_body(400).leak();
        let call = Call::parse(Dialect::OpenaiChat, PATH, body).unwrap();
        let history = read_history(&call, |_| None);
        let mut tap = Tap::new(Dialect::OpenaiChat);
        tap.json(&conversation.answer());
        (history, tap.into_reply())
    };
    count(times, make, |(history, reply)| {
        number += 1;
        let price = prices.find("openai", "gpt-4o").unwrap();
        black_box(cost(price, &reply.usage.unwrap()));
        leave(reply, number, &rules, &mut run, &mut agent);
        black_box(at_settling(scope, history.as_ref(), reply, true, false));
    });
}

fn write_event(times: usize) {
    let make = |nth: usize| {
        let mut event = Event::new(format!("req_{nth:026}"), Timestamp(1_770_000_000_000), EventKind::LlmCall);
        let run = RunId::parse(&format!("run_{nth:026}")).unwrap();
        event.run = Some(RunRecord { id: run, step: 3, parent: None, origin: RunOrigin::Conversation });
        (event.provider, event.dialect) = ("openai".into(), Dialect::OpenaiChat);
        (event.path, event.model) = (format!("POST {PATH}"), Some("gpt-4o".into()));
        (event.status, event.ending, event.total_ms) = (200, Ending::Complete, 812);
        event.finish = Some("stop".into());
        event
    };
    let mut line = Vec::new();
    count(times, make, |event| {
        line.clear();
        assert!(event.write_json(&mut line));
    });
}

/// One chunk of a stream: found in the bytes, looked through for secrets, read.
fn stream(times: usize) {
    let (mut splitter, mut tap) = (Splitter::new(), Tap::new(Dialect::OpenaiChat));
    let mut filter = StreamFilter::new(inspector(), Dialect::OpenaiChat);
    let mut conversation = Conversation::of_steps(1);
    let mut passed = Vec::new();
    count(
        times,
        |_| Bytes::from(conversation.chunk()),
        |chunk| {
            let block = splitter.push(chunk.clone());
            let mut start = 0;
            for end in block.ends {
                assert_eq!(filter.push(block.bytes.slice(start..end), &mut passed), Flow::Passed);
                start = end;
                for event in passed.drain(..) {
                    black_box(tap.event(&event));
                }
            }
        },
    );
}
