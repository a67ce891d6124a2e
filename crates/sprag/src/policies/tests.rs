use std::time::Instant;

use serde_json::json;
use sprag_core::money::NanoUsd;
use sprag_core::policy::KillSwitch;
use sprag_core::time::Timestamp;
use sprag_store::DataDir;
use sprag_store::catalog::{Bounds, Catalog};

use super::*;
use crate::config::{Flags, Sources, load};

fn configured(text: &str) -> Policies {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("own.toml");
    std::fs::write(&config, text).unwrap();
    let flags = Flags { config: Some(config), ..Flags::default() };
    load(&Sources { flags, ..Sources::default() }).unwrap().settings.policies
}

fn name(name: &str) -> AgentName {
    AgentName::parse(name).unwrap()
}

fn with_policy(policy: Value) -> AgentStanding {
    AgentStanding { policy: Some(policy), ..AgentStanding::default() }
}

fn steps(book: &PolicyBook, agent: &str) -> (u32, u32) {
    let limits = book.of(&name(agent)).policy.run_limits;
    (limits.max_steps, limits.timeout_seconds)
}

const CONFIG: &str =
    "[defaults.run_limits]\nmax_steps = 10\n[agents.bot.run_limits]\nmax_steps = 20\ntimeout_seconds = 60";

#[test]
fn what_is_set_stands_over_the_agents_configuration_and_that_over_the_defaults() {
    let configured = configured(CONFIG);
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let data = Arc::new(DataDir::open(dir.path()).unwrap());
        Catalog::open(data, Bounds::default(), Timestamp(0), |_| {}).unwrap()
    };
    let catalog = open();
    let set = |agent: &str, standing: AgentStanding| {
        catalog.set_agent(&name(agent), |_| standing).unwrap();
    };
    set("bot", with_policy(json!({"run_limits": {"max_steps": 30}})));
    set("new", with_policy(json!({"run_limits": {"timeout_seconds": 5}})));
    set("off", AgentStanding { active: false, ..AgentStanding::default() });
    set("odd", with_policy(json!({"run_limits": {"max_steps": 1, "from_the_future": true}})));
    // What is set is still there after a restart.
    drop(catalog);
    let book = PolicyBook::new(&configured, &open().snapshot(), None);
    assert_eq!(steps(&book, "bot"), (30, 60));
    assert_eq!(steps(&book, "new"), (10, 5));
    assert_eq!(steps(&book, "odd"), (10, 120), "what is not understood is ignored");
    assert_eq!(steps(&book, "anybody"), (10, 120));
    assert!(Arc::ptr_eq(book.of(&name("off")), book.of(&name("anybody"))), "nothing is set for it");
}

#[test]
fn what_no_longer_fits_takes_nothing_else_with_it() {
    let (old, new) = (configured(""), configured("[detection.oscillation]\nresult_laps = 4"));
    let (bot, dir) = (name("bot"), tempfile::tempdir().unwrap());
    let data = Arc::new(DataDir::open(dir.path()).unwrap());
    let catalog = Catalog::open(data, Bounds::default(), Timestamp(0), |_| {}).unwrap();
    let set = json!({"budget": {"daily_limit": 5}, "detection": {"oscillation": {"longest_period": 10}}});
    catalog.set_agent(&bot, |_| with_policy(set.clone())).unwrap();
    let limit = |book: &PolicyBook| book.of(&bot).policy.budget.daily_limit;
    let period = |book: &PolicyBook| book.of(&bot).policy.rules.oscillation.longest_period;
    let book = PolicyBook::new(&old, &catalog.snapshot(), None);
    assert_eq!((limit(&book), period(&book)), (Some(NanoUsd(5_000_000_000)), 10));
    // With a new configuration its policy stays as it was, also when something else is changed.
    let reloaded = PolicyBook::new(&new, &catalog.snapshot(), Some(&book));
    assert_eq!(reloaded.of(&bot).policy, book.of(&bot).policy);
    assert_eq!(reloaded.of(&name("other")).policy, new.defaults);
    let switch = KillSwitchChange { enabled: Some(true), ..KillSwitchChange::default() };
    let switched = AgentStanding { kill_switch: switch, ..with_policy(set) };
    let switched = reloaded.with(&bot, &new, Some(&switched));
    assert_eq!((limit(&switched), period(&switched)), (Some(NanoUsd(5_000_000_000)), 10));
    assert!(switched.of(&bot).policy.kill_switch.enabled);
    // At the start there is none to keep: what can be used holds.
    let started = PolicyBook::new(&new, &catalog.snapshot(), None);
    assert_eq!((limit(&started), period(&started)), (Some(NanoUsd(5_000_000_000)), 8));
    let back = reloaded.with(&bot, &new, Some(&AgentStanding::default()));
    assert!(Arc::ptr_eq(back.of(&bot), back.of(&name("other"))), "taken back is taken back");
}

#[test]
fn one_change_leaves_the_others_as_they_were() {
    let configured = configured(CONFIG);
    let book = PolicyBook::new(&configured, &Snapshot::default(), None);
    let standing = AgentStanding {
        kill_switch: KillSwitchChange { enabled: Some(true), ..KillSwitchChange::default() },
        ..with_policy(json!({"run_limits": {"max_steps": 7}}))
    };
    let changed = book.with(&name("new"), &configured, Some(&standing));
    assert_eq!(steps(&changed, "new"), (7, 120));
    assert_eq!(changed.of(&name("new")).policy.kill_switch, KillSwitch { enabled: true, ..KillSwitch::default() });
    assert!(Arc::ptr_eq(changed.of(&name("bot")), book.of(&name("bot"))));
    assert_eq!(steps(&book, "new"), (10, 120), "the old book stays as it was");
    let back = changed.with(&name("new"), &configured, Some(&AgentStanding::default()));
    assert!(Arc::ptr_eq(back.of(&name("new")), back.of(&name("anybody"))));
}

/// Prints how long one change takes among many agents; the bound is far above that.
#[test]
fn one_change_among_ten_thousand_agents_is_quick() {
    let configured = configured("");
    let mut book = PolicyBook::new(&configured, &Snapshot::default(), None);
    let set = json!({"budget": {"daily_limit": 5}, "run_limits": {"max_steps": 50}, "models": {"allow": ["gpt-4o*"]}});
    let standing = with_policy(set);
    let begin = Instant::now();
    for index in 0..10_000 {
        book.put(&name(&format!("agent-{index}")), &configured, Some(&standing), None);
    }
    println!("10,000 agents put together: {:?}", begin.elapsed());
    let begin = Instant::now();
    const CHANGES: u32 = 20;
    for index in 0..CHANGES {
        book = book.with(&name(&format!("agent-{index}")), &configured, Some(&standing));
    }
    let each = begin.elapsed() / CHANGES;
    println!("one change among 10,000 agents: {each:?}");
    assert_eq!(book.agents.len(), 10_000);
    assert!(each.as_millis() < 200, "{each:?}");
}
