//! Rate limits hold over all nodes together.

use sprag_core::loops::Mode;
use sprag_core::policy::{LimitKey, RateMeasure, RateRule};
use sprag_testkit::RedisServer;

use crate::nodes::{Nodes, at_once, stopped};

fn rule(name: &str, measure: RateMeasure) -> RateRule {
    RateRule { name: name.into(), mode: Mode::Enforce, limit_keys: vec![LimitKey::Agent], measure, id: 77 }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_lets_as_many_pass_over_three_nodes_as_over_one() {
    let Some(redis) = RedisServer::start() else { return };
    let cases = [
        rule("window", RateMeasure::Requests { limit: 200, window_ms: 3_600_000 }),
        // It fills by one in a quarter of an hour: by none in the time of this test.
        rule("bucket", RateMeasure::Bucket { rps: 0.001, burst: 200.0 }),
    ];
    for rule in cases {
        redis.flush();
        let nodes = Nodes::start(3, &redis.url(), |settings| {
            settings.policies.defaults.rate_limits = vec![rule.clone()].into();
        })
        .await;
        let answers = at_once((0..500).map(|number| nodes.call(number, "task", 1))).await;
        let passed = answers.iter().filter(|answer| answer.status == 200).count();
        let refused = answers.iter().filter(|answer| stopped(answer) == "rate_limited").count();
        assert_eq!((passed, refused), (200, 300), "{}", rule.name);
    }
}
