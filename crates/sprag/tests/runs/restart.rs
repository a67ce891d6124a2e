//! What a run is after the process ended and began again.

use serde_json::json;
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_store::RunKey;

use crate::say;
use crate::stage::Stage;

const CHAT: &str = "/v1/chat/completions";
/// 100 tokens in and 10 out at the price of gpt-4o.
const STEP_COST: NanoUsd = NanoUsd(350_000);

#[tokio::test(flavor = "multi_thread")]
async fn named_runs_go_on_and_inferred_ones_begin_anew() {
    let stage = Stage::start().await;
    let message = say::chat_message("ok", &[]);
    let trace = ("traceparent", "00-ad5b72550a81ce246661189fd2cedff3-78a768f2645dcecd-03");
    let opening = json!({"model": "gpt-4o", "messages": [say::user("a")]});
    let names: [&[(&str, &str)]; 3] =
        [&[("x-sprag-run-id", "task")], &[("x-session-id", "session-7")], &[("authorization", "k1"), trace]];
    let mut runs = Vec::new();
    for name in names {
        let first = stage.ask_with(CHAT, name, &opening, say::chat(&message)).await;
        let second = stage.ask_with(CHAT, name, &opening, say::chat(&message)).await;
        assert_eq!(second.place(), (first.run.as_str(), 2));
        runs.push(first.run);
    }
    let inferred = stage.ask(CHAT, &opening, say::chat(&message)).await;
    let Stage { sprag, .. } = stage;
    let data = sprag.stop().await;

    let stage = Stage::start_with(|settings| settings.data_dir = data.path().to_owned()).await;
    for (name, run) in names.into_iter().zip(&runs) {
        let third = stage.ask_with(CHAT, name, &opening, say::chat(&message)).await;
        assert_eq!(third.place(), (run.as_str(), 3));
        let key = RunKey { agent: AgentName::default(), id: RunId::parse(run).unwrap() };
        let totals = stage.sprag.app.state.totals(&key).unwrap();
        assert_eq!((totals.steps, totals.cost), (3, NanoUsd(3 * STEP_COST.0)));
    }
    let messages = json!([say::user("a"), message, say::user("b")]);
    let next = stage.ask(CHAT, &json!({"model": "gpt-4o", "messages": messages}), say::chat(&message)).await;
    assert_eq!(next.step, 1);
    assert_ne!(next.run, inferred.run);
    let messages = json!([say::user("a"), message, say::user("b"), message, say::user("c")]);
    let later = stage.ask(CHAT, &json!({"model": "gpt-4o", "messages": messages}), say::chat(&message)).await;
    assert_eq!(later.place(), (next.run.as_str(), 2));
}
