//! Long random histories, told to memory and to two nodes on one Redis: both say the same at every step.

use sprag_core::policy::Denied;
use sprag_core::usage::Usage;
use sprag_store::state::{Ancestor, Opened, RunTotals};

use super::*;
use crate::contract::{AnyState, Held};

#[test]
fn runs_come_to_the_same() {
    let Some(AnyState::Redis(one)) = AnyState::redis() else { return };
    let two = AnyState::Redis(Box::new(one.neighbour()));
    let nodes = [AnyState::Redis(one), two];
    let memory = AnyState::memory();
    let mut random = common::Random::new(11);
    let mut under_way: Vec<(usize, RunKey)> = Vec::new();
    for step in 0..600 {
        let now = Timestamp(1_000 + step * 10);
        let node = random.below(2) as usize;
        if random.below(5) < 3 || under_way.is_empty() {
            let run = key(&format!("r{}", random.below(12)));
            let parent = (random.below(3) == 0).then(|| key(&format!("r{}", random.below(12))).id);
            let origin = [RunOrigin::Declared, RunOrigin::Session, RunOrigin::Conversation][random.below(3) as usize];
            let totals = RunTotals {
                steps: 4,
                tree_steps: 9,
                tree_cost: NanoUsd(70),
                first_at: Timestamp(3),
                ..RunTotals::default()
            };
            let seed = (random.below(4) == 0).then_some(totals);
            let lineage = match random.below(4) {
                0 => vec![
                    Ancestor { id: key("r3").id, totals: Some(totals) },
                    Ancestor { id: key("r4").id, totals: None },
                ],
                _ => vec![],
            };
            let request = OpenRequest { key: run.clone(), parent, origin, now, seed, lineage };
            let expected: Opened = memory.open(&request).unwrap();
            assert_eq!(nodes[node].open(&request).unwrap(), expected, "step {step}");
            under_way.push((node, run));
        } else {
            let (node, run) = under_way.swap_remove(random.below(under_way.len() as u64) as usize);
            let endings = [Ending::Complete, Ending::Refused, Ending::Killed, Ending::UpstreamError, Ending::TimedOut];
            let settlement = Settlement {
                cost: (random.below(3) > 0).then(|| NanoUsd(random.below(1 << 40) as i64)),
                usage: (random.below(3) > 0).then(|| Usage {
                    input: random.below(9_000),
                    output: 7,
                    ..Usage::default()
                }),
                ending: endings[random.below(5) as usize],
                now,
            };
            assert_eq!(nodes[node].settle(&run, settlement), memory.settle(&run, settlement), "step {step}");
        }
        if step % 50 == 0 {
            for number in 0..12 {
                let run = key(&format!("r{number}"));
                assert_eq!(nodes[0].totals(&run), memory.totals(&run), "step {step}, {run:?}");
                assert_eq!(nodes[1].knows(&run), memory.knows(&run), "step {step}, {run:?}");
            }
        }
    }
    assert_eq!(nodes[0].counts().in_flight, memory.counts().in_flight);
}

#[test]
fn accounts_come_to_the_same() {
    let Some(AnyState::Redis(one)) = AnyState::redis() else { return };
    let two = AnyState::Redis(Box::new(one.neighbour()));
    let nodes = [AnyState::Redis(one), two];
    let memory = AnyState::memory();
    let mut random = common::Random::new(5);
    let mut under_way: Vec<(usize, Held, Held)> = Vec::new();
    let (mut refused, mut passed) = (0, 0);
    for step in 0..700_i64 {
        let now = Timestamp(START + step * 1_000);
        let node = random.below(2) as usize;
        match random.below(10) {
            0..5 => {
                let draws = some_draws(&mut random, now);
                let (amount, least) = (NanoUsd(random.below(60) as i64), NanoUsd(random.below(30) as i64));
                let expected = memory.reserve(&draws, amount, least, now);
                let got = nodes[node].reserve(&draws, amount, least, now);
                assert_eq!(told(&got), told(&expected), "step {step}: {draws:?}");
                match (expected, got) {
                    (Ok(expected), Ok(got)) => {
                        passed += 1;
                        under_way.push((node, expected, got));
                    }
                    _ => refused += 1,
                }
            }
            5 => {
                let id = some_draws(&mut random, now)[0].id.clone();
                let by = NanoUsd(random.below(80) as i64 - 60);
                let settled = |state: &AnyState| state.adjust_account(&id, by).map(|account| account.settled);
                assert_eq!(settled(&nodes[node]), settled(&memory), "step {step}");
            }
            6 if !under_way.is_empty() => {
                let place = random.below(under_way.len() as u64) as usize;
                let (node, expected, got) = &mut under_way[place];
                let to = NanoUsd(random.below(90) as i64);
                let raised = memory.raise(expected, to).map_err(|short| (short.draw.id, short.account.reserved));
                let got = nodes[*node].raise(got, to).map_err(|short| (short.draw.id, short.account.reserved));
                assert_eq!(got, raised, "step {step}");
            }
            _ if !under_way.is_empty() => {
                let (node, expected, got) = under_way.swap_remove(random.below(under_way.len() as u64) as usize);
                let cost = NanoUsd(random.below(50) as i64);
                let crossed = |crossed: Vec<sprag_core::policy::Crossed>| -> Vec<(AccountId, u8)> {
                    crossed.into_iter().map(|crossed| (crossed.draw.id, crossed.at)).collect()
                };
                let expected = crossed(memory.settle_money(&expected, cost));
                assert_eq!(crossed(nodes[node].settle_money(&got, cost)), expected, "step {step}");
            }
            _ => {}
        }
        for draw in some_draws(&mut common::Random::new(1), now) {
            let account = |state: &AnyState| state.account(&draw.id).map(|account| (account.settled, account.reserved));
            assert_eq!(account(&nodes[1 - node]), account(&memory), "step {step}: {}", draw.id);
        }
    }
    assert!(refused > 50 && passed > 50, "{refused} refused, {passed} passed");
}

/// Draws on some accounts whose time changes now and then; one of them may be named twice with two limits.
fn some_draws(random: &mut common::Random, now: Timestamp) -> Vec<Draw> {
    let length = 100_000;
    let start = now.0 - now.0.rem_euclid(length);
    let span = Span { start: Timestamp(start), end: Timestamp(start + length) };
    let agent = key("r").agent;
    let holders = [
        Holder::Everything,
        Holder::Agent(agent.clone()),
        Holder::Key("key-1".into()),
        Holder::Run(agent, key("r").id),
    ];
    let mut draws: Vec<Draw> = Vec::new();
    for holder in holders {
        let is_run = matches!(holder, Holder::Run(..));
        let seed = (random.below(8) > 0).then(|| NanoUsd(random.below(20) as i64).into());
        let limit = 100 + random.below(100) as i64;
        let mut draw = Draw { seed, ..of_day(holder, limit) };
        if is_run {
            // One that is never over must not be used up at once.
            (draw.span, draw.id.window, draw.limit) = (ALWAYS, Window::Run, NanoUsd(20 * limit));
        } else {
            draw.span = span;
        }
        if random.below(6) == 0 {
            draws.push(Draw { limit: NanoUsd(90), ..draw.clone() });
        }
        draws.push(draw);
    }
    draws.swap_remove(random.below(draws.len() as u64) as usize);
    draws
}

fn told(outcome: &Result<Held, Denied>) -> String {
    match outcome {
        Ok(held) => format!("{} set aside", held.amount().0),
        Err(Denied::Short(short)) => {
            let (draw, account) = (&short.draw, short.account);
            format!("{} <= {} has {} and {}", draw.id, draw.limit.0, account.settled.0, account.reserved.0)
        }
        Err(Denied::Unseeded(places)) => {
            format!("unseeded {:?}", places.iter().map(|(place, _)| place).collect::<Vec<_>>())
        }
        Err(Denied::LedgerFull) => "full".to_owned(),
    }
}
