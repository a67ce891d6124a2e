//! Prompts of a run: exact, similar, oscillation; and what must pass.

use serde_json::Value;
use sprag_core::loops::{
    AgentWatch, Arrival, Departure, Finding, Mode, Preset, Rules, RunWatch, Said, ToolResult, ToolUse, Turn,
};
use sprag_core::time::Timestamp;
use sprag_core::wire::Reply;

use crate::{Case, Outcome};

/// A run and its agent under rules.
pub(crate) struct Followed {
    run: RunWatch,
    agent: AgentWatch,
    pub(crate) rules: Rules,
    step: u32,
}

impl Followed {
    pub(crate) fn new(rules: Rules) -> Followed {
        Followed { run: RunWatch::default(), agent: AgentWatch::default(), rules, step: 0 }
    }

    pub(crate) fn send(&mut self, turn: &Turn<'_>) -> Vec<Finding> {
        self.step += 1;
        let now = Timestamp(i64::from(self.step) * 1000);
        let arrival = Arrival { step: self.step, now, end: None, turn, is_declared: true };
        let mut findings = self.run.arrive(&arrival, &self.rules).findings;
        findings.extend(self.agent.arrive(1, self.run.is_retry(), &arrival, &self.rules));
        findings
    }

    pub(crate) fn ask(&mut self, text: &str) -> Vec<Finding> {
        self.send(&Turn { user_text: text.to_owned().into(), ..Turn::default() })
    }

    pub(crate) fn answer(&mut self, text: &str) {
        let reply = Reply { text: text.into(), ..Reply::default() };
        let now = Timestamp(i64::from(self.step) * 1000);
        let departure = Departure { step: self.step, now, reply: &reply, is_answered: true, cost: None, tokens: 0 };
        self.run.depart(&departure);
        self.agent.depart(1, &departure, &self.rules);
    }

    pub(crate) fn agent(&mut self) -> &mut AgentWatch {
        &mut self.agent
    }

    /// Asks one after the other; the number of the first that trips, and how.
    fn trips_at(&mut self, prompts: &[&str], answers: &[&str]) -> Option<(usize, Finding)> {
        prompts.iter().enumerate().find_map(|(index, prompt)| {
            let finding = self.ask(prompt).into_iter().next();
            if let Some(answer) = answers.get(index) {
                self.answer(answer);
            }
            finding.map(|finding| (index + 1, finding))
        })
    }
}

/// The default rules with the agent's Kill Switch on.
fn with_kill_switch() -> Rules {
    let mut rules = Rules::default();
    rules.score.common.mode = Mode::Enforce;
    rules
}

fn agentwall() -> Followed {
    Followed::new(Rules::preset(Preset::Agentwall))
}

pub(crate) fn finds(case: &Case, name: &str) -> Outcome {
    match case.name.as_str() {
        "similar_over_85" => similar_over_85(name),
        "oscillation_4th" => {
            // Letters stand for prompts; a real one has words.
            let prompts: Vec<String> = case.texts("prompts").iter().map(|p| format!("Please do task {p}")).collect();
            let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
            let (at, finding) = Followed::new(Rules::default()).trips_at(&prompts, &[]).expect(name);
            assert_eq!((at, finding.loop_type.as_str()), (4, "oscillation"), "{name}");
        }
        "same_tool_call_same_error" => return Outcome::Left("progress"),
        "LOOP-003 Semantically similar prompts" => return Outcome::Left("nobody: their own code does not find it"),
        "LOOP-015 Exceeds max_steps (30) limit" => return Outcome::Left("the limits of runs"),
        _ if case.area == "loop" => finds_among_recent(case, name),
        _ => {
            let mut run = agentwall();
            let found = run.trips_at(&case.texts("prompts"), &case.texts("responses")).is_some();
            // An answer is seen at the request after it.
            let found = found || case.input["responses"].is_array() && !run.ask("Q4").is_empty();
            assert_eq!(Some(found), case.expected["loop"].as_bool(), "{name}");
        }
    }
    Outcome::Held
}

/// 26 words in common of 30 are 0.867, of 31 are 0.839.
fn similar_over_85(name: &str) {
    let text = |own: &str, common: usize| {
        let common: Vec<String> = (0..common).map(|i| format!("word{i}")).collect();
        format!("{} {own}", common.join(" "))
    };
    let (a, b, c) = (text("a b", 26), text("c d", 26), text("e f", 26));
    let mut run = Followed::new(Rules::default());
    let (at, finding) = run.trips_at(&[&a, &b, &c], &["Nothing was found."; 2]).expect(name);
    assert_eq!((at, finding.loop_type.as_str()), (3, "similar_prompt"), "{name}: by default with a second signal");
    let (at, _) = agentwall().trips_at(&[&a, &b], &[]).expect(name);
    assert_eq!(at, 2, "{name}");
    assert!(agentwall().trips_at(&[&text("a b", 26), &text("c d e", 26)], &[]).is_none(), "{name}: not above 0.85");
}

/// The history is pushed first; the prompts of the history themselves must not trip.
fn finds_among_recent(case: &Case, name: &str) {
    let mut run = agentwall();
    let mut answers = case.texts("recent_responses");
    answers.extend(case.input["response"].as_str());
    let mut recent = case.texts("recent_prompts");
    // As many requests as answers.
    let fillers = ["Another question", "One more thing", "Yet something else"];
    recent.extend(fillers.iter().take(answers.len().saturating_sub(recent.len())));
    assert!(run.trips_at(&recent, &answers).is_none(), "{name}");
    let found = run.ask(case.text("current")).into_iter().next();
    assert_eq!(Some(found.is_some()), case.expected["is_loop"].as_bool(), "{name}");
    if let Some(finding) = found {
        assert_eq!(Some(finding.loop_type.as_str()), case.expected["loop_type"].as_str(), "{name}");
        assert_eq!(Some(finding.confidence), case.expected["confidence"].as_f64(), "{name}");
    }
}

pub(crate) fn lets_pass(case: &Case, name: &str) -> Outcome {
    let mut run = Followed::new(with_kill_switch());
    let words = ["tide", "lamp", "rope", "corn", "mint", "sand", "wolf", "bell", "fern", "gold", "iron", "jade"];
    let question = |number: usize| format!("Is {} related to {}?", words[number % 12], words[(number * 5 + 1) % 12]);
    let findings: Vec<Finding> = match case.name.as_str() {
        "tool_calling_turns_same_user_message" => {
            let mut findings = run.ask("Book me a flight to Rome");
            for number in 0..25 {
                let arguments = format!("{{\"to\":\"FCO\",\"page\":{number}}}");
                let text = format!("[flight {}{number}]", words[number % 12]);
                findings.extend(run.send(&tool_turn("search_flights", &arguments, &text)));
            }
            findings
        }
        "same_declared_tools_different_prompts" | "anthropic_content_blocks" => {
            (0..12).flat_map(|number| run.ask(&question(number))).collect()
        }
        "short_answers_different_questions" => {
            let ask = |number: usize| {
                let findings = run.ask(&question(number));
                run.answer(["yes", "no", "{\"answer\": \"yes\"}"][number / 4 % 3]);
                findings
            };
            (0..15).flat_map(ask).collect()
        }
        _ => return Outcome::Left("other parts"),
    };
    assert_eq!(case.expected["blocked"], Value::Bool(false), "{name}");
    assert!(findings.is_empty(), "{name}: {findings:?}");
    Outcome::Held
}

fn tool_turn<'a>(tool: &'a str, arguments: &'a str, result: &'a str) -> Turn<'a> {
    let call = ToolUse { id: "c1".into(), name: tool.into(), arguments: arguments.into() };
    Turn {
        said: Some(Said { calls: vec![call], ..Said::default() }),
        results: vec![ToolResult { call_id: "c1".into(), text: result.into(), ..ToolResult::default() }],
        last_user_text: Some("Book me a flight to Rome".into()),
        ..Turn::default()
    }
}

pub(crate) fn follows(case: &Case, name: &str) -> Outcome {
    let all = [Rules::preset(Preset::Agentwall), Rules::default()];
    match case.name.as_str() {
        "rapid_repeat_blocked_by_3" => {
            for rules in all {
                let prompts = vec![case.text("prompt"); case.number("times") as usize];
                let (at, _) = Followed::new(rules).trips_at(&prompts, &[]).expect(name);
                assert!(at as u64 <= case.expected["blocked_at_lte"].as_u64().unwrap(), "{name}");
            }
        }
        "five_different_tasks_pass" | "three_step_run_counts" => {
            for rules in all {
                assert!(Followed::new(rules).trips_at(&case.texts("prompts"), &[]).is_none(), "{name}");
            }
        }
        "same_prompt_different_runs_ok" => {
            for _ in case.texts("runs") {
                assert!(agentwall().ask(case.text("prompt")).is_empty(), "{name}");
            }
        }
        _ => return Outcome::Left("the limits of runs"),
    }
    Outcome::Held
}

/// What the error says of the loop; its form is the proxy's.
pub(crate) fn says(case: &Case, name: &str) -> Outcome {
    let mut run = Followed::new(Rules::default());
    let (_, finding) = run.trips_at(&["Search for weather"; 2], &[]).expect(name);
    let error = &case.expected["body"]["error"];
    assert_eq!(Some(finding.loop_type.as_str()), error["loop_type"].as_str(), "{name}");
    assert_eq!(Some(finding.confidence), error["confidence"].as_f64(), "{name}");
    let message = format!("Loop detected: {}", finding.proof.summary);
    assert_eq!(Some(message.as_str()), error["message"].as_str(), "{name}");
    Outcome::Held
}
