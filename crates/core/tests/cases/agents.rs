//! The score of an agent and what is kept for it.

use sprag_core::loops::{Mode, Preset, Rules, Tally};

use crate::runs::Followed;
use crate::{Case, Outcome};

/// That system's rules with a case's settings.
fn configured(case: &Case) -> Rules {
    let mut rules = Rules::preset(Preset::Agentgazer);
    let config = &case.input["config"];
    rules.score.common.mode = if config["enabled"] == false { Mode::Off } else { Mode::Enforce };
    if let Some(size) = config["window_size"].as_u64() {
        rules.score.common.window.requests = u32::try_from(size).unwrap();
    }
    if let Some(threshold) = config["threshold"].as_f64() {
        rules.score.threshold = threshold;
    }
    rules
}

pub(crate) fn scores(case: &Case, name: &str) -> Outcome {
    let rule = Rules::default().score;
    match case.name.as_str() {
        "score_formula" | "score_formula_all" => {
            let tally = Tally {
                prompts: case.number("similar_prompts"),
                answers: case.number("similar_responses"),
                calls: case.number("repeated_tool_calls"),
            };
            assert_eq!(Some(tally.score(&rule)), case.expected["score"].as_f64(), "{name}");
        }
        "strictly_exceeds" => {
            let trips = rule.trips(case.input["score"].as_f64().unwrap());
            assert_eq!(Some(trips), case.expected["trigger"].as_bool(), "{name}");
            let at = sprag_core::loops::ScoreRule { trips_at: true, ..rule };
            assert!(at.trips(10.0), "{name}: the shipped comparison can be had");
        }
        "window_fifo" => {
            let mut agent = Followed::new(Rules::preset(Preset::Agentgazer));
            agent.rules.score.common.window.requests = case.number("window_size");
            let prompts = ["Feed the horses", "Paint a fence", "Bake some bread", "Sell old books"];
            prompts.iter().for_each(|prompt| drop(agent.ask(prompt)));
            // Asking again puts each of the three that remain at the end; the one that left is not known.
            assert_eq!(similar(&mut agent, prompts[1]), 1, "{name}");
            assert_eq!(similar(&mut agent, prompts[0]), 0, "{name}");
        }
        "disabled_never_loops" | "first_request_not_loop" => {
            let mut agent = Followed::new(configured(case));
            assert!(case.texts("requests").iter().all(|request| agent.ask(request).is_empty()), "{name}");
            assert_eq!(agent.agent().tally(), Tally::default(), "{name}");
        }
        "ten_identical_prompts_then_one_more" => {
            let mut agent = Followed::new(configured(case));
            for number in 1..case.number("times") {
                agent.ask(case.text("prompt"));
                agent.answer(&format!("Response {number}"));
            }
            let findings = agent.ask(case.text("prompt"));
            assert!(findings[0].score > 5.0 && agent.agent().tally().prompts > 0, "{name}");
        }
        "details_present" => {
            let mut agent = Followed::new(configured(case));
            let counts: Vec<u32> = (0..2).map(|_| similar(&mut agent, case.text("prompt"))).collect();
            assert_eq!(counts, [0, 1], "{name}");
        }
        _ => return Outcome::Left("nobody: tools that are declared are no calls"),
    }
    Outcome::Held
}

pub(crate) fn keeps_state(case: &Case, name: &str) -> Outcome {
    match case.name.as_str() {
        "clear_agent_forgets_history" => {
            let mut agent = Followed::new(Rules::preset(Preset::Agentgazer));
            assert_eq!([0; 2].map(|_| similar(&mut agent, case.text("prompt"))), [0, 1], "{name}");
            agent.agent().forget();
            assert_eq!(similar(&mut agent, case.text("then_prompt")), 0, "{name}");
        }
        "response_for_unknown_agent_ignored" => {
            let mut agent = Followed::new(Rules::preset(Preset::Agentgazer));
            agent.answer("to nothing");
            assert_eq!(similar(&mut agent, "something new"), 0, "{name}");
        }
        "clear_all_resets_configs" => has_defaults(&case.expected["config"], name),
        _ => return Outcome::Left("the store of agents"),
    }
    Outcome::Held
}

pub(crate) fn is_configured(case: &Case, name: &str) -> Outcome {
    if case.name == "defaults" {
        has_defaults(&case.expected, name);
        return Outcome::Held;
    }
    let mut rules = Rules::default();
    let set = &case.input["set"];
    for change in set.as_array().unwrap_or(&vec![set.clone()]) {
        if change["enabled"] == true {
            rules.score.common.mode = Mode::Enforce;
        }
        if let Some(size) = change["window_size"].as_u64() {
            rules.score.common.window.requests = u32::try_from(size).unwrap();
        }
        if let Some(threshold) = change["threshold"].as_f64() {
            rules.score.threshold = threshold;
        }
    }
    assert!(rules.check().is_empty(), "{name}");
    assert_eq!(u64::from(rules.score.common.window.requests), case.expected["window_size"].as_u64().unwrap(), "{name}");
    assert_eq!(Some(rules.score.threshold), case.expected["threshold"].as_f64(), "{name}");
    Outcome::Held
}

/// The window is empty after activation; the rest of activation is the agents'.
pub(crate) fn is_cleared(name: &str) -> Outcome {
    let mut rules = Rules::default();
    rules.score.common.mode = Mode::Enforce;
    let mut agent = Followed::new(rules);
    let prompt = "Search the same files again";
    assert!((0..4).map(|_| similar(&mut agent, prompt)).any(|count| count > 0), "{name}");
    agent.agent().forget();
    assert_eq!(similar(&mut agent, prompt), 0, "{name}");
    Outcome::Held
}

fn has_defaults(expected: &serde_json::Value, name: &str) {
    let rule = Rules::default().score;
    assert_eq!(Some(rule.common.mode != Mode::Off), expected["enabled"].as_bool(), "{name}");
    assert_eq!(Some(u64::from(rule.common.window.requests)), expected["window_size"].as_u64(), "{name}");
    assert_eq!(Some(rule.threshold), expected["threshold"].as_f64(), "{name}");
}

/// Asks; gives how many similar prompts came before.
fn similar(agent: &mut Followed, prompt: &str) -> u32 {
    agent.ask(prompt);
    agent.agent().tally().prompts
}
