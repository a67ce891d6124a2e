use serde_json::json;
use sprag_core::limits::AGENT_OVERRIDE_BYTES;
use sprag_core::money::NanoUsd;

use super::*;
use crate::config::sandbox::Sandbox;

fn bot() -> AgentName {
    AgentName::parse("bot").unwrap()
}

fn configured() -> Policy {
    Sandbox::new("[defaults.budget]\ndaily_limit = 5\nmax_run_cost = 1").load().unwrap().settings.policies.defaults
}

fn problems(set: &Value) -> Vec<(String, String)> {
    let problems = overridden(&configured(), &bot(), set).unwrap_err();
    problems
        .into_iter()
        .map(|problem| (problem.key, format!("{} {}", problem.message, problem.hint.unwrap_or_default())))
        .collect()
}

#[test]
fn what_is_set_stands_over_what_is_configured() {
    let set = json!({"budget": {"daily_limit": "0.30", "max_run_cost": 0}, "run_limits": {"max_steps": 7}});
    let policy = overridden(&configured(), &bot(), &set).unwrap();
    assert_eq!((policy.budget.daily_limit, policy.budget.max_run_cost), (Some(NanoUsd(300_000_000)), None));
    assert_eq!((policy.run_limits.max_steps, policy.run_limits.timeout_seconds), (7, 120));
    assert_eq!(overridden(&configured(), &bot(), &json!({})).unwrap(), configured());
}

#[test]
fn everything_that_is_wrong_is_said_with_its_key() {
    let by_schema = problems(&json!({"budget": {"daily_limt": 5}, "run_limits": {"max_steps": "many"}, "x": 1}));
    let keys: Vec<_> = by_schema.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["budget.daily_limt", "run_limits.max_steps", "x"]);
    assert!(by_schema[0].1.contains("did you mean `daily_limit`?"), "{by_schema:?}");
    let together = problems(&json!({
        "budget": {"daily_limit": "much", "stages": [{"at": 5, "action": "throttle"}]},
        "hours": {"time_zone": "Mars"},
    }));
    let keys: Vec<_> = together.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["hours.time_zone", "budget.daily_limit", "budget.stages[0].delay_ms"]);
    assert!(problems(&json!(5))[0].1.contains("expected an object"));
    assert!(problems(&json!({"models": {"allow": [null]}}))[0].1.contains("cannot be read"));
    assert!(problems(&json!({"run_limits": {"max_steps": u64::MAX}}))[0].1.contains("cannot be read"));
}

#[test]
fn two_agents_with_the_same_rate_limit_do_not_share_its_counter() {
    let set = json!({"rate_limits": [{"requests": 5, "window_seconds": 60}]});
    let id = |agent: &str| {
        let agent = AgentName::parse(agent).unwrap();
        overridden(&configured(), &agent, &set).unwrap().rate_limits[0].id
    };
    assert_ne!(id("a"), id("b"));
    assert_eq!(id("a"), id("a"));
}

#[test]
fn patches_are_merged_and_null_takes_back() {
    let set = json!({"budget": {"daily_limit": 5, "mode": "shadow"}, "models": {"allow": ["a", "b"]}});
    for (patch, expected) in [
        (json!({}), set.clone()),
        (
            json!({"budget": {"daily_limit": 6}}),
            json!({"budget": {"daily_limit": 6, "mode": "shadow"}, "models": {"allow": ["a", "b"]}}),
        ),
        (json!({"budget": null}), json!({"models": {"allow": ["a", "b"]}})),
        (json!({"budget": {"daily_limit": null, "mode": null}}), json!({"models": {"allow": ["a", "b"]}})),
        (json!({"models": {"allow": ["c"]}, "budget": 5}), json!({"models": {"allow": ["c"]}, "budget": 5})),
        (json!({"hours": {"mode": null}}), set.clone()),
        (json!({"a": {"b": {"c": null, "d": 1}}, "budget": null, "models": null}), json!({"a": {"b": {"d": 1}}})),
    ] {
        assert_eq!(merged(&set, &patch), expected, "{patch}");
    }
    assert_eq!(merged(&Value::Null, &json!({"a": 1})), json!({"a": 1}));
    assert_eq!(merged(&set, &json!(7)), json!(7));
}

#[test]
fn only_what_is_written_is_remembered() {
    let text = "[agents.bot.budget]\ndaily_limit = 5\n[agents.bot.detection.progress]\nmode = \"shadow\"";
    let policies = Sandbox::new(text).load().unwrap().settings.policies;
    let expected = json!({"budget": {"daily_limit": "5"}, "detection": {"progress": {"mode": "shadow"}}});
    assert_eq!(policies.written[&bot()], expected);
}

#[test]
fn what_can_be_set_has_a_bound() {
    let of_bytes = |bytes: usize| {
        let around = json!({"rate_limits": [], "x": ""}).to_string().len();
        json!({"rate_limits": [], "x": "x".repeat(bytes - around)})
    };
    let at = problems(&of_bytes(AGENT_OVERRIDE_BYTES));
    assert_eq!(at[0].0, "x", "the bound itself is no problem: {at:?}");
    assert!(problems(&of_bytes(AGENT_OVERRIDE_BYTES + 1))[0].1.contains("more than 65536 bytes"));
}
