//! The cases of the older systems and of their documents that only a whole Sprag decides: kills, agents, limits of
//! runs, the form of a stop. Those that detection alone decides are in the tests of the core.
//!
//! The cases lie beside the checkout and not in it; where they are absent the test says so and passes. A status or a
//! word of another system is asked for under the preset of that system; a path of another system's API stands for ours.

#![expect(clippy::unwrap_used, reason = "a case of another form fails the test")]

mod agents;
#[path = "../harness/configured.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod configured;
mod keys;
mod kills;
mod limits;
mod place;
mod runs;
mod shadow;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// Fewest cases that must be decided here: one that is no longer decided is noticed.
const FEWEST_HELD: usize = 78;

#[derive(Deserialize)]
struct Case {
    system: String,
    area: String,
    name: String,
    input: Value,
    expected: Value,
}

/// What a case comes to.
enum Outcome {
    /// It holds.
    Held,
    /// Nothing here decides it.
    Left(&'static str),
    /// Another test decides it, or it is about something else.
    Elsewhere,
}

impl Case {
    fn title(&self) -> String {
        format!("{}/{}/{}", self.system, self.area, self.name)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_systems_cases_hold_in_the_whole() {
    let path = shared().join("cases/cases.json");
    let Ok(json) = std::fs::read(&path) else {
        println!("skipped: no {}", path.display());
        return;
    };
    let cases: Vec<Case> = serde_json::from_slice(&json).unwrap();
    let mut held: BTreeMap<String, usize> = BTreeMap::new();
    let mut left: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for case in &cases {
        match decide(case).await {
            Outcome::Held => *held.entry(format!("{}/{}", case.system, case.area)).or_default() += 1,
            Outcome::Left(reason) => left.entry(reason).or_default().push(case.title()),
            Outcome::Elsewhere => {}
        }
    }
    for (area, number) in &held {
        println!("held: {area} {number}");
    }
    for (reason, titles) in &left {
        println!("left, {reason}: {}", titles.join(", "));
    }
    let total: usize = held.values().sum();
    println!("{total} of {} cases decided here", cases.len());
    assert!(total >= FEWEST_HELD, "{total}");
}

fn shared() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    std::env::var_os("SPRAG_SHARED").map_or_else(beside, PathBuf::from)
}

async fn decide(case: &Case) -> Outcome {
    match (case.system.as_str(), case.area.as_str(), case.name.as_str()) {
        ("fairvisor", "kill_switch", _) => kills::match_descriptors(case).await,
        ("fairvisor", "kill_switch_config", _) => kills::are_validated(case).await,
        ("fairvisor", "rule_engine", "kill_switch_first") => kills::come_first(case).await,
        ("fairvisor", "rule_engine", "kill_switch_override") => Outcome::Left("a kill is lifted, not overridden"),
        ("fairvisor", "rule_engine", "shadow_allows") => shadow::leaves_the_rest_in_force(case).await,
        ("fairvisor", "rule_engine", _) => limits::are_evaluated(case).await,
        ("fairvisor", "selector", _) => limits::select(case).await,
        ("fairvisor", "token_bucket_config", _) => limits::are_configured(case),
        ("fairvisor", "decision_api", _) => limits::are_decided(case).await,
        ("agentgazer", "wire_rate_limit", _) => limits::are_told(case).await,
        ("agentgazer", "rate_limiter", "update_replaces_all") => limits::are_replaced(case).await,
        ("fairvisor", "shadow", _) => shadow::changes_nothing(case).await,
        ("seed", "kill_switch", _) => agents::have_a_kill_switch(case).await,
        ("agentgazer", "admin_api", name) if name.starts_with("kill_switch") => agents::are_switched(case).await,
        ("agentgazer", "wire_block", name) if name.starts_with("agent_inactive") => agents::answer_inactive(case).await,
        ("agentgazer", "wire_block", _) => Outcome::Left("providers are not switched off, and prompts are not judged"),
        ("seed", "kill", "manual_kill") => kills::are_made_on_the_page(case).await,
        ("sprag", "security", "killed_run_not_revived_by_inflight_response") => kills::outlive_answers(case).await,
        ("agentwall", "run", "step_limit" | "timeout" | "killed_run_refused") => runs::are_limited(case).await,
        ("agentwall", "run", "warning_at_80_percent") => Outcome::Left("no warning is given before a limit"),
        ("agentwall", "loop_sequence", name) if name.starts_with("LOOP-015") => runs::end_after_their_steps(case).await,
        ("sprag", "loop", "same_tool_call_same_error") => runs::stop_at_the_same_error(case).await,
        ("seed", "loop_detector", "reject_headers") => runs::say_when_to_retry(case).await,
        ("agentwall", "wire", "response_metadata" | "streaming_headers") => runs::are_told_of(case).await,
        ("seed", "wire", "loop_error") => runs::say_what_repeats(case).await,
        ("agentgazer", "loop_state", "agent_count" | "ttl_expiry" | "ttl_keeps_active" | "default_ttl") => {
            Outcome::Left("agents are kept by their number, the longest quiet leaves first; there is no time to live")
        }
        ("agentgazer", "key_injection", _) => keys::are_put_in(case).await,
        ("agentgazer", "auth", _) => keys::open_the_admin_side(case).await,
        ("agentgazer", "evidence", _) => Outcome::Left("bodies are not recorded; a proof holds no text"),
        _ => Outcome::Elsewhere,
    }
}
