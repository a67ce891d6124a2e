//! Hours, models, rates and the order of judgement, through a whole Sprag.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../harness/configured.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod configured;
mod hours;
mod keyed;
mod models;
mod order;
mod rates;
#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;
#[path = "../gateway/wire.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod wire;

use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Call, Whole};

use crate::configured::Configured;

/// A call that is not sent yet.
fn call(place: &Configured, headers: &[(&str, &str)]) -> Call {
    let body = wire::request(Dialect::OpenaiChat, false, "hello");
    let call = client::post_json(place.sprag.url("/v1/chat/completions"), &body);
    headers.iter().fold(call, |call, (name, value)| call.header(name, value))
}

async fn ask(place: &Configured, headers: &[(&str, &str)]) -> Whole {
    call(place, headers).fetch().await.unwrap()
}

/// How many of so many calls pass.
async fn passed(place: &Configured, calls: usize, headers: &[(&str, &str)]) -> usize {
    let mut passed = 0;
    for _ in 0..calls {
        let answer = ask(place, headers).await;
        match configured::stopped(&answer) {
            "" => passed += 1,
            reason => assert_eq!(reason, "rate_limited"),
        }
    }
    passed
}
