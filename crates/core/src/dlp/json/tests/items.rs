//! What was looked at is not looked at again, and gives the same bytes at every step.

use std::time::Instant;

use super::*;
use crate::wire::Call;

fn step(inspector: &Inspector, seen: &Seen, body: &str) -> (String, Sightings) {
    let call = Call::parse(Dialect::Anthropic, "/v1/messages", body.as_bytes()).unwrap();
    let items = ranges_of(body.as_bytes(), call.items.iter().chain(&call.fixed).copied());
    assert_eq!(items.len(), call.items.len() + 1);
    let mut sightings = Sightings::default();
    let way = Direction::Request;
    let done = inspect_json(inspector, way, Dialect::Anthropic, body.as_bytes(), &items, Some(seen), &mut sightings);
    (String::from_utf8(apply_edits(body.as_bytes(), &done.edits)).unwrap(), sightings)
}

fn body(messages: &[String]) -> String {
    format!(r#"{{"system":"for boss@example.com","messages":[{}], "max_tokens":9}}"#, messages.join(", "))
}

#[test]
fn every_step_gives_the_bytes_of_the_step_before() {
    let (inspector, seen) = (inspector(), Seen::new(1));
    let mut messages: Vec<String> = Vec::new();
    let mut before = String::new();
    for number in 0..20 {
        let text = format!(r"from a{}@example.com\n and sk-1234567890abcdef{number}", number % 7);
        messages.push(format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}"#));
        let whole = body(&messages);
        let (out, sightings) = step(&inspector, &seen, &whole);
        assert_eq!(seen.items(), number + 2);
        assert!(out.starts_with(before.trim_end_matches(r#"], "max_tokens":9}"#)), "{out}");
        assert_eq!(sightings.total as usize, 1 + 2 * messages.len());
        let last = format!("messages[{number}].content[0].text");
        assert!(sightings.list.len() == 32 || sightings.list.last().unwrap().path == last);
        let (fresh, noted) = step(&inspector, &Seen::new(2), &whole);
        assert_eq!((fresh, noted), (out.clone(), sightings), "remembered or not, it is the same");
        before = out;
    }
}

#[test]
fn the_policy_is_asked_each_time() {
    let seen = Seen::new(1);
    let whole = body(&[r#"{"role":"user","content":"sk-1234567890abcdef"}"#.to_owned()]);
    let hiding = inspector();
    assert!(step(&hiding, &seen, &whole).0.contains(HIDDEN));
    let mut passing = inspector();
    let mut policy = DlpPolicy::default();
    policy.set(OPENAI_KEY, Direction::Request, Action::Pass);
    policy.set(EMAIL, Direction::Request, Action::Pass);
    passing.policy = Arc::new(policy);
    assert_eq!(step(&passing, &seen, &whole).0, whole);
    assert!(step(&hiding, &seen, &whole).0.contains(HIDDEN));
}

#[test]
fn items_that_are_not_there_do_no_harm() {
    let (inspector, seen) = (inspector(), Seen::new(1));
    let body = br#"{"a":["sk-1234567890abcdef"]}"#;
    let wrong: [&[(usize, usize)]; 6] =
        [&[(0, 1000)], &[(3, 2)], &[(100, 120)], &[(6, 27), (6, 27), (2, 4)], &[(6, 6)], &[(usize::MAX, usize::MAX)]];
    for items in wrong {
        let items: Vec<Range<usize>> = items.iter().map(|(start, end)| *start..*end).collect();
        let mut sightings = Sightings::default();
        let done =
            inspect_json(&inspector, Direction::Request, Dialect::Opaque, body, &items, Some(&seen), &mut sightings);
        assert_eq!(done.edits, [(7..26, HIDDEN.to_owned())], "{items:?}");
    }
    let elsewhere = serde_json::value::to_raw_value("x").unwrap();
    assert!(ranges_of(&body[..2], [&*elsewhere]).is_empty());
}

/// `cargo test --release -p sprag-core --lib a_long_history -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn a_long_history_costs_what_is_new() {
    let words = r#"The function reads \"config.toml\" and returns a map of settings; see line 42.\n"#;
    let message = |number: usize, bytes: usize| {
        let text = words.repeat(bytes / words.len());
        format!(r#"{{"role":"user","content":[{{"type":"text","text":"{number} {text}"}}]}}"#)
    };
    let (inspector, seen) = (inspector(), Seen::new(1));
    for size in [500, 1000, 2000, 4000, 20_000] {
        let history: Vec<String> = (0..100_000 / size).map(|number| message(number, size)).collect();
        let rounds = 400;
        let (mut with_new, mut old, mut new) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            let mut messages = history.clone();
            let last = message(1_000_000 + size * rounds + round, 2000);
            messages.push(last.clone());
            let whole = body(&messages);
            let call = Call::parse(Dialect::Anthropic, "/v1/messages", whole.as_bytes()).unwrap();
            let items = ranges_of(whole.as_bytes(), call.items.iter().copied());
            let time = |body: &[u8], items: &[Range<usize>]| {
                let mut sightings = Sightings::default();
                let begin = Instant::now();
                let way = Direction::Request;
                let done = inspect_json(&inspector, way, Dialect::Anthropic, body, items, Some(&seen), &mut sightings);
                assert_eq!(done.edits.len(), usize::from(body.len() > 3000));
                begin.elapsed().as_nanos() as f64 / 1000.0
            };
            with_new.push(time(whole.as_bytes(), &items));
            old.push(time(whole.as_bytes(), &items));
            new.push(time(last.as_bytes(), &[]));
        }
        let median = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        println!(
            "{} messages of {size} B + 2 KB new: {:.1} us per request; nothing new: {:.1} us; 2 KB alone: {:.1} us",
            history.len(),
            median(&mut with_new),
            median(&mut old),
            median(&mut new)
        );
    }
}
