//! Shadow: what would be refused passes, and is told. Shown on the rule for identical requests.

use sprag_core::event::Event;
use sprag_core::loops::{Action, Mode};
use sprag_testkit::client::Whole;

use crate::place::{Place, stopped};
use crate::{Case, Outcome};

const WINDOW_SECONDS: u32 = 5;

/// So many identical requests under the rule; the last answer and its event.
async fn last_of(requests: u32, mode: Mode) -> (Whole, Event) {
    let place = Place::start(|settings| {
        settings.policies.change_rules(|rules| {
            rules.repeat.common.mode = mode;
            rules.repeat.common.action = Action::Reject;
            rules.repeat.common.window.seconds = WINDOW_SECONDS;
        });
    })
    .await;
    let mut answer = place.ask("the same", &[]).await;
    for _ in 1..requests {
        answer = place.ask("the same", &[]).await;
    }
    let event = place.sprag.settled(requests as usize).await.pop().unwrap();
    (answer, event)
}

pub(crate) async fn changes_nothing(case: &Case) -> Outcome {
    let (title, expected) = (case.title(), &case.expected);
    match case.name.as_str() {
        "would_reject_becomes_allow" => {
            let (answer, event) = last_of(6, Mode::Shadow).await;
            assert_eq!((answer.status.as_u16(), stopped(&answer)), (200, ""), "{title}");
            assert!(!answer.headers.contains_key("retry-after"), "{title}");
            let shadow = event.shadow.unwrap();
            assert_eq!(Some(shadow.action.stops()), expected["would_reject"].as_bool(), "{title}");
            let retry = shadow.retry_seconds.map(u64::from);
            assert_eq!(retry, expected["original_retry_after"].as_u64(), "{title}");
            assert!(!event.blocked && event.verdict.is_none(), "{title}");
        }
        "allow_annotated" => {
            let (answer, event) = last_of(1, Mode::Shadow).await;
            assert_eq!((answer.status.as_u16(), event.shadow), (200, None), "{title}");
        }
        "enforce_passthrough" => {
            let (answer, event) = last_of(6, Mode::Enforce).await;
            assert_eq!((answer.status.as_u16(), event.blocked), (429, true), "{title}");
            let retry = answer.json()["retry_after_seconds"].clone();
            assert_eq!(retry, expected["retry_after"], "{title}");
        }
        "mode_detection" => {
            let modes = case.input["modes"].as_array().unwrap();
            for (mode, is_shadow) in modes.iter().zip(expected["is_shadow"].as_array().unwrap()) {
                let mode = if mode.is_null() { Mode::default() } else { serde_json::from_value(mode.clone()).unwrap() };
                assert_eq!(is_shadow.as_bool(), Some(mode == Mode::Shadow), "{title}");
            }
        }
        _ => return Outcome::Left("state in shadow is apart in memory, under no name of its own"),
    }
    Outcome::Held
}

/// A rule in shadow lets pass, and another that is in force still stops.
pub(crate) async fn leaves_the_rest_in_force(case: &Case) -> Outcome {
    let place = Place::start(|settings| {
        settings.policies.change_rules(|rules| {
            rules.repeat.common.mode = Mode::Shadow;
            rules.repeat.threshold = 2;
            rules.score.common.mode = Mode::Enforce;
            rules.score.common.action = Action::Reject;
        });
    })
    .await;
    let mut passed = 0;
    while stopped(&place.ask("Say the very same thing once more", &[]).await).is_empty() {
        passed += 1;
        assert!(passed < 20, "{}", case.title());
    }
    let events = place.sprag.settled(passed + 1).await;
    let would = events.iter().filter(|event| !event.blocked && event.shadow.is_some()).count();
    assert_eq!((would, case.expected["would_reject"].as_bool()), (passed - 1, Some(true)), "{}", case.title());
    assert!(events[passed].verdict.is_some(), "{}", case.title());
    Outcome::Held
}
