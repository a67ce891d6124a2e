//! How a ticket ends: at once, or when what it needs is there. Tokens that nobody reported are counted, and other nodes
//! are told; the answer's last bytes wait for the first, and for the second only where `share/end.rs` says so.

use sprag_core::event::Ending;
use sprag_core::wire::Reply;
use tokio::task::JoinHandle;

use super::Ticket;
use crate::gateway::identify::leave_evidence;
use crate::gateway::settled::Settled;
use crate::gateway::share::Farewell;

/// A call that is being settled.
pub(crate) enum Settling {
    /// It is.
    Done(Option<Settled>),
    /// Something must be waited for first.
    UnderWay(JoinHandle<Option<Settled>>),
}

impl Ticket {
    /// Settles a call whose answer has come as far as it will.
    pub(crate) fn settle_whole(&mut self, reply: &Reply, ending: Ending) -> Settling {
        let settling = self.settle_together(reply, ending);
        self.write_out();
        settling
    }

    /// The same, but the caller [writes the record out](Ticket::write_out) before anybody has the whole answer.
    pub(crate) fn settle_together(&mut self, reply: &Reply, ending: Ending) -> Settling {
        if self.needs_count(reply) {
            return Settling::UnderWay(self.settle_counted(reply.clone(), ending));
        }
        let settled = self.settle(reply, reply.usage, ending);
        match self.farewell.take() {
            Some(farewell) => Settling::UnderWay(self.app.settling.spawn(async move { farewell.heard(settled).await })),
            None => Settling::Done(settled),
        }
    }

    /// What is to be waited for until other nodes know how the call ended.
    pub(crate) fn take_farewell(&mut self) -> Option<Farewell> {
        self.farewell.take()
    }

    /// Whether tokens must be counted, because the provider did not report all of them.
    fn needs_count(&self, reply: &Reply) -> bool {
        // Without an answer it may cost as long as nobody knows that the upstream failed.
        let may_cost = match self.answered_with {
            Some(status) => status < 400,
            None => self.was_sent && self.failed_as.is_none_or(|ending| ending == Ending::Killed),
        };
        let may_cost = may_cost && self.event.dialect.is_llm();
        may_cost && !self.is_settled && !self.is_counting && (reply.usage.is_none() || !reply.complete)
    }

    /// Settles on another thread, where tokens are counted first. The ticket here is then done.
    fn settle_counted(&mut self, reply: Reply, ending: Ending) -> JoinHandle<Option<Settled>> {
        let mut own = self.take();
        // Counting takes its time, and the client's next request may be on its way.
        if let Some(run) = &mut own.run {
            leave_evidence(&own.app, run, own.event.run.as_ref(), ending, &reply);
        }
        let settling = self.app.settling.clone();
        settling.spawn_blocking(move || {
            let model = own.event.model.as_deref().unwrap_or_default();
            let usage = own.app.tokens.complete(model, &own.sample, &reply);
            let settled = own.settle(&reply, Some(usage), ending);
            own.write_out();
            match own.farewell.take() {
                Some(farewell) => tokio::runtime::Handle::current().block_on(farewell.heard(settled)),
                None => settled,
            }
        })
    }

    /// Settles without anybody waiting for it.
    pub(crate) fn settle_aside(&mut self, reply: &Reply, ending: Ending) {
        if self.needs_count(reply) && tokio::runtime::Handle::try_current().is_ok() {
            drop(self.settle_counted(reply.clone(), ending));
        } else {
            self.settle(reply, reply.usage, ending);
            self.write_out();
        }
    }

    /// Moves the account out, leaving a settled shell behind.
    fn take(&mut self) -> Ticket {
        self.is_settled = true;
        Ticket {
            app: self.app.clone(),
            provider: self.provider.clone(),
            event: self.event.clone(),
            trail: std::mem::take(&mut self.trail),
            key: self.key.clone(),
            run: self.run.take(),
            watched: self.watched.take(),
            rules: self.rules.take(),
            rates: std::mem::take(&mut self.rates),
            spending: std::mem::take(&mut self.spending),
            warning: self.warning.take(),
            delay: self.delay,
            has_entered: std::mem::take(&mut self.has_entered),
            arrived: self.arrived,
            sample: std::mem::take(&mut self.sample),
            was_sent: self.was_sent,
            answered_with: self.answered_with,
            failed_as: self.failed_as,
            shared: self.shared.take(),
            farewell: None,
            is_counting: true,
            is_settled: false,
        }
    }
}
