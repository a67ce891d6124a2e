//! A response body that walks through the steps of a plan.

use super::{Plan, Step};
use crate::fault::CutHow;
use crate::log::{AnswerState, AnswerTicket};
use bytes::Bytes;
use futures_util::stream::{Stream, once, unfold};
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// The error that makes the server drop the connection.
#[derive(Debug)]
pub(crate) struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut by the script")
    }
}

impl std::error::Error for Cut {}

/// The body of an answer. Dropping it settles how the answer ended.
pub(crate) struct ScriptedBody(Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Cut>> + Send>>);

struct Walk {
    steps: VecDeque<Step>,
    ticket: AnswerTicket,
    /// Told before a cut that is a reset; the connection looks at it.
    reset: Arc<AtomicBool>,
}

impl ScriptedBody {
    pub(crate) fn new(plan: Plan, mut ticket: AnswerTicket, reset: Arc<AtomicBool>) -> ScriptedBody {
        if plan.steps.is_empty() {
            ticket.state = AnswerState::Written;
        }
        let walk = Walk { steps: plan.steps, ticket, reset };
        ScriptedBody(Box::pin(unfold(walk, next_frame)))
    }

    /// A body outside of any script and log.
    pub(crate) fn plain(bytes: Bytes) -> ScriptedBody {
        ScriptedBody(Box::pin(once(async { Ok(Frame::data(bytes)) })))
    }
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        self.0.as_mut().poll_next(cx)
    }
}

async fn next_frame(mut walk: Walk) -> Option<(Result<Frame<Bytes>, Cut>, Walk)> {
    loop {
        // The server flushes what it has when the body has nothing ready, so every write travels alone, and what was
        // written before a cut arrives.
        tokio::task::yield_now().await;
        match walk.steps.pop_front()? {
            Step::Write(bytes) => {
                walk.ticket.bytes += bytes.len() as u64;
                // The server does not ask again once the announced length is written.
                if walk.steps.is_empty() {
                    walk.ticket.state = AnswerState::Written;
                }
                if !bytes.is_empty() {
                    return Some((Ok(Frame::data(bytes)), walk));
                }
            }
            Step::Wait(gate) => {
                gate.pass().await;
                if walk.steps.is_empty() {
                    walk.ticket.state = AnswerState::Written;
                }
            }
            Step::Pause(time) => tokio::time::sleep(time).await,
            Step::Cut(how) => {
                walk.ticket.state = AnswerState::Cut;
                walk.reset.store(how == CutHow::Reset, Ordering::SeqCst);
                return Some((Err(Cut), walk));
            }
            Step::Trailers(fields) => {
                walk.ticket.state = AnswerState::Written;
                return Some((Ok(Frame::trailers(fields)), walk));
            }
        }
    }
}
