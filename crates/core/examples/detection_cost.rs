//! What detection costs per step: `bench/detection` runs this for time, and under callgrind for instructions.
//!
//!     detection_cost results|text HISTORY_KB STEPS [all]
//!     detection_cost bytes
//!     detection_cost packed
//!
//! Each step adds a turn of 2 KB to a conversation of `HISTORY_KB`: tool results, or text of a user. Only the detection
//! is measured: reading the turn, all detectors before the call, all detectors after it. Reading the body is the
//! proxy's work and is not. Rules and run are the usual ones; with `all` the run is declared and the agent's kill switch
//! is on, so that all detectors look.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for measuring")]

use std::time::{Duration, Instant};

use sprag_core::loops::{AgentWatch, Arrival, Departure, Mode, Preset, Rules, RunWatch, read_turn};
use sprag_core::time::Timestamp;
use sprag_core::wire::{Call, Dialect, Reply, ToolCall, read_history};

/// Steps before the first that is measured: all records are full by then.
const WARM_UP: usize = 50;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: usize| words.get(at).map_or(usual, |text| text.parse().unwrap());
    match words.first().map_or("results", String::as_str) {
        "bytes" => print_bytes(),
        "packed" => print_packed(),
        "text" => measure(Kind::Text, number(1, 100), number(2, 1000), words.len() > 3),
        _ => measure(Kind::Results, number(1, 100), number(2, 1000), words.len() > 3),
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Results,
    Text,
}

/// A conversation and what is kept of it.
struct Conversation {
    kind: Kind,
    is_declared: bool,
    /// Without the latest turn.
    history: String,
    rules: Rules,
    run: RunWatch,
    agent: AgentWatch,
    steps: usize,
}

impl Conversation {
    fn new(kind: Kind, history_kb: usize, all: bool) -> Conversation {
        let mut rules = Rules::preset(Preset::Balanced);
        if all {
            rules.score.common.mode = Mode::Enforce;
        }
        let mut history = r#"{"role":"user","content":"Fix all failing tests in the repository."}"#.to_owned();
        let mut number = 1 << 20;
        while history.len() < history_kb << 10 {
            history.push_str(&turn(kind, number));
            number += 1;
        }
        Conversation {
            kind,
            is_declared: all,
            history,
            rules,
            run: RunWatch::default(),
            agent: AgentWatch::default(),
            steps: 0,
        }
    }

    /// Takes the next step; gives the time that detection took.
    fn step(&mut self, detect: fn(&Step<'_>, &Rules, &mut RunWatch, &mut AgentWatch)) -> Duration {
        self.steps += 1;
        let latest = turn(self.kind, self.steps);
        let body = format!(r#"{{"model":"gpt-4o","messages":[{}{latest}]}}"#, self.history);
        let call = Call::parse(Dialect::OpenaiChat, "/v1/chat/completions", body.as_bytes()).unwrap();
        let end = read_history(&call, |_| None).map(|history| history.end);
        let reply = reply(self.kind, self.steps + 1);
        let number = u32::try_from(self.steps).unwrap();
        let step = Step { call: &call, end, reply: &reply, number, is_declared: self.is_declared };
        let began = Instant::now();
        detect(&step, &self.rules, &mut self.run, &mut self.agent);
        began.elapsed()
    }
}

/// What detection is given.
struct Step<'a> {
    call: &'a Call<'a>,
    end: Option<u64>,
    reply: &'a Reply,
    number: u32,
    is_declared: bool,
}

fn measure(kind: Kind, history_kb: usize, steps: usize, all: bool) {
    let mut conversation = Conversation::new(kind, history_kb, all);
    for _ in 0..WARM_UP {
        conversation.step(detect);
    }
    let mut times: Vec<Duration> = (0..steps).map(|_| conversation.step(measured_step)).collect();
    times.sort_unstable();
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let mean = us(times.iter().sum::<Duration>()) / steps as f64;
    let (median, slow) = (us(times[steps / 2]), us(times[steps * 99 / 100]));
    println!("{kind:?} {history_kb} {mean:.2} {median:.2} {slow:.2}");
}

fn print_bytes() {
    for kind in [Kind::Results, Kind::Text] {
        let mut conversation = Conversation::new(kind, 1, true);
        for step in 1..=1000 {
            conversation.step(detect);
            if [1, 5, 20, 1000].contains(&step) {
                println!("{kind:?} {step} {}", conversation.run.bytes());
            }
        }
    }
}

/// Bytes of a watch that is packed for another node, and the time to pack, to unpack and to merge it.
fn print_packed() {
    // The least of many: others may use the machine.
    let us = |work: &dyn Fn()| {
        let once = |_| {
            let began = Instant::now();
            work();
            began.elapsed()
        };
        (0..2000).map(once).min().unwrap_or_default().as_secs_f64() * 1e6
    };
    for (kind, all) in [(Kind::Results, false), (Kind::Results, true), (Kind::Text, false), (Kind::Text, true)] {
        let mut conversation = Conversation::new(kind, 1, all);
        for step in 1..=1000 {
            let before = conversation.run.clone();
            conversation.step(detect);
            if [10, 50, 200, 1000].contains(&step) {
                let (run, agent) = (&conversation.run, &conversation.agent);
                let (bytes, agent_bytes) = (run.pack(), agent.pack());
                let pack = us(&|| drop(std::hint::black_box(run.pack())));
                let unpack = us(&|| drop(std::hint::black_box(RunWatch::unpack(&bytes).unwrap())));
                let merge = us(&|| drop(std::hint::black_box(RunWatch::merge(&before, run.clone()))));
                let which = if all { "all" } else { "usual" };
                let (bytes, agent_bytes) = (bytes.len(), agent_bytes.len());
                println!("{which} {kind:?} {step} {bytes} {pack:.2} {unpack:.2} {merge:.2} {agent_bytes}");
            }
        }
    }
}

/// The name by which callgrind knows what to count.
#[inline(never)]
fn measured_step(step: &Step<'_>, rules: &Rules, run: &mut RunWatch, agent: &mut AgentWatch) {
    // Without this it would be the same code as `detect`, and under that name.
    std::hint::black_box(step.number);
    detect(step, rules, run, agent);
}

#[inline(never)]
fn detect(step: &Step<'_>, rules: &Rules, run: &mut RunWatch, agent: &mut AgentWatch) {
    let turn = read_turn(step.call, false);
    let now = Timestamp(i64::from(step.number) * 1000);
    let arrival = Arrival { step: step.number, now, end: step.end, turn: &turn, is_declared: step.is_declared };
    let findings = run.arrive(&arrival, rules).findings;
    assert!(findings.is_empty(), "{findings:?}");
    let findings = agent.arrive(1, run.is_retry(), &arrival, rules);
    assert!(findings.is_empty(), "{findings:?}");
    let departure =
        Departure { step: step.number, now, reply: step.reply, is_answered: true, cost: None, tokens: 1000 };
    run.depart(&departure);
    agent.depart(1, &departure, rules);
}

/// An answer, and 2 KB that come back.
fn turn(kind: Kind, number: usize) -> String {
    match kind {
        Kind::Results => {
            let lines: String = (0..40)
                .map(|line| {
                    format!("src/module_{number}.rs:{line}: value {} is {line} lines long\\n", number * 31 + line)
                })
                .collect();
            format!(
                concat!(
                    r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{0:024}","type":"function","#,
                    r#""function":{{"name":"grep","arguments":"{{\"pattern\":\"value_{0}\",\"path\":\"src\"}}"}}}}]}}"#,
                    r#",{{"role":"tool","tool_call_id":"call_{0:024}","content":"{1}"}}"#
                ),
                number, lines
            )
        }
        Kind::Text => format!(
            r#",{{"role":"assistant","content":"{}"}},{{"role":"user","content":"{}"}}"#,
            prose(number, 400),
            prose(number * 7 + 3, 2000)
        ),
    }
}

fn reply(kind: Kind, number: usize) -> Reply {
    match kind {
        Kind::Results => {
            let call = ToolCall {
                id: format!("call_{number:024}"),
                name: "grep".into(),
                arguments: format!(r#"{{"pattern":"value_{number}","path":"src"}}"#),
            };
            Reply { tool_calls: vec![call], complete: true, ..Reply::default() }
        }
        Kind::Text => Reply { text: prose(number, 400), complete: true, ..Reply::default() },
    }
}

/// Sentences of made-up words that do not repeat, with line ends as they stand in JSON.
fn prose(seed: usize, bytes: usize) -> String {
    const SYLLABLES: [&str; 16] =
        ["ta", "ren", "mo", "shi", "lak", "ver", "no", "pul", "i", "cor", "dan", "es", "fu", "gri", "hol", "as"];
    let mut random = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    let mut words = 0;
    while text.len() < bytes {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        for part in 0..1 + (random >> 8) % 4 {
            text.push_str(SYLLABLES[(random >> (16 + 4 * part)) as usize % 16]);
        }
        words += 1;
        text.push_str(if words % 60 == 0 {
            ".\\n"
        } else if words % 11 == 0 {
            ", "
        } else {
            " "
        });
    }
    text
}
