//! What is kept of a run with its events: small, without text, and enough to judge the run again.

use proptest::prelude::*;

use super::super::Seen;
use super::call;
use super::script::{Run, Step};
use crate::limits::{LEVEL, PICTURE_STEPS, STEP_EVIDENCE_BYTES, TOOL_NAME_BYTES};
use crate::loops::{ProgressRule, RecordedStep, StepEvidence, similarity, try_rule};
use crate::time::Timestamp;
use crate::wire::Dialect;

fn played(steps: impl IntoIterator<Item = Step>) -> Run {
    let mut run = Run::new(Dialect::OpenaiChat);
    run.ask();
    steps.into_iter().for_each(|step| drop(run.play(&step)));
    run
}

fn stuck(steps: usize) -> Run {
    played((0..steps).map(|n| call(&format!("Try {n}."), "read", r#"{"path":"a.rs"}"#, "Error: no such file")))
}

#[test]
fn other_thresholds_stop_sooner_or_later() {
    let run = stuck(12);
    let stopped_at = |repeats: f64| {
        let rule = ProgressRule { repeats, same_results: 100.0, stall: 100.0, ..ProgressRule::balanced() };
        try_rule(&run.recorded, &rule).stop.map(|stop| (stop.step, stop.finding.proof.value))
    };
    assert_eq!(stopped_at(3.0), Some((5, 3.0)));
    assert_eq!(stopped_at(5.0), Some((7, 5.0)));
    assert_eq!(stopped_at(11.0), Some((13, 11.0)));
    assert_eq!(stopped_at(12.0), None);
}

#[test]
fn the_level_rises_with_each_repetition() {
    let run = stuck(5);
    let levels: Vec<Option<f32>> = run.levels.clone();
    assert_eq!(levels[0], None, "nothing to judge in a first request");
    assert_eq!(levels[1], Some(0.0));
    let rising: Vec<f32> = levels.iter().flatten().copied().collect();
    assert!(rising.windows(2).all(|pair| pair[0] < pair[1]), "{rising:?}");
    assert!(rising.iter().all(|level| *level < 1.0), "not yet stuck: {rising:?}");
}

#[test]
fn a_level_is_bounded_whatever_the_threshold() {
    let level = |value: f64| Seen::new(None, value).level;
    assert_eq!([0.5, LEVEL, LEVEL + 1.0].map(level), [Some(0.5), Some(LEVEL as f32), Some(LEVEL as f32)]);
    assert_eq!([f64::NAN, f64::INFINITY].map(level), [Some(LEVEL as f32); 2]);
}

#[test]
fn evidence_is_small_and_holds_no_text() {
    let words = |from: usize| (0..60).map(|n| format!("word{} ", (b'a' + ((from + n) % 26) as u8) as char)).collect();
    let texts: Vec<String> = (0..40).map(words).collect();
    let run = played(texts.iter().enumerate().map(|(n, text)| {
        call(text, "search_the_archive", &format!(r#"{{"query":"{text}","page":{n}}}"#), &format!("{n} results {text}"))
    }));
    let sizes: Vec<usize> = run.recorded.iter().map(|one| one.evidence.as_bytes().len()).collect();
    assert!(sizes.iter().all(|size| *size <= 128), "{sizes:?}");
    for one in &run.recorded {
        let shown = String::from_utf8_lossy(one.evidence.as_bytes());
        assert!(!shown.contains("word") && !shown.contains("results"), "{shown}");
    }
}

#[test]
fn the_longest_evidence_has_room() {
    let many = |n: usize| (0..400).map(|word| format!("w{}x{} ", "q".repeat(word % 90), n)).collect::<String>();
    let run = played((0..3).map(|n| call(&many(n), &"é".repeat(TOOL_NAME_BYTES), "{}", &many(n + 7))));
    for one in &run.recorded {
        assert!(one.evidence.as_bytes().len() <= STEP_EVIDENCE_BYTES / 2);
    }
    assert!(StepEvidence::from_bytes(&[0; STEP_EVIDENCE_BYTES]).is_some(), "at the bound");
    assert!(StepEvidence::from_bytes(&[0; STEP_EVIDENCE_BYTES + 1]).is_none(), "past it");
}

#[test]
fn evidence_comes_back_from_text() {
    let run = stuck(4);
    for one in &run.recorded {
        let text = serde_json::to_string(&one.evidence).unwrap();
        assert_eq!(serde_json::from_str::<StepEvidence>(&text).unwrap(), one.evidence);
    }
    let facts = run.recorded[3].evidence.facts(4).unwrap();
    assert_eq!((facts.step, facts.alike.as_str(), facts.failed), (3, "same_error", true));
    assert_eq!(run.recorded[0].evidence.facts(1), None, "a first request finishes no step");
    let too_long = format!("\"{}\"", "A".repeat(4 * STEP_EVIDENCE_BYTES));
    assert!(serde_json::from_str::<StepEvidence>(&too_long).is_err());
    assert!(serde_json::from_str::<StepEvidence>("\"not base 64!\"").is_err());
}

#[test]
fn a_cycle_shows_as_stripes() {
    let words = ["fox", "owl", "elk"];
    let run = played((0..9).map(|n| {
        let word = words[n % 3];
        call(&format!("Now {n}."), "read", &format!(r#"{{"file":"{word}"}}"#), &format!("here is the {word} you want"))
    }));
    let picture = similarity(&run.recorded, 0.85);
    assert_eq!(picture.steps, (1..=9).collect::<Vec<u32>>());
    for a in 0..9 {
        for b in 0..9 {
            assert_eq!(picture.level(a, b) == 3, a.abs_diff(b) % 3 == 0, "{a} {b}");
        }
    }
}

#[test]
fn what_is_the_same_and_what_is_only_similar() {
    let long = "the build of the project has failed because a symbol is missing in module";
    let run = played([
        call("", "build", r#"{"target":"all"}"#, &format!("Error: {long} alpha")),
        call("", "build", r#"{"target":"all"}"#, "done, and nothing is left to do here any more at all, so go on now"),
        call("", "list", r#"{"folder":"src"}"#, &format!("Error: {long} alpha")),
        call(
            "",
            "weather",
            r#"{"city":"Bonn"}"#,
            "sunny with a little wind from the west and thirty degrees, they say",
        ),
    ]);
    let picture = similarity(&run.recorded, 0.85);
    assert_eq!(picture.rows, [vec![3], vec![2, 3], vec![2, 0, 3], vec![0, 0, 0, 3]]);
}

#[test]
fn a_picture_is_of_the_last_steps() {
    let run = stuck(2);
    let at = |request: u32| RecordedStep { request, ..run.recorded[2].clone() };
    let many: Vec<RecordedStep> = (2..=PICTURE_STEPS as u32 + 2).map(at).collect();
    assert_eq!(similarity(&many[1..], 0.85).steps.len(), PICTURE_STEPS, "at the bound");
    let picture = similarity(&many, 0.85);
    assert_eq!((picture.steps.len(), picture.steps[0]), (PICTURE_STEPS, 2), "past it");
    assert_eq!(similarity(&[at(9), at(9)], 0.85).steps, [8], "a step that was finished twice is one step");
}

proptest! {
    #[test]
    fn bytes_that_nobody_wrote_do_no_harm(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..30),
        is_known_form in any::<bool>(),
    ) {
        let recorded: Vec<RecordedStep> = (1..).zip(&pieces).map(|(request, bytes)| {
            let mut bytes = bytes.clone();
            if let Some(head) = bytes.first_mut().filter(|_| is_known_form) {
                *head = 0x10 | *head & 7;
            }
            RecordedStep { request, at: Timestamp(0), evidence: StepEvidence::from_bytes(&bytes).unwrap() }
        }).collect();
        let _ = try_rule(&recorded, &ProgressRule::balanced());
        let _ = similarity(&recorded, 0.85);
        recorded.iter().for_each(|one| drop(one.evidence.facts(one.request)));
    }
}
