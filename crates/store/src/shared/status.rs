//! How the link to Redis is, for people, metrics and refusals.

/// Redis did not answer: the node is on its own for this call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Away {
    /// There is no connection yet, or no longer.
    #[error("there is no connection to Redis; it is tried again every second")]
    Connecting,
    /// Too many calls failed in a row: none is sent until a trial succeeds.
    #[error("Redis did not answer several times in a row; it is tried again every second")]
    Open,
    /// It took too long.
    #[error("Redis did not answer within {timeout_ms} ms")]
    Slow {
        /// How long was waited.
        timeout_ms: u64,
    },
    /// It refused, or the connection broke. What a key held may also not be what it should.
    #[error("Redis failed: {0}")]
    Failed(String),
}

/// Where the link stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Never connected so far.
    #[default]
    Connecting,
    /// Calls are sent.
    Connected,
    /// It was connected, and is not now, or calls fail.
    Away,
}

/// How the link is.
#[derive(Clone, Debug, Default)]
pub struct LinkStatus {
    /// Where it stands.
    pub phase: Phase,
    /// For how long.
    pub since_ms: u64,
    /// Where Redis is, without a password.
    pub address: String,
    /// Script calls that were sent.
    pub calls: u64,
    /// Those that failed or took too long.
    pub failures: u64,
    /// Those that were not sent, because the link was down.
    pub not_sent: u64,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// How long script calls took.
    pub round_trips: RoundTrips,
    /// Ends of calls that Redis is still to be told.
    pub untold: usize,
    /// Corrections of accounts that Redis is still to be told.
    pub untold_corrections: usize,
    /// Ends that found no room among them: what these calls held is booked when this node is gone.
    pub lost: u64,
}

/// How long script calls took: how many took at most so long.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrips {
    /// By the bounds in [`RoundTrips::BOUNDS_US`]; the last one is of all others. Each call is counted once.
    pub counts: [u64; 12],
    /// All of them together.
    pub sum_us: u64,
}

impl RoundTrips {
    /// Upper bounds, in microseconds.
    pub const BOUNDS_US: [u64; 11] = [100, 200, 400, 700, 1_000, 2_000, 5_000, 10_000, 50_000, 100_000, 250_000];
}
