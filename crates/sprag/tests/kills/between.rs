//! Kills between calls: every scope, pauses, expiry, resuming.

use sprag_core::event::{ActKind, Ending, EventKind};
use sprag_core::policy::KillKind;
use sprag_core::time::Timestamp;
use sprag_core::wire::Dialect;
use sprag_store::history::RunStatus;

use crate::scene::{START, Scene, error};
use crate::wire::{STREAMING, path, request};
use sprag_testkit::client;

const RUN: (&str, &str) = ("x-sprag-run-id", "task");

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_is_refused_in_every_dialect_with_all_that_is_known() {
    let scene = Scene::start().await;
    scene.passes(&[RUN]).await;
    let kill = scene.kill("run:default/task").await;
    assert_eq!((kill.at, kill.kind), (Timestamp(START), KillKind::Kill));
    let sent = scene.provider.log().view().total;
    for dialect in STREAMING {
        for is_stream in [false, true] {
            let answer = scene.call_in(dialect, is_stream, &[RUN]).fetch().await.unwrap();
            assert_eq!(answer.status, 403, "{dialect:?}");
            assert_eq!(answer.header("x-sprag-blocked"), "run_killed");
            assert_eq!(answer.header("x-should-retry"), "false");
            let error = error(&answer);
            assert_eq!((&error["kill_reason"], &error["killed_by"]), (&"too expensive".into(), &"anna".into()));
            assert_eq!((&error["run_id"], &error["killed_scope"]), (&"task".into(), &"run:default/task".into()));
            assert!(error["step"].as_u64().unwrap() > 1 && error["killed_at"].is_string(), "{error}");
        }
    }
    assert_eq!(scene.provider.log().view().total, sent, "nothing was sent on");
    scene.passes(&[("x-sprag-run-id", "other")]).await;
    scene.passes(&[RUN, ("x-sprag-agent", "bot")]).await;

    let run = scene.run("task");
    let stopped = run.stopped.unwrap();
    assert_eq!(
        (run.status, stopped.reason.as_str(), stopped.by.as_str()),
        (RunStatus::Killed, "too expensive", "anna")
    );
    let events = scene.sprag.events();
    let act = events.iter().find(|event| event.kind == EventKind::Admin).unwrap();
    assert_eq!(act.act.as_ref().unwrap().what, ActKind::Kill);
    let refused: Vec<_> = events.iter().filter(|event| event.block_reason.as_deref() == Some("run_killed")).collect();
    assert_eq!(refused.len(), STREAMING.len() * 2);
    assert!(refused.iter().all(|event| event.ending == Ending::Refused && event.cost.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_a_run_stops_the_runs_below_it_and_not_those_above() {
    let scene = Scene::start().await;
    let child = [("x-sprag-run-id", "part"), ("x-sprag-parent-run-id", "task")];
    let grandchild = [("x-sprag-run-id", "piece"), ("x-sprag-parent-run-id", "part")];
    for headers in [&[RUN][..], &child, &grandchild] {
        scene.passes(headers).await;
    }
    scene.kill("run:default/part").await;
    scene.is_killed(&child).await;
    scene.is_killed(&grandchild).await;
    scene.is_killed(&grandchild[..1]).await;
    scene.passes(&[RUN]).await;
    scene.resume("part").await.unwrap();
    scene.passes(&grandchild).await;
    scene.kill("run:default/task").await;
    for headers in [&[RUN][..], &child, &grandchild] {
        scene.is_killed(headers).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wider_scopes_stop_what_they_name() {
    let scene = Scene::start().await;
    // The beginning of the SHA-256 of `k1`.
    let key = [("authorization", "Bearer k1")];
    for (scope, stopped, free) in [
        ("agent:bot", &[("x-sprag-agent", "bot")][..], &[("x-sprag-agent", "other")][..]),
        ("header:x-tool-name=web_search", &[("x-tool-name", "web_search")], &[("x-tool-name", "read_file")]),
        ("key:6ab9f1eb8f7d3388", &key, &[("authorization", "Bearer k2")]),
    ] {
        scene.passes(stopped).await;
        let kill = scene.kill(scope).await;
        scene.is_killed(stopped).await;
        scene.passes(free).await;
        let models = client::get(scene.sprag.url("/v1/models"));
        let models = stopped.iter().fold(models, |call, (name, value)| call.header(name, value)).fetch().await.unwrap();
        assert_eq!(models.status, 403, "requests outside any run too");
        assert!(scene.sprag.app.lift(kill.id.clone(), "anna".into()).await.unwrap().is_some());
        scene.passes(stopped).await;
    }
    let kill = scene.kill("key:6ab9f1eb8f7d3388").await;
    for hidden in [("authorization", "bearer  k1"), ("x-api-key", "k1"), ("x-goog-api-key", "k1")] {
        scene.is_killed(&[hidden]).await;
    }
    scene.is_killed(&[("authorization", "Bearer other"), ("x-api-key", "k1")]).await;
    let in_query = scene.sprag.url("/v1beta/models/gemini-2.5-flash:generateContent?a=b&key=k1");
    let call = client::post_json(in_query, &request(Dialect::Gemini, false, "x"));
    assert_eq!(call.fetch().await.unwrap().status, 403);
    scene.sprag.app.lift(kill.id.clone(), "anna".into()).await.unwrap();
    let kill = scene.kill("header:x-tool-name=web_search").await;
    scene.is_killed(&[("x-tool-name", "read_file"), ("x-tool-name", "web_search")]).await;
    scene.sprag.app.lift(kill.id.clone(), "anna".into()).await.unwrap();

    let kill = scene.kill("all").await;
    for dialect in STREAMING {
        let call = client::post_json(scene.sprag.url(path(dialect, false)), &request(dialect, false, "x"));
        assert_eq!(call.fetch().await.unwrap().status, 403, "{dialect:?}");
    }
    assert!(scene.sprag.app.lift(kill.id.clone(), "anna".into()).await.unwrap().is_some());
    scene.passes(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_ends_when_it_expires() {
    let scene = Scene::start().await;
    scene.order("agent:default", KillKind::Kill, Some(Timestamp(START + 60_000))).await;
    scene.is_killed(&[]).await;
    scene.pass_seconds(59);
    scene.is_killed(&[]).await;
    scene.pass_seconds(1);
    scene.passes(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_waits_for_approval() {
    let scene = Scene::start().await;
    scene.passes(&[RUN]).await;
    scene.order("run:default/task", KillKind::Pause, None).await;
    assert_eq!(scene.reason(&[RUN]).await, (403, "run_paused".to_owned()));
    assert_eq!(scene.run("task").status, RunStatus::Paused);
    assert_eq!(scene.resume("task").await.unwrap().kind, KillKind::Pause);
    scene.passes(&[RUN]).await;
    assert_eq!(scene.run("task").status, RunStatus::Running);
    let acts: Vec<_> = scene.sprag.events().into_iter().filter_map(|event| Some(event.act?.what)).collect();
    assert_eq!(acts, [ActKind::Pause, ActKind::Approve]);
    assert!(scene.resume("task").await.is_none(), "nothing is left to approve");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_killed_before_its_first_call() {
    let scene = Scene::start().await;
    scene.kill("run:default/task").await;
    let answer = scene.ask(&[RUN]).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-sprag-step")), (403, "1"));
    assert_eq!(scene.run("task").status, RunStatus::Killed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_nobody_named_is_stopped_too() {
    let scene = Scene::start().await;
    let first = scene.ask(&[]).await;
    let run = first.header("x-sprag-run-id").to_owned();
    scene.kill(&format!("run:default/{run}")).await;
    let mut body = request(Dialect::OpenaiChat, false, "hello");
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(first.json()["choices"][0]["message"].clone());
    messages.push(serde_json::json!({"role": "user", "content": "go on"}));
    let answer = client::post_json(scene.sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.header("x-sprag-run-id")), (403, run.as_str()));
}
