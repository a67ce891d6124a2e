//! Thousands of calls, many of them broken off by one side or the other: each is settled once, and nothing is left.
//!
//! A program of its own, because it looks at the memory of the whole process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../harness/sprag.rs"]
#[allow(dead_code, reason = "shared by suites that use different parts of it")]
mod sprag;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use sprag_core::event::Ending;
use sprag_core::policy::RunLimits;
use sprag_store::history::EventFilter;
use sprag_testkit::client::{self, Call};
use sprag_testkit::{Fault, Provider, Reply, Script};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::sprag::{Sprag, without_detection};

/// One test at a time: the memory of a process cannot be told apart.
static ALONE: Mutex<()> = Mutex::new(());

const CONCURRENCY: u64 = 100;
const WAVES: [u64; 4] = [2500, 2500, 2500, 2500];
/// What a second half of the calls may add to the process: pages that the allocator keeps, caches that fill.
const GROWTH_BYTES: u64 = 24 << 20;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Json,
    Stream,
    /// The client leaves when so many bytes have come.
    LeaveStream(usize),
    /// The client leaves once its request is out.
    LeaveAtOnce,
    LeaveUpload,
    /// The upstream cuts.
    Cut(usize),
    CutHead,
    CutJson,
    /// The upstream falls silent, and Sprag gives it up.
    Stall,
    /// The upstream falls silent, and the client gives up first.
    LeaveStall,
    Error,
    Garbage,
}

impl Fate {
    fn draw(dice: &mut StdRng) -> Fate {
        match dice.random_range(0..100) {
            0..20 => Fate::Json,
            20..40 => Fate::Stream,
            40..55 => Fate::LeaveStream(dice.random_range(1..3000)),
            55..62 => Fate::LeaveAtOnce,
            62..66 => Fate::LeaveUpload,
            66..76 => Fate::Cut(dice.random_range(0..12)),
            76..80 => Fate::CutHead,
            80..84 => Fate::CutJson,
            84..86 => Fate::Stall,
            86..92 => Fate::LeaveStall,
            92..96 => Fate::Error,
            _ => Fate::Garbage,
        }
    }

    /// How the call may be recorded. A client that leaves may be too late.
    fn may_end_as(self, ending: Ending) -> bool {
        match self {
            Fate::Json | Fate::Stream => ending == Ending::Complete,
            Fate::LeaveStream(_) | Fate::LeaveAtOnce => matches!(ending, Ending::ClientGone | Ending::Complete),
            Fate::LeaveUpload => ending == Ending::ClientGone,
            Fate::Cut(_) | Fate::CutHead | Fate::CutJson => ending == Ending::UpstreamGone,
            Fate::Stall => ending == Ending::TimedOut,
            Fate::LeaveStall => matches!(ending, Ending::ClientGone | Ending::TimedOut),
            Fate::Error => ending == Ending::UpstreamError,
            Fate::Garbage => ending == Ending::Refused,
        }
    }
}

async fn run(fate: Fate, number: u64, sprag: Arc<Sprag>) {
    let mut body = json!({
        "model": format!("storm-{number}"),
        "messages": [{"role": "user", "content": "tell me a story about a storm"}],
    });
    let is_json = matches!(fate, Fate::Json | Fate::CutJson | Fate::Error | Fate::CutHead);
    if !is_json {
        body["stream"] = Value::from(true);
    }
    let call = |body: &Value| -> Call {
        client::post_json(sprag.url("/v1/chat/completions"), body)
            .header("x-sprag-run-id", &format!("r{}", number % 50))
    };
    match fate {
        Fate::Json | Fate::Stream => {
            let answer = call(&body).fetch().await.unwrap();
            assert!(answer.status == 200 && answer.broken.is_none(), "{fate:?} {answer:?}");
        }
        Fate::LeaveStream(bytes) => {
            let mut answer = call(&body).send().await.unwrap();
            let _ = answer.read_at_least(bytes).await;
            answer.abort();
        }
        Fate::LeaveAtOnce | Fate::LeaveUpload => {
            let body = body.to_string();
            let part = if fate == Fate::LeaveUpload { &body[..body.len() / 2] } else { &body };
            let mut socket = TcpStream::connect(sprag.proxy).await.unwrap();
            let head =
                format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
            socket.write_all(format!("{head}{part}").as_bytes()).await.unwrap();
        }
        Fate::Cut(events) => {
            let how = if number.is_multiple_of(2) { "x-mock-cut" } else { "x-mock-reset" };
            let answer = call(&body).header(how, &format!("events={events}")).fetch().await.unwrap();
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(text.contains("sprag_upstream_cut"), "{fate:?} {text}");
        }
        Fate::CutHead => assert_eq!(call(&body).header("x-mock-cut", "head").fetch().await.unwrap().status, 502),
        Fate::CutJson => assert_eq!(call(&body).header("x-mock-cut", "bytes=50").fetch().await.unwrap().status, 502),
        Fate::Stall => {
            let answer = call(&body).header("x-mock-stall", "3").fetch().await.unwrap();
            assert!(String::from_utf8_lossy(&answer.body).contains("silent"));
        }
        Fate::LeaveStall => {
            let mut answer = call(&body).header("x-mock-stall", "3").send().await.unwrap();
            let _ = answer.read_at_least(1).await;
            answer.abort();
        }
        Fate::Error => assert_eq!(call(&body).header("x-mock-status", "529").fetch().await.unwrap().status, 529),
        Fate::Garbage => {
            let text = body.to_string().replace("\"stream\":true", "\"stream\":");
            let answer = client::post(sprag.url("/v1/chat/completions"), text).fetch().await.unwrap();
            assert_eq!(answer.status, 400);
        }
    }
}

/// Runs calls `from..to`, so many at a time.
async fn wave(sprag: &Arc<Sprag>, fates: &Arc<Vec<Fate>>, from: u64, to: u64) {
    let next = Arc::new(AtomicU64::new(from));
    let workers = (0..CONCURRENCY).map(|_| {
        let (sprag, fates, next) = (sprag.clone(), fates.clone(), next.clone());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= to {
                    return;
                }
                run(fates[number as usize], number, sprag.clone()).await;
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Waits until `condition` holds, and gives up after a time that no working program needs.
async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Counts panics, also those in tasks that nobody waits for.
fn count_panics() -> Arc<AtomicU64> {
    let panics = Arc::new(AtomicU64::new(0));
    let (counter, report) = (panics.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        counter.fetch_add(1, Ordering::Relaxed);
        report(panic);
    }));
    panics
}

#[test]
fn clients_that_do_not_read_cost_no_memory() {
    const CLIENTS: usize = 3;
    const ANSWER_BYTES: usize = 128 << 20;
    let _alone = ALONE.lock();
    let event = format!("data: {{\"padding\":\"{}\"}}\n\n", "x".repeat(60_000));
    let body = event.repeat(ANSWER_BYTES / event.len());
    let copies = (CLIENTS * body.len()) as u64;
    let reply = Reply::raw(200, "text/event-stream", body).fault(Fault::Chunked);
    let dribble = Fault::Dribble { bytes: 64 << 10, every: Duration::ZERO };
    let provider = Provider::start(Script::always(reply.fault(dribble))).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let sprag = Sprag::start(&provider).await;
        let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]});
        let before = resident_bytes();
        let mut open = Vec::new();
        for _ in 0..CLIENTS {
            let call = client::post_json(sprag.url("/v1/chat/completions"), &body);
            let mut answer = call.send().await.unwrap();
            answer.next().await.unwrap();
            open.push(answer);
        }
        // Time for a careless proxy to take in what nobody reads.
        tokio::time::sleep(Duration::from_secs(1)).await;
        // The scripted provider makes a copy for each answer.
        let growth = resident_bytes().saturating_sub(before + copies);
        assert!(growth < 48 << 20, "{growth} bytes for answers that nobody reads");
        assert_eq!(provider.open_responses(), CLIENTS, "the provider waits");
        drop(open);
        sprag.settled(CLIENTS).await;
    });
}

#[test]
fn ten_thousand_calls_leave_nothing_behind() {
    let _alone = ALONE.lock();
    let panics = count_panics();
    // Sprag runs alone on its runtime, so that its tasks can be counted.
    let server = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let clients = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let provider = Provider::start(Script::always(Reply::text("word ".repeat(40)))).unwrap();
    let sprag = Arc::new(server.block_on(Sprag::start_with(&provider, |settings| {
        for provider in settings.providers.values_mut() {
            Arc::make_mut(provider).timeouts.idle = Duration::from_millis(1500);
        }
        settings.policies.defaults.run_limits = RunLimits::NONE;
        without_detection(settings);
    })));
    let idle_tasks = server.metrics().num_alive_tasks();
    let mut dice = StdRng::seed_from_u64(20_240_817);
    let total: u64 = WAVES.iter().sum();
    let fates: Arc<Vec<Fate>> = Arc::new((0..total).map(|_| Fate::draw(&mut dice)).collect());

    let mut resident = Vec::new();
    let mut done = 0;
    for count in WAVES {
        clients.block_on(wave(&sprag, &fates, done, done + count));
        done += count;
        clients.block_on(eventually("calls stay in flight", || sprag.app.state.counts().in_flight == 0));
        clients.block_on(eventually("answers stay open", || provider.open_responses() == 0));
        clients.block_on(eventually("calls are not settled", || sprag.app.settling.is_empty()));
        sprag.app.history.flush().unwrap();
        provider.reset();
        // What is left are connections that wait for the next call.
        let pooled = provider.open_connections();
        clients.block_on(eventually("tasks are left over", || {
            server.metrics().num_alive_tasks() <= idle_tasks + pooled + provider.open_connections()
        }));
        resident.push(resident_bytes());
    }
    let growth = resident[WAVES.len() - 1].saturating_sub(resident[1]);
    assert!(growth < GROWTH_BYTES, "memory grew: {resident:?}");

    let endings = recorded(&sprag);
    for (number, fate) in fates.iter().enumerate() {
        // The model of these is not known when they end.
        if matches!(fate, Fate::LeaveUpload | Fate::Garbage) {
            continue;
        }
        let found = endings.get(&format!("storm-{number}")).map_or(&[][..], Vec::as_slice);
        // A client that leaves at once may be gone before its request is looked at.
        let is_missing = found.is_empty() && *fate == Fate::LeaveAtOnce;
        assert!(is_missing || (found.len() == 1 && fate.may_end_as(found[0])), "{number} {fate:?}: {found:?}");
    }
    let count = |wanted: fn(&Fate) -> bool| fates.iter().filter(|fate| wanted(fate)).count();
    let unread = endings.get("").map_or(&[][..], Vec::as_slice);
    let garbage = unread.iter().filter(|ending| **ending == Ending::Refused).count();
    assert_eq!(garbage, count(|fate| *fate == Fate::Garbage));
    assert!(unread.len() - garbage <= count(|fate| matches!(fate, Fate::LeaveUpload | Fate::LeaveAtOnce)));

    let sprag = Arc::into_inner(sprag).unwrap();
    server.block_on(sprag.stop());
    drop(server);
    clients.block_on(eventually("connections stay open", || provider.open_connections() == 0));
    assert_eq!(panics.load(Ordering::Relaxed), 0);
}

/// How the calls of each model ended.
fn recorded(sprag: &Sprag) -> HashMap<String, Vec<Ending>> {
    let mut endings: HashMap<String, Vec<Ending>> = HashMap::new();
    let mut cursor = None;
    loop {
        let page = sprag.app.history.events(&EventFilter::default(), cursor.as_deref(), 500).unwrap();
        for event in page.items {
            endings.entry(event.model.unwrap_or_default()).or_default().push(event.ending);
        }
        cursor = page.next;
        if cursor.is_none() {
            return endings;
        }
    }
}
