//! An answer does not wait until Redis has heard of its end. Whoever goes on from it on another node, and comes first, looks again.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sprag_testkit::client::{self, Call, Failure, Whole};
use sprag_testkit::{Cable, RedisServer};
use tokio::task::JoinHandle;

use crate::nodes::{Nodes, text, wait_until};

/// Whoever waits for Redis waits longer.
const PATIENCE: Duration = Duration::from_secs(60);
const WITHOUT_REDIS: Duration = Duration::from_secs(30);

/// One node behind a cable and one beside it.
struct Two {
    cable: Cable,
    here: Nodes,
    there: Nodes,
}

impl Two {
    async fn start(redis: &RedisServer, patience: Duration) -> Two {
        let cable = Cable::to(redis.address()).await.unwrap();
        let start = async |url: &str| Nodes::start(1, url, |settings| settings.state.timeout = patience).await;
        let here = start(&cable.redis_url()).await;
        let there = start(&redis.url()).await;
        Two { cable, here, there }
    }

    /// Makes a call here of whose end Redis does not hear.
    async fn answered_unheard(&self, call: Call) -> Whole {
        let held = tokio::spawn(call.header("x-mock-hold", "").fetch());
        wait_until("the provider has the call", || self.here.forwarded() == 1).await;
        self.cable.hold();
        self.here.provider.gate().open();
        let answer = tokio::time::timeout(WITHOUT_REDIS, held).await.unwrap().unwrap().unwrap();
        assert_eq!(answer.status, 200, "{}", text(&answer));
        answer
    }

    /// Waits until the other node has asked Redis again and again, and lets Redis hear of the end.
    async fn heard_late(&self, asking: JoinHandle<Result<Whole, Failure>>) -> Whole {
        let before = self.asked_there();
        wait_until("the other node looks again", || self.asked_there() > before + 2).await;
        assert!(!asking.is_finished());
        self.cable.mend();
        asking.await.unwrap().unwrap()
    }

    fn asked_there(&self) -> u64 {
        self.there.sprags[0].app.link.as_ref().unwrap().status().calls
    }
}

/// A call of a conversation that nobody named.
fn talk(nodes: &Nodes, messages: &Value) -> Call {
    let body = json!({"model": "gpt-4o", "messages": messages});
    client::post_json(nodes.sprags[0].url("/v1/chat/completions"), &body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_run_goes_on_elsewhere_when_its_last_call_is_heard_of() {
    let Some(redis) = RedisServer::start() else { return };
    let two = Two::start(&redis, PATIENCE).await;
    let answer = two.answered_unheard(two.here.call(0, "task", 1)).await;
    assert_eq!(answer.header("x-sprag-run-cost-usd"), "0.01");
    let next = two.heard_late(tokio::spawn(two.there.call(0, "task", 1).fetch())).await;
    assert_eq!((next.header("x-sprag-step"), next.header("x-sprag-run-cost-usd")), ("2", "0.02"), "{}", text(&next));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_elsewhere_when_its_last_answer_is_heard_of() {
    let Some(redis) = RedisServer::start() else { return };
    let two = Two::start(&redis, PATIENCE).await;
    let asked = json!({"role": "user", "content": "How high is the Zugspitze?"});
    let answer = two.answered_unheard(talk(&two.here, &json!([asked]))).await;
    let said = answer.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let further =
        json!([asked, {"role": "assistant", "content": said}, {"role": "user", "content": "And the Watzmann?"}]);
    let next = two.heard_late(tokio::spawn(talk(&two.there, &further).fetch())).await;
    assert_eq!(next.header("x-sprag-run-id"), answer.header("x-sprag-run-id"), "{}", text(&next));
    assert_eq!(next.header("x-sprag-step"), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_never_heard_of_holds_nobody_up_for_long() {
    let Some(redis) = RedisServer::start() else { return };
    let patience = Duration::from_secs(4);
    let two = Two::start(&redis, patience).await;
    two.answered_unheard(two.here.call(0, "task", 1)).await;
    let began = Instant::now();
    let next = two.there.call(0, "task", 1).fetch().await.unwrap();
    assert_eq!((next.status.as_u16(), next.header("x-sprag-step")), (200, "2"), "{}", text(&next));
    assert!(began.elapsed() >= patience / 10, "it looked again for a while: {:?}", began.elapsed());
    assert!(began.elapsed() < patience, "and not for ever: {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beside_each_other_do_not_wait() {
    let Some(redis) = RedisServer::start() else { return };
    let two = Two::start(&redis, PATIENCE).await;
    let of_session = |nodes: &Nodes| {
        let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "A title, please."}]});
        client::post_json(nodes.sprags[0].url("/v1/chat/completions"), &body).header("x-session-id", "mine")
    };
    let held = tokio::spawn(of_session(&two.here).header("x-mock-hold", "").fetch());
    wait_until("the provider has the call", || two.here.forwarded() == 1).await;
    let before = two.asked_there();
    let beside = of_session(&two.there).fetch().await.unwrap();
    two.there.quiet().await;
    assert_eq!((beside.status.as_u16(), beside.header("x-sprag-step")), (200, "2"), "{}", text(&beside));
    assert_eq!(two.asked_there() - before, 2, "once to begin and once to end");
    two.here.provider.gate().open();
    assert_eq!(held.await.unwrap().unwrap().status, 200);
}
