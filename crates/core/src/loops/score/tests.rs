use super::*;
use crate::loops::{Preset, Rules, Said, ToolResult, ToolUse, Turn};
use crate::wire::{Reply, ToolCall};

/// An agent under a rule.
struct Agent {
    window: ScoreWindow,
    rules: Rules,
    step: u32,
}

impl Agent {
    fn new(preset: Preset) -> Agent {
        let mut rules = Rules::preset(preset);
        rules.score.common.mode = Mode::Enforce;
        let mut window = ScoreWindow::default();
        window.set_mode(Mode::Enforce, rules.prompt_scope);
        Agent { window, rules, step: 0 }
    }

    fn send(&mut self, turn: &Turn<'_>) -> (Tally, Option<Finding>) {
        self.step += 1;
        let prompt = Prompt::read(turn, self.rules.prompt_scope);
        let now = Timestamp(i64::from(self.step) * 1000);
        self.window.look(1, self.step, now, prompt.as_ref(), &self.rules.score)
    }

    fn ask(&mut self, text: &str) -> (Tally, Option<Finding>) {
        self.send(&Turn { user_text: text.to_owned().into(), ..Turn::default() })
    }

    fn answer(&mut self, text: &str, calls: &[(&str, &str)]) {
        let call = |(name, arguments): &(&str, &str)| ToolCall {
            name: (*name).into(),
            arguments: (*arguments).into(),
            ..ToolCall::default()
        };
        let reply = Reply { text: text.into(), tool_calls: calls.iter().map(call).collect(), ..Reply::default() };
        self.window.answer(1, self.step, text, &Answer::of_reply(&reply));
    }

    /// Asks and is answered until it trips; gives the number of the request that did.
    fn trips_at(
        &mut self,
        most: usize,
        ask: impl Fn(usize) -> String,
        answer: impl Fn(usize) -> String,
    ) -> Option<usize> {
        (1..=most).find(|number| {
            let (_, finding) = self.ask(&ask(*number));
            self.answer(&answer(*number), &[]);
            finding.is_some()
        })
    }
}

fn word(number: usize) -> String {
    // Letters only: numbers are not seen.
    format!("{number}").bytes().map(|digit| char::from(b'a' + digit - b'0')).collect::<String>().repeat(3)
}

fn result<'a>(arguments: &'a str, text: &'a str) -> Turn<'a> {
    let call = ToolUse { id: "c".into(), name: "read".into(), arguments: arguments.into() };
    Turn {
        said: Some(Said { calls: vec![call], ..Said::default() }),
        results: vec![ToolResult { call_id: "c".into(), text: text.into(), ..ToolResult::default() }],
        ..Turn::default()
    }
}

#[test]
fn the_sum_is_weighted_and_trips_above_the_threshold() {
    let mut rule = Rules::preset(Preset::Agentgazer).score;
    assert_eq!(Tally { prompts: 3, answers: 2, calls: 0 }.score(&rule), 7.0);
    assert_eq!(Tally { prompts: 2, answers: 1, calls: 2 }.score(&rule), 7.0);
    assert!(!rule.trips(10.0) && rule.trips(10.1));
    rule.trips_at = true;
    assert!(rule.trips(10.0) && !rule.trips(9.9));
}

#[test]
fn the_same_question_with_the_same_answer_trips() {
    // After n requests: n - 1 similar prompts and n - 2 similar answers are 3n - 5.
    for preset in [Preset::Balanced, Preset::Agentgazer] {
        let mut agent = Agent::new(preset);
        let at = agent.trips_at(20, |n| format!("Find order {n} now"), |_| "There is no such order.".into());
        assert_eq!(at, Some(6), "{preset:?}: 5 + 2 * 4 is above 10, 4 + 2 * 3 is not");
    }
}

#[test]
fn short_answers_to_different_questions_do_not() {
    let ask = |number: usize| format!("Is {} a kind of {}?", word(number), word(number + 50));
    let answer = |number: usize| ["yes", "no", r#"{"ok": true}"#][number % 3].to_owned();
    assert_eq!(Agent::new(Preset::Balanced).trips_at(40, ask, answer), None);
    assert!(Agent::new(Preset::Agentgazer).trips_at(40, ask, answer).is_some(), "to the letter it does");
}

#[test]
fn a_short_prompt_is_no_evidence_alone() {
    let ask = |_| "continue".to_owned();
    let chapter = |number: usize| format!("Chapter on {} and {}", word(number), word(number * 7));
    assert_eq!(Agent::new(Preset::Balanced).trips_at(40, ask, chapter), None);
    assert!(Agent::new(Preset::Balanced).trips_at(40, ask, |_| "I am done with it all.".into()).is_some());
}

#[test]
fn results_count_with_the_calls_that_they_answer() {
    let trips_at = |turn: fn(&str) -> Turn<'_>| {
        let mut agent = Agent::new(Preset::Balanced);
        (1..=30).find(|number| {
            let text = word(*number);
            let (_, finding) = agent.send(&turn(&text));
            agent.answer("", &[("read", "{}")]);
            finding.is_some()
        })
    };
    assert_eq!(trips_at(|text| result("{}", text)), None, "new results");
    assert_eq!(trips_at(|text| result(text, "ok")), None, "other calls");
    // n - 1 prompts, as many calls, n - 2 answers: 2.5 (n - 1) + 2 (n - 2).
    assert_eq!(trips_at(|_| result("{}", "no such file")), Some(4));
}

#[test]
fn the_window_holds_so_many_requests() {
    let mut agent = Agent::new(Preset::Agentgazer);
    agent.rules.score.common.window.requests = 5;
    agent.rules.score.threshold = 50.0;
    let tallies: Vec<u32> = (0..8).map(|_| agent.ask("the same again").0.prompts).collect();
    assert_eq!(tallies, [0, 1, 2, 3, 4, 5, 5, 5]);
    agent.rules.score.common.window.requests = 1000;
    let most = (0..200).map(|_| agent.ask("the same again").0.prompts).max();
    assert_eq!(most, Some(SCORE_REQUESTS as u32));
    assert!(agent.window.heap_bytes() <= 8 << 10, "{}", agent.window.heap_bytes());
}

#[test]
fn seconds_bound_it_too() {
    let mut agent = Agent::new(Preset::Agentgazer);
    agent.rules.score.common.window.seconds = 3;
    let tallies: Vec<u32> = (0..5).map(|_| agent.ask("the same again").0.prompts).collect();
    assert_eq!(tallies, [0, 1, 2, 2, 2]);
}

#[test]
fn another_mode_or_scope_begins_anew() {
    let mut agent = Agent::new(Preset::Agentgazer);
    agent.ask("the same again");
    agent.window.set_mode(Mode::Shadow, agent.rules.prompt_scope);
    assert_eq!(agent.ask("the same again").0.prompts, 0);
    agent.window.set_mode(Mode::Shadow, agent.rules.prompt_scope);
    assert_eq!(agent.ask("the same again").0.prompts, 1);
    agent.window.set_mode(Mode::Shadow, PromptScope::Turn);
    assert_eq!(agent.ask("the same again").0.prompts, 0);
}

#[test]
fn a_request_without_a_user_message_repeats_the_one_before() {
    let mut agent = Agent::new(Preset::Agentgazer);
    agent.ask("Book me a flight");
    let turn = Turn { results: vec![ToolResult::default()], ..Turn::default() };
    assert_eq!(agent.send(&turn).0.prompts, 1);
    assert_eq!(agent.send(&turn).0.prompts, 2);
}
