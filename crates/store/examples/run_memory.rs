//! What a live run keeps in memory: opens many runs, lets them take steps, and looks at the process.
//!
//!     run_memory [RUNS]
//!     run_memory one KIND declared|inferred STEPS RUNS
//!
//! Without `one`, each line is measured in a process of its own. All runs are live at once; they begin one
//! after the other and go on in turns, as they do behind a proxy. Numbers are bytes per run of the process's resident memory, allocator's overhead included; the
//! last column is what the detectors' record says of itself.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for measuring")]

use std::borrow::Cow;

use sprag_core::event::{Ending, RunOrigin};
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::HISTORY_MARKS;
use sprag_core::loops::{Arrival, Departure, Rules, Said, ToolResult, ToolUse, Turn};
use sprag_core::money::NanoUsd;
use sprag_core::run::Remember;
use sprag_core::time::Timestamp;
use sprag_core::usage::Usage;
use sprag_core::wire::{Mark, Reply, ToolCall};
use sprag_store::RunKey;
use sprag_store::state::{OpenRequest, Recent, Settlement, State};

const AGENTS: u64 = 10_000;
/// Texts that results and answers are taken from, by size in bytes.
const TEXTS: usize = 512;
/// Clues and marks that a request leaves behind.
const CLUES: u64 = 5;
const MARKS: u64 = 3;
/// Runs that begin at the same time.
const GROUP: u64 = 500;
const TOOLS: [&str; 6] = ["read_file", "grep", "run_tests", "apply_patch", "list_directory", "web_search"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Calls of tools, and their results of 0.2 to 4 KB.
    Tools,
    /// Answers and prompts of a few hundred bytes to 2 KB.
    Talk,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [one, kind, declared, steps, runs] = &words[..]
        && one == "one"
    {
        let kind = if kind == "Talk" { Kind::Talk } else { Kind::Tools };
        return measure(kind, declared == "declared", steps.parse().unwrap(), runs.parse().unwrap());
    }
    let runs: u64 = words.first().map_or(100_000, |runs| runs.parse().unwrap());
    println!(
        "| turns | run | steps | all | record | detection | clues | offers | marks | detection by its own count |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---|");
    for kind in [Kind::Tools, Kind::Talk] {
        for declared in ["inferred", "declared"] {
            for steps in [1, 5, 20, 50] {
                let arguments = ["one", &format!("{kind:?}"), declared, &steps.to_string(), &runs.to_string()];
                let program = std::env::current_exe().unwrap();
                assert!(std::process::Command::new(program).args(arguments).status().unwrap().success());
            }
        }
    }
}

fn measure(kind: Kind, is_declared: bool, steps: u32, runs: u64) {
    let texts: Vec<String> =
        (0..TEXTS).map(|n| prose(n as u64, if n % 2 == 0 { 200 + n * 7 } else { 200 + n })).collect();
    let rules = Rules::default();
    let state = State::memory();
    let marks: Recent<Mark> = Recent::new(HISTORY_MARKS);
    for agent in 0..AGENTS {
        state.watch_agent(&key(agent).agent, Timestamp(0), |_| ());
    }
    // What the detectors need while they work is no part of a run.
    drop(vec![1_u8; 1 << 20]);

    let mut seen = vec![resident()];
    for run in 0..runs {
        open(&state, &key(run), is_declared, 0);
    }
    seen.push(resident());
    // Runs begin one after the other: at each moment some are at their first step, and some at their last.
    for (run, step) in in_turns(runs, steps) {
        let key = key(run);
        let step = if step == 1 { 1 } else { open(&state, &key, is_declared, i64::from(step)) };
        take_step(&state, &key, run, step, kind, is_declared, &rules, &texts);
        let cost = Some(NanoUsd(1000));
        let usage = Some(Usage { input: 1000, output: 100, ..Usage::default() });
        let now = Timestamp(i64::from(step) * 9000);
        state.settle(&key, Settlement { cost, usage, ending: Ending::Complete, now });
    }
    seen.push(resident());
    let each_step = |mut work: Box<dyn FnMut(u64, u64) + '_>| {
        for step in 1..=u64::from(steps) {
            (0..runs).for_each(|run| work(run, mix(run << 20 | step)));
        }
        resident()
    };
    seen.push(each_step(Box::new(|run, clue| {
        let clues: Vec<u64> = (0..CLUES).map(|n| mix(clue + n)).collect();
        state.remember(&clues, &key(run));
    })));
    seen.push(each_step(Box::new(|run, clue| {
        if !is_declared {
            state.keep(&Remember { offers: vec![clue], ..Remember::default() }, &key(run));
        }
    })));
    seen.push(each_step(Box::new(|_, clue| {
        let mark = |n| Mark { chain: n, last_answer: Some((n, n)), last_input: n };
        (0..MARKS).for_each(|n| marks.insert(mix(clue + n), mark(n)));
    })));

    assert_eq!(state.counts().runs as u64, runs, "all are there");
    let mut own = (0, [("", 0); 4]);
    for run in 0..runs {
        let (bytes, parts) = state.watch(&key(run), |watch| (watch.bytes(), watch.bytes_of_parts())).unwrap();
        own.0 += bytes;
        (0..parts.len()).for_each(|at| own.1[at] = (parts[at].0, own.1[at].1 + parts[at].1));
    }
    let per_run = |bytes: usize| bytes as u64 / runs;
    let grown: Vec<u64> = seen.windows(2).map(|pair| per_run(pair[1].saturating_sub(pair[0]))).collect();
    let all = grown.iter().sum::<u64>();
    let [record, detection, clues, offers, marks] = grown[..] else { return };
    let parts: Vec<String> = own.1.iter().map(|(name, bytes)| format!("{name} {}", per_run(*bytes))).collect();
    let kind = format!("{kind:?}").to_lowercase();
    let declared = if is_declared { "declared" } else { "inferred" };
    println!(
        "| {kind} | {declared} | {steps} | {all} | {record} | {detection} | {clues} | {offers} | {marks} | {}: {} |",
        per_run(own.0),
        parts.join(", ")
    );
}

/// Which run takes which step, one after the other.
fn in_turns(runs: u64, steps: u32) -> impl Iterator<Item = (u64, u32)> {
    let groups = runs.div_ceil(GROUP);
    (0..groups + u64::from(steps)).flat_map(move |moment| {
        let begun = (0..groups.min(moment + 1)).rev().map(move |group| (group, moment - group + 1));
        let working = begun.take_while(move |(_, step)| *step <= u64::from(steps));
        working.flat_map(move |(group, step)| {
            (group * GROUP..runs.min((group + 1) * GROUP)).map(move |run| (run, step as u32))
        })
    })
}

fn open(state: &State, key: &RunKey, is_declared: bool, at: i64) -> u32 {
    let origin = if is_declared { RunOrigin::Declared } else { RunOrigin::Conversation };
    let now = Timestamp(at * 9000);
    let request = OpenRequest { key: key.clone(), parent: None, origin, now, seed: None, lineage: Vec::new() };
    state.open(&request).unwrap().step
}

#[expect(clippy::too_many_arguments, reason = "all of them are one step")]
fn take_step(
    state: &State,
    key: &RunKey,
    run: u64,
    step: u32,
    kind: Kind,
    is_declared: bool,
    rules: &Rules,
    texts: &[String],
) {
    let random = mix(run << 20 | u64::from(step));
    let text = |n: u64| &*texts[(random >> (8 * n)) as usize % TEXTS];
    let said = |random: u64| {
        let tool = TOOLS[random as usize % TOOLS.len()];
        let words = prose(random, 30);
        (tool, format!(r#"{{"path":"src/module_{}.rs","query":"{words}","line":{}}}"#, random % 97, random % 1000))
    };
    let mut turn = Turn { opening: mix(run), items: 2 * step as usize, ..Turn::default() };
    if step == 1 {
        turn.user_text = Cow::Borrowed(text(0));
    } else if kind == Kind::Tools {
        let (name, arguments) = said(mix(run << 20 | u64::from(step - 1)));
        let id = format!("call_{run}_{step}");
        let call = ToolUse { id: id.clone().into(), name: name.into(), arguments: arguments.into() };
        turn.said = Some(Said { text: Cow::Borrowed(""), calls: vec![call] });
        let result = [text(1), &random.to_string()].concat();
        turn.results = vec![ToolResult { call_id: id.into(), text: result.into(), ..ToolResult::default() }];
    } else {
        turn.said = Some(Said { text: Cow::Borrowed(text(2)), calls: Vec::new() });
        turn.user_text = [text(3), &prose(random, 100)].concat().into();
    }
    let mut reply = Reply { complete: true, ..Reply::default() };
    if kind == Kind::Tools {
        let (name, arguments) = said(random);
        reply.tool_calls = vec![ToolCall { id: format!("call_{run}_{}", step + 1), name: name.into(), arguments }];
    } else {
        reply.text = text(4).to_owned();
    }
    let now = Timestamp(i64::from(step) * 9000 + 1_700_000_000_000);
    let arrival = Arrival { step, now, end: Some(random), turn: &turn, is_declared };
    state.watch(key, |watch| watch.arrive(&arrival, rules)).unwrap();
    let departure = Departure { step, now, reply: &reply, is_answered: true, cost: None, tokens: 100 };
    state.watch(key, |watch| watch.depart(&departure)).unwrap();
}

/// Names as requests bring them: each its own copy.
fn key(run: u64) -> RunKey {
    RunKey {
        agent: AgentName::parse(&format!("agent-{:05}", run % AGENTS)).unwrap(),
        id: RunId::parse(&format!("3f2c9a4e-7b1d-4c8e-9f06-{run:012}")).unwrap(),
    }
}

fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Made-up words.
fn prose(seed: u64, bytes: usize) -> String {
    const SYLLABLES: [&str; 16] =
        ["ta", "ren", "mo", "shi", "lak", "ver", "no", "pul", "i", "cor", "dan", "es", "fu", "gri", "hol", "as"];
    let mut text = String::new();
    let mut random = mix(seed + 1);
    while text.len() < bytes {
        random = mix(random);
        (0..1 + random % 4).for_each(|part| text.push_str(SYLLABLES[(random >> (8 + 4 * part)) as usize % 16]));
        text.push(' ');
    }
    text
}

/// Bytes of the process that are in memory.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
