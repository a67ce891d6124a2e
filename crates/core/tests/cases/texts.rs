//! Normalisation, SimHash, Hamming distance.

use sprag_core::loops::{hamming, normalize, read_turn, simhash, similarity_hash};
use sprag_core::wire::{Call, Dialect};

use crate::{Case, Outcome};

/// The texts of the golden hashes, which come of another hash function: theirs are far apart, so must ours be.
const GOLDEN: [&str; 7] =
    ["", "ab", "hello world", "goodbye world", "the quick brown fox", "search for files", "你好世界"];

pub(crate) fn normalizes(case: &Case, name: &str) -> Outcome {
    // Their placeholders are in lower case.
    let normal = normalize(case.text("text")).to_lowercase();
    let expected = ["normalized", "normalized_case_insensitive"].iter().find_map(|key| case.expected[key].as_str());
    match expected {
        Some(expected) => assert_eq!(normal, expected, "{name}"),
        None => {
            let parts = case.expected["contains"].as_array().unwrap();
            assert!(parts.iter().all(|part| normal.contains(part.as_str().unwrap())), "{name}: {normal}");
        }
    }
    Outcome::Held
}

pub(crate) fn has_simhash(case: &Case, name: &str) -> Outcome {
    if case.expected["ok"] == true {
        let text = match case.input["text"]["repeat"].as_str() {
            Some(part) => part.repeat(case.input["text"]["times"].as_u64().unwrap() as usize),
            None => case.text("text").to_owned(),
        };
        assert_eq!(similarity_hash(&text), similarity_hash(&text), "{name}");
        return Outcome::Held;
    }
    let (a, b) = (similarity_hash(case.text("a")), similarity_hash(case.text("b")));
    let distance = hamming(a, b);
    let expected = &case.expected;
    if let Some(equal) = expected["equal"].as_bool() {
        assert_eq!(a == b, equal, "{name}");
    }
    if let Some(exactly) = expected["hamming"].as_u64() {
        assert_eq!(u64::from(distance), exactly, "{name}");
    }
    if let Some(below) = expected["hamming_lt"].as_u64() {
        assert!(u64::from(distance) < below, "{name}: {distance}");
    }
    if let Some(above) = expected["hamming_gt"].as_u64() {
        assert!(u64::from(distance) > above, "{name}: {distance}");
    }
    if let Some(similar) = expected["similar"].as_bool() {
        let most = case.input["max_distance"].as_u64().unwrap();
        assert_eq!(u64::from(distance) < most, similar, "{name}: {distance}");
    }
    if expected["symmetric"] == true {
        assert!(distance == hamming(b, a) && distance <= 64, "{name}");
    }
    Outcome::Held
}

pub(crate) fn keeps_golden_apart(case: &Case, name: &str) -> Outcome {
    let text = case.text("text");
    assert!(GOLDEN.contains(&text), "{name}");
    for other in GOLDEN.iter().filter(|other| **other != text) {
        let distance = hamming(simhash(text), simhash(other));
        assert!(distance > 5, "{name}: {other:?} {distance}");
    }
    Outcome::Held
}

pub(crate) fn has_distance(case: &Case, name: &str) -> Outcome {
    let distance = hamming(case.number("a").into(), case.number("b").into());
    assert_eq!(Some(u64::from(distance)), case.expected["distance"].as_u64(), "{name}");
    Outcome::Held
}

/// The prompt is the last thing that the user said; of a body without any, nothing.
pub(crate) fn reads_prompt(case: &Case, name: &str) -> Outcome {
    if case.name == "no_user_falls_back_to_last_message" {
        return Outcome::Left("nobody: what the model said is no prompt");
    }
    if case.name == "empty_messages" {
        return Outcome::Left("the reading of a call: an empty list comes out as the text `[]`");
    }
    let dialect = match &case.input {
        input if input["messages"].is_array() => Dialect::OpenaiChat,
        input if input["input"].is_string() => Dialect::OpenaiResponses,
        _ => Dialect::OpenaiCompletions,
    };
    let body = case.input.to_string();
    let call = Call::parse(dialect, "/", body.as_bytes()).unwrap();
    let turn = read_turn(&call, true);
    let text = turn.last_user_text.as_deref().unwrap_or(&turn.user_text);
    match case.expected["text"].as_str() {
        Some(expected) => assert_eq!(text, expected, "{name}"),
        None => {
            assert_eq!(Some(normalize(text).to_lowercase().as_str()), case.expected["normalized"].as_str(), "{name}")
        }
    }
    Outcome::Held
}
