//! What can go wrong between the provider and its client, and the gates that hold an answer without a clock.

use std::time::Duration;
use tokio::sync::watch;

/// A way of delivering an answer that a proxy must survive.
///
/// An *event* is one server-sent event, one element of a streamed JSON array, or a whole JSON body.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The body is written in pieces of `bytes`, whatever they cut through, `every` so often.
    Dribble {
        /// Bytes in one piece.
        bytes: usize,
        /// Pause between pieces; zero still writes each piece alone.
        every: Duration,
    },
    /// Nothing comes after so many events until the gate opens or the client leaves.
    Stall {
        /// Events sent first.
        after_events: usize,
        /// What ends the stall.
        until: Gate,
    },
    /// The connection ends without a proper end of the body.
    Cut {
        /// Where.
        at: CutAt,
        /// In which manner.
        how: CutHow,
    },
    /// One event (counted from 0) carries broken JSON: its second half is missing.
    Garble {
        /// Which one; the last when there are fewer.
        event: usize,
    },
    /// Not even the response head is sent before the gate opens.
    Hold(Gate),
    /// The body is compressed, whether or not the client accepts that.
    Encode(Encoding),
    /// `content-length`, also for a stream.
    ContentLength,
    /// Chunked, also for a JSON body.
    Chunked,
    /// Server-sent events end their lines with CR LF.
    Crlf,
    /// A comment line stands before every server-sent event.
    Comments,
    /// So many bytes of white space keep the connection alive before a JSON body.
    Whitespace(usize),
    /// The second event (or the only one) grows by so many bytes, and stays valid JSON.
    Oversized(usize),
    /// Trailer fields after a chunked body. HTTP/1.1 clients get them only when they send `te: trailers`.
    Trailers(Vec<(String, String)>),
}

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutAt {
    /// Before any byte of the response.
    Head,
    /// After so many bytes of the body, as they are on the wire.
    Bytes(usize),
    /// After so many events.
    Events(usize),
}

/// How a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutHow {
    /// Closed in the middle of the body.
    Close,
    /// Reset.
    Reset,
}

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// gzip
    Gzip,
    /// brotli
    Br,
    /// Zstandard
    Zstd,
    /// zlib, which HTTP calls deflate
    Deflate,
}

impl Encoding {
    /// All of them.
    pub const ALL: [Encoding; 4] = [Encoding::Gzip, Encoding::Br, Encoding::Zstd, Encoding::Deflate];

    /// As `content-encoding` spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Gzip => "gzip",
            Encoding::Br => "br",
            Encoding::Zstd => "zstd",
            Encoding::Deflate => "deflate",
        }
    }
}

/// Holds answers until a test lets them go. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<GateState>);

#[derive(Clone, Copy, Debug, Default)]
struct GateState {
    open: bool,
    reached: u64,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::new()
    }
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Gate {
        Gate(watch::Sender::new(GateState::default()))
    }

    /// Lets everybody pass, now and later.
    pub fn open(&self) {
        self.0.send_modify(|state| state.open = true);
    }

    /// Holds everybody again.
    pub fn close(&self) {
        self.0.send_modify(|state| state.open = false);
    }

    /// Waits until `count` answers have come to this gate.
    pub async fn reached(&self, count: u64) {
        // The sender lives in self, so the channel cannot close while we wait.
        let _ = self.0.subscribe().wait_for(|state| state.reached >= count).await;
    }

    /// Waits until the gate is open.
    pub async fn pass(&self) {
        self.0.send_modify(|state| state.reached += 1);
        let _ = self.0.subscribe().wait_for(|state| state.open).await;
    }
}
