//! Sub-agents: runs inside a run, whose cost and steps count above.

use serde_json::json;
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_store::RunKey;
use sprag_store::state::RunTotals;

use crate::say;
use crate::stage::{Said, Stage};

fn totals(stage: &Stage, run: &str) -> RunTotals {
    let key = RunKey { agent: AgentName::default(), id: RunId::parse(run).unwrap() };
    stage.sprag.app.state.totals(&key).unwrap()
}

async fn ask(stage: &Stage, headers: &[(&str, &str)]) -> Said {
    let body = json!({"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [say::user("x")]});
    stage.ask_with("/v1/messages", headers, &body, say::anthropic(&say::unique("msg_"), &[])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn children_count_in_the_tree_of_their_parents() {
    let stage = Stage::start().await;
    let session = ("x-claude-code-session-id", "s");
    let child = [session, ("x-claude-code-agent-id", "a")];
    let grandchild = [session, ("x-claude-code-agent-id", "b"), ("x-claude-code-parent-agent-id", "a")];
    // A sub-agent may be seen before the session itself.
    assert_eq!(ask(&stage, &child).await.place(), ("s:a", 1));
    assert_eq!(ask(&stage, &[session]).await.place(), ("s", 1));
    assert_eq!(ask(&stage, &grandchild).await.place(), ("s:b", 1));
    assert_eq!(ask(&stage, &child).await.place(), ("s:a", 2));

    // 100 tokens in at 1 dollar a million and 10 out at 5.
    let cost = |steps: i64| NanoUsd(150_000 * steps);
    for (run, own, tree) in [("s", 1, 4), ("s:a", 2, 3), ("s:b", 1, 1)] {
        let totals = totals(&stage, run);
        assert_eq!((totals.steps, totals.cost), (own, cost(own.into())), "{run}");
        assert_eq!((totals.tree_steps, totals.tree_cost), (tree, cost(tree.into())), "{run}");
    }
    let parents: Vec<Option<String>> =
        stage.sprag.events().iter().map(|e| e.run.as_ref().unwrap().parent.as_ref().map(ToString::to_string)).collect();
    assert_eq!(parents, [Some("s".into()), None, Some("s:a".into()), Some("s".into())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn parents_may_be_declared() {
    let stage = Stage::start().await;
    ask(&stage, &[("x-sprag-run-id", "top")]).await;
    ask(&stage, &[("x-sprag-run-id", "part"), ("x-sprag-parent-run-id", "top")]).await;
    assert_eq!((totals(&stage, "top").steps, totals(&stage, "top").tree_steps), (1, 2));
    let threads = [("session-id", "t"), ("thread-id", "u")];
    assert_eq!(ask(&stage, &threads).await.place(), ("u", 1));
    assert_eq!(totals(&stage, "t").tree_steps, 1);
}
