//! How other nodes hear that a call is over.
//!
//! A whole answer does not wait for that: what is told is on its way before the answer's last bytes are, and whoever goes on from there on another node
//! before Redis has heard of it looks again. Everything else waits until other nodes know, or for a while.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sprag_core::event::{Ending, Event};
use sprag_core::id::AgentName;
use sprag_core::loops::{AgentWatch, RunWatch};
use sprag_core::policy::{AccountId, Draw};
use sprag_core::run::Remember;
use sprag_store::RunKey;
use sprag_store::shared::{End, EndHow, Ended, NewHabits, NewWatch, RatesEnd, Shared, SharedCall, Watch};
use sprag_store::state::{RunTotals, Settlement};
use tokio::task::JoinHandle;

use crate::app::App;
use crate::gateway::settled::Settled;
use crate::gateway::ticket::TicketRun;
use crate::link::{DoneAlone, new_version};

/// How often a watch is merged with what others have written meanwhile.
const MERGES: u32 = 3;

/// How other nodes hear of a call.
pub(crate) enum Held {
    /// They know that it has begun.
    Begun(Arc<SharedCall>, Came),
    /// Redis was away when it began: it is summed up.
    Alone,
}

/// How far the judgement of a call came: what was counted for it beyond that is given back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Came {
    pub(crate) to_rates: bool,
    pub(crate) to_loops: bool,
    watches_agent: bool,
}

/// A call that is over.
pub(crate) struct Over<'a> {
    pub(crate) event: &'a Event,
    pub(crate) run: Option<&'a TicketRun>,
    /// What it drew on, in force and in shadow.
    pub(crate) draws: [&'a [Draw]; 2],
    /// Accounts that it counts in though it did not draw on them.
    pub(crate) late: &'a [AccountId],
    /// It taught what calls like it use.
    pub(crate) has_taught: bool,
}

/// Other nodes are being told.
pub(crate) struct Farewell {
    telling: JoinHandle<Option<RunTotals>>,
    /// How long an answer's last bytes wait for it.
    patience: Duration,
}

impl Farewell {
    /// Waits until they know; with what the run has come to by then.
    pub(crate) async fn heard(self, settled: Option<Settled>) -> Option<Settled> {
        let told = tokio::time::timeout(self.patience, self.telling).await;
        let totals = told.ok().and_then(Result::ok).flatten();
        settled.map(|settled| Settled { totals: totals.unwrap_or(settled.totals), ..settled })
    }
}

impl Held {
    pub(super) fn begun(call: SharedCall, watches_agent: bool) -> Held {
        Held::Begun(Arc::new(call), Came { watches_agent, ..Came::default() })
    }

    /// The call, as other nodes know it.
    pub(crate) fn call(&self) -> Option<&Arc<SharedCall>> {
        match self {
            Held::Begun(call, _) => Some(call),
            Held::Alone => None,
        }
    }

    /// The same, to be changed. None while somebody else looks at it.
    pub(crate) fn call_mut(&mut self) -> Option<&mut SharedCall> {
        match self {
            Held::Begun(call, _) => Arc::get_mut(call),
            Held::Alone => None,
        }
    }

    /// The judgement came so far.
    pub(crate) fn came(&mut self, to_rates: bool, to_loops: bool) {
        if let Held::Begun(_, came) = self {
            (came.to_rates, came.to_loops) = (to_rates, to_loops);
        }
    }

    /// The call is over. Gives what to wait for.
    pub(crate) fn end(self, app: &Arc<App>, over: Over<'_>) -> Option<Farewell> {
        let Over { event, run, draws, late, has_taught } = over;
        let link = app.link.as_ref()?;
        let settlement =
            Settlement { cost: event.cost, usage: event.usage, ending: event.ending, now: app.clock.now() };
        let Held::Begun(call, came) = self else {
            let (record, left) = (event.run.as_ref(), run.and_then(|run| run.left.as_ref()));
            let run = run.zip(record).map(|(run, record)| (&run.key, record.parent.as_ref(), record.origin));
            link.note_alone(DoneAlone { run, settlement, draws, left });
            return None;
        };
        let key = run.map(|run| run.key.clone());
        let watch = key.as_ref().filter(|_| came.to_loops).and_then(|key| Handed::run(app, key));
        let of_agent = came.to_loops && came.watches_agent;
        let agent_watch = of_agent.then(|| Handed::agent(app, &event.agent));
        let habits = key.as_ref().filter(|_| has_taught).map(|key| Learned::of(app, key, event));
        let last = Last {
            shared: link.shared.clone(),
            call,
            key,
            settlement,
            rates: match came.to_rates {
                true => RatesEnd::Used { tokens: event.usage.map_or(0, |usage| usage.total_tokens()) },
                false => RatesEnd::GivenBack,
            },
            uncounts_repeat: !came.to_loops,
            remember: run.and_then(|run| run.left.clone()).unwrap_or_default(),
            watch,
            agent_watch,
            habits,
            late: late.to_vec(),
        };
        tokio::runtime::Handle::try_current().ok()?;
        let (teller, agent) = (app.clone(), event.agent.clone());
        let patience = app.settings.load().state.timeout;
        let mut telling = Box::pin(async move {
            let ended = last.tell(&teller).await?;
            for account in ended.accounts.iter().filter(|account| !account.id.is_shadow) {
                for crossed in teller.crossed(&account.id, account.before, account.settled) {
                    teller.record_reached(&crossed, &agent);
                }
            }
            ended.totals
        });
        // With the first look it stands in the line to Redis, before anything that this node asks later.
        let at_once = telling.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let is_awaited = event.ending != Ending::Complete || !link.shared.looks_again();
        let telling = app.settling.spawn(async move {
            match at_once {
                Poll::Ready(totals) => totals,
                Poll::Pending => telling.await,
            }
        });
        is_awaited.then_some(Farewell { telling, patience })
    }
}

/// What detection keeps, on its way.
struct Handed {
    bytes: Vec<u8>,
    based_on: u64,
    version: u64,
}

impl Handed {
    fn run(app: &App, key: &RunKey) -> Option<Handed> {
        let version = new_version();
        let (bytes, based_on) = app.state.hand_out_watch(key, version)?;
        Some(Handed { bytes, based_on, version })
    }

    fn agent(app: &App, agent: &AgentName) -> Handed {
        let version = new_version();
        let (bytes, based_on) = app.state.hand_out_agent_watch(agent, app.clock.now(), version);
        Handed { bytes, based_on, version }
    }

    fn told(&self) -> NewWatch<'_> {
        NewWatch { based_on: Some(self.based_on), version: self.version, bytes: &self.bytes }
    }
}

/// What calls use by habit, packed.
struct Learned {
    of_run: Option<Vec<u8>>,
    model: String,
    /// Of the agent with the model.
    of_model: Option<Vec<u8>>,
}

impl Learned {
    fn of(app: &App, key: &RunKey, event: &Event) -> Learned {
        let model = event.model.clone().unwrap_or_default();
        let of_model = app.state.habits(&key.agent, &model).map(|habits| habits.pack());
        Learned { of_run: app.state.run_habits(key).map(|habits| habits.pack()), model, of_model }
    }

    fn told(&self) -> NewHabits<'_> {
        let of_model = self.of_model.as_deref().map(|habits| (self.model.as_str(), habits));
        NewHabits { run: self.of_run.as_deref(), of_model }
    }
}

/// All that is told of a call.
struct Last {
    shared: Shared,
    call: Arc<SharedCall>,
    key: Option<RunKey>,
    settlement: Settlement,
    rates: RatesEnd,
    uncounts_repeat: bool,
    remember: Remember,
    watch: Option<Handed>,
    agent_watch: Option<Handed>,
    habits: Option<Learned>,
    late: Vec<AccountId>,
}

impl Last {
    /// Tells it. None where Redis does not answer: then the link tells it later.
    async fn tell(self, app: &App) -> Option<Ended> {
        let end = End {
            how: EndHow::Settled(self.settlement),
            rates: self.rates,
            uncounts_repeat: self.uncounts_repeat,
            remember: &self.remember,
            watch: self.watch.as_ref().map(Handed::told),
            agent_watch: self.agent_watch.as_ref().map(Handed::told),
            habits: self.habits.as_ref().map(Learned::told),
            late: &self.late,
        };
        let mut ended = self.shared.end(&self.call, &end).await.ok()?;
        let Some(key) = &self.key else { return Some(ended) };
        if let Some(totals) = &ended.totals {
            app.state.follow_run(key, totals);
        }
        self.merge(app, key, ended.watch.take()).await;
        self.merge_agent(app, &key.agent, ended.agent_watch.take()).await;
        Some(ended)
    }

    /// Puts what this node and another saw of a run at the same time together.
    async fn merge(&self, app: &App, key: &RunKey, mut theirs: Option<Watch>) {
        for _ in 0..MERGES {
            let Some(other) = theirs.take() else { return };
            let Some(watch) = RunWatch::unpack(&other.bytes) else { return };
            app.state.follow_watch(key, watch, other.version, true);
            let Some(handed) = Handed::run(app, key) else { return };
            theirs = self.shared.put_watch(&key.agent, Some(&key.id), &handed.told()).await.unwrap_or_default();
        }
    }

    /// The same of an agent. Nothing is written while other calls of it are under way here, which bring it along when they end, or while
    /// another one writes: calls of a busy agent would write over each other again and again.
    async fn merge_agent(&self, app: &App, agent: &AgentName, theirs: Option<Watch>) {
        let follow = |theirs: Option<Watch>| {
            let (version, watch) = theirs.and_then(|other| Some((other.version, AgentWatch::unpack(&other.bytes)?)))?;
            Some(app.state.follow_agent_watch(agent, watch, version, true))
        };
        let Some(false) = follow(theirs) else { return };
        let Some(mut merging) = app.link.as_ref().and_then(|link| link.merges.claim(agent)) else { return };
        for _ in 0..MERGES {
            let handed = Handed::agent(app, agent);
            let theirs = self.shared.put_watch(agent, None, &handed.told()).await.unwrap_or_default();
            if follow(theirs).is_none() && !merging.has_more() {
                return;
            }
        }
    }
}
