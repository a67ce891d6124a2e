//! Stands between a client and a server of HTTP/1.1, passes requests on, and cuts the line at the one that a test chose: before the
//! server has heard it, or after it has answered. That is where a program cannot know whether something was done.

#![allow(clippy::unwrap_used, reason = "without its relay a test has failed")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Where the line is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayCut {
    /// The server never hears of the request, nor of any after it.
    Before,
    /// The server has done what was asked, and nobody learns of it; it hears no request after that.
    After,
}

/// A relay on a port of its own.
pub struct Relay {
    address: SocketAddr,
    line: Arc<Line>,
}

#[derive(Default)]
struct Line {
    passed: AtomicU64,
    cut: Mutex<Option<(u64, RelayCut)>>,
}

impl Relay {
    /// A relay to a port of this machine.
    ///
    /// # Panics
    /// When there is no port for it.
    #[must_use]
    pub fn to(port: u16) -> Relay {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay { address: listener.local_addr().unwrap(), line: Arc::default() };
        let line = Arc::clone(&relay.line);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let line = Arc::clone(&line);
                thread::spawn(move || line.serve(&client, port));
            }
        });
        relay
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Requests that came since the last cut was set.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.line.passed.load(Ordering::SeqCst)
    }

    /// Cuts the line at the request of a number, 0 for the next one; None mends it.
    ///
    /// # Panics
    /// When an earlier panic left the relay unusable.
    pub fn cut(&self, at: Option<(u64, RelayCut)>) {
        let mut cut = self.line.cut.lock().unwrap();
        self.line.passed.store(0, Ordering::SeqCst);
        *cut = at;
    }
}

impl Line {
    fn serve(&self, mut client: &TcpStream, port: u16) -> Option<()> {
        let mut requests = BufReader::new(client);
        loop {
            let request = read_message(&mut requests).ok()??;
            let (number, cut) = {
                let cut = self.cut.lock().unwrap();
                (self.passed.fetch_add(1, Ordering::SeqCst), *cut)
            };
            match cut {
                Some((at, _)) if number > at => return None,
                Some((at, RelayCut::Before)) if number == at => return None,
                _ => {}
            }
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
            (&server).write_all(&request).ok()?;
            let answer = read_message(&mut BufReader::new(&server)).ok()??;
            if cut == Some((number, RelayCut::After)) {
                return None;
            }
            client.write_all(&answer).ok()?;
        }
    }
}

/// A whole message with a `content-length`; None at the end.
fn read_message(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut message = Vec::new();
    let mut length = 0;
    loop {
        let start = message.len();
        if from.read_until(b'\n', &mut message)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&message[start..]).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line == "\r\n" {
            break;
        }
    }
    from.take(length).read_to_end(&mut message)?;
    Ok(Some(message))
}
