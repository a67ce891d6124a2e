//! Agents at work: threads that take runs until there are none left, and what they saw.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sprag_testkit::client::{Session, Whole, post};
use tokio::runtime::{Builder, Runtime};

use crate::conversation::Conversation;

/// What is asked for.
pub(crate) struct Load {
    pub(crate) nodes: Vec<SocketAddr>,
    pub(crate) runs: u64,
    pub(crate) steps: u64,
    pub(crate) connections: u64,
    /// Of a hundred runs, how many begin with a long history.
    pub(crate) long_percent: u64,
    /// Of a hundred runs, how many their agent names.
    pub(crate) named_percent: u64,
    /// How many names the agents have between them.
    pub(crate) agents: u64,
    /// Calls a second of all agents together; 0 is as fast as answers come.
    pub(crate) rate: u64,
    pub(crate) name: String,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Outcome {
    /// From the sending of a call to the last byte of its answer, in the order of each agent.
    pub(crate) latencies_us: Vec<u64>,
    pub(crate) seconds: f64,
    /// Runs that came to their end.
    pub(crate) runs: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    /// What went wrong, and how often. A run ends with it.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Answers whose number of the step was not that of the agent: the run was not recognised.
    pub(crate) wrong_steps: u64,
}

/// One agent, with a connection to each node.
struct Agent<'a> {
    load: &'a Load,
    number: u64,
    runtime: Runtime,
    sessions: Vec<Session>,
    calls: u64,
    began: Instant,
    outcome: Outcome,
}

/// Goes through all runs.
pub(crate) fn all(load: &Load) -> Result<Outcome, String> {
    let next = AtomicU64::new(0);
    let connected: Vec<Agent<'_>> =
        (0..load.connections).map(|number| Agent::connect(load, number)).collect::<Result<_, _>>()?;
    let began = Instant::now();
    let parts: Vec<Outcome> = thread::scope(|scope| {
        let next = &next;
        let threads: Vec<_> = connected.into_iter().map(|agent| scope.spawn(move || agent.work(next, began))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "an agent panicked".to_owned()))
            .collect::<Result<_, _>>()
    })?;
    let mut whole = Outcome { seconds: began.elapsed().as_secs_f64(), ..Outcome::default() };
    for part in parts {
        whole.add(part);
    }
    Ok(whole)
}

impl<'a> Agent<'a> {
    fn connect(load: &'a Load, number: u64) -> Result<Agent<'a>, String> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let open = |node: &SocketAddr| {
            let opened = runtime.block_on(Session::open(&format!("http://{node}"), false));
            opened.map_err(|error| format!("nothing answers at {node}: {error}"))
        };
        let sessions = load.nodes.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Agent { load, number, runtime, sessions, calls: 0, began: Instant::now(), outcome: Outcome::default() })
    }

    fn work(mut self, next: &AtomicU64, began: Instant) -> Outcome {
        self.began = began;
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= self.load.runs {
                return self.outcome;
            }
            match self.go_through(run) {
                Ok(()) => self.outcome.runs += 1,
                Err(problem) => *self.outcome.failures.entry(problem).or_default() += 1,
            }
        }
    }

    fn go_through(&mut self, run: u64) -> Result<(), String> {
        let is_long = is_one_of(self.load.long_percent, run);
        let mut conversation = Conversation::new(&format!("{}-{run}", self.load.name), is_long);
        for step in 1..=self.load.steps {
            let body = conversation.body();
            self.wait_for_turn();
            let answer = self.call(run, body, conversation.wanted())?;
            // The provider itself counts no steps.
            let told = answer.header("x-sprag-step");
            if !told.is_empty() && told != step.to_string() {
                self.outcome.wrong_steps += 1;
            }
            conversation.go_on(&answer.body)?;
        }
        Ok(())
    }

    fn call(&mut self, run: u64, body: String, wanted: [(&str, String); 3]) -> Result<Whole, String> {
        let turn = ((self.number + self.calls) % self.load.nodes.len() as u64) as usize;
        self.calls += 1;
        let url = format!("http://{}/v1/chat/completions", self.load.nodes[turn]);
        self.outcome.sent_bytes += body.len() as u64;
        let mut call = post(url, body)
            .header("authorization", "Bearer sk-test")
            .header("x-sprag-agent", &format!("agent-{}", run % self.load.agents));
        if is_one_of(self.load.named_percent, run) {
            call = call.header("x-sprag-run-id", &format!("{}-{run}", self.load.name));
        }
        for (name, value) in &wanted {
            call = call.header(name, value);
        }
        let session = &mut self.sessions[turn];
        let began = Instant::now();
        let answer = self
            .runtime
            .block_on(async { Ok::<_, sprag_testkit::client::Failure>(session.send(call).await?.whole().await) });
        let took = began.elapsed();
        let answer = answer.map_err(|error| error.to_string())?;
        self.outcome.latencies_us.push(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.outcome.received_bytes += answer.body.len() as u64;
        match (&answer.broken, answer.status.as_u16()) {
            (Some(broken), _) => Err(broken.clone()),
            (None, 200) => Ok(answer),
            (None, status) => Err(format!("{status} {}", answer.header("x-sprag-blocked"))),
        }
    }

    /// Waits until this agent's next call is due. After one that took too long, the next ones follow at once.
    fn wait_for_turn(&mut self) {
        if self.load.rate == 0 {
            return;
        }
        let between = Duration::from_secs_f64(self.load.connections as f64 / self.load.rate as f64);
        let shift = between.mul_f64(self.number as f64 / self.load.connections as f64);
        let due = self.began + shift + between.mul_f64(self.calls as f64);
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// Whether this run has what so many percent of runs have; spread evenly, so that few runs have their share, too.
fn is_one_of(percent: u64, run: u64) -> bool {
    (run + 1) * percent / 100 > run * percent / 100
}

impl Outcome {
    fn add(&mut self, part: Outcome) {
        self.latencies_us.extend(part.latencies_us);
        self.runs += part.runs;
        self.sent_bytes += part.sent_bytes;
        self.received_bytes += part.received_bytes;
        self.wrong_steps += part.wrong_steps;
        for (problem, count) in part.failures {
            *self.failures.entry(problem).or_default() += count;
        }
    }
}
