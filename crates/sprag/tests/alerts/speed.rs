//! What a burst of trips costs calls: nothing, whether or not anybody takes the alerts.

use std::time::{Duration, Instant};

use sprag_testkit::{ClosedPort, Provider, Script};

use crate::binary::Binary;
use crate::{REJECTING, call_of};

const TRIPS: usize = 1000;

/// Half of them took less, and ninety-nine in a hundred.
fn middle_and_tail(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// With alerts to a receiver that is down, and without: side by side, each trip on both, in turn. Run with
/// `cargo test --release -p sprag --test alerts -- --ignored --nocapture trips_cost`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: needs a quiet machine and a release build"]
async fn a_thousand_trips_cost_calls_nothing_with_a_dead_receiver() {
    let provider = Provider::start(Script::new()).unwrap();
    let dead = ClosedPort::new().unwrap();
    let with = format!(
        "{REJECTING}[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"http://{}/\"\nallow_private = true\n\
         [[alerts.rules]]\non = \"loop_detected\"\ncooldown_minutes = 0\n[[alerts.rules]]\non = \"error_rate\"\n\
         [[alerts.rules]]\non = \"agent_down\"\n",
        dead.address
    );
    let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let binaries =
        [Binary::start(homes[0].path(), &provider, &with), Binary::start(homes[1].path(), &provider, REJECTING)];
    let mut times = [Vec::new(), Vec::new()];
    for trip in 0..TRIPS {
        for (binary, times) in binaries.iter().zip(&mut times) {
            let (base, run) = (binary.url(""), format!("task-{trip}"));
            loop {
                let begun = Instant::now();
                let answer = call_of(&base, "bot", &run).fetch().await.unwrap();
                times.push(begun.elapsed());
                if answer.header("x-sprag-blocked") == "loop_detected" {
                    break;
                }
            }
        }
    }
    let [with, without] = times.map(middle_and_tail);
    println!("with alerts:    p50 {:?} p99 {:?}", with.0, with.1);
    println!("without alerts: p50 {:?} p99 {:?}", without.0, without.1);
    // Two programs never take the same time; a wait for a disk or a receiver would be milliseconds.
    assert!(with.0 < without.0 * 2 + Duration::from_micros(500), "{with:?} {without:?}");
    assert!(with.1 < without.1 * 3 + Duration::from_millis(2), "{with:?} {without:?}");
}
