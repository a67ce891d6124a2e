mod agents;
mod memory;
pub(super) mod twins;

use self::twins::Twins;
use super::*;
use crate::loops::{Preset, Said, ToolResult, ToolUse, Window};
use crate::wire::ToolCall;

/// A run under rules.
struct Run {
    watch: Twins,
    rules: Rules,
    is_declared: bool,
    step: u32,
    now: i64,
}

impl Run {
    fn new(preset: Preset) -> Run {
        Run { watch: Twins::default(), rules: Rules::preset(preset), is_declared: true, step: 0, now: 0 }
    }

    fn inferred(preset: Preset) -> Run {
        Run { is_declared: false, ..Run::new(preset) }
    }

    /// Sends a turn; gives the kinds of loop that were found.
    fn send(&mut self, turn: &Turn<'_>, end: Option<u64>) -> Vec<String> {
        self.step += 1;
        self.now += 1000;
        let Run { step, now, is_declared, .. } = *self;
        let arrival = Arrival { step, now: Timestamp(now), end, turn, is_declared };
        self.watch.arrive(&arrival, &self.rules).findings.into_iter().map(|finding| finding.loop_type).collect()
    }

    fn ask(&mut self, text: &str) -> Vec<String> {
        self.send(&Turn { user_text: text.to_owned().into(), ..Turn::default() }, None)
    }

    fn answer(&mut self, text: &str, calls: &[(&str, &str)], is_answered: bool) {
        let call = |(name, arguments): &(&str, &str)| ToolCall {
            name: (*name).into(),
            arguments: (*arguments).into(),
            ..ToolCall::default()
        };
        let reply = Reply { text: text.into(), tool_calls: calls.iter().map(call).collect(), ..Reply::default() };
        let now = Timestamp(self.now);
        let departure = Departure { step: self.step, now, reply: &reply, is_answered, cost: None, tokens: 0 };
        self.watch.depart(&departure);
    }

    /// Asks one after the other, each with its answer; gives the first that trips, and how.
    fn trips_at(&mut self, prompts: &[&str], answers: &[&str]) -> Option<(usize, String)> {
        prompts.iter().enumerate().find_map(|(index, prompt)| {
            let found = self.ask(prompt).into_iter().next();
            if let Some(text) = answers.get(index) {
                self.answer(text, &[], true);
            }
            found.map(|loop_type| (index + 1, loop_type))
        })
    }
}

fn at(number: usize, loop_type: &str) -> Option<(usize, String)> {
    Some((number, loop_type.into()))
}

const A: &str = "Fetch the weather report";
const B: &str = "Summarise what was found";
const C: &str = "Write the last chapter";

#[test]
fn the_same_prompt_right_after_itself_trips_in_a_declared_run() {
    assert_eq!(Run::new(Preset::Balanced).trips_at(&[A, A], &[]), at(2, "exact_prompt"));
    assert_eq!(Run::inferred(Preset::Balanced).trips_at(&[A, A, A], &[]), None);
    assert_eq!(Run::inferred(Preset::Strict).trips_at(&[A, A], &[]), at(2, "exact_prompt"));
    assert_eq!(Run::new(Preset::Balanced).trips_at(&[A, B, A], &[]), None, "not right after itself");
    assert_eq!(Run::new(Preset::Agentwall).trips_at(&[A, B, A], &[]), at(3, "exact_prompt"));
    assert_eq!(Run::new(Preset::Balanced).trips_at(&["continue"; 9], &[]), None, "too short");
    assert_eq!(Run::new(Preset::Balanced).trips_at(&["step 1", "step 2", "step 3"], &[]), None);
}

#[test]
fn the_finding_says_what_the_documents_say() {
    let mut run = Run::new(Preset::Balanced);
    run.ask(A);
    let turn = Turn { user_text: A.into(), ..Turn::default() };
    let arrival = Arrival { step: 2, now: Timestamp(0), end: None, turn: &turn, is_declared: true };
    let found = run.watch.arrive(&arrival, &run.rules).findings;
    let exact = &found[0];
    assert_eq!((exact.loop_type.as_str(), exact.confidence), ("exact_prompt", 1.0));
    assert_eq!(exact.proof.summary, "Exact prompt repetition detected");
    assert_eq!(exact.proof.steps.iter().map(|step| step.step).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn answers_trip_from_the_third_at_the_next_request() {
    let said = "I am not able to find that file anywhere.";
    let prompts = [A, B, C, "Look somewhere else then"];
    assert_eq!(Run::new(Preset::Balanced).trips_at(&prompts, &[said; 3]), at(4, "exact_response"));
    let other = [said, "Here is something else.", said, said];
    assert_eq!(Run::new(Preset::Balanced).trips_at(&prompts, &other), None, "not one after the other");
    assert_eq!(Run::new(Preset::Balanced).trips_at(&prompts, &["yes"; 4]), None, "short, and asked differently");
    assert_eq!(Run::new(Preset::Agentwall).trips_at(&prompts, &["no", "yes", "no"]), at(4, "exact_response"));
}

#[test]
fn answers_with_calls_are_left_to_progress() {
    let mut run = Run::new(Preset::Balanced);
    for prompt in [A, B, C, "Go on with it", "And a last time"] {
        assert!(run.ask(prompt).is_empty());
        run.answer("I will look.", &[("status", "{}")], true);
    }
}

#[test]
fn similar_prompts_need_a_second_signal_unless_told_otherwise() {
    let about = |what: &str| {
        format!(
            "Please read the whole report about the quarterly sales in Europe and tell me the most important {what}"
        )
    };
    let prompts = [about("numbers"), about("figures"), about("values")];
    let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
    let same = ["Sales went up.", "Sales went up."];
    assert_eq!(Run::new(Preset::Balanced).trips_at(&prompts, &same), at(3, "similar_prompt"));
    assert_eq!(Run::new(Preset::Balanced).trips_at(&prompts, &["Sales went up.", "Costs went down."]), None);
    assert_eq!(Run::new(Preset::Balanced).trips_at(&prompts, &["Item 1 is done.", "Item 2 is done."]), None);
    assert_eq!(Run::inferred(Preset::Balanced).trips_at(&prompts, &same), None);
    assert_eq!(Run::new(Preset::Agentwall).trips_at(&prompts, &[]), at(2, "similar_prompt"));
    let far = [prompts[0], A, B, C, prompts[1]];
    assert_eq!(Run::new(Preset::Agentwall).trips_at(&far, &[]), None, "four prompts ago");
    assert_eq!(Run::new(Preset::Agentwall).trips_at(&far[1..], &[]), None);
}

#[test]
fn results_that_are_not_new_are_a_second_signal() {
    let ask = |what: &str| format!("Try once more to open the file that I told you about and fix the {what}");
    let tool = |text: &'static str| {
        let call = ToolUse { id: "1".into(), name: "open".into(), arguments: "{}".into() };
        let results = vec![ToolResult { call_id: "1".into(), text: text.into(), ..ToolResult::default() }];
        Turn { said: Some(Said { calls: vec![call], ..Said::default() }), results, ..Turn::default() }
    };
    for (second, expected) in [("no such file", 1), ("one line", 0)] {
        let mut run = Run::new(Preset::Balanced);
        run.ask(&ask("bug"));
        assert!(run.send(&tool("no such file"), None).is_empty());
        assert!(run.ask(&ask("error")).is_empty(), "the result was new");
        assert!(run.send(&tool(second), None).is_empty());
        assert_eq!(run.ask(&ask("fault")).len(), expected, "{second}");
    }
}

#[test]
fn prompts_in_turns_trip_after_two_laps() {
    let run = || Run::new(Preset::Balanced);
    assert_eq!(run().trips_at(&[A, B, A, B], &[]), at(4, "oscillation"));
    assert_eq!(run().trips_at(&[A, B, C, A, B, C], &[]), at(6, "oscillation"));
    assert_eq!(run().trips_at(&[A, B, A, C, A, B], &[]), None);
    assert_eq!(run().trips_at(&["yes", "go on", "yes", "go on", "yes"], &[]), None);
    assert_eq!(run().trips_at(&["yes", A, "yes", A], &[]), at(4, "oscillation"));
    assert_eq!(Run::inferred(Preset::Balanced).trips_at(&[A, B, A, B], &[]), None, "a person may ask two things again");
    assert_eq!(Run::inferred(Preset::Balanced).trips_at(&[A, B, A, B, A, B], &[]), at(6, "oscillation"));
    assert_eq!(Run::inferred(Preset::Balanced).trips_at(&[A, A, A, A], &[]), None, "one prompt is no round");
}

#[test]
fn tools_in_turns_oscillate_only_without_new_results() {
    let turn = |name: &'static str, text: &'static str| {
        let call = ToolUse { id: "1".into(), name: name.into(), arguments: "{}".into() };
        let results = vec![ToolResult { call_id: "1".into(), text: text.into(), ..ToolResult::default() }];
        Turn { said: Some(Said { calls: vec![call], ..Said::default() }), results, ..Turn::default() }
    };
    let trips_at = |preset, third: &'static str| {
        let mut run = Run::inferred(preset);
        let x = ["x", third, "x"].map(|text| [turn("a", text), turn("b", "y")]);
        x.iter().flatten().position(|turn| run.send(turn, None).contains(&"oscillation".into())).map(|index| index + 1)
    };
    assert_eq!(trips_at(Preset::Balanced, "x"), Some(6));
    assert_eq!(trips_at(Preset::Strict, "x"), Some(4));
    assert_eq!(trips_at(Preset::Strict, "z"), None);
}

#[test]
fn a_retry_is_no_evidence() {
    let turn = Turn { user_text: A.into(), ..Turn::default() };
    let mut run = Run::new(Preset::Balanced);
    assert!(run.send(&turn, Some(1)).is_empty());
    assert!(run.send(&turn, Some(1)).is_empty(), "two at once");
    assert!(run.watch.is_retry());
    run.answer("", &[], false);
    assert!(run.send(&turn, Some(1)).is_empty(), "again after a failure");
    run.answer("There you are.", &[], true);
    assert_eq!(run.send(&turn, Some(1)), ["exact_prompt"], "again after an answer");
    assert!(!run.watch.is_retry());
}

#[test]
fn the_answer_to_a_retry_belongs_to_the_prompt() {
    let said = "I am not able to find that file anywhere.";
    let mut run = Run::new(Preset::Balanced);
    for (end, prompt) in [(1, A), (2, B), (3, C)] {
        let turn = Turn { user_text: prompt.into(), ..Turn::default() };
        assert!(run.send(&turn, Some(end)).is_empty());
        run.answer("", &[], false);
        assert!(run.send(&turn, Some(end)).is_empty());
        run.answer(said, &[], true);
    }
    assert_eq!(run.ask("Look somewhere else then"), ["exact_response"]);
}

#[test]
fn an_agents_retries_do_not_score() {
    let mut rules = Rules::default();
    rules.score.common.mode = Mode::Enforce;
    let mut agent = AgentWatch::default();
    let turn = Turn { user_text: A.into(), ..Turn::default() };
    for step in 1..30 {
        let arrival = Arrival { step, now: Timestamp(0), end: Some(1), turn: &turn, is_declared: true };
        assert!(agent.arrive(1, step > 1, &arrival, &rules).is_empty());
        assert_eq!(agent.tally().prompts, 0);
    }
    let arrival = Arrival { step: 30, now: Timestamp(0), end: Some(1), turn: &turn, is_declared: true };
    agent.arrive(1, false, &arrival, &rules);
    assert_eq!(agent.tally().prompts, 1);
}

#[test]
fn one_text_for_agents_with_different_instructions_is_not_the_same_prompt() {
    let turn = |opening| Turn { opening, user_text: A.into(), ..Turn::default() };
    let mut run = Run::new(Preset::Balanced);
    assert!(run.send(&turn(1), None).is_empty());
    assert!(run.send(&turn(2), None).is_empty());
    assert_eq!(run.send(&turn(2), None), ["exact_prompt"]);
}

#[test]
fn the_last_user_message_stays_while_tools_work_on_it() {
    let tool = Turn { results: vec![ToolResult::default()], said: Some(Said::default()), ..Turn::default() };
    let mut run = Run::new(Preset::Agentwall);
    run.ask("Book me a flight to Rome");
    assert_eq!(run.send(&tool, None)[0], "exact_prompt", "to the letter");
    let mut run = Run::new(Preset::Balanced);
    run.ask("Book me a flight to Rome");
    assert!(run.send(&tool, None).is_empty());
}

#[test]
fn windows_bound_how_far_back_prompts_count() {
    let mut run = Run::new(Preset::Agentwall);
    run.rules.exact.common.window = Window { requests: 2, ..Window::default() };
    run.rules.similar.common.mode = Mode::Off;
    run.rules.oscillation.common.mode = Mode::Off;
    assert_eq!(run.trips_at(&[A, B, C, A, B], &[]), None);
    assert_eq!(run.trips_at(&[C], &[]), None, "three ago");
    assert_eq!(run.trips_at(&[B], &[]), at(1, "exact_prompt"), "two ago");
    let mut run = Run::new(Preset::Balanced);
    run.rules.oscillation.common.window = Window { seconds: 3, ..Window::default() };
    assert_eq!(run.trips_at(&[A, B, A, B], &[]), None, "the first is three seconds ago");
    let mut run = Run::new(Preset::Balanced);
    run.rules.exact.common.window = Window { seconds: 60, ..Window::default() };
    run.ask(A);
    run.now += 60_000;
    assert!(run.ask(A).is_empty());
    assert_eq!(run.ask(A), ["exact_prompt"]);
}

#[test]
fn what_shadow_saw_is_nothing_to_enforcement() {
    let mut run = Run::new(Preset::Observe);
    run.ask(A);
    assert!(!run.ask(A).is_empty());
    run.rules = Rules::preset(Preset::Balanced);
    assert!(run.ask(A).is_empty());
    assert_eq!(run.ask(A), ["exact_prompt"]);
}

#[test]
fn the_past_is_forgotten() {
    let mut run = Run::new(Preset::Balanced);
    run.ask(A);
    run.watch.forget();
    assert!(run.ask(A).is_empty());
}
