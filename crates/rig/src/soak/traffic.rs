//! What agents do: most work and end, some stream, some leave in the middle, some go in circles, some send secrets.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use memchr::memmem;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::load::{Connection, head};
use crate::prompt::{ANTHROPIC_MODEL, OPENAI_MODEL};
use crate::words::Words;

/// Runs under way at once; more wait.
const AT_ONCE: usize = 256;
const AGENTS: u64 = 50;
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct Counts {
    pub runs: AtomicU64,
    pub calls: AtomicU64,
    pub answered: AtomicU64,
    pub refused: AtomicU64,
    pub failed_upstream: AtomicU64,
    pub cut: AtomicU64,
    pub abandoned: AtomicU64,
    /// What nothing explains.
    pub broken: AtomicU64,
}

pub struct Traffic {
    pub address: SocketAddr,
    pub runs: u64,
    pub length: Duration,
    pub counts: Arc<Counts>,
}

#[derive(Clone, Copy, Debug)]
enum Habit {
    Declared,
    Conversation,
    Messages,
    Leaves,
    Circles,
    Leaks,
}

/// What all runs share.
struct Shared {
    address: SocketAddr,
    counts: Arc<Counts>,
    idle: Mutex<Vec<Connection>>,
    words: Mutex<Words>,
    complaints: AtomicU64,
}

impl Traffic {
    /// All of it; on this thread.
    pub fn drive(&self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.pace())
    }

    async fn pace(&self) -> Result<()> {
        let shared = Arc::new(Shared {
            address: self.address,
            counts: self.counts.clone(),
            idle: Mutex::default(),
            words: Mutex::new(Words::new(5)),
            complaints: AtomicU64::new(0),
        });
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        let began = Instant::now();
        for nth in 0..self.runs {
            tokio::time::sleep_until(began + self.length.mul_f64(nth as f64 / self.runs as f64)).await;
            let Ok(permit) = permits.clone().acquire_owned().await else { bail!("the traffic was stopped") };
            let shared = shared.clone();
            tokio::spawn(async move {
                shared.run(nth).await;
                shared.counts.runs.fetch_add(1, Ordering::Relaxed);
                drop(permit);
            });
        }
        let all = timeout(2 * PATIENCE, permits.acquire_many(AT_ONCE as u32)).await;
        if all.is_err() { bail!("some runs do not end") } else { Ok(()) }
    }
}

impl Shared {
    async fn run(&self, nth: u64) {
        let habit = match nth % 20 {
            0..=7 => Habit::Declared,
            8..=12 => Habit::Conversation,
            13..=15 => Habit::Messages,
            16 | 17 => Habit::Leaves,
            18 => Habit::Circles,
            _ => Habit::Leaks,
        };
        let mut connection = self.idle().pop().unwrap_or_else(|| Connection::new(self.address));
        let mut history = self.message("user", 300);
        let steps = match habit {
            Habit::Circles => 8,
            Habit::Leaves => 1,
            _ => 2 + nth % 4,
        };
        for step in 0..steps {
            let request = self.request(habit, nth, &history);
            self.counts.calls.fetch_add(1, Ordering::Relaxed);
            if let Habit::Leaves = habit {
                let left = timeout(PATIENCE, connection.abandon(&request, 3)).await;
                let count = if matches!(left, Ok(Ok(()))) { &self.counts.abandoned } else { &self.counts.broken };
                count.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let goes_on = match timeout(PATIENCE, connection.exchange(&request, true)).await {
                Ok(Ok(exchange)) => self.note(exchange.status, &exchange.body),
                Ok(Err(error)) => self.broken(&error.to_string()),
                Err(_) => self.broken("no answer in time"),
            };
            if !goes_on {
                break;
            }
            history.push_str(&match habit {
                Habit::Circles => circle(step),
                _ => format!(",{},{}", self.message("assistant", 120), self.message("user", 400)),
            });
        }
        self.idle().push(connection);
    }

    /// Counts an answer; whether the agent goes on after it.
    fn note(&self, status: u16, body: &[u8]) -> bool {
        let counts = &self.counts;
        let has = |text: &str| memmem::find(body, text.as_bytes()).is_some();
        let is_cut = has("the answer is incomplete");
        match status {
            200 if is_cut => counts.cut.fetch_add(1, Ordering::Relaxed),
            200 => counts.answered.fetch_add(1, Ordering::Relaxed),
            400 | 402 | 403 | 409 | 429 if has("sprag") => counts.refused.fetch_add(1, Ordering::Relaxed),
            500 if has("as it was told") => counts.failed_upstream.fetch_add(1, Ordering::Relaxed),
            _ => return self.broken(&format!("status {status}: {}", String::from_utf8_lossy(body))),
        };
        status == 200 && !is_cut
    }

    fn broken(&self, why: &str) -> bool {
        self.counts.broken.fetch_add(1, Ordering::Relaxed);
        if self.complaints.fetch_add(1, Ordering::Relaxed) < 10 {
            eprintln!("a call broke: {}", why.chars().take(400).collect::<String>());
        }
        false
    }

    fn request(&self, habit: Habit, nth: u64, history: &str) -> Vec<u8> {
        let is_stream = matches!(habit, Habit::Conversation | Habit::Leaves)
            || (nth.is_multiple_of(2) && !matches!(habit, Habit::Circles));
        let (path, body) = match habit {
            Habit::Messages => (
                "/v1/messages",
                format!(
                    r#"{{"model":"{ANTHROPIC_MODEL}","max_tokens":500,"stream":{is_stream},"messages":[{history}]}}"#
                ),
            ),
            Habit::Leaks => {
                let secret = format!(
                    r#"{{"role":"user","content":"write to user{nth}@mail-{nth}.net with key sk-proj-{:024x}{:024x}"}}"#,
                    nth.wrapping_mul(0x9E37_79B9_7F4A_7C15),
                    nth.wrapping_mul(0xD1B5_4A32_D192_ED03)
                );
                let body =
                    format!(r#"{{"model":"{OPENAI_MODEL}","stream":{is_stream},"messages":[{secret},{history}]}}"#);
                ("/v1/chat/completions", body)
            }
            _ => (
                "/v1/chat/completions",
                format!(r#"{{"model":"{OPENAI_MODEL}","stream":{is_stream},"messages":[{history}]}}"#),
            ),
        };
        let mut extra = format!("x-sprag-agent: agent-{}\r\n", nth % AGENTS);
        if matches!(habit, Habit::Declared | Habit::Circles) {
            extra.push_str(&format!("x-sprag-run-id: soak-{nth}\r\n"));
        }
        let mut request = head(&self.address, path, body.len(), &extra).into_bytes();
        request.extend_from_slice(body.as_bytes());
        request
    }

    fn message(&self, role: &str, bytes: usize) -> String {
        let text = self.words.lock().unwrap_or_else(PoisonError::into_inner).text(bytes);
        format!(r#"{{"role":"{role}","content":"{text}"}}"#)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same call with the same error again.
fn circle(step: u64) -> String {
    format!(
        r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{step:04}","type":"function","function":{{"name":"search","arguments":"{{\"query\":\"the same\"}}"}}}}]}},{{"role":"tool","tool_call_id":"call_{step:04}","content":"error: the index is locked"}}"#
    )
}
