//! How far a run may go, and what happens after.

use sprag_core::event::EventKind;
use sprag_core::loops::RunKind;
use sprag_core::policy::RunLimits;
use sprag_core::wire::Dialect;
use sprag_store::history::RunStatus;
use sprag_testkit::{Script, client};

use crate::scene::{Scene, error};
use crate::wire::request;

const RUN: (&str, &str) = ("x-sprag-run-id", "task");

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_run_has_thirty_steps() {
    let scene = Scene::start().await;
    for _ in 0..30 {
        scene.passes(&[RUN]).await;
    }
    let answer = scene.ask(&[RUN]).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-sprag-blocked")), (429, "run_limit_exceeded"));
    let said = error(&answer);
    assert_eq!(
        (&said["exceeded_limit"], &said["limit"], &said["current"]),
        (&"max_steps".into(), &30.into(), &31.into())
    );
    assert_eq!((&said["step"], &said["kill_reason"]), (&31.into(), &"step_limit".into()));

    let answer = scene.ask(&[RUN]).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-sprag-blocked")), (403, "run_killed"));
    let said = error(&answer);
    assert_eq!((&said["kill_reason"], &said["killed_by"]), (&"step_limit".into(), &"sprag".into()));
    assert_eq!((&said["proof"]["value"], &said["proof"]["threshold"]), (&31.0.into(), &30.0.into()));
    let run = scene.run("task");
    let stopped = run.stopped.unwrap();
    assert_eq!((run.status, stopped.reason.as_str()), (RunStatus::Killed, "step_limit"));
    assert_eq!(stopped.proof, Some(said["proof"].clone()));
    assert_eq!(scene.sprag.events().iter().filter(|event| event.kind == EventKind::RunKilled).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_run_has_two_minutes() {
    let scene = Scene::start().await;
    scene.passes(&[RUN]).await;
    scene.pass_seconds(120);
    scene.passes(&[RUN]).await;
    scene.pass_seconds(1);
    let answer = scene.ask(&[RUN]).await;
    let said = error(&answer);
    assert_eq!((answer.status.as_u16(), &said["exceeded_limit"]), (429, &"timeout_seconds".into()));
    assert_eq!((&said["current"], &said["kill_reason"]), (&121.into(), &"timeout".into()));
    scene.is_killed(&[RUN]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_nobody_declared_have_no_limits_unless_told() {
    let session = [("x-session-id", "s")];
    let scene = Scene::start().await;
    for _ in 0..35 {
        scene.passes(&session).await;
    }
    scene.pass_seconds(3600);
    scene.passes(&session).await;

    let all = |settings: &mut sprag::config::Settings| {
        settings.policies.defaults.run_limits =
            RunLimits { max_steps: 2, timeout_seconds: 0, applies_to: RunKind::All, ..RunLimits::default() };
    };
    let scene = Scene::start_with(Script::new(), all).await;
    scene.passes(&session).await;
    scene.passes(&session).await;
    assert_eq!(scene.reason(&session).await, (429, "run_limit_exceeded".to_owned()));
    scene.is_killed(&session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_may_have_limits_of_its_own() {
    let scene = Scene::start_with(Script::new(), |settings| {
        let mut policy = settings.policies.defaults.clone();
        policy.run_limits.max_steps = 1;
        settings.policies.agents.insert(sprag_core::id::AgentName::parse("bot").unwrap(), policy);
    })
    .await;
    let bot = [RUN, ("x-sprag-agent", "bot")];
    scene.passes(&bot).await;
    assert_eq!(scene.reason(&bot).await.1, "run_limit_exceeded");
    scene.passes(&[RUN]).await;
    scene.passes(&[RUN]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_parts_of_a_run_count_against_its_limits() {
    let scene = Scene::start_with(Script::new(), |settings| settings.policies.defaults.run_limits.max_steps = 3).await;
    let child = [("x-sprag-run-id", "part"), ("x-sprag-parent-run-id", "task")];
    scene.passes(&[RUN]).await;
    scene.passes(&child).await;
    scene.passes(&child).await;
    let answer = scene.ask(&child).await;
    assert_eq!((answer.status.as_u16(), &error(&answer)["killed_run"]), (429, &"task".into()));
    scene.is_killed(&child).await;
    scene.is_killed(&[RUN]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_takes_no_step_from_the_run_above() {
    let scene = Scene::start_with(Script::new(), |settings| settings.policies.defaults.run_limits.max_steps = 3).await;
    let child = [("x-sprag-run-id", "part"), ("x-sprag-parent-run-id", "task")];
    scene.passes(&[RUN]).await;
    scene.passes(&child).await;
    scene.kill("run:default/part").await;
    for _ in 0..10 {
        scene.is_killed(&child).await;
    }
    scene.passes(&[RUN]).await;
    assert_eq!(scene.reason(&[RUN]).await.1, "run_limit_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_run_counts_from_where_it_was_resumed() {
    let scene = Scene::start_with(Script::new(), |settings| settings.policies.defaults.run_limits.max_steps = 2).await;
    for round in 0..3 {
        scene.passes(&[RUN]).await;
        scene.passes(&[RUN]).await;
        assert_eq!(scene.reason(&[RUN]).await, (429, "run_limit_exceeded".to_owned()), "{round}");
        scene.is_killed(&[RUN]).await;
        scene.pass_seconds(1000);
        assert_eq!(scene.resume("task").await.unwrap().reason, "step_limit");
        assert_eq!(scene.run("task").status, RunStatus::Running);
    }
    scene.pass_seconds(121);
    assert_eq!(error(&scene.ask(&[RUN]).await)["exceeded_limit"], "timeout_seconds", "time counts anew too");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_neither_forgets_the_parts_of_a_run_nor_its_resume() {
    let few = |settings: &mut sprag::config::Settings| settings.policies.defaults.run_limits.max_steps = 3;
    let scene = Scene::start_with(Script::new(), few).await;
    let child = [("x-sprag-run-id", "part"), ("x-sprag-parent-run-id", "task")];
    let resumed = [("x-sprag-run-id", "resumed")];
    scene.passes(&[RUN]).await;
    scene.passes(&child).await;
    for _ in 0..3 {
        scene.passes(&resumed).await;
    }
    assert_eq!(scene.reason(&resumed).await.1, "run_limit_exceeded");
    scene.resume("resumed").await.unwrap();
    let now = scene.now();
    let Scene { sprag, .. } = scene;
    let data = sprag.stop().await;

    let scene = Scene::start_with(Script::new(), |settings| {
        few(settings);
        settings.data_dir = data.path().to_owned();
    })
    .await;
    assert_eq!(scene.now(), now);
    // The child does not name its parent any more: the record does.
    scene.passes(&child[..1]).await;
    let answer = scene.ask(&child[..1]).await;
    assert_eq!((answer.status.as_u16(), &error(&answer)["killed_run"]), (429, &"task".into()));
    scene.is_killed(&[RUN]).await;
    for _ in 0..3 {
        scene.passes(&resumed).await;
    }
    assert_eq!(scene.reason(&resumed).await.1, "run_limit_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_stops_calls_at_once_too() {
    let scene = Scene::start_with(Script::new(), |settings| settings.policies.defaults.run_limits.max_steps = 5).await;
    let url = scene.sprag.url("/v1/chat/completions");
    let body = request(Dialect::OpenaiChat, false, "hello");
    let calls = (0..20).map(|_| tokio::spawn(client::post_json(url.clone(), &body).header(RUN.0, RUN.1).fetch()));
    let mut passed = 0;
    for call in calls.collect::<Vec<_>>() {
        passed += usize::from(call.await.unwrap().unwrap().status == 200);
    }
    assert!(passed <= 5, "{passed} passed");
    assert!(scene.provider.log().view().total <= 5);
}
