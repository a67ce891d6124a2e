//! The shared state of one node, spoken to like memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sprag_core::event::{Ending, RunOrigin};
use sprag_core::id::{AgentName, RunId};
use sprag_core::run::{Clue, Lookup, Remember};
use sprag_core::time::Timestamp;
use sprag_store::RunKey;
use sprag_store::shared::{
    Address, AskedRun, Begin, Begun, Clock, End, EndHow, Ended, Follows, NamedRun, Options, Phase, RatesEnd, RunNow,
    Shared, SharedCall,
};
use sprag_store::state::{OpenRequest, Opened, RateAsk, Rated, RunTotals, Settlement, StateCounts};
use sprag_testkit::RedisServer;
use tokio::runtime::Runtime;

/// Whose call, and of which run.
type Caller = (AgentName, Option<RunId>);

/// A call that has begun.
pub(crate) struct Call(pub(crate) SharedCall);

/// One node and the server behind it. The clock is told by the requests.
pub(crate) struct RedisState {
    pub(crate) shared: Shared,
    pub(crate) server: Arc<RedisServer>,
    pub(crate) clock: Arc<AtomicI64>,
    pub(crate) runtime: Arc<Runtime>,
    /// Calls in flight, by run; those outside any run by agent.
    calls: Mutex<HashMap<Caller, Vec<SharedCall>>>,
    /// The last call of a run that was ended.
    ended: Mutex<HashMap<RunKey, SharedCall>>,
}

/// The first number of a record.
const FIRST_NUMBER: &str = "return struct.unpack('<d', redis.call('GET', KEYS[1]), 3)";

/// Evidence of nothing.
pub(crate) static NOTHING: Remember =
    Remember { clues: Vec::new(), unless_taken: Vec::new(), offers: Vec::new(), withdrawn: Vec::new() };

/// Names calls, of all nodes.
static CALLS: AtomicU64 = AtomicU64::new(0);

impl RedisState {
    pub(crate) fn start() -> Option<RedisState> {
        let server = Arc::new(RedisServer::start()?);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Some(RedisState::on(&server, &Arc::new(runtime), &Arc::new(AtomicI64::new(0))))
    }

    /// Another node on the same server, with the same clock.
    pub(crate) fn neighbour(&self) -> RedisState {
        RedisState::on(&self.server, &self.runtime, &self.clock)
    }

    fn on(server: &Arc<RedisServer>, runtime: &Arc<Runtime>, clock: &Arc<AtomicI64>) -> RedisState {
        // Many builds share the machine: a test must not fail because it waited for its turn.
        let options = Options { timeout_ms: 20_000, clock: Clock::Told(clock.clone()) };
        let address = Address::parse(&server.url()).unwrap();
        let shared = runtime.block_on(async {
            let shared = Shared::connect(&address, options);
            assert_eq!(shared.changed(Phase::Connecting).await, Phase::Connected);
            shared
        });
        RedisState {
            shared,
            server: server.clone(),
            clock: clock.clone(),
            runtime: runtime.clone(),
            calls: Mutex::default(),
            ended: Mutex::default(),
        }
    }

    pub(crate) fn at(&self, now: Timestamp) {
        self.clock.store(now.0, Ordering::SeqCst);
    }

    pub(crate) fn begin(&self, begin: &Begin<'_>) -> Begun {
        self.runtime.block_on(self.shared.begin(begin)).unwrap()
    }

    pub(crate) fn end(&self, call: &SharedCall, end: &End<'_>) -> Ended {
        self.runtime.block_on(self.shared.end(call, end)).unwrap()
    }

    pub(crate) fn begin_run(&self, request: &OpenRequest) -> Begun {
        self.at(request.now);
        let call = call_id();
        let named = NamedRun {
            id: &request.key.id,
            parent: request.parent.as_ref(),
            origin: request.origin,
            seed: request.seed,
            lineage: &request.lineage,
        };
        let begin = Begin { run: AskedRun::Named(named), ..outside(&call, &request.key.agent, &NOTHING) };
        self.begin(&begin)
    }

    pub(super) fn open(&self, request: &OpenRequest) -> Opened {
        let begun = self.begin_run(request);
        let run = begun.run.unwrap();
        assert_eq!(run.opened.agent_in_flight, begun.agent_in_flight);
        self.keep(&request.key.agent, Some(&request.key.id), begun.call);
        run.opened
    }

    pub(super) fn settle(&self, key: &RunKey, settlement: Settlement) -> RunTotals {
        self.at(settlement.now);
        let how = EndHow::Settled(settlement);
        match self.take(&key.agent, Some(&key.id)) {
            Some(call) => {
                let ended = self.end(&call, &ending(how, &NOTHING));
                self.ended.lock().unwrap().insert(key.clone(), call);
                ended.totals.unwrap()
            }
            // One that is over is ended again.
            None => {
                let ended = self.ended.lock().unwrap();
                let again = ended.get(key).map(|call| self.end(call, &ending(how, &NOTHING)));
                again.and_then(|ended| ended.totals).unwrap_or_default()
            }
        }
    }

    pub(super) fn enter(&self, agent: &AgentName) -> u32 {
        let begun = self.begin(&outside(&call_id(), agent, &NOTHING));
        self.keep(agent, None, begun.call);
        begun.agent_in_flight
    }

    pub(super) fn leave(&self, agent: &AgentName) {
        let call = self.take(agent, None).unwrap();
        self.end(&call, &ending(refused(self.now()), &NOTHING));
    }

    pub(crate) fn run(&self, key: &RunKey) -> Option<RunNow> {
        self.runtime.block_on(self.shared.run(key)).unwrap()
    }

    /// The number of keys of a kind.
    pub(crate) fn keys(&self, pattern: &str) -> Vec<String> {
        self.server.ask(&["KEYS", pattern]).list().iter().map(sprag_testkit::resp::Answer::text).collect()
    }

    pub(super) fn counts(&self) -> StateCounts {
        let agents = self.keys("*:agent");
        let in_flight = |key: &String| self.server.ask(&["EVAL", FIRST_NUMBER, "1", key]).number();
        StateCounts {
            runs: self.keys("sprag:2:{*}:run:*").len(),
            in_flight: usize::try_from(agents.iter().map(in_flight).sum::<i64>()).unwrap(),
            clues: self.keys("*}:c:*").len(),
            offers: self.keys("*}:o:*").len(),
            rates: self.keys("*:rate:*").len(),
        }
    }

    pub(super) fn resolve(&self, clues: &[u64]) -> Option<(usize, RunKey)> {
        self.follow(clues, Lookup::Known)
    }

    pub(super) fn claim(&self, clue: u64) -> Option<RunKey> {
        self.follow(&[clue], Lookup::Claim).map(|(_, key)| key)
    }

    /// A call that brings clues, and is taken back.
    pub(crate) fn follow(&self, clues: &[u64], lookup: Lookup) -> Option<(usize, RunKey)> {
        let agent = super::super::common::key("x").agent;
        let clue = |&hash: &u64| Clue { hash, lookup, origin: RunOrigin::Conversation };
        let clues: Vec<Clue> = clues.iter().map(clue).collect();
        let call = call_id();
        let fresh = RunId::parse(&format!("fresh-{call}")).unwrap();
        let origin = RunOrigin::Conversation;
        let otherwise = NamedRun { id: &fresh, parent: None, origin, seed: None, lineage: &[] };
        let run = AskedRun::Evidence { clues: &clues, otherwise };
        let begin = Begin { run, ..outside(&call, &agent, &NOTHING) };
        let begun = self.begin(&begin);
        let run = begun.run.unwrap();
        self.end(&begun.call, &ending(EndHow::Withdrawn, &NOTHING));
        assert_eq!(run.clue.is_none(), run.id == fresh, "a run is found or begun");
        run.clue.map(|place| (place, RunKey { agent, id: run.id }))
    }

    /// A refused call of a run that leaves evidence behind.
    pub(super) fn leave_behind(&self, key: &RunKey, what: impl FnOnce(&mut Remember)) {
        let mut remember = Remember::default();
        what(&mut remember);
        let (parent, origin, now) = (None, RunOrigin::Declared, self.now());
        let request = OpenRequest { key: key.clone(), parent, origin, now, seed: None, lineage: vec![] };
        let begun = self.begin_run(&request);
        self.end(&begun.call, &ending(refused(now), &remember));
    }

    pub(super) fn take_rates(&self, asks: &[RateAsk<'_>], now: Timestamp) -> (Rated, Call) {
        self.at(now);
        let agent = AgentName::default();
        let call = call_id();
        let begin = Begin { rates: asks, ..outside(&call, &agent, &NOTHING) };
        let begun = self.begin(&begin);
        (begun.rated, Call(begun.call))
    }

    pub(super) fn correct_rates(&self, call: &Call, used_tokens: u64, now: Timestamp) {
        self.at(now);
        let rates = RatesEnd::Used { tokens: used_tokens };
        self.end(&call.0, &End { rates, ..ending(refused(now), &NOTHING) });
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.clock.load(Ordering::SeqCst))
    }

    fn keep(&self, agent: &AgentName, run: Option<&RunId>, call: SharedCall) {
        self.calls.lock().unwrap().entry((agent.clone(), run.cloned())).or_default().push(call);
    }

    fn take(&self, agent: &AgentName, run: Option<&RunId>) -> Option<SharedCall> {
        self.calls.lock().unwrap().get_mut(&(agent.clone(), run.cloned())).and_then(Vec::pop)
    }
}

/// A request outside any run that asks for nothing.
pub(crate) fn outside<'a>(call: &'a str, agent: &'a AgentName, remember: &'a Remember) -> Begin<'a> {
    Begin {
        call,
        agent,
        run: AskedRun::Outside,
        follows: Follows::Nothing,
        remember,
        watch: None,
        agent_watch: None,
        model: None,
        rates: &[],
        money: None,
        repeat: None,
    }
}

/// An end that leaves nothing behind.
pub(crate) fn ending(how: EndHow, remember: &Remember) -> End<'_> {
    End {
        how,
        rates: RatesEnd::Used { tokens: 0 },
        uncounts_repeat: false,
        remember,
        watch: None,
        agent_watch: None,
        habits: None,
        late: &[],
    }
}

pub(crate) fn refused(now: Timestamp) -> EndHow {
    EndHow::Settled(Settlement { cost: None, usage: None, ending: Ending::Refused, now })
}

/// A name for a call.
pub(crate) fn call_id() -> String {
    format!("call-{}", CALLS.fetch_add(1, Ordering::Relaxed))
}
