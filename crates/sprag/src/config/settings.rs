//! What the program uses: every default filled in, every text parsed, nothing left open that could be decided.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use serde_json::Value;
use sprag_core::dlp::{Scanner, Seen};
use sprag_core::event::RunOrigin;
use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::Rules;
use sprag_core::policy::{Budget, Policy, Zone};
use sprag_core::price::PriceOverride;
use sprag_core::wire::{Family, Manner, Manners, Reason};
use sprag_store::history::ClickHouseSettings;

use super::alerts::Alerts;
use super::base_url::BaseUrl;
use super::file::{Compat, Http2, LogCalls, LogFormat, OnStateLoss, Unpriced};
use super::route_rule::RouteRule;
use super::secret::Secret;
use super::values::Values;
use crate::jwt::Verifier;

/// The whole configuration, ready for use.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The listener that agents talk to.
    pub proxy: Proxy,
    /// The listener of the dashboard and the admin API.
    pub admin: Admin,
    /// Where Sprag keeps its files.
    pub data_dir: PathBuf,
    /// The APIs behind Sprag, by name. Shared, because calls in flight outlive a reload.
    pub providers: BTreeMap<Arc<str>, Arc<Provider>>,
    /// Which provider serves a path that names none.
    pub routing: Routing,
    /// Other HTTP APIs behind Sprag, those that say more about a path first.
    pub routes: Vec<Arc<RouteRule>>,
    /// How calls are put together into runs.
    pub runs: Runs,
    /// What agents may do.
    pub policies: Policies,
    /// What is looked for in requests and answers.
    pub dlp: Dlp,
    /// What everybody together may spend.
    pub budget: GlobalBudget,
    /// What Sprag adds to answers.
    pub responses: Responses,
    /// What several Sprags share.
    pub state: State,
    /// What is recorded, and for how long.
    pub events: Events,
    /// What calls cost.
    pub prices: Prices,
    /// Verifies tokens of callers; absent without a key.
    pub jwt: Option<Arc<Verifier>>,
    /// Who is told what happens.
    pub alerts: Alerts,
    /// What can be seen from outside.
    pub telemetry: Telemetry,
    /// What Sprag writes to the terminal.
    pub log: Log,
    /// Every value as it is written, and who wrote it.
    pub values: Values,
}

/// What is looked for in requests and answers.
#[derive(Clone, Debug)]
pub struct Dlp {
    /// As it is written.
    pub written: super::file::Dlp,
    /// Looks.
    pub scanner: Arc<Scanner>,
    /// What has been looked at.
    pub seen: Arc<Seen>,
}

impl PartialEq for Dlp {
    fn eq(&self, other: &Dlp) -> bool {
        self.written == other.written
    }
}

/// The listener that agents talk to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Connections open at once.
    pub max_connections: usize,
    /// Largest request body.
    pub max_body_bytes: usize,
    /// Largest request head.
    pub max_header_bytes: usize,
    /// Time for a client to send the head of a request.
    pub header_read_timeout: Duration,
    /// Requests of one agent in flight at once.
    pub max_requests_per_agent: usize,
    /// Grace for answers in flight at the end.
    pub drain: Duration,
    /// Only requests with a virtual key are let in.
    pub require_keys: bool,
}

/// The listener of the dashboard and the admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The configured token. Without one, [`keep_admin_token`](super::keep_admin_token) makes one.
    pub token: Option<Secret>,
    /// The token of those who may look and change nothing.
    pub viewer_token: Option<Secret>,
}

/// One API behind Sprag.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Its name in paths, events and metrics.
    pub name: Arc<str>,
    /// Stands before the path that the client sent.
    pub base: BaseUrl,
    /// Its wire format.
    pub family: Family,
    /// Where a key held by Sprag goes.
    pub auth: Auth,
    /// The key held by Sprag, for callers with virtual keys.
    pub key: Option<Secret>,
    /// Set on every request. Marked sensitive, so that they never print.
    pub headers: HeaderMap,
    /// Whether to ask for usage in chat streams.
    pub stream_usage: bool,
    /// How long it may take.
    pub timeouts: Timeouts,
    /// When to speak HTTP/2.
    pub http2: Http2,
    /// Certificate authorities to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Its name in the price table.
    pub price_as: Arc<str>,
}

/// Where a key held by Sprag goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// `authorization: Bearer KEY`
    Bearer,
    /// The key alone in this header.
    Header(HeaderName),
    /// Nowhere.
    None,
}

/// How long a provider may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// From the request to the first byte of the answer.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
    /// The whole call; none for no limit.
    pub total: Option<Duration>,
}

/// Which provider serves a path that names none. Each is a key of [`Settings::providers`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// `/v1/*`
    pub default_openai: Arc<str>,
    /// `/v1/messages*`
    pub default_anthropic: Arc<str>,
    /// `/v1beta/*`
    pub default_gemini: Arc<str>,
}

/// How calls are put together into runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    /// What counts, each once, in the order in which it is asked.
    pub sources: Vec<RunOrigin>,
    /// A run without calls for this long is over.
    pub idle: Duration,
    /// Killed runs that are remembered.
    pub max_killed: usize,
    /// The run of the command that all calls come from, where there is one. No file says so: `sprag run` does.
    pub command: Option<RunId>,
}

/// What agents may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    /// The policy of agents that have none of their own.
    pub defaults: Policy,
    /// The others, each whole.
    pub agents: BTreeMap<AgentName, Policy>,
    /// The keys that are written for each of the others, to tell where a part of a policy comes from.
    pub written: BTreeMap<AgentName, Value>,
}

/// What everybody together may spend.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalBudget {
    /// The limits.
    pub budget: Budget,
    /// Where days and months begin, for the budgets of every level.
    pub zone: Zone,
}

impl Policies {
    /// The policy of an agent.
    #[must_use]
    pub fn of(&self, agent: &AgentName) -> &Policy {
        self.agents.get(agent).unwrap_or(&self.defaults)
    }

    /// Changes the rules of detection for everybody.
    pub fn change_rules(&mut self, change: impl Fn(&mut Rules)) {
        let policies = self.agents.values_mut().chain([&mut self.defaults]);
        policies.for_each(|policy| change(Arc::make_mut(&mut policy.rules)));
    }
}

/// What Sprag adds to answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Responses {
    /// The `sprag` object in answers.
    pub metadata: bool,
    /// Other gateways to imitate, each once.
    pub compat: Vec<Compat>,
    /// The status of a refusal is chosen for the calling client.
    pub adapt: bool,
    /// How single reasons are put.
    pub reasons: BTreeMap<Reason, Manner>,
}

/// What several Sprags share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The Redis that all of them share; none for a Sprag on its own. Its password is never shown.
    pub redis: Option<Secret>,
    /// Longest wait for one answer.
    pub timeout: Duration,
    /// What happens to calls while it is away.
    pub on_loss: OnStateLoss,
}

/// What is recorded, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// How long events are kept.
    pub retention: Duration,
    /// How long runs are kept after their last call.
    pub run_retention: Duration,
    /// Longest time between a call and its event on disk.
    pub flush: Duration,
    /// Largest spool of events that wait for the database.
    pub max_spool_bytes: u64,
    /// Largest database; none for no limit.
    pub max_db_bytes: Option<u64>,
    /// The history that this node shares with others.
    pub clickhouse: Option<ClickHouseSettings>,
}

/// What calls cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    /// What happens to a call to a model without a price.
    pub unpriced: Unpriced,
    /// Own prices; they stand before the built-in table.
    pub overrides: Vec<PriceOverride>,
}

/// What can be seen from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// `/metrics` needs no token; the admin listener is on loopback then.
    pub metrics_open: bool,
    /// Agents are counted apart.
    pub metrics_by_agent: bool,
    /// Where traces go; nothing where there are none.
    pub traces: Option<Traces>,
}

/// Where traces go.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// Where they are posted.
    pub url: String,
    /// Headers of every post; marked as not to be shown.
    pub headers: HeaderMap,
    /// What the service is called.
    pub service_name: String,
    /// Share of the traces that begin here which is recorded.
    pub sample_ratio: f64,
}

/// What Sprag writes to the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// How a line looks. `Auto` is decided by whoever knows the terminal.
    pub format: LogFormat,
    /// A directive that `tracing_subscriber::EnvFilter` reads.
    pub level: String,
    /// Whether each call gets a line. `Auto` is decided there too.
    pub calls: LogCalls,
}

impl Settings {
    /// Everything that requests may be sent to.
    pub fn upstreams(&self) -> impl Iterator<Item = &Arc<Provider>> {
        self.providers.values().chain(self.routes.iter().map(|route| &route.upstream))
    }
}

impl Provider {
    /// The URL to call for a path (and query) that a client sent, agent and provider already taken off.
    ///
    /// # Errors
    /// If the path cannot stand in a URL.
    pub fn url(&self, path_and_query: &str) -> Result<http::Uri, http::Error> {
        self.base.join(path_and_query)
    }
}

impl Responses {
    /// Whether answers shall also be as this gateway gives them.
    #[must_use]
    pub fn imitates(&self, gateway: Compat) -> bool {
        self.compat.contains(&gateway)
    }

    /// How refusals are put.
    #[must_use]
    pub fn manners(&self) -> Manners<'_> {
        Manners { adapts: self.adapt, imitates_agentwall: self.imitates(Compat::Agentwall), reasons: &self.reasons }
    }
}
