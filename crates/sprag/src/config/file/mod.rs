//! The TOML as written. Every doc comment here is also the key's description in the JSON Schema and its comment in
//! `sprag.example.toml`, and every `Default` is the one place where a default stands.
//!
//! Keys without a default are `Option`. Unknown keys are refused.

mod alerts;
mod budget;
mod decimal;
pub mod detection;
mod dlp;
mod hours;
mod jwt;
mod log;
mod models;
mod policy;
mod price;
mod provider;
mod rate_limit;
mod responses;
mod route;
mod state;
mod telemetry;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sprag_core::event::RunOrigin;
use sprag_core::limits::KILLED_RUNS;

pub use alerts::{AlertChannel, AlertRule, Alerts, ChannelType, MailSecurity};
pub use budget::{AgentBudget, Budget, GlobalBudget, Reserve, Stage, StageAction};
pub use decimal::Decimal;
pub use detection::Detection;
pub use dlp::{AgentDlp, Dlp, DlpMode, DlpPattern, DlpProfile, DlpRules};
pub use hours::{AgentHours, Hours};
pub use jwt::Jwt;
pub use log::{Log, LogCalls, LogFormat};
pub use models::{AgentModels, Models};
pub use policy::{Agent, AgentKillSwitch, AgentRunLimits, Defaults, KillSwitch, LimitMode, LimitedRuns, RunLimits};
pub use price::{Price, Prices, Unpriced};
pub use provider::{Http2, Provider, Timeouts};
pub use rate_limit::RateLimit;
pub use responses::{Compat, Responses, Stop, StopForm};
pub use route::Route;
pub use state::{OnStateLoss, State, StateLoss};
pub use telemetry::Telemetry;

use super::secret::Secret;

/// Sprag's configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    /// The listener that agents talk to.
    pub proxy: Proxy,
    /// The listener of the dashboard and the admin API.
    pub admin: Admin,
    /// Where Sprag keeps its files.
    pub data: Data,
    /// The APIs behind Sprag, by name. The presets need no entry; an entry changes what it names.
    pub providers: BTreeMap<String, Provider>,
    /// Which provider serves a path that names none.
    pub routing: Routing,
    /// Other HTTP APIs behind Sprag: tool servers, internal services.
    pub routes: Vec<Route>,
    /// How calls are put together into runs.
    pub runs: Runs,
    /// How loops are detected, and what follows.
    pub detection: Detection,
    /// Secrets and personal data: what is looked for besides the catalogue. What is done about them stands in the policies.
    pub dlp: Dlp,
    /// What everybody together may spend, in dollars.
    pub budget: GlobalBudget,
    /// The policy of agents that have none of their own.
    pub defaults: Defaults,
    /// Agents with a policy of their own, by name. What it leaves out is as in `defaults`; the admin API overrides both.
    pub agents: BTreeMap<String, Agent>,
    /// What Sprag adds to answers, and how it refuses.
    pub responses: Responses,
    /// What several Sprags share, so that they act as one. Without it each keeps its own runs, budgets and rate limits.
    pub state: State,
    /// What is recorded of each call, and for how long.
    pub events: Events,
    /// What happens to calls that have no price.
    pub prices: Prices,
    /// Own prices, in dollars per million tokens. They stand before the built-in table.
    pub price: Vec<Price>,
    /// How JSON web tokens of callers are verified. Without a key none is, and rate limits by `jwt:CLAIM` count all callers together.
    pub jwt: Jwt,
    /// Who is told what happens.
    pub alerts: Alerts,
    /// What can be seen of Sprag from outside: metrics and traces.
    pub telemetry: Telemetry,
    /// What Sprag writes to the terminal.
    pub log: Log,
}

/// The listener that agents talk to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Proxy {
    /// Address and port. Use 0.0.0.0 to be reached from other machines.
    pub listen: String,
    /// Connections open at once; more wait to be accepted.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: u64,
    /// Largest request body in bytes; a larger one is refused with status 413.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub max_body_bytes: u64,
    /// Largest request head in bytes.
    #[schemars(range(min = 8192, max = 1_048_576))]
    pub max_header_bytes: u64,
    /// Time for a client to send the head of a request.
    #[schemars(range(min = 100, max = 600_000))]
    pub header_read_timeout_ms: u64,
    /// Requests of one agent in flight at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_requests_per_agent: u64,
    /// Grace for answers in flight when Sprag is asked to stop.
    #[schemars(range(min = 0, max = 3600))]
    pub drain_seconds: u64,
    /// Let in only requests with a virtual key of Sprag's own; all others are refused with status 401.
    pub require_keys: bool,
}

/// The listener of the dashboard and the admin API.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// Address and port. Keep it where agents cannot reach it.
    pub listen: String,
    /// Token of the admin API and the dashboard. Without one, the first start makes one and keeps it in the data directory.
    #[schemars(example = &"a-long-random-text")]
    pub token: Option<Secret>,
    /// A second token, for those who may see everything and change nothing. Without one, only the tokens that `sprag tokens` makes can do that.
    #[schemars(example = &"another-long-random-text")]
    pub viewer_token: Option<Secret>,
}

/// Where Sprag keeps its files.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// Directory, made if absent. Without one: $XDG_DATA_HOME/sprag, ~/.local/share/sprag, or ./sprag-data where there is no home.
    #[schemars(example = &"/var/lib/sprag")]
    pub dir: Option<String>,
}

/// Which provider serves a path that names none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Routing {
    /// Provider of /v1/*, /v1/messages excepted.
    pub default_openai: String,
    /// Provider of /v1/messages*.
    pub default_anthropic: String,
    /// Provider of /v1beta/*.
    pub default_gemini: String,
}

/// How calls are put together into runs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Runs {
    /// What may tell which run a call belongs to. The order is fixed; leave out what should not count.
    pub sources: Vec<RunSource>,
    /// A run without calls for this long is over.
    #[schemars(range(min = 1, max = 10080))]
    pub idle_minutes: u64,
    /// Killed runs that are remembered. The oldest leave first, and may then go on.
    #[schemars(range(min = 100, max = 1_000_000))]
    pub max_killed: usize,
}

/// One way to tell the run of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunSource {
    /// A run id in a header or in the body.
    Declared,
    /// The client's own session id.
    Session,
    /// The id of an earlier answer.
    Previous,
    /// A trace id shared by several calls.
    Trace,
    /// A conversation that goes on.
    Conversation,
}

impl From<RunSource> for RunOrigin {
    fn from(source: RunSource) -> RunOrigin {
        match source {
            RunSource::Declared => RunOrigin::Declared,
            RunSource::Session => RunOrigin::Session,
            RunSource::Previous => RunOrigin::Previous,
            RunSource::Trace => RunOrigin::Trace,
            RunSource::Conversation => RunOrigin::Conversation,
        }
    }
}

/// What is recorded of each call, and for how long.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Events {
    /// Days that events are kept.
    #[schemars(range(min = 1, max = 3650))]
    pub retention_days: u64,
    /// Days that runs are kept after their last call.
    #[schemars(range(min = 1, max = 3650))]
    pub run_retention_days: u64,
    /// Longest time until a recorded call can be read on the dashboard.
    #[schemars(range(min = 10, max = 1000))]
    pub flush_ms: u64,
    /// Largest spool of events that wait for the database, in MiB.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub max_spool_mib: u64,
    /// Largest database in MiB; the oldest events go first. 0 is no limit.
    #[schemars(range(min = 0, max = 1_073_741_824))]
    pub max_db_mib: u64,
    /// ClickHouse that many nodes send their events to, and read pages from. Without one, each node has its own.
    #[schemars(example = &"http://user:password@localhost:8123/sprag")]
    pub clickhouse: Option<Secret>,
    /// Most events that go to ClickHouse at once.
    #[schemars(range(min = 1, max = 100_000))]
    pub batch_events: u64,
    /// Longest time that events wait for others to go to ClickHouse with.
    #[schemars(range(min = 100, max = 60_000))]
    pub batch_ms: u64,
}

impl Default for Proxy {
    fn default() -> Proxy {
        Proxy {
            listen: "127.0.0.1:7070".to_owned(),
            max_connections: 10_000,
            max_body_bytes: sprag_core::limits::BODY_BYTES as u64,
            max_header_bytes: 65_536,
            header_read_timeout_ms: 60_000,
            max_requests_per_agent: 1000,
            drain_seconds: 30,
            require_keys: false,
        }
    }
}

impl Default for Admin {
    fn default() -> Admin {
        Admin { listen: "127.0.0.1:7071".to_owned(), token: None, viewer_token: None }
    }
}

impl Default for Routing {
    fn default() -> Routing {
        Routing {
            default_openai: "openai".to_owned(),
            default_anthropic: "anthropic".to_owned(),
            default_gemini: "gemini".to_owned(),
        }
    }
}

impl Default for Runs {
    fn default() -> Runs {
        use RunSource::{Conversation, Declared, Previous, Session, Trace};
        Runs {
            sources: vec![Declared, Session, Previous, Trace, Conversation],
            idle_minutes: 60,
            max_killed: KILLED_RUNS,
        }
    }
}

impl Default for Events {
    fn default() -> Events {
        Events {
            retention_days: 30,
            run_retention_days: 90,
            flush_ms: 500,
            max_spool_mib: 1024,
            max_db_mib: 0,
            clickhouse: None,
            batch_events: 10_000,
            batch_ms: 1000,
        }
    }
}
