//! `kill -9` with calls under way, also while those of the process before are being charged: no money is lost or doubled.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use sprag_core::event::{Ending, Event};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{EventFilter, History, Spender};

use crate::common::{self, Home, all_events, key, on_every_history, opening, step};

/// Calls under way at once.
const AT_ONCE: u64 = 300;
const COST: i64 = 1000;
const RESERVED: i64 = 5000;
const RAISED: i64 = 9000;

fn call(name: &str, n: u64) -> Event {
    Event { key: Some("k".into()), cost: Some(NanoUsd(COST)), ..step(&format!("{name}-{n}"), "r", 1) }
}

/// Not a test of its own: the process that is killed. It says what it did after it was done.
#[test]
fn child_that_calls_until_killed() {
    let Some((history, name)) = common::open_as_child() else { return };
    let mut out = std::io::stdout();
    let mut say = |what: &str, id: &str| out.write_all(format!("\n{what} {id}\n").as_bytes()).unwrap();
    for n in 0.. {
        let begun = call(&name, n);
        assert!(history.opened(&opening(&begun, RESERVED)));
        say("opened", &begun.id);
        if n % 3 == 0 {
            assert!(history.opened(&opening(&begun, RAISED)));
            say("raised", &begun.id);
        }
        if let Some(earlier) = n.checked_sub(AT_ONCE) {
            let over = call(&name, earlier);
            history.record(&over);
            say("recorded", &over.id);
        }
    }
}

on_every_history!(a_killed_process_loses_no_money_that_was_set_aside);

fn a_killed_process_loses_no_money_that_was_set_aside(home: &Home) {
    let mut said: HashMap<String, Vec<&str>> = HashMap::new();
    for round in 0..8_u64 {
        let mut child = home.start_child("journal_crash::child_that_calls_until_killed", &format!("p{round}"));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let luck = RandomState::new().hash_one(round);
        if round % 2 == 1 {
            // Early: while it charges what the one before left under way.
            let end = Instant::now() + Duration::from_micros(luck % 40_000);
            while Instant::now() < end {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            hear(lines, &mut said);
        } else {
            let mut lines = lines;
            hear(lines.by_ref().take(2 * AT_ONCE as usize + (luck % 3000) as usize), &mut said);
            child.kill().unwrap();
            // What it said between our last look and its end counts as well.
            hear(lines, &mut said);
        }
        child.wait().unwrap();
    }
    let history = home.open();
    history.flush().unwrap();
    let charged = check(&history, &said);
    assert!(charged > AT_ONCE, "{charged} calls were cut short");
    drop(history);
    let history = home.open();
    assert_eq!(history.lost_calls(), 0, "all are charged");
    assert_eq!(check(&history, &said), charged);
}

/// Every call costs what its last line says, and every sum says the same. Gives how many calls were cut short.
fn check(history: &History, said: &HashMap<String, Vec<&str>>) -> u64 {
    let events = all_events(history, &EventFilter::default());
    let by_id: HashMap<&str, &Event> = events.iter().map(|event| (event.id.as_str(), event)).collect();
    assert_eq!(by_id.len(), events.len(), "none is counted twice");
    for (id, said) in said {
        assert!(by_id.contains_key(id.as_str()), "{id} is lost: {said:?}");
        let event = by_id[id.as_str()];
        let cost = event.cost.unwrap().0;
        // The line after the last one that was heard of may have been written too.
        let expected: &[i64] = match said.last().copied() {
            Some("recorded") => &[COST],
            Some("raised") => &[RAISED, COST],
            _ => &[RESERVED, RAISED, COST],
        };
        assert!(expected.contains(&cost), "{id}: {cost} after {said:?}");
        assert_eq!(event.ending == Ending::Lost, cost != COST, "{id}");
    }
    // At most one more for each process: written, but killed before it could say so.
    assert!(events.len() <= said.len() + 8, "{} events, {} calls", events.len(), said.len());
    let cost: NanoUsd = events.iter().filter_map(|event| event.cost).sum();
    let all = history.spent_by_all(Timestamp(0)).unwrap();
    let run = history.run(&key("r")).unwrap().unwrap();
    assert_eq!((all.everything, all.agents[0].1, all.keys[0].1, run.cost), (cost, cost, cost, cost));
    assert_eq!(history.spent(Spender::Key("k"), Timestamp(0)).unwrap(), cost);
    assert_eq!(run.steps, events.len() as u64);
    events.iter().filter(|event| event.ending == Ending::Lost).count() as u64
}

fn hear(lines: impl Iterator<Item = String>, said: &mut HashMap<String, Vec<&'static str>>) {
    for line in lines {
        for what in ["opened", "raised", "recorded"] {
            if let Some(id) = line.strip_prefix(what) {
                said.entry(id.trim().to_owned()).or_default().push(what);
            }
        }
    }
}
