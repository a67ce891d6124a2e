//! Load: so many connections, each with one request after the other, until there were enough or time is up.

mod connection;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

pub use self::connection::Connection;
use crate::prompt::Prompt;
use crate::words::Words;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Where to, such as 127.0.0.1:7070.
    address: String,
    /// Connections at once.
    #[arg(short, long, default_value_t = 1)]
    connections: usize,
    /// Requests in all.
    #[arg(short = 'n', long, default_value_t = 1000)]
    requests: u64,
    /// Seconds at most.
    #[arg(short = 'd', long, default_value_t = 60.0)]
    seconds: f64,
    /// Bytes of a request.
    #[arg(long, default_value_t = 1024)]
    bytes: usize,
    /// Bytes of it that are new each time.
    #[arg(long, default_value_t = 400)]
    new_bytes: usize,
    /// Ask for streams.
    #[arg(long)]
    stream: bool,
}

impl Options {
    pub fn plan(&self) -> Result<Plan> {
        let mut addresses =
            self.address.to_socket_addrs().with_context(|| format!("{:?} is no HOST:PORT", self.address))?;
        let address = addresses.next().with_context(|| format!("{:?} is no address", self.address))?;
        let prompt = Prompt::chat(self.bytes, self.new_bytes, self.stream, 7);
        let mut plan = Plan::new(address, prompt);
        (plan.connections, plan.requests, plan.seconds) = (self.connections, self.requests, self.seconds);
        Ok(plan)
    }
}

/// What is to be sent.
#[derive(Clone, Debug)]
pub struct Plan {
    pub address: SocketAddr,
    pub prompt: Prompt,
    pub connections: usize,
    pub requests: u64,
    pub seconds: f64,
    /// Requests before the first that counts.
    pub warm_up: u64,
    /// Time over which connections begin.
    pub ramp: Duration,
    pub timeout: Duration,
}

impl Plan {
    pub fn new(address: SocketAddr, prompt: Prompt) -> Plan {
        Plan {
            address,
            prompt,
            connections: 1,
            requests: 1000,
            seconds: 60.0,
            warm_up: 0,
            ramp: Duration::ZERO,
            timeout: Duration::from_secs(60),
        }
    }
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Seen {
    pub ok: u64,
    pub failed: u64,
    /// One of what failed, for people.
    pub complaint: Option<String>,
    pub seconds: f64,
    pub events: u64,
    total_us: Vec<f64>,
    first_us: Vec<f64>,
}

impl Seen {
    pub fn requests_per_second(&self) -> f64 {
        self.ok as f64 / self.seconds.max(1e-9)
    }

    pub fn total_us(&self, share: f64) -> f64 {
        quantile(&self.total_us, share)
    }

    pub fn first_us(&self, share: f64) -> f64 {
        quantile(&self.first_us, share)
    }

    pub fn summary(&self) -> Value {
        json!({"ok": self.ok, "failed": self.failed, "complaint": self.complaint, "seconds": self.seconds,
            "requests_per_s": self.requests_per_second(), "events": self.events,
            "p50_us": self.total_us(0.5), "p99_us": self.total_us(0.99),
            "first_p50_us": self.first_us(0.5), "first_p99_us": self.first_us(0.99)})
    }

    fn add(&mut self, other: Seen) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.events += other.events;
        self.complaint = self.complaint.take().or(other.complaint);
        self.total_us.extend(other.total_us);
        self.first_us.extend(other.first_us);
    }
}

/// Of sorted values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
}

/// Runs a plan on a runtime of its own and on this thread.
pub fn run(plan: &Plan) -> Result<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(drive(plan)))
}

async fn drive(plan: &Plan) -> Seen {
    if plan.warm_up > 0 {
        let warm_up = Plan { requests: plan.warm_up, warm_up: 0, ..plan.clone() };
        Box::pin(drive(&warm_up)).await;
    }
    let taken = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let end = began + plan.ramp + Duration::from_secs_f64(plan.seconds);
    let clients: Vec<_> = (0..plan.connections)
        .map(|nth| {
            let wait = plan.ramp.mul_f64(nth as f64 / plan.connections as f64);
            tokio::spawn(client(plan.clone(), nth as u64, began + wait, end, taken.clone()))
        })
        .collect();
    let mut seen = Seen::default();
    for client in clients {
        match client.await {
            Ok(part) => seen.add(part),
            Err(error) => seen.complaint = Some(error.to_string()),
        }
    }
    seen.seconds = began.elapsed().as_secs_f64();
    seen.total_us.sort_unstable_by(f64::total_cmp);
    seen.first_us.sort_unstable_by(f64::total_cmp);
    seen
}

async fn client(plan: Plan, nth: u64, start: Instant, end: Instant, taken: Arc<AtomicU64>) -> Seen {
    tokio::time::sleep_until(start.into()).await;
    let mut seen = Seen::default();
    let mut connection = Connection::new(plan.address);
    // Another seed for each connection and each run: nothing comes twice.
    let mut words = Words::new(fastrand::u64(..).wrapping_add(nth));
    let head = head(&plan.address, "/v1/chat/completions", plan.prompt.bytes.len(), "");
    let slot = plan.prompt.slot.start + head.len()..plan.prompt.slot.end + head.len();
    let mut request = head.into_bytes();
    request.extend_from_slice(&plan.prompt.bytes);
    while Instant::now() < end && taken.fetch_add(1, Ordering::Relaxed) < plan.requests {
        words.fill(&mut request[slot.clone()]);
        let exchange = tokio::time::timeout(plan.timeout, connection.exchange(&request, false)).await;
        match exchange {
            Ok(Ok(exchange)) if exchange.status == 200 => {
                seen.ok += 1;
                seen.events += exchange.events as u64;
                seen.total_us.push(exchange.total.as_secs_f64() * 1e6);
                seen.first_us.push(exchange.first.as_secs_f64() * 1e6);
            }
            Ok(Ok(exchange)) => seen.fail(format!("status {}", exchange.status)),
            Ok(Err(error)) => seen.fail(error.to_string()),
            Err(_) => {
                seen.fail(format!("no answer in {:?}", plan.timeout));
                connection = Connection::new(plan.address);
            }
        }
    }
    seen
}

impl Seen {
    fn fail(&mut self, why: String) {
        self.failed += 1;
        self.complaint.get_or_insert(why);
    }
}

/// The head of a request. `extra` are whole lines.
pub fn head(address: &SocketAddr, path: &str, length: usize, extra: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nuser-agent: rig\r\naccept: */*\r\nauthorization: Bearer mock-key\r\n{extra}content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}
