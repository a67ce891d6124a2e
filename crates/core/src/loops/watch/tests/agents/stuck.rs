//! Agents that are stuck, in ways that hide it.

use serde_json::{Value, json};

use super::{FORMS, Form, Run, Step, call, play, talk, word};
use crate::wire::Dialect;

/// Name, the most steps until it is stopped, and what it does.
type Loop = (&'static str, usize, fn(usize) -> Step);

const APOLOGIES: [&str; 6] = [
    "I apologize for the confusion, let me try this again.",
    "Sorry about that. I will attempt it once more.",
    "It seems there was a hiccup; retrying.",
    "Hmm, that did not work, perhaps it does now.",
    "My mistake. Let me run that another time.",
    "Let us give it one more go.",
];

fn sorry(n: usize) -> String {
    format!("{} ({})", APOLOGIES[n % 6], word(n * 5))
}

fn hexadecimal(n: usize) -> String {
    format!("{:08x}", (n as u32 + 1).wrapping_mul(2_654_435_761) | 0xa000_0001)
}

fn alternates(n: usize, period: usize) -> Step {
    let name = word(n % period);
    call(
        sorry(n),
        "read_file",
        json!({"path": format!("src/{name}.rs")}),
        format!("Error: ENOENT: no such file or directory, open 'src/{name}.rs'"),
    )
}

fn shuffled(n: usize) -> Step {
    let mut pairs: Vec<(String, Value, Value)> = ["alpha", "beta", "gamma"]
        .map(|name| ("read".to_owned(), json!({"path": name}), Value::from(format!("Error: {name} is not readable"))))
        .to_vec();
    pairs.rotate_left(n % 3);
    let calls = pairs.iter().map(|(tool, arguments, _)| (tool.clone(), arguments.clone())).collect();
    Step { calls, results: pairs.into_iter().map(|(.., result)| result).collect(), ..Step::default() }
}

const LOOPS: [Loop; 22] = [
    ("plain", 6, |_| call("", "read", json!({"path": "a.txt"}), "Error: file is locked by another process")),
    ("new words each time", 6, |n| call(sorry(n), "read", json!({"path": "a.txt"}), "Error: file is locked")),
    ("success without end", 6, |n| call(sorry(n), "get_weather", json!({"city": "Bonn"}), "cloudy, 12 degrees")),
    ("request id", 6, |n| {
        call(
            sorry(n),
            "fetch",
            json!({"url": "x"}),
            format!("HTTP 503 Service Unavailable (request id req-{}-{})", hexadecimal(n), hexadecimal(n + 7)),
        )
    }),
    ("timestamp", 6, |n| {
        call(
            sorry(n),
            "fetch",
            json!({"url": "x"}),
            format!("2026-11-15T10:{:02}:{:02}.{n:03}Z ERROR connection refused", n % 60, (n * 7) % 60),
        )
    }),
    ("pid", 6, |n| {
        call(
            sorry(n),
            "start",
            json!({"name": "db"}),
            format!("started with pid {}, then exited: port is in use", 4000 + n * 13),
        )
    }),
    ("address", 6, |n| {
        call(
            sorry(n),
            "eval",
            json!({"code": "f"}),
            format!("TypeError: <Foo object at 0x7f3a{}> is not callable", hexadecimal(n)),
        )
    }),
    ("temporary path", 8, |n| {
        call(
            sorry(n),
            "build",
            json!({"target": "all"}),
            format!("error: cannot write /tmp/build-{}/out.o: No space left on device", hexadecimal(n)),
        )
    }),
    ("calls in any order", 7, shuffled),
    ("spaces", 6, |n| {
        call(
            sorry(n),
            "bash",
            json!({"command": format!("ls {}/nowhere", " ".repeat(n % 4))}),
            "ls: cannot access '/nowhere': No such file or directory",
        )
    }),
    ("two in turns", 9, |n| alternates(n, 2)),
    ("three in turns", 10, |n| alternates(n, 3)),
    ("five in turns", 13, |n| alternates(n, 5)),
    ("an edit in variants", 16, |n| {
        let old = format!("def total(self, items):  # {}\n    return sum(items)", word(n));
        call(
            sorry(n),
            "str_replace",
            json!({"path": "shop.py", "old_str": old, "new_str": "def total(self): return 0"}),
            format!("ERROR: No replacement was performed, old_str `{old}` did not appear verbatim in shop.py."),
        )
    }),
    ("a search in other words", 12, |n| {
        call(sorry(n), "search", json!({"query": format!("reset password {} flow", word(n))}), "No results found.")
    }),
    ("broken arguments", 6, |n| {
        call(
            sorry(n),
            "edit",
            Value::from("{\"path\": \"a.py\", \"old_str\": \"def f("),
            "Error: the arguments are not valid JSON: EOF while parsing a string at line 1 column 36",
        )
    }),
    ("cut off", 6, |_| {
        talk(
            "Here is the complete file with all changes applied: ```python\nimport os\nimport sys\n",
            "Your answer was cut off because it was too long. Please send it again.",
        )
    }),
    ("promises", 12, |n| {
        talk(
            [
                "I will now update the address of your order.",
                "I will update the address of your order now.",
                "Now I will update your order's address.",
            ][n % 3],
            "Please continue.",
        )
    }),
    ("good-bye", 12, |n| {
        talk(
            ["You are welcome! Have a great day!", "Thank you too, have a great day!", "Have a great day, good-bye!"]
                [n % 3],
            ["Thank you, have a great day!", "You too, good-bye!"][n % 2],
        )
    }),
    ("one reply to everything", 9, |n| {
        talk(
            format!("Thinking about {} and {} and what they mean for the task at hand.", word(n), word(n * 3)),
            "Please continue working on the task on whatever approach you think is suitable.",
        )
    }),
    ("sleeps and fails", 12, |n| match n % 2 {
        0 => call(sorry(n), "bash", json!({"command": "sleep 2"}), ""),
        _ => {
            call(sorry(n), "bash", json!({"command": "curl localhost:80"}), "curl: (7) Failed to connect to localhost")
        }
    }),
    ("ids that are not there", 8, |n| {
        call(sorry(n), "get_order", json!({"id": format!("W{}", 5000 + n)}), "Error: order not found")
    }),
];

#[test]
fn whoever_is_stuck_is_stopped() {
    let mut missed = Vec::new();
    for (name, most, step) in LOOPS {
        for form in FORMS {
            match play(form, false, (0..40).map(step)) {
                Some((at, _)) if at <= most => {}
                other => missed.push(format!(
                    "{name}|{form:?}|inferred|{}|{}",
                    other.as_ref().map_or(0, |found| found.0),
                    other.map_or("missed".into(), |found| found.1)
                )),
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn the_order_of_keys_does_not_hide_a_loop() {
    let mut run = Run::new(Form::Native(Dialect::OpenaiChat), false);
    run.begin("Please do it.");
    run.ask();
    let arguments = [r#"{"path": "a", "mode": "r"}"#, r#"{"mode":"r","path":"a"}"#];
    let at =
        (0..20).find(|n| run.play(&call(sorry(*n), "open", Value::from(arguments[n % 2]), "Error: locked")).is_some());
    assert!(at.is_some_and(|at| at < 6), "{at:?}");
}

#[test]
fn rewriting_the_history_without_work_is_stopped() {
    let mut run = Run::new(Form::Native(Dialect::Anthropic), false);
    let work = |n: usize| call("", "read", json!({"path": word(n % 4)}), format!("text of {}", word(n % 4)));
    let churn = (0..9).find(|round| {
        run.begin(&format!("Summary {round} of what happened so far"));
        run.ask().is_some() || (0..4).any(|n| run.play(&work(n)).is_some())
    });
    assert!(churn.is_some_and(|round| round <= 7), "{churn:?}");
}
