//! Budgets: what passes, what is refused, what a refusal costs, and what happens before the limit.
//!
//! Their units are dollars here. Their stages look at a call together with its cost, ours at what is spent: a stage holds
//! from the call after the one that reached it, so it is asked for after each call.

use serde_json::Value;
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{
    AccountId, Consequence, Denied, Draw, Holder, Ledger, Level, Span, Stage, StageAction, Stop, Window, Zone,
    denied_refusal,
};
use sprag_core::time::Timestamp;

use crate::{Case, Outcome};

const NOW: i64 = 1_770_098_400;
const FULL_DAYS: &str = "nobody: budgets are for days and months";

fn usd(amount: f64) -> NanoUsd {
    NanoUsd((amount * 1e9).round() as i64)
}

fn draw(window: Window, limit: f64, spent: f64, now: Timestamp) -> Draw {
    let agent = AgentName::default();
    let (holder, span) = match window {
        Window::Run => (
            Holder::Run(agent, RunId::parse("task-123").unwrap()),
            Span { start: Timestamp(0), end: Timestamp(i64::MAX) },
        ),
        Window::Day => (Holder::Agent(agent), Zone::default().day(now)),
        Window::Month => (Holder::Agent(agent), Zone::default().month(now)),
    };
    let id = AccountId { holder, window, is_shadow: false };
    Draw { id, limit: usd(limit), level: Level::Agent, span, seed: Some(usd(spent).into()), stages: Default::default() }
}

fn refused(denied: &Denied, kills: bool, now: Timestamp) -> Stop {
    denied_refusal(denied, kills, now)
}

/// Costs one after the other against a budget of one day.
pub(crate) fn is_spent(case: &Case, name: &str) -> Outcome {
    if case.text("period") != "1d" {
        return Outcome::Left(FULL_DAYS);
    }
    let limit = case.input["budget"].as_f64().unwrap();
    let now = Timestamp(case.input["now"].as_i64().unwrap_or(NOW) * 1000);
    let (spent, spent_at) = match &case.input["usage_before"] {
        Value::String(text) => {
            let (amount, at) = text.split_once(" at ").unwrap();
            (amount.parse().unwrap(), Timestamp(at.parse::<i64>().unwrap() * 1000))
        }
        amount => (amount.as_f64().unwrap(), now),
    };
    let mut ledger = Ledger::with_room(8);
    let mut earlier =
        ledger.reserve(&[draw(Window::Day, limit, spent, spent_at)], NanoUsd::ZERO, NanoUsd::ZERO, spent_at);
    if let Ok(opened) = &mut earlier {
        ledger.settle(opened, NanoUsd::ZERO);
    }
    let draws = [Draw { stages: stages(case), ..draw(Window::Day, limit, 0.0, now) }];
    let settled = |ledger: &Ledger| {
        let open = ledger.accounts().find(|state| state.account.span == draws[0].span);
        open.map_or(NanoUsd::ZERO, |state| state.account.settled)
    };
    let mut actions = Vec::new();
    for (at, cost) in case.input["costs"].as_array().unwrap().iter().enumerate() {
        let cost = usd(cost.as_f64().unwrap());
        match ledger.reserve(&draws, cost, cost, now) {
            Err(denied) => {
                let refusal = refused(&denied, false, now).refusal;
                actions.push("reject");
                if let Some(seconds) = case.expected["retry_after"].as_u64() {
                    assert_eq!(refusal.retry_after_seconds.map(u64::from), Some(seconds), "{name}");
                }
                percent(case, settled(&ledger) + cost, limit, name);
            }
            Ok(reservation) => {
                ledger.settle(&reservation, cost);
                actions.push(action(&mut ledger, &draws, now, case, name));
                percent(case, settled(&ledger), limit, name);
            }
        }
        if let Some(left) = case.expected["remaining_after_first"].as_f64().filter(|_| at == 0) {
            assert_eq!(usd(limit) - settled(&ledger), usd(left), "{name}");
        }
    }
    let expected: Vec<&str> = match &case.expected["actions"] {
        Value::Array(actions) => actions.iter().filter_map(Value::as_str).collect(),
        _ => vec![case.expected["action"].as_str().unwrap()],
    };
    assert_eq!(actions, expected, "{name}");
    if let Some(left) = case.expected["remaining"].as_f64() {
        assert_eq!(usd(limit) - settled(&ledger), usd(left), "{name}");
    }
    if let Some(stored) = case.expected["stored_usage"].as_f64() {
        assert_eq!(settled(&ledger), usd(stored), "{name}: what was refused costs nothing");
    }
    Outcome::Held
}

fn percent(case: &Case, used: NanoUsd, limit: f64, name: &str) {
    if let Some(expected) = case.expected["usage_percent"].as_f64() {
        let told = used.0 as f64 * 100.0 / usd(limit).0 as f64;
        assert_eq!(told, expected, "{name}");
    }
}

/// Stages below the limit; rejecting at 100 percent is what a limit is.
fn stages(case: &Case) -> std::sync::Arc<[Stage]> {
    let staged = case.input["staged_actions"].as_array().unwrap().iter();
    let stage = |stage: &Value| {
        let action = match stage["action"].as_str().unwrap() {
            "warn" => StageAction::Warn,
            "throttle" => StageAction::Throttle { delay_ms: stage["delay_ms"].as_u64().unwrap() },
            _ => return None,
        };
        Some(Stage { at: u8::try_from(stage["threshold_percent"].as_u64().unwrap()).unwrap(), action })
    };
    staged.filter_map(stage).collect()
}

/// What happens to the call that follows.
fn action(ledger: &mut Ledger, draws: &[Draw], now: Timestamp, case: &Case, name: &str) -> &'static str {
    let Ok(next) = ledger.reserve(draws, NanoUsd::ZERO, NanoUsd::ZERO, now) else { return "allow" };
    let stage = next.stages_reached().next().map(|(_, stage)| stage.action);
    ledger.settle(&next, NanoUsd::ZERO);
    match stage {
        None => "allow",
        Some(StageAction::Warn) => "warn",
        Some(StageAction::Throttle { delay_ms }) => {
            if let Some(expected) = case.expected["delay_ms"].as_u64() {
                assert_eq!(delay_ms, expected, "{name}");
            }
            "throttle"
        }
    }
}

/// Amounts against a limit: what is no more than it passes.
pub(crate) fn has_bounds(case: &Case, name: &str) -> Outcome {
    let window = match case.name.as_str() {
        "per_run_boundary" => Window::Run,
        "daily_boundary" => Window::Day,
        "monthly_boundary" => Window::Month,
        _ => return Outcome::Left("alerts"),
    };
    let now = Timestamp(NOW * 1000);
    let draws = [draw(window, case.input["limit"].as_f64().unwrap(), 0.0, now)];
    let exceeds = |amount: &Value| {
        let amount = usd(amount.as_f64().unwrap());
        Value::from(Ledger::with_room(8).reserve(&draws, amount, amount, now).is_err())
    };
    let exceeded: Vec<Value> = case.input["amounts"].as_array().unwrap().iter().map(exceeds).collect();
    assert_eq!(Value::from(exceeded), case.expected["exceeds"], "{name}");
    Outcome::Held
}

/// What a run and the time it falls into have spent, and whether another call may follow.
pub(crate) fn stops(case: &Case, name: &str) -> Outcome {
    let now = Timestamp(NOW * 1000);
    let input = |key: &str| case.input[key].as_f64();
    let next = |draws: &[Draw]| {
        let small = NanoUsd(1);
        let kills = case.input["auto_kill_enabled"] != false;
        Ledger::with_room(8).reserve(draws, small, small, now).map_err(|denied| refused(&denied, kills, now))
    };
    match case.name.as_str() {
        "run_limit_prospective" => return is_asked_before(case, name),
        "remaining" => {
            for (window, limit, spent, left) in [
                (Window::Day, "daily_limit", "daily_spent", "daily_remaining"),
                (Window::Month, "monthly_limit", "monthly_spent", "monthly_remaining"),
            ] {
                let draws = [draw(window, input(limit).unwrap(), input(spent).unwrap(), now)];
                let left = usd(case.expected[left].as_f64().unwrap());
                assert!(Ledger::with_room(8).reserve(&draws, left, left, now).is_ok(), "{name}");
                let more = left + NanoUsd(1);
                assert!(Ledger::with_room(8).reserve(&draws, more, more, now).is_err(), "{name}");
            }
            return Outcome::Held;
        }
        "runaway_scenario" => {
            let limit = input("per_run_limit").unwrap();
            let costs = case.input["run_cost_after_each_call"].as_array().unwrap().iter();
            let killed = |cost: &Value| next(&[draw(Window::Run, limit, cost.as_f64().unwrap(), now)]).is_err();
            assert_eq!(Value::from(costs.map(killed).collect::<Vec<_>>()), case.expected["kill"], "{name}");
            return Outcome::Held;
        }
        "daily_exhaustion_scenario" => {
            let limit = input("daily_limit").unwrap();
            let runs = case.input["runs"].as_array().unwrap().iter();
            let spent = |run: &Value| run[0].as_f64().unwrap() + run[1].as_f64().unwrap();
            let killed = runs.map(|run| next(&[draw(Window::Day, limit, spent(run), now)]).is_err());
            assert_eq!(Value::from(killed.collect::<Vec<_>>()), case.expected["kill"], "{name}");
            return Outcome::Held;
        }
        _ => {}
    }
    let current = input("current_cost").unwrap();
    let mut draws = vec![draw(Window::Run, input("per_run_limit").unwrap(), current, now)];
    for (window, limit, spent) in
        [(Window::Day, "daily_limit", "daily_spent"), (Window::Month, "monthly_limit", "monthly_spent")]
    {
        if let Some(limit) = input(limit) {
            draws.push(draw(window, limit, input(spent).unwrap() + current, now));
        }
    }
    let stop = next(&draws).err();
    let told = stop.as_ref().map_or(Value::Null, |stop| stop.refusal.fields["exceeded_limit"].clone());
    let word = case.expected["exceeded_limit"].as_str().map(|word| word.replace("per_run", "run"));
    assert_eq!(told.as_str(), word.as_deref(), "{name}");
    let Some(stop) = stop else { return Outcome::Held };
    let kills = matches!(stop.consequence.as_deref(), Some(Consequence::KillRun { .. }));
    if word.as_deref() == Some("run") {
        // Of what a day or a month has left no run dies: its calls are refused until there is money again.
        assert_eq!(Value::from(kills), case.expected["should_kill"], "{name}");
    }
    for key in ["current_cost", "limit"] {
        if let Some(expected) = case.expected[key].as_f64() {
            assert_eq!(stop.refusal.fields[key].as_f64(), Some(expected), "{name}");
        }
    }
    Outcome::Held
}

/// A call is refused before it is sent.
fn is_asked_before(case: &Case, name: &str) -> Outcome {
    let now = Timestamp(NOW * 1000);
    let draws = [draw(Window::Run, case.input["max_run_cost"].as_f64().unwrap(), 0.0, now)];
    let mut ledger = Ledger::with_room(8);
    let costs = case.input["request_costs"].as_array().unwrap().iter();
    let mut allowed = Vec::new();
    for cost in costs.map(|cost| usd(cost.as_f64().unwrap())) {
        match ledger.reserve(&draws, cost, cost, now) {
            Ok(reservation) => drop(ledger.settle(&reservation, cost)),
            Err(denied) => {
                let refusal = refused(&denied, true, now).refusal;
                for field in ["exceeded_limit", "current_cost", "limit"] {
                    assert_eq!(refusal.fields[field], case.expected["error"][field], "{name}");
                }
                allowed.push(false);
                continue;
            }
        }
        allowed.push(true);
    }
    assert_eq!(Value::from(allowed), case.expected["allowed"], "{name}");
    let spent = ledger.accounts().next().map(|state| state.account.settled);
    assert_eq!(spent, case.expected["spend_after"].as_f64().map(usd), "{name}");
    Outcome::Held
}
