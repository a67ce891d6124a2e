//! What every run state must do with money: one suite over memory and over Redis.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic and print")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use sprag_core::event::{Ending, RunOrigin};
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::HABITS;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Denied, Draw, Holder, Level, Seed, Span, Window};
use sprag_core::time::Timestamp;
use sprag_store::state::{Lesson, OpenRequest, Settlement, State};

use crate::common::{key, key_of};
use crate::contract::{AnyState, Held, over_every_state};

over_every_state!(
    sets_money_aside_and_settles_it,
    takes_seeds_where_accounts_are_not_open,
    never_passes_a_limit_under_concurrency,
    admits_three_of_five_hundred,
    tells_what_a_tree_has_cost,
);

#[test]
fn memory_costs_nothing_without_budgets() {
    costs_nothing_without_budgets(&State::memory());
}

#[test]
fn memory_charges_what_was_not_set_aside() {
    charges_what_was_not_set_aside(&State::memory());
}

#[test]
fn memory_sweeps_idle_accounts() {
    sweeps_idle_accounts(&State::memory());
}

#[test]
fn memory_learns_habits() {
    learns_habits(&State::memory());
}

#[test]
fn memory_bounds_its_habits() {
    bounds_its_habits(&State::memory());
}

const NOW: Timestamp = Timestamp(1_000);

fn draw(holder: Holder, window: Window, limit: i64) -> Draw {
    let span = Span { start: Timestamp(0), end: Timestamp(i64::MAX) };
    let id = AccountId { holder, window, is_shadow: false };
    Draw { id, limit: NanoUsd(limit), level: Level::Agent, span, seed: Some(Seed::default()), stages: Arc::default() }
}

fn of_agent(name: &str, limit: i64) -> Draw {
    draw(Holder::Agent(AgentName::parse(name).unwrap()), Window::Day, limit)
}

fn of_run(id: &str, limit: i64) -> Draw {
    draw(Holder::Run(AgentName::default(), RunId::parse(id).unwrap()), Window::Run, limit)
}

fn reserve(state: &AnyState, draws: &[Draw], amount: i64) -> Result<Held, Denied> {
    state.reserve(draws, NanoUsd(amount), NanoUsd(amount), NOW)
}

/// Settled and reserved.
fn held(state: &AnyState, draw: &Draw) -> (i64, i64) {
    let account = state.account(&draw.id).unwrap();
    (account.settled.0, account.reserved.0)
}

fn sets_money_aside_and_settles_it(state: &AnyState) {
    let draws = [of_run("r", 100), of_agent("a", 50)];
    let mut reservation = reserve(state, &draws, 30).unwrap();
    assert_eq!((held(state, &draws[0]), held(state, &draws[1])), ((0, 30), (0, 30)));
    assert!(
        matches!(reserve(state, &draws, 21), Err(Denied::Short(short)) if short.draw == draws[1] && short.may_pass())
    );
    assert!(state.raise(&mut reservation, NanoUsd(51)).is_err());
    assert!(state.raise(&mut reservation, NanoUsd(50)).is_ok());
    let crossed = state.settle_money(&reservation, NanoUsd(55));
    assert_eq!(crossed.iter().map(|crossed| (&crossed.draw, crossed.at)).collect::<Vec<_>>(), [(&draws[1], 100)]);
    assert_eq!((held(state, &draws[0]), held(state, &draws[1])), ((55, 0), (55, 0)));

    assert_eq!(state.adjust_account(&draws[1].id, NanoUsd(-20)).unwrap().settled, NanoUsd(35));
    state.reset_account(&draws[0].id);
    assert_eq!((held(state, &draws[0]), held(state, &draws[1])), ((0, 0), (35, 0)));
    assert_eq!(state.adjust_account(&of_run("other", 1).id, NanoUsd(1)), None);
}

fn charges_what_was_not_set_aside(state: &State) {
    let draws = [of_run("r", 100), of_agent("a", 50)];
    let reservation = state.reserve(&draws, NanoUsd(30), NanoUsd(30), NOW).unwrap();
    state.settle_money(&reservation, NanoUsd(30));
    let crossed = state.charge(&draws, NanoUsd(20));
    assert_eq!(crossed.iter().map(|crossed| (&crossed.draw, crossed.at)).collect::<Vec<_>>(), [(&draws[1], 100)]);
    assert_eq!(state.account(&draws[0].id).unwrap().settled, NanoUsd(50));
}

fn takes_seeds_where_accounts_are_not_open(state: &AnyState) {
    let mut draws = [of_run("r", 100), of_agent("a", 100)];
    draws.iter_mut().for_each(|draw| draw.seed = None);
    let Err(Denied::Unseeded(places)) = reserve(state, &draws, 40) else { panic!("nobody said what they have spent") };
    assert!(draws.iter().all(|draw| state.account(&draw.id).is_none()));
    for (place, epoch) in places {
        let spent = [NanoUsd::ZERO, NanoUsd(60)][place];
        draws[place].seed = Some(Seed { spent, epoch });
    }
    reserve(state, &draws, 40).unwrap();
    assert_eq!(held(state, &draws[1]), (60, 40));
    let next_day = Span { start: Timestamp(i64::MAX), end: Timestamp(i64::MAX) };
    let next_day = Draw { span: next_day, seed: None, ..draws[1].clone() };
    let denied = reserve(state, &[draws[0].clone(), next_day], 1).unwrap_err();
    assert!(matches!(&denied, Denied::Unseeded(places) if places.len() == 1 && places[0].0 == 1), "{denied:?}");
}

fn costs_nothing_without_budgets(state: &State) {
    let mut reservation = state.reserve(&[], NanoUsd(30), NanoUsd(30), NOW).unwrap();
    assert_eq!(reservation.amount, NanoUsd(30));
    assert!(state.raise(&mut reservation, NanoUsd(1_000)).is_ok());
    assert!(state.settle_money(&reservation, NanoUsd(1_000)).is_empty());
    assert!(state.charge(&[of_run("r", 1)], NanoUsd(5)).is_empty());
    let run = of_run("r", 1).id;
    assert!(!state.is_limited(), "nobody waits for a lock");
    assert!(state.charge_late([&run].into_iter(), NOW, NanoUsd(5)).is_empty());
    assert!(state.accounts().is_empty() && state.account(&run).is_none());
    assert_eq!(state.adjust_account(&run, NanoUsd(1)), None);
}

/// Eight threads against one limit. What is spent never passes it, and nothing stays set aside.
fn never_passes_a_limit_under_concurrency(state: &AnyState) {
    let calls = 2 * state.storm();
    let limit = 10 * calls;
    let everything = draw(Holder::Everything, Window::Day, limit);
    let (spent, refused) = (AtomicI64::new(0), AtomicI64::new(0));
    thread::scope(|scope| {
        for thread in 0..8 {
            let (everything, spent, refused) = (&everything, &spent, &refused);
            scope.spawn(move || {
                let draws = [of_run(&format!("r{thread}"), i64::MAX), of_agent("a", i64::MAX), everything.clone()];
                for n in 0..calls {
                    let Ok(mut reservation) = reserve(state, &draws, 10 + n % 7) else {
                        refused.fetch_add(1, Ordering::Relaxed);
                        continue;
                    };
                    if n % 5 == 0 {
                        let _ = state.raise(&mut reservation, NanoUsd(20));
                    }
                    let cost = if n % 3 == 0 { 0 } else { reservation.amount().0 };
                    let now_spent = spent.fetch_add(cost, Ordering::SeqCst) + cost;
                    assert!(now_spent <= limit, "{now_spent}");
                    state.settle_money(&reservation, NanoUsd(cost));
                }
            });
        }
    });
    let spent = spent.into_inner();
    assert!(refused.into_inner() > 0 && spent > limit - 30, "the limit was reached: {spent}");
    assert_eq!((held(state, &everything), held(state, &of_agent("a", 0))), ((spent, 0), (spent, 0)));
    let of_runs: i64 = (0..8).map(|thread| held(state, &of_run(&format!("r{thread}"), 0)).0).sum();
    assert_eq!(of_runs, spent);
    assert!(reserve(state, &[everything], limit - spent).is_ok());
}

fn admits_three_of_five_hundred(state: &AnyState) {
    let run = of_run("r", 1_000_000_000);
    let admitted: Vec<_> = thread::scope(|scope| {
        let calls: Vec<_> =
            (0..500).map(|_| scope.spawn(|| reserve(state, std::slice::from_ref(&run), 300_000_000).ok())).collect();
        calls.into_iter().filter_map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(admitted.len(), 3);
    for reservation in &admitted {
        state.settle_money(reservation, NanoUsd::ZERO);
    }
    assert_eq!(held(state, &run), (0, 0));
}

fn sweeps_idle_accounts(state: &State) {
    let reserve = |id| state.reserve(&[of_run(id, 10)], NanoUsd(5), NanoUsd(5), NOW).unwrap();
    state.settle_money(&reserve("done"), NanoUsd(5));
    reserve("busy");
    state.sweep(Timestamp(NOW.0 + 59), 60);
    assert_eq!(state.accounts().len(), 2);
    state.sweep(Timestamp(NOW.0 + 60), 60);
    assert_eq!(state.accounts().iter().map(|account| account.id.clone()).collect::<Vec<_>>(), [of_run("busy", 10).id]);
}

fn opening(id: &str, parent: Option<&str>) -> OpenRequest {
    let parent = parent.map(|parent| RunId::parse(parent).unwrap());
    OpenRequest { key: key(id), parent, origin: RunOrigin::Declared, now: NOW, seed: None, lineage: vec![] }
}

fn open(state: &State, id: &str, parent: Option<&str>) -> sprag_store::state::Opened {
    state.open(&opening(id, parent)).unwrap()
}

fn learns_habits(state: &State) {
    assert_eq!(open(state, "r", None).habits.calls, 0);
    assert_eq!(state.habits(&key("r").agent, "m"), None);
    let lesson = Lesson { prompt_bytes: 4_000, input_full_tokens: 1_000.0, output_tokens: 100 };
    state.learn(&key("r"), "m", &lesson);
    state.learn(&key("r"), "other", &Lesson { output_tokens: 300, ..lesson });
    let habits = open(state, "r", None).habits;
    assert_eq!((habits.calls, habits.output_tokens, habits.tokens_per_byte), (2, 200.0, 0.25));
    assert_eq!(open(state, "new", None).habits.calls, 0);
    let of_model = state.habits(&key("r").agent, "m").unwrap();
    assert_eq!((of_model.calls, of_model.output_tokens), (1, 100.0));
    let another = key_of("another", "r");
    assert_eq!(state.habits(&another.agent, "m").unwrap().output_tokens, 100.0, "what others use of the model");
    assert_eq!(state.habits(&another.agent, "nobody"), None);
    state.learn(&another, "m", &Lesson { output_tokens: 500, ..lesson });
    let own = state.habits(&another.agent, "m").unwrap();
    assert_eq!((own.calls, own.output_tokens), (1, 500.0), "its own, of a run that is not in memory");
}

fn bounds_its_habits(state: &State) {
    let lesson = Lesson { prompt_bytes: 1, input_full_tokens: 1.0, output_tokens: 1 };
    let known = |models: usize| (0..models).filter(|n| state.habits(&key("r").agent, &n.to_string()).is_some()).count();
    for n in 0..3 * HABITS {
        state.learn(&key("r"), &n.to_string(), &lesson);
    }
    let newest = (3 * HABITS - 1).to_string();
    assert!(state.habits(&key("r").agent, &newest).is_some());
    assert!(known(3 * HABITS) <= HABITS);
}

fn tells_what_a_tree_has_cost(state: &AnyState) {
    let open = |id: &str, parent: Option<&str>| state.open(&opening(id, parent)).unwrap();
    open("child", Some("parent"));
    let settlement = Settlement { cost: Some(NanoUsd(7)), usage: None, ending: Ending::Complete, now: NOW };
    state.settle(&key("child"), settlement);
    let costs: Vec<_> = open("child", None).tree.iter().map(|place| place.tree_cost.0).collect();
    assert_eq!(costs, [7, 7]);
    assert_eq!(open("parent", None).tree[0].tree_cost, NanoUsd(7));
}
