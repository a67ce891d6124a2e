//! More money for an answer under way, asked of all nodes together. It is asked for a quarter ahead, and the answer goes
//! on meanwhile: what came of it is heard with a later piece. Only an answer that has come further than it asked for, or
//! whose money is most likely used up, waits: else a fast provider would be done before Redis said no.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use sprag_core::money::NanoUsd;
use sprag_core::policy::{Shortfall, Stop, shortfall_refusal};
use sprag_store::shared::SharedCall;
use tokio::sync::oneshot;

use super::Spending;
use super::together::Together;
use crate::app::App;

/// Where asking for more stands.
#[derive(Debug, Default)]
pub(super) struct Raising {
    asked: Option<oneshot::Receiver<Raised>>,
    /// The most that is asked for.
    most: NanoUsd,
    /// The answer goes on only when it has heard what came of it.
    holds: bool,
    /// What came of it.
    heard: Option<Raised>,
    /// What is asked for last is counted, and no guess.
    is_counted: bool,
    /// There was no room for what the answer's length suggests: its tokens are counted from now on.
    is_short: bool,
}

#[derive(Debug)]
enum Raised {
    To(NanoUsd),
    Short(Box<Shortfall>),
    /// Redis is away.
    Nowhere,
}

impl Together {
    /// Whether there was no room the last time.
    pub(super) fn is_short(&self) -> bool {
        self.raising.is_short
    }

    /// Asks for the first of these amounts that there is room for, unless something is asked for already: guesses, of
    /// which the last is what the answer has come to, and then what was counted.
    pub(super) fn raise(
        &mut self,
        app: &Arc<App>,
        call: &Arc<SharedCall>,
        guesses: [NanoUsd; 2],
        counted: Option<NanoUsd>,
    ) {
        if self.raising.asked.is_some() {
            self.raising.holds |= guesses[1] > self.raising.most;
            return;
        }
        let Some(link) = &app.link else { return };
        let amounts: Vec<NanoUsd> = guesses.into_iter().chain(counted).collect();
        self.raising.is_counted = counted.is_some();
        (self.raising.most, self.raising.holds) = (guesses[0], counted.is_some());
        let (answer, asked) = oneshot::channel();
        let (shared, call) = (link.shared.clone(), call.clone());
        self.raising.asked = Some(asked);
        app.settling.spawn(async move {
            let mut raised = Raised::Nowhere;
            for amount in amounts {
                raised = match shared.raise(&call, amount).await {
                    Ok(Ok(())) => Raised::To(amount),
                    Ok(Err(shortfall)) => Raised::Short(shortfall),
                    Err(_) => Raised::Nowhere,
                };
                if !matches!(raised, Raised::Short(_)) {
                    break;
                }
            }
            // Whoever asked may have ended meanwhile.
            drop(answer.send(raised));
        });
    }
}

impl Spending {
    /// Ready with true when the answer has waited for more money, and what came of that is to be looked at.
    pub(crate) fn poll_raise(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(raising) = self.together.as_mut().map(|together| &mut together.raising) else {
            return Poll::Ready(false);
        };
        let Some(asked) = raising.asked.as_mut().filter(|_| raising.holds) else { return Poll::Ready(false) };
        // Whoever asks is dropped only when Sprag ends.
        raising.heard = Some(ready!(Pin::new(asked).poll(cx)).unwrap_or(Raised::Nowhere));
        raising.asked = None;
        Poll::Ready(true)
    }

    /// Hears what came of asking for more.
    ///
    /// # Errors
    /// When there is no more: the answer must be cut.
    pub(super) fn hear_raise(&mut self, app: &App) -> Result<(), Stop> {
        let (Some(together), Some(reserved)) = (&mut self.together, &mut self.reserved) else { return Ok(()) };
        let raising = &mut together.raising;
        let heard = raising.heard.take().or_else(|| raising.asked.as_mut().and_then(|asked| asked.try_recv().ok()));
        let Some(raised) = heard else { return Ok(()) };
        together.raising.asked = None;
        match raised {
            Raised::To(amount) => {
                together.raising.is_short = false;
                app.state.raise_granted(reserved, amount);
                Ok(())
            }
            // Its length is only a guess at its cost: nothing is cut off before it is counted.
            Raised::Short(_) if !together.raising.is_counted => {
                together.raising.is_short = true;
                self.next_look = 0;
                Ok(())
            }
            Raised::Short(shortfall) => Err(shortfall_refusal(&shortfall, self.draws.kills_run, app.common_now())),
            // This node's own accounts decide from now on.
            Raised::Nowhere => {
                self.together = None;
                self.next_look = 0;
                Ok(())
            }
        }
    }
}
