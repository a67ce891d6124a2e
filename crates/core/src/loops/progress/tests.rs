//! Loops and their healthy look-alikes, as a proxy sees them: one request after the other.

mod evidence;
mod script;

use proptest::prelude::*;

use self::script::{Run, Step};
use crate::limits::{PROGRESS_STEPS, PROGRESS_THREADS, PROGRESS_TOOL_BYTES, RUN_BYTES, TOOL_NAME_BYTES};
use crate::loops::{Finding, ProgressRule};
use crate::wire::Dialect;

const FOUR: [Dialect; 4] = [Dialect::OpenaiChat, Dialect::Anthropic, Dialect::OpenaiResponses, Dialect::Gemini];

/// Plays steps until one trips: how many were played, and the finding.
fn play(steps: impl IntoIterator<Item = Step>) -> Option<(usize, Finding)> {
    play_in(Dialect::OpenaiChat, steps)
}

fn play_in(dialect: Dialect, steps: impl IntoIterator<Item = Step>) -> Option<(usize, Finding)> {
    let mut run = Run::new(dialect);
    run.ask();
    steps.into_iter().enumerate().find_map(|(at, step)| Some((at + 1, run.play(&step)?)))
}

fn trips(steps: impl IntoIterator<Item = Step>) -> (usize, String) {
    let (at, finding) = play(steps).expect("a loop");
    (at, finding.loop_type)
}

fn call(say: &str, tool: &str, arguments: &str, result: &str) -> Step {
    Step::call(say, tool, arguments, result)
}

#[test]
fn the_same_call_with_the_same_result() {
    let stuck = |say: fn(usize) -> String| {
        trips((0..30).map(move |n| call(&say(n), "search_weather", r#"{"city":"Bonn"}"#, "Error: service unavailable")))
    };
    assert_eq!(stuck(|_| "Let me look it up.".into()), (4, "repeated_step".into()), "word for word");
    assert_eq!(stuck(|_| String::new()), (5, "repeated_step".into()), "without a word");
    assert_eq!(stuck(|n| format!("Attempt {n}, maybe now.")), (6, "repeated_step".into()), "in ever new words");
}

#[test]
fn a_proof_names_steps_and_tools_and_holds_no_text() {
    let secret = "Error: cannot open vault 7 of customer Miller";
    let steps =
        (0..9).map(|n| call(&format!("{n} tries so far"), "open_vault", r#"{"id":7,"owner":"Miller"}"#, secret));
    let (_, finding) = play(steps).unwrap();
    assert_eq!(
        finding.proof.summary,
        "step 1 to 6: `open_vault` was called 6 times with the same arguments and gave the same error"
    );
    assert_eq!(finding.proof.steps.iter().map(|step| step.step).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert!(finding.proof.steps.iter().all(|step| step.tools == ["open_vault"] && step.alike == "exact"));
    let all = serde_json::to_string(&finding).unwrap();
    assert!(!all.contains("Miller") && !all.contains("vault 7"), "{all}");
    assert_eq!((finding.score, finding.proof.value, finding.proof.threshold, finding.count), (5.0, 5.0, 5.0, 5));
}

#[test]
fn what_changes_by_itself_does_not_hide_a_loop() {
    let steps = (0..20).map(|n| {
        let noise = format!("Chunk ID: cb78{n:02}\nWall time: 0.{n:04} seconds\nls: cannot access 'x' at 0x7f{n:04x}");
        call("", "exec", r#"{"cmd":"ls x"}"#, &noise)
    });
    assert_eq!(trips(steps), (5, "repeated_step".into()));
}

#[test]
fn cycles_of_any_period() {
    for period in 2..=8 {
        let words = ["fox", "owl", "elk", "cat", "eel", "ant", "emu", "yak"];
        let steps = (0..40).map(|n| {
            let word = words[n % period];
            call(&format!("Now the {word}."), "read", &format!(r#"{{"file":"{word}"}}"#), &format!("a {word} it is"))
        });
        let (at, kind) = trips(steps);
        assert_eq!(kind, "cycle", "period {period}");
        assert!(at <= 2 * period + 1 || at <= 7, "period {period} at {at}");
    }
}

#[test]
fn the_same_error_under_changing_arguments() {
    let letters = |n: usize| "abcdefghijklmnopqrstuvwxyz"[n..n + 3].to_owned();
    let exact = (0..20).map(|n| {
        call("", "create", &format!(r#"{{"text":"{}"}}"#, letters(n)), "ERROR: File already exists at: /w/a.py")
    });
    assert_eq!(trips(exact), (7, "same_error".into()));
    let quoted = (0..23).map(|n| {
        let result =
            format!("ERROR: No replacement was performed, old_str `{}` did not appear verbatim in /w/a.py", letters(n));
        call("", "replace", &format!(r#"{{"old":"{}"}}"#, letters(n)), &result)
    });
    assert_eq!(trips(quoted).1, "same_error");
    let numbered = (0..20).map(|n| {
        call("", "view", &format!(r#"{{"path":"m/{n:04}.py"}}"#), &format!("ERROR: no such file m/{n:04}.py"))
    });
    assert!(trips(numbered).0 <= 6);
}

#[test]
fn malformed_calls_repeated() {
    let steps =
        (0..20).map(|_| call("", "edit", r#"{"path":"a.py","old_str":"#, "ERROR: arguments are not valid JSON"));
    assert_eq!(trips(steps), (5, "repeated_step".into()));
}

#[test]
fn words_without_work() {
    let same = (0..20).map(|_| Step::talk("I have finished the task.", "Please continue working on the task."));
    assert_eq!(trips(same), (4, "same_answer".into()));
    let monologue = (0..20).map(|n| {
        Step::talk(&format!("{} thought", "again ".repeat(n)), &"Please continue working on the task. ".repeat(3))
    });
    assert!(play(monologue).is_some());
    let byes = [
        "You're welcome! Have a great day!",
        "You too! Have a great day!",
        "Thanks! Take care!",
        "You're welcome! Take care, you too!",
    ];
    let replies = ["You too!", "Thanks, you too!", "Thanks! Have a great day!"];
    let byes = (0..24).map(|n| Step::talk(byes[n % 4], replies[n % 3]));
    assert!(["same_answer", "cycle"].contains(&trips(byes).1.as_str()));
    let promises = ["Thanks, I'll wait.", "Alright, I'll wait.", "Thanks, alright.", "I'll wait, thanks."];
    let text = "One moment.\n{\"name\": \"find_user\", \"arguments\": {\"zip\": \"76171\"}}";
    assert!(play((0..24).map(|n| Step::talk(text, promises[n * n % 7 % 4]))).is_some());
}

#[test]
fn healthy_work_is_let_be() {
    let running =
        |n: usize| call("", "job", r#"{"id":"j"}"#, &format!(r#"{{"status":"running","minutes":{}}}"#, n % 2));
    let growing =
        |n: usize| call("", "tail", r#"{"file":"log"}"#, &format!("step {}/100: {} passed, 0 failed", n, 7 * n));
    let paging = |n: usize| {
        call("", "search", &format!(r#"{{"q":"rust","page":{n}}}"#), &format!("{} results: {}", n, "ab".repeat(n)))
    };
    let clicks = |n: usize| call("", "click", &format!(r#"{{"element":{n}}}"#), "ok");
    let edits = |n: usize| match n % 2 {
        0 => call("", "edit", &format!(r#"{{"old":"{}"}}"#, "xyz".repeat(n)), "The file has been edited."),
        _ => call("", "test", "{}", &format!("{} passed, {} failed", n, 20 - n)),
    };
    let changing = |n: usize| call("", "price", "{}", &format!("now {}", [101, 99, 104, 98][n % 4] + n));
    let chat = |n: usize| {
        Step::talk(&format!("Answer {}: {}", n, "word".repeat(n)), &format!("question {}", "more".repeat(n * 3)))
    };
    type Work<'a> = (&'a str, usize, &'a dyn Fn(usize) -> Step);
    let table: [Work<'_>; 7] = [
        ("a job that runs", 20, &running),
        ("a count that grows", 23, &growing),
        ("pages", 23, &paging),
        ("clicks", 9, &clicks),
        ("edit and test", 20, &edits),
        ("a value that changes", 20, &changing),
        ("talk", 23, &chat),
    ];
    for (name, steps, step) in table {
        assert_eq!(play((0..steps).map(step)), None, "{name}");
    }
}

#[test]
fn something_new_begins_the_count_anew() {
    let step = |n: usize| {
        if n % 4 == 3 {
            call("", "edit", &format!(r#"{{"text":"{}"}}"#, "q".repeat(n)), &format!("edited {}", "w".repeat(n)))
        } else {
            call("Again.", "test", "{}", "Error: assertion")
        }
    };
    assert_eq!(play((0..16).map(step)), None, "three times between edits");
}

#[test]
fn retries_and_samples_are_no_loop() {
    let mut run = Run::new(Dialect::OpenaiChat);
    for _ in 0..10 {
        assert_eq!(run.ask(), None, "never answered");
        run.fail();
    }
    for again in 0..11 {
        run.ask();
        assert_eq!(run.answer(&Step::talk("Good.", "")), (), "sample {again}");
    }
    assert_eq!(run.ask().map(|finding| finding.loop_type), None);
    run.answer(&Step::talk("Good.", ""));
    assert_eq!(run.ask().map(|finding| finding.loop_type), Some("same_answer".into()), "but not without end");
}

#[test]
fn parallel_conversations_are_apart() {
    let mut runs = Run::new(Dialect::Anthropic);
    let step = |n: usize| call("", "read", &format!(r#"{{"file":"{n}"}}"#), &format!("content {}", "z".repeat(n)));
    for agent in 0..3 {
        runs.begin(&format!("You are helper {agent}"));
        assert_eq!(runs.ask(), None);
    }
    for n in 0..7 {
        for agent in 0..3 {
            runs.switch(agent + 1);
            assert_eq!(runs.play(&step(n)), None, "three do the same");
        }
    }
}

#[test]
fn compaction_once_is_fine_and_churn_is_not() {
    let mut run = Run::new(Dialect::Anthropic);
    run.ask();
    let work =
        |n: usize| call("", "read", &format!(r#"{{"file":"{}"}}"#, n % 4), &format!("content {}", "z".repeat(n % 4)));
    let mut churn = None;
    for round in 0..7 {
        for n in 0..4 {
            churn = churn.or(run.play(&work(n)));
        }
        run.begin(&format!("Summary {round} of what happened"));
        churn = churn.or(run.ask());
        assert!(round >= 3 || churn.is_none(), "round {round}");
    }
    assert_eq!(churn.map(|finding| finding.loop_type), Some("compaction_churn".into()));
}

#[test]
fn a_history_that_the_provider_keeps_is_followed_by_call_ids() {
    for dialect in [Dialect::OpenaiResponses, Dialect::Anthropic] {
        let mut run = Run::new(dialect);
        run.is_kept = true;
        run.ask();
        let step = call("Looking.", "grep", r#"{"q":"x"}"#, "No matches found.");
        let at = (0..9).find(|_| run.play(&step).is_some());
        assert_eq!(at, Some(3), "{dialect:?}");
    }
}

#[test]
fn a_transcript_is_followed_by_what_it_gains() {
    let stuck = (0..9).map(|_| Step::talk("\nThought: look\nAction: Search[x]", "\nObservation: Could not find x."));
    assert_eq!(play_in(Dialect::OpenaiCompletions, stuck).map(|(at, _)| at), Some(4));
    let fine =
        (0..9).map(|n| Step::talk(&format!("\nAction: Search[{n}]"), &format!("\nObservation: {}", "x".repeat(n))));
    assert_eq!(play_in(Dialect::OpenaiCompletions, fine), None);
}

#[test]
fn the_record_of_a_long_run_is_small() {
    let mut run = Run::new(Dialect::OpenaiChat);
    run.is_kept = true;
    for n in 0..1000 {
        let words: String = (0..80).map(|word| format!("word{} ", "x".repeat((n * 7 + word) % 60))).collect();
        run.begin(&format!("conversation {}", n % (PROGRESS_THREADS + 1)));
        run.ask();
        run.play(&call(&words, &format!("{n}{}", "tool".repeat(20)), &format!(r#"{{"n":{n}}}"#), &words));
    }
    let state = run.state();
    let bytes = size_of::<super::State>() + state.heap_bytes();
    assert!(bytes <= 2 * RUN_BYTES, "{bytes}");
    let names = PROGRESS_TOOL_BYTES / (TOOL_NAME_BYTES + 1);
    assert_eq!(state.counts(), (PROGRESS_STEPS, PROGRESS_THREADS, names));
}

#[test]
fn strict_is_sooner_than_balanced() {
    let (strict, balanced) = (ProgressRule::strict(), ProgressRule::balanced());
    assert!(
        strict.repeats < balanced.repeats
            && strict.stall < balanced.stall
            && strict.same_results < balanced.same_results
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn all_dialects_see_the_same(picks in proptest::collection::vec(0_usize..5, 1..24), says in any::<bool>()) {
        let steps: Vec<Step> = picks.iter().map(|pick| {
            let say = if says { "I look at it." } else { "" };
            call(say, ["read", "list"][pick % 2], &format!(r#"{{"b":{pick},"a":"x"}}"#), ["ok", "Error: no such file", "three\nlines\nhere"][pick % 3])
        }).collect();
        let seen = FOUR.map(|dialect| play_in(dialect, steps.iter().cloned()).map(|(at, finding)| {
            let steps: Vec<u32> = finding.proof.steps.iter().map(|step| step.step).collect();
            (at, finding.loop_type, finding.count, steps)
        }));
        prop_assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
    }
}
