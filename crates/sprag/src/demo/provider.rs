//! The scripted provider: OpenAI's streamed chat, at the speed of life.
//!
//! Which scene to play stands in a header that the agents send, so the provider keeps nothing.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::Sender;

use super::Pace;
use super::agent::News;
use super::scene::{Role, Scene};

/// Names the scene: `role.task.step`.
pub(super) const SCENE: &str = "x-demo-scene";

/// What a model takes to think, and from one word to the next.
const FIRST_WORD: Duration = Duration::from_millis(420);
const NEXT_WORD: Duration = Duration::from_millis(35);

#[derive(Clone)]
struct Booth {
    pace: Pace,
    tell: Sender<News>,
}

/// Answers until the task is dropped.
pub(super) async fn serve(port: TcpListener, pace: Pace, tell: Sender<News>) {
    let router = Router::new().route("/v1/chat/completions", post(answer)).with_state(Booth { pace, tell });
    if let Err(error) = axum::serve(port, router).await {
        tracing::error!("the scripted provider stopped: {error}");
    }
}

async fn answer(State(booth): State<Booth>, headers: HeaderMap, body: Bytes) -> Response {
    let Some((role, task, step)) = headers.get(SCENE).and_then(|scene| scene.to_str().ok()).and_then(read_scene) else {
        let help = "the scripted provider only answers the cast of the demo";
        let error = json!({"error": {"message": help, "type": "invalid_request_error"}});
        return (StatusCode::BAD_REQUEST, axum::Json(error)).into_response();
    };
    if role == Role::Leaky && step == 2 {
        let _ = booth.tell.send(News::Saw { role, task, text: last_text(&body) }).await;
    }
    let events = events(role, &role.scene(task, step));
    booth.pace.wait(FIRST_WORD).await;
    let pace = booth.pace;
    let words = stream::unfold(events, move |mut events| async move {
        let event = events.pop_front()?;
        pace.wait(NEXT_WORD).await;
        Some((Ok::<_, Infallible>(Event::default().data(event)), events))
    });
    Sse::new(words).into_response()
}

fn read_scene(text: &str) -> Option<(Role, u32, u32)> {
    let mut parts = text.split('.');
    let role = Role::named(parts.next()?)?;
    Some((role, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// What the provider was told last.
fn last_text(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let last = body["messages"].as_array().and_then(|messages| messages.last());
    last.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned()
}

/// A scene as the events of a stream.
fn events(role: Role, scene: &Scene) -> VecDeque<String> {
    let chunk = |delta: Value, finish: Option<&str>, usage: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        json!({"id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 0, "model": role.model(), "choices": [choice], "usage": usage})
            .to_string()
    };
    let mut events = VecDeque::new();
    events.push_back(chunk(json!({"role": "assistant", "content": ""}), None, Value::Null));
    for word in scene.says.split_inclusive(' ') {
        events.push_back(chunk(json!({"content": word}), None, Value::Null));
    }
    if let Some(call) = &scene.calls {
        let function = json!({"name": call.name, "arguments": call.arguments.to_string()});
        let call = json!({"index": 0, "id": "call_demo", "type": "function", "function": function});
        events.push_back(chunk(json!({"tool_calls": [call]}), None, Value::Null));
    }
    let (prompt, completion) = (scene.input_tokens, scene.output_tokens);
    let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion});
    let finish = if scene.calls.is_some() { "tool_calls" } else { "stop" };
    events.push_back(chunk(json!({}), Some(finish), usage));
    events.push_back("[DONE]".to_owned());
    events
}
