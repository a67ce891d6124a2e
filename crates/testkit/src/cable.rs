//! A cable between two programs that can be cut, held, slowed down and plugged in elsewhere.
//!
//! It carries bytes of TCP connections and knows nothing of what they mean, but for who speaks: what goes out after
//! something came back begins a new turn. With one request at a time a turn is a request and its answer.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    counts: Arc<Counts>,
}

/// Where in a turn a cable is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CableCut {
    /// The far end never hears of it, nor of any turn after it.
    Before,
    /// The far end has done what was asked, and nobody learns of it; it hears of no turn after that.
    After,
}

#[derive(Debug, Default)]
struct Counts {
    /// Connections so far.
    connections: AtomicU64,
    /// Turns since the place of a cut was set.
    turns: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct State {
    manner: Manner,
    to: SocketAddr,
    /// Connections of an earlier number are over.
    number: u64,
    /// Of the first so many connections nothing arrives.
    stranded: u64,
    /// The turn at which the cable is cut.
    cut_at: Option<(u64, CableCut)>,
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

/// One connection, as both of its directions see it.
#[derive(Debug)]
struct Talk {
    /// Its place among all.
    place: u64,
    turn: AtomicU64,
    is_answered: AtomicBool,
    counts: Arc<Counts>,
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
        let (state, seen) =
            watch::channel(State { manner: Manner::Whole, to: address, number: 0, stranded: 0, cut_at: None });
        let counts = Arc::new(Counts::default());
        tokio::spawn(accept(listener, seen, counts.clone()));
        Ok(Cable { address: own, state, counts })
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

    /// Cuts it at the turn of a number, 0 for the next one.
    pub fn cut_at(&self, turn: u64, how: CableCut) {
        self.change(|state| {
            self.counts.turns.store(0, Ordering::SeqCst);
            state.cut_at = Some((turn, how));
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
        let connections = self.counts.connections.load(Ordering::SeqCst);
        self.change(|state| state.stranded = connections);
    }

    /// Every byte takes so much longer to the far end, and comes back without.
    pub fn slow(&self, by: Duration) {
        self.change(|state| state.manner = Manner::Slow(by));
    }

    /// Everything goes through again, what was held first.
    pub fn mend(&self) {
        self.change(|state| (state.manner, state.stranded, state.cut_at) = (Manner::Whole, 0, None));
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

impl Talk {
    fn new(counts: &Arc<Counts>) -> Talk {
        let place = counts.connections.fetch_add(1, Ordering::SeqCst);
        // Nothing was asked yet: what goes out first begins a turn.
        Talk { place, turn: AtomicU64::new(0), is_answered: AtomicBool::new(true), counts: counts.clone() }
    }

    /// Whether the connection is over instead of a piece that would pass now.
    fn ends(&self, direction: Direction, cut_at: Option<(u64, CableCut)>) -> bool {
        if direction == Direction::Out && self.is_answered.swap(false, Ordering::SeqCst) {
            self.turn.store(self.counts.turns.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        }
        let turn = self.turn.load(Ordering::SeqCst);
        match cut_at {
            Some((at, CableCut::After)) if direction == Direction::Out => turn > at,
            Some((at, _)) => turn >= at,
            None => false,
        }
    }

    fn heard_back(&self, direction: Direction) {
        if direction == Direction::Back {
            self.is_answered.store(true, Ordering::SeqCst);
        }
    }
}

async fn accept(listener: TcpListener, seen: watch::Receiver<State>, counts: Arc<Counts>) {
    let mut gone = seen.clone();
    loop {
        let near = tokio::select! {
            near = listener.accept() => near,
            () = unplugged(&mut gone) => return,
        };
        let Ok((near, _)) = near else { continue };
        let state = *seen.borrow();
        if state.manner != Manner::Cut {
            tokio::spawn(carry(near, Talk::new(&counts), state, seen.clone()));
        }
    }
}

/// Waits until the cable is dropped.
async fn unplugged(seen: &mut watch::Receiver<State>) {
    while seen.changed().await.is_ok() {}
}

async fn carry(near: TcpStream, talk: Talk, begun: State, seen: watch::Receiver<State>) {
    let Ok(far) = TcpStream::connect(begun.to).await else { return };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    let mut over = seen.clone();
    tokio::select! {
        () = pass(near_in, far_out, seen.clone(), Direction::Out, &talk) => {}
        () = pass(far_in, near_out, seen, Direction::Back, &talk) => {}
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
    talk: &Talk,
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
            let Ok(state) = seen.wait_for(|state| !state.holds(direction, talk.place)).await.map(|state| *state) else {
                return;
            };
            if talk.ends(direction, state.cut_at) {
                return;
            }
            if let Manner::Slow(by) = state.manner
                && direction == Direction::Out
            {
                tokio::time::sleep_until(at + by).await;
            }
            talk.heard_back(direction);
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(reading, writing);
}
