//! A cable between two programs that can be cut, held, slowed down and plugged in elsewhere.
//!
//! It carries bytes of TCP connections and knows nothing of what they mean.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Pieces that are on their way in one direction of one connection.
const ON_THE_WAY: usize = 1024;
/// Bytes of one piece.
const PIECE_BYTES: usize = 16 << 10;

/// A cable. It is unplugged when it is dropped.
#[derive(Debug)]
pub struct Cable {
    address: SocketAddr,
    state: watch::Sender<State>,
    /// Connections so far.
    connections: Arc<AtomicU64>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    manner: Manner,
    to: SocketAddr,
    /// Connections of an earlier number are over.
    number: u64,
    /// Of the first so many connections nothing arrives.
    stranded: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Whole,
    Cut,
    Held,
    /// Only what comes back is held.
    Mute,
    Slow(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Out,
    Back,
}

impl Cable {
    /// A cable to an address. Must be called inside a runtime.
    ///
    /// # Errors
    /// When there is no port for it.
    pub async fn to(address: SocketAddr) -> io::Result<Cable> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let own = listener.local_addr()?;
        let (state, seen) = watch::channel(State { manner: Manner::Whole, to: address, number: 0, stranded: 0 });
        let connections = Arc::new(AtomicU64::new(0));
        tokio::spawn(accept(listener, seen, connections.clone()));
        Ok(Cable { address: own, state, connections })
    }

    /// The end to connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// That end, for a Redis.
    #[must_use]
    pub fn redis_url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Ends all connections, and lets none through.
    pub fn cut(&self) {
        self.change(|state| {
            state.manner = Manner::Cut;
            state.number += 1;
        });
    }

    /// Holds every byte: connections stay, and nothing arrives.
    pub fn hold(&self) {
        self.change(|state| state.manner = Manner::Held);
    }

    /// Everything arrives at the far end, and no answer comes back.
    pub fn mute(&self) {
        self.change(|state| state.manner = Manner::Mute);
    }

    /// Holds what the connections of now send; later ones are as new.
    pub fn strand(&self) {
        let connections = self.connections.load(Ordering::SeqCst);
        self.change(|state| state.stranded = connections);
    }

    /// Every byte takes so much longer to the far end, and comes back without.
    pub fn slow(&self, by: Duration) {
        self.change(|state| state.manner = Manner::Slow(by));
    }

    /// Everything goes through again, what was held first.
    pub fn mend(&self) {
        self.change(|state| (state.manner, state.stranded) = (Manner::Whole, 0));
    }

    /// Ends all connections; later ones go to another address.
    pub fn plug_into(&self, address: SocketAddr) {
        self.change(|state| {
            state.to = address;
            state.number += 1;
        });
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        self.state.send_modify(how);
    }
}

impl State {
    fn holds(&self, direction: Direction, place: u64) -> bool {
        match direction {
            Direction::Out => self.manner == Manner::Held || place < self.stranded,
            Direction::Back => matches!(self.manner, Manner::Held | Manner::Mute),
        }
    }
}

async fn accept(listener: TcpListener, seen: watch::Receiver<State>, connections: Arc<AtomicU64>) {
    let mut gone = seen.clone();
    loop {
        let near = tokio::select! {
            near = listener.accept() => near,
            () = unplugged(&mut gone) => return,
        };
        let Ok((near, _)) = near else { continue };
        let state = *seen.borrow();
        if state.manner != Manner::Cut {
            let place = connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(carry(near, place, state, seen.clone()));
        }
    }
}

/// Waits until the cable is dropped.
async fn unplugged(seen: &mut watch::Receiver<State>) {
    while seen.changed().await.is_ok() {}
}

async fn carry(near: TcpStream, place: u64, begun: State, seen: watch::Receiver<State>) {
    let Ok(far) = TcpStream::connect(begun.to).await else { return };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    let mut over = seen.clone();
    tokio::select! {
        () = pass(near_in, far_out, seen.clone(), Direction::Out, place) => {}
        () = pass(far_in, near_out, seen, Direction::Back, place) => {}
        // An error means that the cable is gone.
        _ = over.wait_for(|state| state.number != begun.number) => {}
    }
}

/// Carries one direction. Pieces leave in their order, each when its time has come.
async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut seen: watch::Receiver<State>,
    direction: Direction,
    place: u64,
) {
    let (sender, mut pieces) = mpsc::channel::<(Instant, Vec<u8>)>(ON_THE_WAY);
    let reading = async move {
        let mut piece = vec![0; PIECE_BYTES];
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            if sender.send((Instant::now(), piece[..length].to_vec())).await.is_err() {
                return;
            }
        }
    };
    let writing = async move {
        while let Some((at, piece)) = pieces.recv().await {
            let Ok(state) = seen.wait_for(|state| !state.holds(direction, place)).await.map(|state| *state) else {
                return;
            };
            if let Manner::Slow(by) = state.manner
                && direction == Direction::Out
            {
                tokio::time::sleep_until(at + by).await;
            }
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(reading, writing);
}
