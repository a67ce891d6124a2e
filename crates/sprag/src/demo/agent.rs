//! A simulated agent: task after task, step after step, as agents do it.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use super::Pace;
use super::call::{Answer, Caller};
use super::scene::Role;

/// What the cast tells the narrator.
#[derive(Debug)]
pub(super) enum News {
    /// A task was done.
    Finished { role: Role, task: u32, steps: u32 },
    /// A call was refused or cut.
    Stopped { role: Role, task: u32, step: u32, reason: String, why: String },
    /// What the provider got of a tool's result.
    Saw { role: Role, task: u32, text: String },
}

/// What every agent needs.
#[derive(Clone)]
pub(super) struct Stage {
    caller: Caller,
    pace: Pace,
    tell: Sender<News>,
}

/// How a task came to its end.
enum End {
    Done,
    Stopped,
}

/// What a tool takes.
const TOOL: Duration = Duration::from_millis(300);
/// How long an agent that waits for approval leaves its run alone.
const ASK_AGAIN: Duration = Duration::from_secs(8);
/// More than any scene has.
const MOST_STEPS: u32 = 40;

impl Stage {
    pub(super) fn new(proxy: SocketAddr, pace: Pace, tell: Sender<News>) -> Stage {
        Stage { caller: Caller::new(proxy), pace, tell }
    }
}

/// Plays a role until the task is dropped.
pub(super) async fn play(role: Role, stage: Stage) {
    let place = Role::ALL.iter().position(|other| *other == role).unwrap_or_default();
    stage.pace.wait(Duration::from_millis(700 * place as u64)).await;
    for task in 1_u32.. {
        let rest = match perform(role, task, &stage).await {
            End::Done => rest(role),
            // Somebody would have to look into it.
            End::Stopped => rest(role) * 3,
        };
        stage.pace.wait(rest).await;
    }
}

async fn perform(role: Role, task: u32, stage: &Stage) -> End {
    let mut messages = vec![json!({"role": "user", "content": role.opening(task)})];
    let mut step = 1;
    let mut is_waiting = false;
    while step <= MOST_STEPS {
        let message = match stage.caller.send(role, task, step, &messages).await {
            Ok(Answer::Message(message)) => message,
            Ok(Answer::Stopped { reason, .. }) if is_waiting && reason == "run_paused" => {
                stage.pace.wait(ASK_AGAIN).await;
                continue;
            }
            Ok(Answer::Stopped { reason, why }) => {
                is_waiting = role == Role::Payments;
                let _ = stage.tell.send(News::Stopped { role, task, step, reason, why }).await;
                if !is_waiting {
                    return End::Stopped;
                }
                stage.pace.wait(ASK_AGAIN).await;
                continue;
            }
            Err(error) => {
                tracing::warn!("{}: {error:#}", role.name());
                return End::Stopped;
            }
        };
        let Some(result) = tool_result(role, task, step, &message) else {
            let _ = stage.tell.send(News::Finished { role, task, steps: step }).await;
            return End::Done;
        };
        messages.extend([message, result]);
        stage.pace.wait(TOOL).await;
        step += 1;
    }
    End::Stopped
}

/// What the tool that the model called gives back; nothing where it called none.
fn tool_result(role: Role, task: u32, step: u32, message: &Value) -> Option<Value> {
    let id = message["tool_calls"][0]["id"].as_str()?;
    let gives = role.scene(task, step).calls?.gives;
    Some(json!({"role": "tool", "tool_call_id": id, "content": gives}))
}

/// Between two tasks.
fn rest(role: Role) -> Duration {
    match role {
        Role::Support => Duration::from_secs(4),
        _ if role.is_healthy() => Duration::from_secs(6),
        _ => Duration::from_secs(10),
    }
}
