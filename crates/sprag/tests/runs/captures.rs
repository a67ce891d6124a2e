//! What real clients sent, played again: each capture is one run, however many go on beside it.
//!
//! The captures are not part of the repository. They are looked for in `../shared/clients` beside it, or in
//! `clients` below `SPRAG_SHARED`; without them this suite says so and checks nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::sprag::without_detection;
use crate::stage::{Play, Said, Stage};

/// Headers that belong to the recorded connection.
const NOT_SENT: [&str; 5] = ["connection", "content-length", "content-type", "host", "accept-encoding"];
/// How ids begin that a second copy of a capture must not share with the first.
const IDS: [&str; 9] = ["call_", "toolu_", "msg_", "resp_", "chatcmpl-", "fc_", "fco_", "rs_", "req_"];

/// Run, step, and the part of the client that called.
type Place = (String, u32, Option<String>);

/// One recorded exchange.
struct Exchange {
    path: String,
    headers: Vec<(String, String)>,
    body: Value,
    play: Play,
}

#[tokio::test(flavor = "multi_thread")]
async fn each_capture_is_one_run() {
    for (name, capture) in captures() {
        for piece in [3, 4096] {
            let stage = Stage::start_with(without_detection).await;
            let mut places = Vec::new();
            for exchange in &capture {
                places.push(place(exchange, &send(&stage, exchange, piece).await));
            }
            check(&name, &places);
        }
    }
}

/// Equal calls after which a stuck client must be stopped.
const REPEATS: u32 = 6;

#[tokio::test(flavor = "multi_thread")]
async fn the_stuck_are_stopped_and_the_working_are_not() {
    for (name, capture) in captures() {
        let mut verdicts = BTreeSet::new();
        for piece in [7, 4096] {
            let stage = Stage::start().await;
            let mut stopped_at = None;
            for exchange in &capture {
                let said = send(&stage, exchange, piece).await;
                if said.headers.contains_key("x-sprag-blocked") {
                    stopped_at = Some(said.step);
                    break;
                }
            }
            if name.contains("stuck") {
                assert!(stopped_at.is_some_and(|step| step <= REPEATS + 1), "{name}: {stopped_at:?}");
            } else {
                assert_eq!(stopped_at, None, "{name}");
            }
            verdicts.insert(stopped_at);
        }
        assert_eq!(verdicts.len(), 1, "{name}: how an answer is cut into pieces does not matter");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_side_by_side_stay_apart() {
    let all = captures();
    let names: Vec<&String> = all.keys().collect();
    for pair in names.windows(2) {
        interleave([&all[pair[0]], &all[pair[1]]], [pair[0], pair[1]]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_beside_its_double_stays_apart() {
    let doubles = read(with_other_ids);
    for (name, capture) in &captures() {
        interleave([capture, &doubles[name]], [name, name]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doubles_at_full_speed_stay_apart() {
    let doubles = read(with_other_ids);
    for (name, capture) in &captures() {
        let stage = Stage::start_with(without_detection).await;
        let play = async |exchanges: &[Exchange]| {
            let mut places = Vec::new();
            for exchange in exchanges {
                places.push(place(exchange, &send(&stage, exchange, 64).await));
            }
            places
        };
        let (one, other) = tokio::join!(play(capture), play(&doubles[name]));
        let runs = |places: &[Place]| places.iter().map(|(run, ..)| run.clone()).collect::<BTreeSet<String>>();
        if name.starts_with("gemini") {
            // Nothing tells the doubles apart before they have called a tool: they may have changed places.
            let all = [one, other].concat();
            assert_eq!(runs(&all).len(), 2, "{name}");
            for run in runs(&all) {
                let mut steps: Vec<u32> = all.iter().filter(|(r, ..)| *r == run).map(|(_, step, _)| *step).collect();
                steps.sort_unstable();
                assert_eq!(steps, (1..).take(capture.len()).collect::<Vec<u32>>(), "{name}");
            }
            continue;
        }
        check(name, &one);
        check(name, &other);
        assert!(runs(&one).is_disjoint(&runs(&other)), "{name}");
    }
}

/// Sends two captures step by step in turn.
async fn interleave(pair: [&Vec<Exchange>; 2], names: [&str; 2]) {
    let stage = Stage::start_with(without_detection).await;
    let mut places = [Vec::new(), Vec::new()];
    for step in 0..pair[0].len().max(pair[1].len()) {
        for which in [0, 1] {
            if let Some(exchange) = pair[which].get(step) {
                places[which].push(place(exchange, &send(&stage, exchange, 777).await));
            }
        }
    }
    if names[0] == names[1] && names[0].starts_with("gemini") {
        // Nothing tells the doubles apart before they have called a tool; they may change places once, and no more.
        let second = places[0][1].0 == places[1][0].0;
        let [one, other] = &mut places;
        if second {
            std::mem::swap(&mut one[0], &mut other[0]);
        }
    }
    for which in [0, 1] {
        check(names[which], &places[which]);
    }
    let runs = |which: usize| places[which].iter().map(|(run, ..)| run.clone()).collect::<BTreeSet<String>>();
    assert!(runs(0).is_disjoint(&runs(1)), "{names:?}");
}

fn place(exchange: &Exchange, said: &Said) -> Place {
    let agent = exchange.headers.iter().find(|(name, _)| name == "x-claude-code-agent-id").map(|(_, id)| id.clone());
    let (run, step) = said.place();
    (run.to_owned(), step, agent)
}

/// Every part of the client has one run of its own, with steps from 1 on.
fn check(name: &str, places: &[Place]) {
    let mut parts: BTreeMap<&Option<String>, Vec<(&str, u32)>> = BTreeMap::new();
    for (run, step, agent) in places {
        parts.entry(agent).or_default().push((run, *step));
    }
    let root = parts[&None][0].0;
    for (agent, places) in parts {
        let expected: Vec<(&str, u32)> = (1..).take(places.len()).map(|step| (places[0].0, step)).collect();
        assert_eq!(places, expected, "{name} {agent:?}");
        let is_own = agent.as_ref().is_none_or(|agent| places[0].0 == format!("{root}:{agent}"));
        assert!(is_own, "{name}: {} is no child of {root}", places[0].0);
    }
}

async fn send(stage: &Stage, exchange: &Exchange, piece: usize) -> Said {
    let headers: Vec<(&str, &str)> = exchange.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let play = exchange.play.clone();
    let play = if play.content_type == "application/json" { play } else { play.piece(piece) };
    stage.ask_with(&exchange.path, &headers, &exchange.body, play).await
}

fn captures() -> BTreeMap<String, Vec<Exchange>> {
    read(str::to_owned)
}

/// Reads every capture, each line changed by `change` first.
fn read(change: impl Fn(&str) -> String) -> BTreeMap<String, Vec<Exchange>> {
    let Some(folder) = folder() else {
        eprintln!("skipped: no captures of clients here (SPRAG_SHARED names the folder that holds `clients`)");
        return BTreeMap::new();
    };
    let mut captures = BTreeMap::new();
    for file in folder.read_dir().unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".jsonl.gz") {
            continue;
        }
        let lines = BufReader::new(GzDecoder::new(File::open(&path).unwrap())).lines();
        captures.insert(name, lines.map(|line| exchange(&change(&line.unwrap()))).collect());
    }
    captures
}

fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("SPRAG_SHARED").map_or(beside, PathBuf::from);
    Some(shared.join("clients")).filter(|folder| folder.is_dir())
}

fn exchange(line: &str) -> Exchange {
    let line: Value = serde_json::from_str(line).unwrap();
    let (request, response) = (&line["request"], &line["response"]);
    let play = match response["sse"].as_str() {
        Some(sse) => Play::sse(sse.to_owned()),
        None => Play::json(&response["body"]),
    };
    let header = |(name, value): (&String, &Value)| (name.to_lowercase(), value.as_str().unwrap().to_owned());
    Exchange {
        path: request["path"].as_str().unwrap().to_owned(),
        headers: request["headers"]
            .as_object()
            .unwrap()
            .iter()
            .map(header)
            .filter(|(n, _)| !NOT_SENT.contains(&n.as_str()))
            .collect(),
        body: request["body"].clone(),
        play,
    }
}

/// The same text with all ids changed, each always in the same way.
fn with_other_ids(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c: char| !is_word(c)) {
        let word = piece.trim_end_matches(|c: char| !is_word(c));
        let is_uuid = word.len() == 36 && word.matches('-').count() == 4;
        let is_time = word.contains("_1794");
        if is_uuid || (word.len() >= 16 && IDS.iter().any(|id| word.starts_with(id))) {
            out.push_str(&word[..word.len() - 4]);
            out.push_str("f00d");
        } else if is_time {
            out.push_str(&word.replace("_1794", "_1795"));
        } else {
            out.push_str(word);
        }
        out.push_str(&piece[word.len()..]);
    }
    out
}
