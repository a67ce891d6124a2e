//! The cases of the older systems and of their documents, as far as detection decides them.
//!
//! The cases lie beside the checkout and not in it; where they are absent the test says so and passes. What the
//! documents state and what none of those systems gets right must hold by default; what their own tests check must
//! hold under the preset of that system. Where a note says that shipped code and document disagree, the document wins.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a case of another form fails the test")]

mod agents;
mod limits;
mod money;
mod requests;
mod runs;
mod texts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// Fewest cases that must be decided here: one that is no longer decided is noticed.
const FEWEST_HELD: usize = 160;

#[derive(Deserialize)]
struct Case {
    system: String,
    area: String,
    name: String,
    input: Value,
    expected: Value,
    kind: String,
}

/// What a case comes to.
enum Outcome {
    /// It holds.
    Held,
    /// Something else decides it.
    Left(&'static str),
}

impl Case {
    fn text(&self, key: &str) -> &str {
        self.input[key].as_str().unwrap_or_default()
    }

    fn texts(&self, key: &str) -> Vec<&str> {
        self.input[key].as_array().map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
    }

    fn number(&self, key: &str) -> u32 {
        u32::try_from(self.input[key].as_u64().unwrap_or_default()).unwrap()
    }
}

#[test]
fn the_older_systems_cases_hold() {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = std::env::var_os("SPRAG_SHARED").map_or_else(beside, PathBuf::from).join("cases/cases.json");
    let Ok(json) = std::fs::read(&path) else {
        println!("skipped: no {}", path.display());
        return;
    };
    let cases: Vec<Case> = serde_json::from_slice(&json).unwrap();
    let mut held: BTreeMap<&str, usize> = BTreeMap::new();
    let mut left: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for case in &cases {
        match decide(case) {
            Outcome::Held => *held.entry(&case.area).or_default() += 1,
            Outcome::Left(reason) => left.entry((reason, &case.area)).or_default().push(&case.name),
        }
    }
    for (area, number) in &held {
        println!("held: {area} {number}");
    }
    for ((reason, area), names) in &left {
        println!("left to {reason}: {area} ({}): {}", names.len(), names.join(", "));
    }
    let total: usize = held.values().sum();
    println!("{total} of {} cases decided here", cases.len());
    assert!(total >= FEWEST_HELD, "{total}");
}

fn decide(case: &Case) -> Outcome {
    let name = format!("{}/{}/{} ({})", case.system, case.area, case.name, case.kind);
    match case.area.as_str() {
        "normalize" => texts::normalizes(case, &name),
        "simhash" => texts::has_simhash(case, &name),
        "simhash_golden" => texts::keeps_golden_apart(case, &name),
        "hamming" => texts::has_distance(case, &name),
        "loop_score" => agents::scores(case, &name),
        "loop_state" => agents::keeps_state(case, &name),
        "loop_config" => agents::is_configured(case, &name),
        "kill_switch" if case.name == "activate_clears" => agents::is_cleared(&name),
        "loop_detector" => requests::counts(case, &name),
        "loop_detector_config" => requests::is_configured(case, &name),
        "loop" | "loop_sequence" => runs::finds(case, &name),
        "benign" => runs::lets_pass(case, &name),
        "run" => runs::follows(case, &name),
        "wire" if case.name == "loop_error" => runs::says(case, &name),
        "extract_prompt" => texts::reads_prompt(case, &name),
        "rate_limiter" => limits::limits_requests(case, &name),
        "token_bucket" => limits::fills_buckets(case, &name),
        "token_bucket_config" => Outcome::Left("the configuration"),
        "llm_tokens" => limits::limits_tokens(case, &name),
        "descriptor" => limits::describes(case, &name),
        "cost_budget_period" => limits::has_period(case, &name),
        "cost_budget" => money::is_spent(case, &name),
        "budget_policy" => money::has_bounds(case, &name),
        "budget" => money::stops(case, &name),
        "extract_tools" => Outcome::Left("nobody: tools that are declared are no calls"),
        "evidence" => Outcome::Left("recording"),
        "shadow" => Outcome::Left("policy and the page"),
        "kill_switch" | "kill_switch_config" | "kill" => Outcome::Left("kills and agents"),
        area if area.starts_with("dlp") => Outcome::Left("data loss prevention"),
        area if area.contains("budget") || area == "cost" => Outcome::Left("money"),
        area if area.starts_with("wire") => Outcome::Left("the proxy"),
        _ => Outcome::Left("other parts"),
    }
}
