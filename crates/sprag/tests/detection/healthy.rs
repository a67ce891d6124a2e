//! Agents that work, in ways that a naive detector takes for loops.

use serde_json::{Value, json};

use crate::agent::{Agent, Model, Talk};
use crate::stage::{Play, Stage};

/// Lets an agent work in every dialect; nothing may stop it.
async fn works(what: &str, steps: usize, step: impl Fn(usize) -> (&'static str, Value, String)) {
    for talk in Talk::ALL {
        let stage = Stage::start().await;
        let mut agent = Agent::new(&stage, talk, "Do the task until it is done.");
        for number in 0..steps {
            let (tool, arguments, result) = step(number);
            let said = agent.calls(tool, arguments, &result).await;
            assert_eq!(said.status, 200, "{what}, {talk:?}, step {number}: {}", String::from_utf8_lossy(&said.bytes));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_task_with_one_user_message() {
    works("different calls", 40, |n| ("read", json!({"path": format!("src/f{n}.rs")}), format!("fn f{n}() {{}}")))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paging() {
    works("paging", 30, |n| {
        let rows: String = (0..5).map(|row| format!("{},customer {},open\n", n * 5 + row, (n * 5 + row) * 7)).collect();
        ("list", json!({"page": n, "size": 5}), rows)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_a_job_that_gets_somewhere() {
    works("growing", 25, |n| {
        ("job_status", json!({"job": "j1"}), format!("{{\"state\": \"running\", \"progress\": {}}}", n * 4))
    })
    .await;
    works("still running", 60, |_| ("job_status", json!({"job": "j1"}), "status: still running".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_and_test_while_results_change() {
    works("edit and test", 30, |n| match n % 2 {
        0 => ("edit", json!({"file": "a.py", "line": n, "text": format!("x = {n}")}), "edited".to_owned()),
        _ => ("bash", json!({"cmd": "pytest -q"}), format!("{} passed, {} failed", n, 40 - n)),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_looks_at_the_same_file_between_other_work() {
    works("looking again", 30, |n| match n % 5 {
        0 => ("read", json!({"path": "README.md"}), "# Title\nSome text".to_owned()),
        _ => ("read", json!({"path": format!("src/{n}.rs")}), format!("mod m{n};")),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_may_be_embedded_before_it_is_asked() {
    let stage = Stage::start().await;
    let headers = [("authorization", "Bearer k1"), ("x-sprag-run-id", "rag-1")];
    let question = "How do I reset my password in the new portal?";
    let embedding = json!({"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.1]}],
        "model": "text-embedding-3-small", "usage": {"prompt_tokens": 9, "total_tokens": 9}});
    for _ in 0..3 {
        let body = json!({"model": "text-embedding-3-small", "input": question});
        let said = stage.ask_with("/v1/embeddings", &headers, &body, Play::json(&embedding)).await;
        assert_eq!(said.status, 200, "{}", String::from_utf8_lossy(&said.bytes));
    }
    let agent = Agent::new(&stage, Talk::Chat, question).declared("rag-1");
    assert_eq!(agent.sends(&Model::Text("Like this.")).await.0.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn short_answers_to_different_questions() {
    for talk in Talk::ALL {
        let stage = Stage::start().await;
        let mut agent = Agent::new(&stage, talk, "Is item 0 in stock?");
        for number in 1..25 {
            let question =
                format!("And what about {} in the {} warehouse?", ["bolts", "nuts", "gears"][number % 3], number);
            let said = agent.talks(if number % 2 == 0 { "yes" } else { "no" }, &question).await;
            assert_eq!(said.status, 200, "{talk:?} {number}");
        }
    }
}
