//! An HTTP server that keeps what it is sent.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::binary::wait_until;

/// One message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The first line as it came.
    pub(crate) first_line: String,
    /// The first line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Message {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> String {
        let found = self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        found.unwrap_or_default().to_owned()
    }
}

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    messages: Arc<Mutex<Vec<Message>>>,
    arrived: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

/// What a message is answered with, and whether only once the gate is open.
type Judge = Arc<dyn Fn(&Message) -> (&'static str, bool) + Send + Sync>;

impl Receiver {
    pub(crate) async fn start() -> Receiver {
        Receiver::answering("200 OK").await
    }

    /// Answers everything with this status, and headers behind it.
    pub(crate) async fn answering(answer: &'static str) -> Receiver {
        Receiver::serve(free().await, Arc::new(move |_| (answer, false)), watch::channel(true).1)
    }

    /// Takes what comes there.
    pub(crate) fn on(listener: TcpListener) -> Receiver {
        Receiver::serve(listener, Arc::new(|_| ("200 OK", false)), watch::channel(true).1)
    }

    /// Answers each message by what it says.
    pub(crate) async fn judging(judge: impl Fn(&Message) -> &'static str + Send + Sync + 'static) -> Receiver {
        let judge: Judge = Arc::new(move |message| (judge(message), false));
        Receiver::serve(free().await, judge, watch::channel(true).1)
    }

    /// Answers with these in turn, and with the last from then on.
    pub(crate) async fn judging_in_turn(answers: &'static [&'static str]) -> Receiver {
        let next = AtomicUsize::new(0);
        Receiver::judging(move |_| answers[next.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1)]).await
    }

    /// Takes everything, but answers some only once the gate is open.
    pub(crate) async fn holding(
        gate: watch::Receiver<bool>,
        is_held: impl Fn(&Message) -> bool + Send + Sync + 'static,
    ) -> Receiver {
        let judge: Judge = Arc::new(move |message| ("200 OK", is_held(message)));
        Receiver::serve(free().await, judge, gate)
    }

    fn serve(listener: TcpListener, judge: Judge, gate: watch::Receiver<bool>) -> Receiver {
        let address = listener.local_addr().unwrap();
        let (messages, arrived): (Arc<Mutex<Vec<Message>>>, Arc<AtomicUsize>) = Default::default();
        let (kept, counted) = (messages.clone(), arrived.clone());
        let serving = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (kept, counted, judge, gate) = (kept.clone(), counted.clone(), judge.clone(), gate.clone());
                tokio::spawn(async move {
                    if let Some(message) = take(socket, judge, gate, &counted).await {
                        kept.lock().unwrap().push(message);
                    }
                });
            }
        });
        Receiver { address, messages, arrived, serving }
    }

    /// Messages that came, whether they were answered or not.
    pub(crate) fn arrived(&self) -> usize {
        self.arrived.load(Ordering::Relaxed)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        self.messages.lock().unwrap().clone()
    }

    /// Waits until so many messages are there.
    pub(crate) async fn has(&self, count: usize) -> Vec<Message> {
        wait_until(|| self.messages().len() >= count, || format!("{:?}", self.messages())).await;
        self.messages()
    }
}

async fn free() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take(
    socket: TcpStream,
    judge: Judge,
    mut gate: watch::Receiver<bool>,
    arrived: &AtomicUsize,
) -> Option<Message> {
    let mut reader = BufReader::new(socket);
    let (mut head, mut first_line, mut length) = (String::new(), String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if first_line.is_empty() {
            first_line = line.trim_end().to_owned();
        }
        let (name, value) = line.trim_end().split_once(": ").unwrap_or((line.trim_end(), ""));
        if name.is_empty() {
            break;
        }
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap();
        }
        let rest = if value.is_empty() { String::new() } else { format!(": {value}") };
        head.push_str(&format!("{}{rest}\n", name.to_lowercase()));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    let message = Message { first_line, head, body: String::from_utf8(body).unwrap() };
    arrived.fetch_add(1, Ordering::Relaxed);
    let (answer, is_held) = judge(&message);
    if is_held {
        gate.wait_for(|is_open| *is_open).await.ok()?;
    }
    let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    reader.get_mut().write_all(answer.as_bytes()).await.ok()?;
    Some(message)
}
