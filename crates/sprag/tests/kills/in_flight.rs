//! Kills that meet a call under way: streams, answers that have not begun, answers taken whole.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sprag::config::Responses;
use sprag::config::file::Compat;
use sprag_core::event::{Ending, Event};
use sprag_core::wire::{Dialect, Form, Manner, Reason};
use sprag_store::history::RunStatus;
use sprag_testkit::client::{self, Whole};
use sprag_testkit::sse::SseEvent;
use sprag_testkit::{Fault, Gate, Reply, Script};
use tokio::runtime::Builder;

use crate::scene::{Scene, error, key};
use crate::wire::{STREAMING, request};

const RUN: (&str, &str) = ("x-sprag-run-id", "task");
/// What a cut may take.
const SOON: Duration = Duration::from_secs(1);

fn stalling() -> Script {
    Script::always(
        Reply::text("one two three four five six").fault(Fault::Stall { after_events: 3, until: Gate::new() }),
    )
}

/// The error that a stream ended in.
fn last_error(dialect: Dialect, answer: &Whole) -> Value {
    assert_eq!((answer.status.as_u16(), &answer.broken), (200, &None), "{dialect:?}");
    answer.events().last().unwrap().json()["error"].clone()
}

/// Waits until so many calls are under way: what is cut is settled a little later.
async fn are_in_flight(scene: &Scene, calls: usize) {
    let in_flight = || scene.sprag.app.state.counts().in_flight;
    crate::binary::wait_until(|| in_flight() == calls, || format!("{} calls", in_flight())).await;
}

async fn only_event(scene: &Scene) -> Event {
    scene.sprag.settled(1).await.into_iter().find(|event| event.act.is_none()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_cut_within_a_second_in_the_form_of_its_dialect() {
    for dialect in STREAMING {
        let scene = Scene::start_with(stalling(), |_| {}).await;
        let mut answer = scene.call_in(dialect, true, &[RUN]).send().await.unwrap();
        answer.read_at_least(1).await.unwrap();
        let killed = Instant::now();
        scene.kill("run:default/task").await;
        let answer = answer.whole().await;
        assert!(killed.elapsed() < SOON, "{dialect:?}: {:?}", killed.elapsed());
        let error = last_error(dialect, &answer);
        assert_eq!((&error["kill_reason"], &error["run_id"]), (&"too expensive".into(), &"task".into()), "{error}");
        assert!(error["message"].as_str().unwrap().contains("was killed by anna"), "{error}");

        let event = only_event(&scene).await;
        assert_eq!((event.ending, event.status, event.blocked), (Ending::Killed, 200, true));
        assert_eq!(event.block_reason.as_deref(), Some("run_killed"));
        let totals = scene.sprag.app.state.totals(&key("task")).unwrap();
        assert_eq!(event.cost, Some(totals.cost), "what was said is billed");
        assert!(totals.cost.0 > 0);
        assert_eq!(scene.run("task").status, RunStatus::Killed, "the answer did not bring it back");
        scene.is_killed(&[RUN]).await;
        scene.provider.wait_for(|view| view.aborted == 1).await.unwrap();
    }
}

#[test]
fn a_cut_does_not_wait_until_tokens_are_counted() {
    let runtime = Builder::new_multi_thread().worker_threads(2).max_blocking_threads(1).enable_all().build().unwrap();
    // Kills need such room too.
    let elsewhere = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let scene = Arc::new(Scene::start_with(stalling(), |_| {}).await);
        let mut answer = scene.call_in(Dialect::OpenaiChat, true, &[RUN]).send().await.unwrap();
        answer.read_at_least(1).await.unwrap();
        // Where tokens are counted there is room for one, and somebody has it.
        let (leave, left) = std::sync::mpsc::channel::<()>();
        let other = tokio::task::spawn_blocking(move || left.recv());
        let kill = Arc::clone(&scene);
        elsewhere.spawn(async move { kill.kill("run:default/task").await }).await.unwrap();
        let answer = tokio::time::timeout(10 * SOON, answer.whole()).await.expect("the cut waits for the count");
        assert_eq!(last_error(Dialect::OpenaiChat, &answer)["type"], "run_killed");
        scene.provider.wait_for(|view| view.aborted == 1).await.unwrap();
        assert_eq!(scene.sprag.app.state.counts().in_flight, 1, "its money is set aside until then");
        drop(leave);
        assert!(other.await.unwrap().is_err());
        let event = only_event(&scene).await;
        assert!(event.usage.is_some_and(|usage| usage.estimated) && event.cost.is_some_and(|cost| cost.0 > 0));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_cut_by_what_its_head_carried() {
    let org_xyz = ("authorization", "Bearer e30.eyJvcmdfaWQiOiJvcmdfeHl6In0.x");
    for (scope, path, headers) in [
        ("jwt:org_id=org_xyz", "/v1/chat/completions", &[org_xyz][..]),
        ("query:tenant=Acme & Co", "/v1/chat/completions?a=1&tenant=Acme+%26+Co", &[]),
        ("ip=127.0.0.1", "/v1/chat/completions", &[]),
        ("header:x-tool-name=web_search", "/v1/chat/completions", &[("X-Tool-Name", "web_search")]),
        ("/v1/chat ip=127.0.0.1", "/v1/chat/completions", &[]),
    ] {
        let scene = Scene::start_with(stalling(), |_| {}).await;
        let call = client::post_json(scene.sprag.url(path), &request(Dialect::OpenaiChat, true, "hello"));
        let call = headers.iter().fold(call, |call, (name, value)| call.header(name, value));
        let mut answer = call.send().await.unwrap();
        answer.read_at_least(1).await.unwrap();
        scene.kill("header:x-tool-name=another").await;
        scene.kill(scope).await;
        let error = last_error(Dialect::OpenaiChat, &answer.whole().await);
        assert!(error["message"].as_str().unwrap().contains("was killed by anna"), "{scope}: {error}");
    }
}

/// Kills a stream on its way; gives all that its client got.
async fn cut(dialect: Dialect, headers: &[(&str, &str)], change: impl FnOnce(&mut Responses)) -> Whole {
    let scene = Scene::start_with(stalling(), |settings| change(&mut settings.responses)).await;
    let mut answer = scene.call_in(dialect, true, &[&[RUN], headers].concat()).send().await.unwrap();
    answer.read_at_least(1).await.unwrap();
    scene.kill("run:default/task").await;
    answer.whole().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_cut_in_the_words_that_are_meant_for_its_client() {
    for dialect in STREAMING {
        let error = last_error(dialect, &cut(dialect, &[], |_| {}).await);
        let message = error["message"].as_str().unwrap();
        assert!(message.ends_with(" [sprag: run_killed, run task]"), "{dialect:?}: {message}");

        let text = Some("Ask Anna. {message}".to_owned());
        let manner = Manner { form: Some(Form::Assistant), status: None, text };
        let words = |responses: &mut Responses| drop(responses.reasons.insert(Reason::RunKilled, manner));
        let error = last_error(dialect, &cut(dialect, &[], words).await);
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("Ask Anna. run `task` was killed"), "{dialect:?}: {message}");
        if dialect == Dialect::Gemini {
            assert_eq!((&error["code"], &error["status"]), (&403.into(), &"PERMISSION_DENIED".into()));
        }

        let imitating = |responses: &mut Responses| responses.compat = vec![Compat::Agentwall];
        let error = last_error(dialect, &cut(dialect, &[], imitating).await);
        assert_eq!(error["message"], "Run killed: too expensive", "{dialect:?}");
        let code = if dialect == Dialect::Gemini { &error["details"][0]["metadata"]["code"] } else { &error["code"] };
        assert_eq!(code, "agentwall_killed", "{dialect:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_is_told_in_the_way_after_which_it_does_not_ask_again() {
    let codex = [("originator", "codex_exec")];
    let last = |answer: Whole| answer.events().last().unwrap().json();
    let failed = last(cut(Dialect::OpenaiResponses, &codex, |_| {}).await);
    assert_eq!((&failed["type"], &failed["block_reason"]), (&"response.failed".into(), &"run_killed".into()));
    assert_eq!(failed["response"]["error"]["code"], "invalid_prompt");
    let error = last(cut(Dialect::OpenaiResponses, &codex, |responses| responses.adapt = false).await);
    assert_eq!((&error["type"], &error["code"]), (&"error".into(), &"sprag_run_killed".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_has_no_answer_yet_is_refused_within_a_second() {
    for is_stream in [false, true] {
        let scene = Scene::start().await;
        let call = scene.call_in(Dialect::OpenaiChat, is_stream, &[RUN, ("x-mock-hold", "")]);
        let asked = tokio::spawn(call.fetch());
        scene.provider.gate().reached(1).await;
        let killed = Instant::now();
        scene.kill("agent:default").await;
        let answer = asked.await.unwrap().unwrap();
        assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
        assert_eq!((answer.status.as_u16(), answer.header("x-sprag-blocked")), (403, "run_killed"));
        assert_eq!(error(&answer)["killed_scope"], "agent:default");
        let event = only_event(&scene).await;
        assert_eq!((event.ending, event.status), (Ending::Killed, 403));
        assert!(event.usage.is_some_and(|usage| usage.estimated), "it was sent, so it may cost");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_taken_whole_is_cut_too() {
    let stall = Fault::Dribble { bytes: 1, every: Duration::from_secs(3600) };
    let scene = Scene::start_with(Script::always(Reply::text("hi").fault(stall)), |_| {}).await;
    let asked = tokio::spawn(scene.call(&[RUN, ("x-mock-content-length", "")]).fetch());
    scene.provider.wait_for(|view| view.total == 1).await.unwrap();
    scene.kill("run:default/task").await;
    let answer = asked.await.unwrap().unwrap();
    assert_eq!((answer.status.as_u16(), answer.header("x-sprag-blocked")), (403, "run_killed"));
    assert_eq!(only_event(&scene).await.ending, Ending::Killed);
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_a_run_cuts_its_parts_and_nothing_else() {
    let scene = Scene::start_with(stalling(), |_| {}).await;
    let child = [("x-sprag-run-id", "part"), ("x-sprag-parent-run-id", "task")];
    let mut part = scene.call_in(Dialect::Anthropic, true, &child).send().await.unwrap();
    let mut other = scene.call_in(Dialect::Anthropic, true, &[("x-sprag-run-id", "other")]).send().await.unwrap();
    let tool = [("x-sprag-run-id", "third"), ("x-tool-name", "web_search")];
    let mut third = scene.call_in(Dialect::Anthropic, true, &tool).send().await.unwrap();
    for answer in [&mut part, &mut other, &mut third] {
        answer.read_at_least(1).await.unwrap();
    }
    scene.kill("run:default/task").await;
    assert_eq!(last_error(Dialect::Anthropic, &part.whole().await)["killed_scope"], "run:default/task");
    are_in_flight(&scene, 2).await;
    scene.kill("header:x-tool-name=web_search").await;
    assert_eq!(last_error(Dialect::Anthropic, &third.whole().await)["type"], "run_killed");
    are_in_flight(&scene, 1).await;
    scene.kill("all").await;
    assert_eq!(last_error(Dialect::Anthropic, &other.whole().await)["killed_scope"], "all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_answer_that_was_cut_ties_its_conversation_to_the_killed_run() {
    let scene = Scene::start_with(stalling(), |_| {}).await;
    let mut answer = scene.call_in(Dialect::OpenaiChat, true, &[]).send().await.unwrap();
    let run = answer.headers["x-sprag-run-id"].to_str().unwrap().to_owned();
    answer.read_at_least(1).await.unwrap();
    scene.kill(&format!("run:default/{run}")).await;
    let events = answer.whole().await.events();
    let part = |event: &SseEvent| event.json()["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
    let said: String = events.iter().filter_map(part).collect();
    assert!(!said.is_empty());
    let Scene { sprag, .. } = scene;
    let data = sprag.stop().await;

    let scene = Scene::start_with(Script::new(), |settings| settings.data_dir = data.path().to_owned()).await;
    let mut body = request(Dialect::OpenaiChat, false, "hello");
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": said}));
    messages.push(json!({"role": "user", "content": "go on"}));
    let answer = client::post_json(scene.sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.header("x-sprag-run-id")), (403, run.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_the_same_later_begins_anew() {
    let scene = Scene::start_with(stalling(), |_| {}).await;
    let ask = async || scene.call_in(Dialect::OpenaiChat, true, &[]).send().await.unwrap();
    let mut answer = ask().await;
    let run = answer.headers["x-sprag-run-id"].clone();
    answer.read_at_least(1).await.unwrap();
    scene.kill(&format!("run:default/{}", run.to_str().unwrap())).await;
    answer.whole().await;
    for _ in 0..3 {
        let again = ask().await;
        assert_eq!((again.status.as_u16(), &again.headers["x-sprag-run-id"]), (403, &run), "a client that retries");
        scene.pass_seconds(19);
        again.whole().await;
    }
    scene.pass_seconds(4);
    let anew = ask().await;
    assert_eq!(anew.status.as_u16(), 200);
    assert_ne!(anew.headers["x-sprag-run-id"], run);
    anew.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn deactivating_an_agent_cuts_nothing() {
    let scene = Scene::start().await;
    let asked = tokio::spawn(scene.call(&[RUN, ("x-mock-hold", "")]).fetch());
    scene.provider.gate().reached(1).await;
    scene.sprag.app.deactivate(key("task").agent, "anna".into(), "holiday".into()).await.unwrap();
    assert_eq!(scene.reason(&[RUN]).await.1, "agent_inactive");
    scene.provider.gate().open();
    assert_eq!(asked.await.unwrap().unwrap().status, 200);
}
