//! A program that is told to end answers whoever is connected: nobody's connection is reset that was complete.
//!
//! While a program stands still (SIGSTOP) the system completes handshakes for it and keeps what clients send, so that what
//! it finds when it goes on is the same each time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sprag_testkit::{Provider, Script};

use crate::binary::{Binary, wait_until};

const PATIENCE: Duration = Duration::from_secs(30);
/// A client that sends nothing for longer is none that was about to.
const AT_ONCE: Duration = Duration::from_millis(500);

/// A connection whose handshake is complete.
fn connect(proxy: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(proxy)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn send(mut stream: &TcpStream) -> io::Result<()> {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: sprag\r\nconnection: close\r\n\r\n")
}

fn read(mut stream: &TcpStream) -> io::Result<String> {
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn is_well(answer: &io::Result<String>) -> bool {
    answer.as_ref().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_wait_to_be_accepted_are_answered_after_sigterm() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    // Fewer than wait may be open at once: the others get their turn.
    let mut binary = Binary::start(home.path(), &provider, "proxy.max_connections = 20");
    binary.signal("STOP");
    // The system's queue has room for 128.
    let waiting: Vec<TcpStream> = (0..100).map(|_| connect(binary.proxy).unwrap()).collect();
    waiting.iter().for_each(|stream| send(stream).unwrap());
    binary.signal("TERM");
    binary.signal("CONT");
    let answers: Vec<io::Result<String>> = waiting.iter().map(read).collect();
    let broken: Vec<_> = answers.iter().filter(|answer| !is_well(answer)).collect();
    assert!(broken.is_empty(), "{} of {}: {:?}", broken.len(), answers.len(), broken[0]);
    assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_comes_on_a_quiet_connection_just_after_sigterm_is_answered() {
    let provider = Provider::start(Script::new()).unwrap();
    // A machine that is too busy to ask at once says nothing.
    for _ in 0..20 {
        let home = tempfile::tempdir().unwrap();
        let mut binary = Binary::start(home.path(), &provider, "");
        let open = [connect(binary.proxy).unwrap(), connect(binary.proxy).unwrap()];
        // One of them has asked before.
        let mut used = &open[0];
        used.write_all(b"GET /healthz HTTP/1.1\r\nhost: sprag\r\n\r\n").unwrap();
        assert!(used.read(&mut [0; 1024]).unwrap() > 0);
        // They are accepted in their order: both of them are when this one is.
        let last = connect(binary.proxy).unwrap();
        send(&last).unwrap();
        assert!(is_well(&read(&last)));
        let begun = Instant::now();
        binary.signal("TERM");
        binary.says("draining", 1).await;
        let answers = open.each_ref().map(|stream| send(stream).and_then(|()| read(stream)));
        if begun.elapsed() < AT_ONCE {
            assert!(answers.iter().all(is_well), "{answers:?}");
            assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
            return;
        }
    }
    panic!("this machine was never quick enough");
}

/// Calls until nobody is there. Gives what else happened.
fn keep_calling(proxy: SocketAddr, answered: &AtomicUsize) -> Option<String> {
    loop {
        let begun = Instant::now();
        let stream = match connect(proxy) {
            Ok(stream) => stream,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return None,
            Err(error) => return Some(error.to_string()),
        };
        let (sent, is_at_once) = (send(&stream), begun.elapsed() < AT_ONCE);
        let answer = sent.and_then(|()| read(&stream));
        match is_well(&answer) {
            true => answered.fetch_add(1, Ordering::Relaxed),
            false if is_at_once => return Some(format!("{answer:?}")),
            false => continue,
        };
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_connect_while_it_ends_get_an_answer_or_find_nobody() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut binary = Binary::start(home.path(), &provider, "");
    let (proxy, answered) = (binary.proxy, Arc::new(AtomicUsize::new(0)));
    let client = |_| {
        let answered = answered.clone();
        thread::spawn(move || keep_calling(proxy, &answered))
    };
    let clients: Vec<_> = (0..32).map(client).collect();
    wait_until(|| answered.load(Ordering::Relaxed) > 200, || "nobody is answered".to_owned()).await;
    binary.signal("TERM");
    assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
    let broken: Vec<String> = clients.into_iter().filter_map(|client| client.join().unwrap()).collect();
    assert!(broken.is_empty(), "{} clients: {}", broken.len(), broken[0]);
}
