//! A Sprag with budgets before a provider of which every token of an answer costs a cent.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use sprag::clock::Clock;
use sprag::config::Settings;
use sprag_core::id::AgentName;
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Budget, RunLimits};
use sprag_testkit::client::{self, Call};

use crate::kills::done;
use crate::sprag::without_detection;
use crate::world::{TOKEN, World};

/// 2023-11-14T22:13:20Z, a Tuesday.
pub(crate) const START: i64 = 1_700_000_000_000;

pub(crate) struct Till {
    pub(crate) world: World,
    clock: Arc<AtomicI64>,
}

impl Till {
    pub(crate) async fn start(change: impl FnOnce(&mut Settings)) -> Till {
        let clock = Arc::new(AtomicI64::new(START));
        let change = |settings: &mut Settings| {
            without_detection(settings);
            settings.policies.defaults.run_limits = RunLimits::NONE;
            let price = json!({"model": "gpt-4o", "input": "0", "output": "10000"});
            settings.prices.overrides = vec![serde_json::from_value(price).unwrap()];
            change(settings);
        };
        Till { world: World::at(Clock::Scripted(clock.clone()), TOKEN, change).await, clock }
    }

    /// With what another one left behind.
    pub(crate) async fn start_in(data: PathBuf, change: impl FnOnce(&mut Settings)) -> Till {
        Till::start(|settings| {
            settings.data_dir = data;
            change(settings);
        })
        .await
    }

    pub(crate) fn pass_hours(&self, hours: i64) {
        self.clock.fetch_add(hours * 3_600_000, Ordering::Relaxed);
    }

    /// A call of an agent, in a run, that costs so many cents and accepts no more.
    pub(crate) fn call(&self, agent: &str, run: &str, cents: u64) -> Call {
        let body = json!({"model": "gpt-4o", "max_tokens": cents, "messages": [{"role": "user", "content": "hello"}]});
        client::post_json(self.world.sprag.url("/v1/chat/completions"), &body)
            .header("x-sprag-agent", agent)
            .header("x-sprag-run-id", run)
            .header("x-mock-usage", &format!("input=0 output={cents}"))
    }

    /// The same, made; gives the status.
    pub(crate) async fn spend(&self, agent: &str, run: &str, cents: u64) -> u16 {
        self.call(agent, run, cents).fetch().await.unwrap().status.as_u16()
    }

    /// The rows of a listing.
    pub(crate) async fn budgets(&self, query: &str) -> Vec<Value> {
        self.world.json(&format!("/budgets{query}")).await["items"].as_array().unwrap().clone()
    }

    pub(crate) async fn adjust(&self, account: &str, amount: impl Into<Value>) -> Value {
        let order = json!({"account": account, "amount_usd": amount.into(), "reason": "refund", "by": "anna"});
        done(&self.world, "POST", "/budgets/adjust", &order).await
    }
}

/// A budget in dollars; 0 is no limit.
pub(crate) fn budget(mode: Mode, run: i64, day: i64, month: i64) -> Budget {
    let some = |dollars: i64| (dollars > 0).then_some(NanoUsd(dollars * 1_000_000_000));
    Budget {
        mode,
        max_run_cost: some(run),
        daily_limit: some(day),
        monthly_limit: some(month),
        kill_run: true,
        ..Budget::default()
    }
}

/// Gives an agent a budget in the configuration.
pub(crate) fn configure(settings: &mut Settings, agent: &str, budget: Budget) {
    let mut policy = settings.policies.defaults.clone();
    policy.budget = budget;
    settings.policies.agents.insert(AgentName::parse(agent).unwrap(), policy);
}

/// Account, settled and reserved of rows.
pub(crate) fn sums(rows: &[Value]) -> Vec<(String, f64, f64)> {
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap();
    let sums = |row: &Value| {
        (row["account"].as_str().unwrap().to_owned(), number(row, "settled_usd"), number(row, "reserved_usd"))
    };
    rows.iter().map(sums).collect()
}
