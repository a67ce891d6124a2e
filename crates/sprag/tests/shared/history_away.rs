//! Nodes share a Redis and a history, and the history is away: budgets that are open go on, also into a new day; one that
//! nobody has drawn on is closed, or goes by a node's own record where that is wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sprag::clock::Clock;
use sprag::config::Settings;
use sprag::config::file::StateLoss;
use sprag_core::policy::Reserve;
use sprag_store::history::{ClickHouseAddress, ClickHouseSettings};
use sprag_testkit::client::Whole;
use sprag_testkit::{ClickHouseServer, RedisServer};
use tempfile::TempDir;

use crate::nodes::{Nodes, daily, stopped, text, wait_until};

const PATIENCE: Duration = Duration::from_secs(60);
const DAY_MS: i64 = 86_400_000;

/// What two nodes share, with a dollar a day for each agent.
struct Shared {
    nodes: Nodes,
    clickhouse: ClickHouseServer,
    clock: Arc<AtomicI64>,
    _redis: RedisServer,
    _dir: TempDir,
}

impl Shared {
    async fn start(change: impl Fn(&mut Settings)) -> Option<Shared> {
        let redis = RedisServer::start()?;
        let dir = tempfile::tempdir().unwrap();
        let clickhouse = ClickHouseServer::start(dir.path())?;
        let settings = ClickHouseSettings {
            address: ClickHouseAddress::parse(&clickhouse.url("away")).unwrap(),
            batch_events: 1000,
            batch_age: Duration::from_millis(20),
            patience: PATIENCE,
        };
        let clock = Arc::new(AtomicI64::new(noon()));
        let nodes = Nodes::start_at(2, &redis.url(), Clock::Scripted(clock.clone()), |of_node| {
            daily(of_node, 100, Reserve::WorstCase);
            of_node.events.clickhouse = Some(settings.clone());
            change(of_node);
        })
        .await;
        let shared = Shared { nodes, clickhouse, clock, _redis: redis, _dir: dir };
        shared.is_on_record();
        Some(shared)
    }

    /// Everything so far has reached the history.
    fn is_on_record(&self) {
        for sprag in &self.nodes.sprags {
            sprag.app.history.flush().unwrap();
        }
    }

    async fn ask(&self, node: usize, agent: &str, cents: u64) -> Whole {
        let call = self.nodes.call(node, &format!("task of {agent}"), cents).header("x-sprag-agent", agent);
        call.fetch().await.unwrap()
    }

    /// Calls until the history is read again, and gives that answer.
    async fn ask_when_back(&self, node: usize, agent: &str, cents: u64) -> Whole {
        let begun = Instant::now();
        loop {
            let answer = self.ask(node, agent, cents).await;
            if answer.status != 503 {
                return answer;
            }
            assert!(begun.elapsed() < PATIENCE, "{}", text(&answer));
        }
    }
}

/// Of this day, so that nothing is too old to be kept.
fn noon() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    now / DAY_MS * DAY_MS + DAY_MS / 2
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_any_node_has_opened_goes_on_without_the_history() {
    let Some(mut shared) = Shared::start(|_| {}).await else { return };
    assert_eq!(shared.ask(0, "bot", 60).await.status, 200);
    shared.clickhouse.kill();
    let answer = shared.ask(1, "bot", 30).await;
    assert_eq!(answer.status, 200, "the other node finds it in Redis: {}", text(&answer));
    assert_eq!(stopped(&shared.ask(1, "bot", 20).await), "budget_exceeded");
    assert_eq!(shared.nodes.forwarded(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_day_begins_without_the_history() {
    let Some(mut shared) = Shared::start(|_| {}).await else { return };
    for node in 0..2 {
        assert_eq!(shared.ask(node, "bot", 40).await.status, 200);
    }
    shared.clickhouse.kill();
    shared.clock.fetch_add(DAY_MS, Ordering::Relaxed);
    for node in 0..2 {
        let answer = shared.ask(node, "bot", 50).await;
        assert_eq!(answer.status, 200, "node {node}: {}", text(&answer));
    }
    for node in 0..2 {
        assert_eq!(stopped(&shared.ask(node, "bot", 1).await), "budget_exceeded", "both spend the same dollar");
    }
    // A day in which nobody called may hold what nobody counted.
    shared.clock.fetch_add(2 * DAY_MS, Ordering::Relaxed);
    assert_eq!(shared.ask(0, "bot", 1).await.status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_nobody_has_drawn_on_is_closed_without_the_history() {
    let Some(mut shared) = Shared::start(|_| {}).await else { return };
    shared.clickhouse.kill();
    let refused = shared.ask(0, "bot", 10).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (503, "1"), "{}", text(&refused));
    let error = &refused.json()["error"];
    assert_eq!(
        (&error["type"], &error["store"], &error["control"]),
        (&"state_unavailable".into(), &"clickhouse".into(), &"budgets".into())
    );
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("ClickHouse") && message.contains("state.on_state_loss.budgets"), "{message}");
    assert!(!message.contains("127.0.0.1"), "where it is, is nobody's business: {message}");
    assert_eq!(shared.nodes.forwarded(), 0);
    shared.clickhouse.restart();
    assert_eq!(shared.ask_when_back(0, "bot", 90).await.status, 200, "nobody has to do anything");
    assert_eq!(stopped(&shared.ask(1, "bot", 20).await), "budget_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_budget_goes_by_a_nodes_own_record_and_by_everybodys_when_the_history_is_back() {
    // The limit is set when both nodes have spent without one.
    let unlimited = |settings: &mut Settings| {
        settings.policies.defaults.budget.daily_limit = None;
        settings.state.on_loss.budgets = StateLoss::Open;
    };
    let Some(mut shared) = Shared::start(unlimited).await else { return };
    assert_eq!(shared.ask(0, "bot", 30).await.status, 200);
    assert_eq!(shared.ask(1, "bot", 50).await.status, 200);
    shared.nodes.quiet().await;
    shared.is_on_record();
    shared.clickhouse.kill();
    for sprag in &shared.nodes.sprags {
        let mut settings = Settings::clone(&sprag.app.settings.load());
        daily(&mut settings, 100, Reserve::WorstCase);
        sprag.app.replace_settings(settings).unwrap();
    }
    // Each by what it has spent itself: 30 and 50 cents.
    assert_eq!(stopped(&shared.ask(0, "bot", 71).await), "budget_exceeded");
    let answer = shared.ask(0, "bot", 15).await;
    assert_eq!(answer.status, 200, "{}", text(&answer));
    assert_eq!(stopped(&shared.ask(1, "bot", 51).await), "budget_exceeded");
    assert!(
        shared.nodes.sprags.iter().all(|sprag| sprag.app.state.accounts().is_empty()),
        "none is opened with a part"
    );
    shared.clickhouse.restart();
    shared.nodes.quiet().await;
    let is_sent = || shared.nodes.sprags.iter().all(|sprag| sprag.app.history.flush().is_ok());
    wait_until("what waited is in the history", is_sent).await;
    // A server that was away is left alone for a moment; until then calls go by the node's own record.
    let begun = Instant::now();
    while shared.nodes.sprags[1].app.state.accounts().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the account was never opened");
        assert_eq!(shared.ask(1, "bot", 0).await.status, 200);
    }
    // 95 cents of both.
    let answer = shared.ask(1, "bot", 5).await;
    assert_eq!(answer.status, 200, "{}", text(&answer));
    for node in 0..2 {
        assert_eq!(stopped(&shared.ask(node, "bot", 1).await), "budget_exceeded", "node {node}");
    }
}
