//! The script: what each agent's model answers at each step, and what its tool gives back.
//!
//! Pure: the scripted provider and the agents read the same page.

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

/// A member of the cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Role {
    /// Reads its way through a topic, page after page.
    Researcher,
    /// Edits and runs tests until they pass.
    Coder,
    /// Answers short questions of customers.
    Support,
    /// Asks for a page that is not there, all night.
    NightShift,
    /// Moves a ticket to and fro.
    Pendulum,
    /// Feeds whole books to an expensive model.
    BigSpender,
    /// Reads a file with a key in it and tells the model.
    Leaky,
    /// Waits for a ledger that is closed; somebody has to approve.
    Payments,
}

/// One answer of the model, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scene {
    /// What it says.
    pub(super) says: String,
    /// The tool that it calls; none ends the task.
    pub(super) calls: Option<ToolCall>,
    /// What the provider says that it used.
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
}

/// A tool, its arguments, and what it gives back.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolCall {
    pub(super) name: &'static str,
    pub(super) arguments: Value,
    pub(super) gives: String,
}

/// The last step at which `Payments` is stuck: the next one is where it is paused, and goes on when it is approved.
const STUCK_UNTIL: u32 = 5;
const TOPICS: [&str; 4] = ["heat pumps", "tidal power", "sodium batteries", "district heating"];
const MODULES: [&str; 4] = ["parser", "router", "cache", "scheduler"];

impl Role {
    /// All of them, in the order in which they come on.
    pub(super) const ALL: [Role; 8] = [
        Role::Researcher,
        Role::NightShift,
        Role::Coder,
        Role::Leaky,
        Role::Support,
        Role::BigSpender,
        Role::Pendulum,
        Role::Payments,
    ];

    /// Its name, as an agent.
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Researcher => "researcher",
            Role::Coder => "coder",
            Role::Support => "support",
            Role::NightShift => "night-shift",
            Role::Pendulum => "pendulum",
            Role::BigSpender => "big-spender",
            Role::Leaky => "leaky",
            Role::Payments => "payments",
        }
    }

    /// What it does, for the playbill.
    pub(super) fn part(self) -> &'static str {
        match self {
            Role::Researcher => "reads its way through a topic",
            Role::Coder => "edits and runs tests until they pass",
            Role::Support => "answers customers",
            Role::NightShift => "asks for a page that is not there, again and again",
            Role::Pendulum => "moves a ticket to and fro",
            Role::BigSpender => "feeds whole books to an expensive model",
            Role::Leaky => "reads a file with a key in it, and tells the model",
            Role::Payments => "is stuck, and may go on when you approve",
        }
    }

    /// The role of a name.
    pub(super) fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    /// The model that it asks.
    pub(super) fn model(self) -> &'static str {
        match self {
            Role::Support | Role::Leaky => "gpt-4o-mini",
            Role::Researcher | Role::Payments => "gpt-4.1-mini",
            Role::Coder | Role::NightShift | Role::Pendulum => "gpt-4.1",
            Role::BigSpender => "gpt-4o",
        }
    }

    /// What its user asks for.
    pub(super) fn opening(self, task: u32) -> String {
        match self {
            Role::Researcher => format!("Write a page about {}, with sources.", one_of(&TOPICS, task)),
            Role::Coder => format!("The tests of the {} fail since this morning. Mend it.", one_of(&MODULES, task)),
            Role::Support => format!("Where is my order {}?", order(task)),
            Role::NightShift => {
                format!("Fetch last night's report, number {task}, and put its figures into the table.")
            }
            Role::Pendulum => format!("Sort ticket {} into the right column.", 80 + task),
            Role::BigSpender => format!("Read volume {task} of the archive and tell me everything of note."),
            Role::Leaky => format!("Why does service {task} not start? Its settings are in .env."),
            Role::Payments => format!("Book the payments of day {task} in the ledger."),
        }
    }

    /// The model's answer at a step, 1 for the first.
    pub(super) fn scene(self, task: u32, step: u32) -> Scene {
        let (says, calls) = match self {
            Role::Researcher => research(task, step),
            Role::Coder => code(task, step),
            Role::Support => support(task, step),
            Role::NightShift => night_shift(task, step),
            Role::Pendulum => pendulum(task, step),
            Role::BigSpender => big_spender(task, step),
            Role::Leaky => leaky(task, step),
            Role::Payments => payments(task, step),
        };
        let per_step = if self == Role::BigSpender { 16_000 } else { 420 };
        let output_tokens = 30 + says.len() as u64 / 4;
        Scene { says, calls, input_tokens: 900 + per_step * u64::from(step), output_tokens }
    }

    /// Whether it does its work, and must never be stopped.
    pub(super) fn is_healthy(self) -> bool {
        matches!(self, Role::Researcher | Role::Coder | Role::Support)
    }
}

type Move = (String, Option<ToolCall>);

fn call(name: &'static str, arguments: Value, gives: impl Into<String>) -> Option<ToolCall> {
    Some(ToolCall { name, arguments, gives: gives.into() })
}

fn research(task: u32, step: u32) -> Move {
    let topic = one_of(&TOPICS, task);
    match step {
        1..=12 if step % 3 == 1 => {
            let query = format!("{topic}, part {}", step / 3 + 1);
            let found = format!("{} results for {query}: {}", 7 + step, words(task, step, 12));
            ("Let me search for the next part.".to_owned(), call("search", json!({"query": query}), found))
        }
        1..=12 => {
            let page = format!("https://library.example/{}/{task}/{step}", topic.replace(' ', "-"));
            let text = format!("{topic}, page {step}. {}", words(task, step, 40));
            (format!("Source {step} looks useful; I read it."), call("read_page", json!({"url": page}), text))
        }
        _ => (format!("Here is your page about {topic}, with eight sources. {}", words(task, step, 30)), None),
    }
}

fn code(task: u32, step: u32) -> Move {
    let module = one_of(&MODULES, task);
    let failing = 8_u32.saturating_sub(step / 2);
    match step {
        1 => {
            let source = format!("// {module}.rs\n{}", words(task, step, 50));
            (
                "I look at the source first.".to_owned(),
                call("read_file", json!({"path": format!("src/{module}.rs")}), source),
            )
        }
        2..=15 if step.is_multiple_of(2) => {
            let report = format!("{} passed, {failing} failed: {}", 40 - failing, words(task, step, 8));
            (format!("Run {} of the tests.", step / 2), call("run_tests", json!({"package": module}), report))
        }
        2..=15 => {
            let change = json!({"path": format!("src/{module}.rs"), "line": 11 * step, "text": words(task, step, 6)});
            (
                format!("{failing} still fail; line {} is the reason.", 11 * step),
                call("edit_file", change, format!("changed line {}", 11 * step)),
            )
        }
        _ => (format!("All 40 tests of the {module} pass. {}", words(task, step, 12)), None),
    }
}

fn support(task: u32, step: u32) -> Move {
    let order = order(task);
    match step {
        1 => {
            let state = format!(
                "order {order}: packed on day {}, {} parcels, carrier {}",
                task % 28 + 1,
                task % 3 + 1,
                words(task, 1, 1)
            );
            ("One moment, I look it up.".to_owned(), call("find_order", json!({"order": order}), state))
        }
        _ => (format!("Your order {order} is on its way and arrives in {} days.", task % 4 + 1), None),
    }
}

fn night_shift(task: u32, step: u32) -> Move {
    let url = format!("https://reports.example/night/{task}.csv");
    match step {
        1 => {
            let listed = format!("night/{task}.csv, night/{task}.log: {}", words(task, 1, 4));
            ("I look for the report.".to_owned(), call("list_files", json!({"folder": "night"}), listed))
        }
        _ => (
            "The page did not load. I try again.".to_owned(),
            call("fetch_page", json!({"url": url}), "error: 502 Bad Gateway"),
        ),
    }
}

fn pendulum(task: u32, step: u32) -> Move {
    let (ticket, column) = (80 + task, if step % 2 == 1 { "backlog" } else { "triage" });
    let says = format!("Ticket {ticket} belongs into {column}.");
    (says, call("move_ticket", json!({"ticket": ticket, "to": column}), format!("ticket {ticket} is in {column}")))
}

fn big_spender(task: u32, step: u32) -> Move {
    let text = format!("volume {task}, chapter {step}: {}", words(task, step, 60));
    (
        format!("Chapter {step} has much to tell. On to the next."),
        call("read_chapter", json!({"volume": task, "chapter": step}), text),
    )
}

fn leaky(task: u32, step: u32) -> Move {
    match step {
        1 => {
            let settings = format!(
                "PORT=80{task:02}\nOPENAI_API_KEY={}\nOWNER=anna.berg{task}@corp.example.org",
                made_up_key(task)
            );
            ("I read the settings.".to_owned(), call("read_file", json!({"path": ".env"}), settings))
        }
        2 => {
            let log = format!("listen on 80{task:02}: address already in use, {}", words(task, 2, 3));
            ("The settings are whole; I look at the log.".to_owned(), call("read_log", json!({"service": task}), log))
        }
        _ => (format!("Port 80{task:02} is taken by another service; choose another."), None),
    }
}

fn payments(task: u32, step: u32) -> Move {
    match step {
        1 => {
            let list = format!("{} payments of day {task}: {}", 20 + task, words(task, 1, 5));
            ("I fetch the payments.".to_owned(), call("list_payments", json!({"day": task}), list))
        }
        2..=STUCK_UNTIL => (
            "The ledger is closed. I try again.".to_owned(),
            call("open_ledger", json!({"day": task}), "error: the ledger is closed"),
        ),
        6 => {
            let booked = format!("ledger open, {} payments booked, {}", 20 + task, words(task, 7, 3));
            ("Now it opens.".to_owned(), call("book_all", json!({"day": task}), booked))
        }
        _ => (format!("All {} payments of day {task} are booked.", 20 + task), None),
    }
}

fn one_of(list: &[&'static str], task: u32) -> &'static str {
    list.get(task as usize % list.len()).copied().unwrap_or_default()
}

fn order(task: u32) -> u32 {
    48_100 + task * 37
}

/// A key that opens nothing, other for each task. Made here, so that no scanner of source code takes it for a real one.
fn made_up_key(task: u32) -> String {
    let digits = (0..5_u32).map(|part| format!("{:016x}", noise(task, part)));
    format!("sk-proj-{}", digits.collect::<String>().get(..48).unwrap_or_default())
}

/// Words that are the same for a step each time, and others for every other step.
fn words(task: u32, step: u32, count: u32) -> String {
    const WORDS: [&str; 32] = [
        "harbour", "copper", "winter", "ledger", "valley", "signal", "orchard", "engine", "paper", "river", "lantern",
        "market", "bridge", "silver", "garden", "window", "thread", "summit", "anchor", "meadow", "canvas", "timber",
        "beacon", "quarry", "saddle", "compass", "furnace", "island", "mirror", "pepper", "rocket", "violin",
    ];
    let word = |at: u32| one_of(&WORDS, noise(task * 1000 + step, at) as u32);
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

fn noise(seed: u32, at: u32) -> u64 {
    xxh3_64(&(u64::from(seed) << 32 | u64::from(at)).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_healthy_come_to_an_end_and_never_do_the_same_twice() {
        for role in Role::ALL.into_iter().filter(|role| role.is_healthy()) {
            for task in 1..50 {
                let scenes: Vec<_> = (1..=30).map(|step| role.scene(task, step)).collect();
                let end = scenes.iter().position(|scene| scene.calls.is_none()).unwrap();
                let mut seen: Vec<_> = scenes.iter().take(end).map(|scene| &scene.calls).collect();
                seen.sort_by_key(|calls| format!("{calls:?}"));
                seen.dedup();
                assert_eq!(seen.len(), end, "{role:?} {task}");
            }
        }
    }

    #[test]
    fn the_stuck_are_stuck() {
        let at = |role: Role, step| role.scene(3, step).calls;
        assert_eq!(at(Role::NightShift, 2), at(Role::NightShift, 40));
        assert_eq!(at(Role::Pendulum, 3), at(Role::Pendulum, 41));
        assert_ne!(at(Role::Pendulum, 3), at(Role::Pendulum, 4));
        assert_eq!(at(Role::Payments, 2), at(Role::Payments, STUCK_UNTIL));
        assert!(at(Role::Payments, STUCK_UNTIL + 2).is_none());
    }

    #[test]
    fn every_role_is_found_by_its_name() {
        for role in Role::ALL {
            assert_eq!(Role::named(role.name()), Some(role));
        }
        assert_eq!(Role::named("nobody"), None);
    }
}
