//! Agents that work, in ways that look like loops.

use serde_json::json;

use super::coding::{
    ci_table, ci_with_sleep, compiles, continued, download, edits_and_reads, edits_ok, edits_one_file, edits_silently,
    lints, migrations, pods, reads_chunks, reminded, repl, rewrites_and_tests, searches, test_by_test, todo_only,
    todos, truncated_logs,
};
use super::errands::{
    adventure, analyst, chess, classifies, clicks, form, framed, framed_same_question, mails, memories, next_page,
    not_found_names, parallel, pings, rows, screenshots, service, small_talk, tickets, translates,
};
use super::{FORMS, Form, Run, Step, call, play, talk, word};
use crate::wire::Dialect;

/// Name, steps, and what it does.
type Work = (&'static str, usize, fn(usize) -> Step);

const WORKS: [Work; 41] = [
    ("edits that say ok", 40, edits_ok),
    ("edits of one file", 40, edits_one_file),
    ("silent edits", 40, edits_silently),
    ("rows", 40, rows),
    ("mails", 40, mails),
    ("ci with sleep", 30, ci_with_sleep),
    ("ci table", 14, ci_table),
    ("pods", 20, pods),
    ("download", 30, download),
    ("next page", 30, next_page),
    ("clicks", 30, clicks),
    ("form", 20, form),
    ("repl", 40, repl),
    ("searches", 45, searches),
    ("test by test", 50, test_by_test),
    ("rewrites and tests", 50, rewrites_and_tests),
    ("compiles", 36, compiles),
    ("lints", 30, lints),
    ("adventure", 40, adventure),
    ("chess", 40, chess),
    ("classifies", 60, classifies),
    ("translates", 50, translates),
    ("service", 12, service),
    ("small talk", 21, small_talk),
    ("analyst", 50, analyst),
    ("reads chunks", 50, reads_chunks),
    ("edits and reads", 60, edits_and_reads),
    ("todos", 40, todos),
    ("todo only", 30, todo_only),
    ("memories", 40, memories),
    ("parallel", 40, parallel),
    ("reminded", 40, reminded),
    ("continued", 40, continued),
    ("framed", 40, framed),
    ("framed, same question", 40, framed_same_question),
    ("screenshots", 40, screenshots),
    ("truncated logs", 40, truncated_logs),
    ("migrations", 30, migrations),
    ("pings", 40, pings),
    ("not found names", 40, not_found_names),
    ("growing wait", 20, |n| call("", "status", json!({}), format!("copied {} of 900 files", n * 31))),
];

#[test]
fn nobody_who_works_is_stopped() {
    let mut stopped = Vec::new();
    for (name, steps, step) in WORKS {
        for form in FORMS {
            // More detectors watch a run that has a name.
            if let Some((at, why)) = play(form, true, (0..steps).map(step)) {
                stopped.push(format!("{name}|{form:?}|declared|{at}|{why}"));
            }
        }
    }
    assert!(stopped.is_empty(), "{}", stopped.join("\n"));
}

#[test]
fn a_chat_with_side_requests_is_no_churn() {
    for is_declared in [false, true] {
        let mut run = Run::new(Form::Native(Dialect::OpenaiChat), is_declared);
        let chat = run.begin("Hello, I plan a journey.");
        run.ask();
        for n in 0..20 {
            run.at = chat;
            let said = run.play(&talk(
                format!("You might visit the {}.", word(n)),
                format!("And what about {} or {}?", word(n + 1), word(n * 3)),
            ));
            assert_eq!(said, None, "chat {n}");
            let side = run.begin(&format!("Extract the facts of: And what about {} or {}?", word(n + 1), word(n * 3)));
            assert_eq!(run.ask(), None, "side {n}");
            run.answer(&talk(format!("{} {side}", word(n)), ""));
        }
    }
}

/// In the text of a command it is not known which number names a thing: there, ten of these are taken for a loop.
#[test]
fn one_call_for_many_numbers_is_no_loop() {
    for form in FORMS.into_iter().filter(|form| matches!(form, Form::Native(_) | Form::Kept(_))) {
        assert_eq!(play(form, true, (0..40).map(tickets)), None, "{form:?}");
    }
}

#[test]
fn one_question_about_many_images_is_no_loop() {
    let mut run = Run::new(Form::Native(Dialect::OpenaiChat), true);
    run.begin("I will show you pictures.");
    run.ask();
    for n in 0..20 {
        run.answer(&talk("A cat.", ""));
        let url = format!("data:image/png;base64,{}", word(n));
        let content = json!([{"type": "text", "text": "What is in this picture?"}, {"type": "image_url", "image_url": {"url": url}}]);
        let items = [json!({"role": "assistant", "content": "A cat."}), json!({"role": "user", "content": content})];
        run.conversations[0].items.extend(items);
        assert_eq!(run.ask(), None, "picture {n}");
    }
}

#[test]
fn helpers_that_do_the_same_beside_each_other_are_no_loop() {
    let mut run = Run::new(Form::Native(Dialect::Anthropic), true);
    for helper in 0..4 {
        run.begin(&format!("Review the module {}.", word(helper)));
        assert_eq!(run.ask(), None);
    }
    for n in 0..80 {
        run.at = n % 4;
        let (path, text) = (format!("docs/{}.md", word(n / 4)), format!("# {}", word(n / 4 + 3)));
        assert_eq!(run.play(&call("", "read", json!({"path": path}), text)), None, "step {n}");
    }
}

#[test]
fn work_goes_on_after_the_history_was_rewritten() {
    let mut run = Run::new(Form::Native(Dialect::Anthropic), true);
    for round in 0..5 {
        run.begin(&format!("This session is continued from an earlier one. Summary: {} is done.", word(round)));
        assert_eq!(run.ask(), None, "round {round}");
        for n in 0..12 {
            assert_eq!(run.play(&edits_one_file(round * 12 + n)), None, "round {round}, {n}");
        }
    }
}
