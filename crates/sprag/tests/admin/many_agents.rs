//! Far more agents than one page holds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use serde_json::{Value, json};
use sprag::clock::Clock;
use sprag_core::id::AgentName;
use sprag_core::limits::{OFFERED_AGENTS, PAGE_ROWS};
use sprag_core::policy::{AgentStanding, DeactivatedBy};
use sprag_core::time::Timestamp;

use crate::browser::Browser;
use crate::commands::printed;
use crate::kills::refused;
use crate::world::{TOKEN, World, links};

const SEEN: i64 = 1200;
const SET_UP: i64 = 40;

fn bot(n: i64) -> String {
    format!("bot-{n:04}")
}

/// So many agents that called, the last ones last, and some that are only set up. Every hundredth is set inactive.
async fn crowded() -> World {
    // In the evening, so that all of it is today.
    let clock = Arc::new(AtomicI64::new(1_700_000_000_000));
    let world = World::at(Clock::Scripted(clock), TOKEN, |_| {}).await;
    let now = world.sprag.app.clock.now().0;
    for n in 0..SEEN {
        world.record(now - (SEEN - n) * 1000, json!({"agent": bot(n), "cost": 1_000_000_000_i64, "total_ms": 0}));
    }
    world.sprag.app.history.flush().unwrap();
    let set = |name: &str, change: fn(&AgentStanding) -> AgentStanding| {
        world.sprag.app.catalog.set_agent(&AgentName::parse(name).unwrap(), change).unwrap();
    };
    for n in (0..SEEN).step_by(100) {
        set(&bot(n), |standing| standing.deactivated(DeactivatedBy::Manual, "rest".into(), None, Timestamp(1)));
    }
    set(&bot(3), |standing| standing.deactivated(DeactivatedBy::KillSwitch, "loop".into(), None, Timestamp(1)));
    for n in 0..SET_UP {
        set(&format!("ahead-{n:02}"), AgentStanding::clone);
    }
    world
}

/// All agents of a listing, page by page.
async fn listed(world: &World, query: &str, limit: u32) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.json(&format!("/agents?limit={limit}{query}{cursor}")).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= limit as usize);
        found.extend(items.iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

fn names(agents: &[Value]) -> Vec<&str> {
    agents.iter().map(|agent| agent["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_agent_is_reached_by_paging_once_and_with_what_it_did() {
    let world = crowded().await;
    let ahead = (0..SET_UP).map(|n| format!("ahead-{n:02}"));
    let expected: Vec<String> = (0..SEEN).rev().map(bot).chain(ahead).collect();
    for limit in [500, 97] {
        let agents = listed(&world, "", limit).await;
        assert_eq!(names(&agents), expected, "in pages of {limit}");
        let (seen, unseen) = agents.split_at(SEEN as usize);
        assert!(seen.iter().all(|agent| agent["steps"] == 1), "those beyond the first page too");
        assert!(unseen.iter().all(|agent| agent["steps"] == 0 && agent["last_at"].is_null()));
    }
    assert_eq!(world.json("/agents").await["items"].as_array().unwrap().len(), 50, "a page unless more is asked for");
    let asked = printed(&world, &["agents"]).await;
    assert_eq!(asked.lines().count(), 1 + expected.len(), "the command lists all");
    let asked: Value = serde_json::from_str(&printed(&world, &["agents", "--json"]).await).unwrap();
    assert_eq!(names(asked["items"].as_array().unwrap()), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_finds_any_of_them() {
    let world = crowded().await;
    for (query, expected) in [
        ("&name=bot-0007", vec![bot(7)]),
        ("&name=BOT-119", (1190..1200).rev().map(bot).collect()),
        ("&name=ahead-3", (30..40).map(|n| format!("ahead-{n}")).collect()),
        ("&name=bot%25", vec![]),
        ("&state=inactive", [1100, 1000, 900, 800, 700, 600, 500, 400, 300, 200, 100, 3, 0].map(bot).into()),
        ("&state=killed", vec![bot(3)]),
        ("&state=inactive&name=bot-01", vec![bot(100)]),
        ("&state=armed", vec![]),
    ] {
        for limit in [4, 500] {
            assert_eq!(names(&listed(&world, query, limit).await), expected, "{query} in pages of {limit}");
        }
    }
    assert_eq!(listed(&world, "&state=active", 500).await.len() as i64, SEEN + SET_UP - 13);
    for query in ["state=asleep", "cursor=x", "cursor=seen.x", "cursor=name.", "limit=501", "nam=x"] {
        assert_eq!(refused(&world, "GET", &format!("/agents?{query}"), &Value::Null).await.0, 400, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_stay_small_and_lead_to_every_agent() {
    let world = crowded().await;
    let browser = Browser::open(&world).await;
    let (mut found, mut path, mut pages) = (BTreeSet::new(), "/agents".to_owned(), 0);
    loop {
        let page = browser.page(&path).await;
        assert!(page.len() < 200_000, "{path}: {} bytes", page.len());
        found.extend(links(&page).into_iter().filter(|link| link.starts_with("/agent?name=")));
        assert!(page.contains(">$1.0000<") == page.contains(">bot-"), "what each spent today: {page}");
        pages += 1;
        let older = page.split("Older →").next().filter(|_| page.contains("Older →"));
        match older.and_then(|before| links(before).pop()) {
            Some(next) => path = next,
            None => break,
        }
    }
    assert_eq!((found.len() as i64, pages), (SEEN + SET_UP, 13));
    let page = browser.page("/agents?q=bot-0007&state=active").await;
    assert!(page.contains(">bot-0007</a>") && !page.contains(">bot-0008</a>"), "{page}");
    assert!(browser.page("/agents?q=nobody").await.contains("No agent is like this"));
    assert_eq!(browser.get("/agents?state=asleep").await.status, 400);

    for path in ["/keys?agent=bot-0007", "/budgets?agent=bot-0007", "/dlp?agent=bot-0007", "/detectors?agent=bot-0007"]
    {
        let page = browser.page(path).await;
        let offered = page.split("<datalist id=\"agent-names\">").nth(1).unwrap().split("</datalist>").next().unwrap();
        assert_eq!(offered.matches("<option").count(), OFFERED_AGENTS as usize, "{path}");
        assert!(offered.contains("bot-1199") && !offered.contains("bot-0007"), "the latest: {path}");
        assert!(page.contains("name=\"agent\" value=\"bot-0007\""), "whoever is asked for is shown: {path}");
    }
    for path in ["/runs?agent=bot-0007", "/events?agent=bot-0007"] {
        let page = browser.page(path).await;
        assert!(page.contains("name=\"agent\" value=\"bot-0007\"") && page.contains("run-"), "{path}: {page}");
        assert_eq!(page.matches("<option value=\"bot-").count(), OFFERED_AGENTS as usize, "{path}");
    }
    assert!(PAGE_ROWS < SEEN as u32);
}
