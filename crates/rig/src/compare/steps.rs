//! What a step costs early and late in a run, when the agent sends its whole history each time.
//!
//! A run calls a tool a thousand times. What moving a history costs grows with it for everybody: nginx goes the same way
//! with the same bytes, and what Sprag takes beyond that is compared. The last steps are also compared with a run that
//! has as long a history in its tenth step: then only the number of steps differs.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Rig, Row, Target};
use crate::cpu_clock;
use crate::load::{Connection, head};
use crate::mock::Shape;
use crate::prompt::OPENAI_MODEL;
use crate::words::Words;

const STEPS: usize = 1000;
/// Steps whose cost is taken together, up to and with the one that the row is named after.
const WINDOW: usize = 10;
const RUNS: usize = 5;
const RESULT_BYTES: usize = 400;

pub(super) fn measure(rig: &Rig<'_>, target: &Target) -> Result<Row> {
    rig.mock.set(Shape { answer_bytes: 40, tools: true, ..Shape::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut early, mut late, mut early_long, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..RUNS {
        let mut run = AgentRun::begin(target.address);
        early.push(runtime.block_on(run.cost_up_to(10, target))?);
        late.push(runtime.block_on(run.cost_up_to(STEPS, target))?);
        bytes = run.body_bytes();
        // The same bytes, as the history of a run that has just begun.
        let mut run = AgentRun::begin(target.address);
        run.invent_history(STEPS - 10);
        early_long.push(runtime.block_on(run.cost_up_to(10, target))?);
    }
    Ok(Row::from([
        ("step_10_us", middle(&mut early)),
        ("step_1000_us", middle(&mut late)),
        ("step_10_same_bytes_us", middle(&mut early_long)),
        ("kib_at_1000", bytes as f64 / 1024.0),
    ]))
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// An agent that reads one file after the other.
struct AgentRun {
    address: SocketAddr,
    connection: Connection,
    words: Words,
    id: String,
    /// Messages so far, as JSON, with commas between.
    history: String,
    steps: usize,
}

impl AgentRun {
    fn begin(address: SocketAddr) -> AgentRun {
        let mut words = Words::new(fastrand::u64(..));
        let history = format!(r#"{{"role":"user","content":"Read all files about {}."}}"#, words.text(80));
        let id = format!("steps-{:016x}", fastrand::u64(..));
        AgentRun { address, connection: Connection::new(address), words, id, history, steps: 0 }
    }

    fn body_bytes(&self) -> usize {
        self.history.len()
    }

    /// Goes on up to a step; gives the CPU time per step, in microseconds, of the last ones.
    async fn cost_up_to(&mut self, last: usize, target: &Target) -> Result<f64> {
        while self.steps < last - WINDOW {
            self.step().await?;
        }
        let before = cpu_clock::spent(&target.pids);
        for _ in 0..WINDOW {
            self.step().await?;
        }
        let spent = cpu_clock::spent(&target.pids).saturating_sub(before);
        Ok(spent.as_secs_f64() * 1e6 / WINDOW as f64)
    }

    async fn step(&mut self) -> Result<()> {
        let body = format!(r#"{{"model":"{OPENAI_MODEL}","stream":false,"messages":[{}]}}"#, self.history);
        let extra = format!("x-sprag-run-id: {}\r\n", self.id);
        let mut request = head(&self.address, "/v1/chat/completions", body.len(), &extra).into_bytes();
        request.extend_from_slice(body.as_bytes());
        let exchange = self.connection.exchange(&request, true).await?;
        self.steps += 1;
        let text = String::from_utf8_lossy(&exchange.body);
        if exchange.status != 200 {
            bail!("step {} was answered with status {}: {text}", self.steps, exchange.status);
        }
        let answer: Value = serde_json::from_slice(&exchange.body).with_context(|| format!("no JSON: {text}"))?;
        let message = &answer["choices"][0]["message"];
        let call = message["tool_calls"][0]["id"].as_str().with_context(|| format!("no tool call: {text}"))?;
        let result = self.words.text(RESULT_BYTES);
        self.history.push_str(&format!(r#",{message},{{"role":"tool","tool_call_id":"{call}","content":"{result}"}}"#));
        Ok(())
    }

    /// Steps that another run may have made.
    fn invent_history(&mut self, steps: usize) {
        for step in 0..steps {
            let (path, result) = (self.words.text(40), self.words.text(RESULT_BYTES));
            self.history.push_str(&format!(
                r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{step:012}","type":"function","function":{{"name":"read_file","arguments":"{{\"path\":\"{path}\"}}"}}}}]}},{{"role":"tool","tool_call_id":"call_{step:012}","content":"{result}"}}"#
            ));
        }
    }
}
