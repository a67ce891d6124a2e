//! What the whole program shares. Built once, handed to everything as an `Arc`.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use arc_swap::{ArcSwap, ArcSwapOption};
use sprag_core::dlp::{Surface, self_test};
use sprag_core::event::Event;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::{CLUES_IN_MEMORY, HISTORY_MARKS, RUN_TREE_DEPTH};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Holder};
use sprag_core::price::{Price, Prices};
use sprag_core::time::Timestamp;
use sprag_core::wire::Mark;
use sprag_store::catalog::Bounds;
use sprag_store::history::{HandedOver, History, HistorySettings};
use sprag_store::shared_catalog::SharedCatalog;
use sprag_store::state::{Ancestor, Recent, RunTotals, State};
use sprag_store::{Catalog, DataDir, Outbox, RunKey, StoreError};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::alerts::Alerts;
use crate::alerts::links::Links;
use crate::clock::{Clock, Ids};
use crate::config::{Provider, Settings};
use crate::gateway::{DetectionFailures, Line, Pilots, Throttle};
use crate::link::Link;
use crate::live::Live;
use crate::logging;
use crate::metrics::Metrics;
use crate::otel::Tracer;
use crate::policies::{PolicyBook, PolicyInForce};
use crate::reload::Reloaded;
use crate::tokens::Tokens;
use crate::upstream::Upstreams;
use crate::vaults::Vaults;
use crate::windows::Windows;

/// What a holder has spent since a moment, as another record has it.
pub(crate) type SpentElsewhere = Box<dyn Fn(&Holder, Timestamp) -> Result<NanoUsd, StoreError> + Send + Sync>;

/// The parts of a running Sprag.
pub struct App {
    /// The configuration in force; replaced whole by a reload.
    pub settings: ArcSwap<Settings>,
    /// Connections to the providers; rebuilt with the settings, kept where nothing changed.
    pub upstreams: ArcSwap<Upstreams>,
    /// The policy of every agent; rebuilt with the settings and with what is set for an agent.
    pub policies: ArcSwap<PolicyBook>,
    /// Prices with the configured ones in front; rebuilt with the settings.
    pub prices: ArcSwap<Prices>,
    /// The runs that are under way.
    pub state: State,
    /// The way to what several nodes share; none for a Sprag on its own.
    pub link: Option<Link>,
    /// Kills, keys, and where agents stand. Nodes may share it.
    pub catalog: Arc<Catalog>,
    /// The way on which nodes give each other changes of it; set while a server runs that shares it.
    pub shared_catalog: OnceLock<Arc<SharedCatalog>>,
    /// The number of the catalog's last change, for calls under way.
    pub changes: watch::Sender<u64>,
    /// Conversations read before, so that only new messages are parsed.
    pub marks: Recent<Mark>,
    /// Every event, on disk.
    pub history: Arc<History>,
    /// Who looks at events as they happen.
    pub live: Live,
    /// What is counted of calls.
    pub metrics: Metrics,
    /// Makes traces of calls, where somebody collects them.
    pub tracer: Option<Tracer>,
    /// Who is told what happens.
    pub alerts: Alerts,
    /// What messages let people do with one click.
    pub(crate) links: Links,
    /// Counts tokens that nobody reported.
    pub tokens: Tokens,
    /// Calls that end on another thread; the program waits for them before it stops.
    pub settling: TaskTracker,
    /// The calls that go through the line now.
    pub line: Arc<Line>,
    /// Where throttled requests wait.
    pub throttle: Throttle,
    /// What went wrong in loop detection.
    pub detection_failures: DetectionFailures,
    /// First calls of their kind under a budget.
    pub pilots: Pilots,
    /// The civil day and month.
    pub windows: Windows,
    /// Which ways of data hide a canary, tried at the start and with each configuration.
    pub coverage: ArcSwap<Vec<Surface>>,
    /// What was hidden of runs and can be put back.
    pub vaults: Vaults,
    /// How the last reload went; none before the first.
    pub last_reload: ArcSwapOption<Reloaded>,
    /// What was spent according to a record other than this process's own.
    pub(crate) elsewhere: OnceLock<SpentElsewhere>,
    /// What commands hand over to this process.
    pub(crate) handed_over: Mutex<HandedOver>,
    rebuilding: Mutex<()>,
    /// Held by whoever corrects what an account has spent.
    pub(crate) adjusting: Mutex<()>,
    /// The time.
    pub clock: Clock,
    /// New ids.
    pub ids: Ids,
}

impl App {
    /// Opens the data directory and puts the parts together.
    ///
    /// # Errors
    /// When the data directory cannot be used, or a configured price makes no sense.
    pub fn new(settings: Settings, clock: Clock, ids: Ids) -> Result<Arc<App>> {
        let data = Arc::new(DataDir::open(&settings.data_dir)?);
        let changes = watch::Sender::new(0);
        let teller = changes.clone();
        let tell = move |generation| {
            teller.send_replace(generation);
        };
        let bounds = Bounds { killed_runs: settings.runs.max_killed, ..Bounds::default() };
        let catalog = Arc::new(Catalog::open(data.clone(), bounds, clock.now(), tell)?);
        let alerts = Alerts::new(Outbox::open(data.clone())?, &settings.alerts)?;
        let links = Links::open(data.clone())?;
        let history = History::open(data, history_settings(&settings))?;
        let state = State::memory();
        let link = Link::connect(&settings.state, &clock)?;
        state.set_budget_marks(alerts.in_force().rules.budget_thresholds());
        remember_killed(&state, &catalog)?;
        let prices = prices(&settings)?;
        let upstreams = Upstreams::new(settings.upstreams(), &Upstreams::default());
        let policies = PolicyBook::new(&settings.policies, &catalog.snapshot(), None);
        let coverage = coverage(&settings);
        let metrics = Metrics::default();
        metrics.expect_upstreams(settings.upstreams().map(|provider| &*provider.name));
        let tracer = Tracer::new(settings.telemetry.traces.as_ref());
        Ok(Arc::new(App {
            settings: ArcSwap::from_pointee(settings),
            upstreams: ArcSwap::from_pointee(upstreams),
            policies: ArcSwap::from_pointee(policies),
            pilots: Pilots::default(),
            windows: Windows::default(),
            vaults: Vaults::default(),
            coverage: ArcSwap::from_pointee(coverage),
            last_reload: ArcSwapOption::empty(),
            elsewhere: OnceLock::new(),
            handed_over: Mutex::default(),
            rebuilding: Mutex::new(()),
            adjusting: Mutex::new(()),
            prices: ArcSwap::from_pointee(prices),
            state,
            link,
            catalog,
            shared_catalog: OnceLock::new(),
            changes,
            marks: Recent::new(HISTORY_MARKS),
            history: Arc::new(history),
            live: Live::default(),
            metrics,
            tracer,
            alerts,
            links,
            tokens: Tokens::default(),
            settling: TaskTracker::new(),
            line: Arc::default(),
            throttle: Throttle::default(),
            detection_failures: DetectionFailures::default(),
            clock,
            ids,
        }))
    }

    /// Puts a new configuration into force. Calls under way end under the old one.
    ///
    /// # Errors
    /// When a configured price makes no sense; then nothing changes.
    pub fn replace_settings(&self, settings: Settings) -> Result<()> {
        let prices = prices(&settings)?;
        let upstreams = Upstreams::new(settings.upstreams(), &self.upstreams.load());
        self.prices.store(Arc::new(prices));
        self.coverage.store(Arc::new(coverage(&settings)));
        self.upstreams.store(Arc::new(upstreams));
        self.metrics.expect_upstreams(settings.upstreams().map(|provider| &*provider.name));
        self.settings.store(Arc::new(settings));
        self.reconfigure_alerts();
        self.rebuild_policies();
        Ok(())
    }

    /// Puts configured channels and rules together again with those made at run time.
    pub(crate) fn reconfigure_alerts(&self) {
        self.alerts.configure(&self.settings.load().alerts);
        self.heed_thresholds();
    }

    /// Lets accounts say when they reach what a rule of alerts wants to hear of.
    fn heed_thresholds(&self) {
        self.state.set_budget_marks(self.alerts.in_force().rules.budget_thresholds());
    }

    /// Changes what is set for an agent, and puts its policy together again before anybody goes on.
    pub(crate) fn change_policy<T>(&self, agent: &AgentName, change: impl FnOnce() -> T) -> T {
        self.change_policies(change, |_| vec![agent.clone()])
    }

    /// The same for the agents of which a change says that they are meant.
    pub(crate) fn change_policies<T>(&self, change: impl FnOnce() -> T, meant: impl FnOnce(&T) -> Vec<AgentName>) -> T {
        // One at a time, so that no change is made to something older, and the last book has seen the last change.
        let _alone = self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change();
        let agents = meant(&changed);
        if agents.is_empty() {
            return changed;
        }
        let (snapshot, settings, before) = (self.catalog.snapshot(), self.settings.load(), self.policies.load());
        let book = match agents.as_slice() {
            [agent] => before.with(agent, &settings.policies, snapshot.agent(agent).map(|standing| &**standing)),
            _ => PolicyBook::new(&settings.policies, &snapshot, Some(&before)),
        };
        self.policies.store(Arc::new(book));
        // A limit that comes back has not seen what was spent while it was away.
        let is_meant = |id: &AccountId| match &id.holder {
            Holder::Agent(of) | Holder::Run(of, _) => agents.contains(of),
            Holder::Everything | Holder::Key(_) => false,
        };
        self.state.forget_accounts(is_meant);
        changed
    }

    /// Puts all policies together again after a new configuration.
    fn rebuild_policies(&self) {
        let _alone = self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        let book =
            PolicyBook::new(&self.settings.load().policies, &self.catalog.snapshot(), Some(&self.policies.load()));
        self.policies.store(Arc::new(book));
        self.state.forget_accounts(|_| true);
    }

    /// The policy of an agent.
    pub(crate) fn policy(&self, agent: &AgentName) -> Arc<PolicyInForce> {
        self.policies.load().of(agent).clone()
    }

    /// The price of a call: by the model that answered, or by the one that was asked for.
    pub(crate) fn price(&self, provider: &Provider, answered: Option<&str>, asked: Option<&str>) -> Option<Price> {
        let prices = self.prices.load();
        let find = |model: &str| prices.find(&provider.price_as, model).cloned();
        answered.and_then(find).or_else(|| asked.and_then(find))
    }

    /// Records an event: on disk before this returns, and as a line on the terminal.
    pub(crate) fn record(&self, event: &Event) {
        self.note_in_trace(event, None);
        self.history.write_out();
    }

    /// The same for a call, which may belong to a trace: on disk with the next [`History::write_out`].
    pub(crate) fn note_in_trace(&self, event: &Event, trace_id: Option<&str>) {
        self.history.note(event);
        self.live.tell(event);
        let settings = self.settings.load();
        self.alerts.tell(event);
        logging::call(&settings.log, event, trace_id);
    }

    /// What is on record about a run that is not in memory, and about the runs above it; `parent` is what the call
    /// itself says.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) async fn recall(self: &Arc<Self>, key: &RunKey, parent: Option<&RunId>) -> Result<Recalled, StoreError> {
        let (app, key, parent) = (self.clone(), key.clone(), parent.cloned());
        let recalled = tokio::task::spawn_blocking(move || app.recall_now(&key, parent)).await;
        recalled.unwrap_or(Err(StoreError::WriterGone))
    }

    fn recall_now(&self, key: &RunKey, parent: Option<RunId>) -> Result<Recalled, StoreError> {
        let past = self.history.recall(key)?;
        let (totals, above) = past.map_or((None, None), |past| (Some(past.totals), past.parent));
        let parent = parent.or(above);
        let mut recalled = Recalled { totals, parent: parent.clone(), lineage: Vec::new() };
        let mut next = parent;
        while let Some(id) = next {
            let key = RunKey { agent: key.agent.clone(), id };
            let is_known = self.state.totals(&key).is_some();
            if is_known || recalled.lineage.len() == RUN_TREE_DEPTH {
                break;
            }
            let past = self.history.recall(&key)?;
            let (totals, above) = past.map_or((None, None), |past| (Some(past.totals), past.parent));
            next = above;
            recalled.lineage.push(Ancestor { id: key.id, totals });
        }
        Ok(recalled)
    }

    /// Forgets runs that have been idle for long. They stay on record.
    pub async fn sweep_forever(self: Arc<Self>) {
        let mut every = tokio::time::interval(Duration::from_secs(60));
        loop {
            every.tick().await;
            let idle = self.settings.load().runs.idle;
            let idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
            self.state.sweep(self.clock.now(), idle_ms);
            self.vaults.sweep(self.clock.now(), idle_ms);
        }
    }

    /// Where files are kept.
    pub fn data_dir(&self) -> PathBuf {
        self.settings.load().data_dir.clone()
    }
}

/// What is on record about a run.
#[derive(Debug, Default)]
pub(crate) struct Recalled {
    pub(crate) totals: Option<RunTotals>,
    pub(crate) parent: Option<RunId>,
    /// The runs above it of which memory knows nothing, nearest first.
    pub(crate) lineage: Vec<Ancestor>,
}

/// Lets the evidence of killed runs lead to them again: a conversation must not go on because Sprag was restarted.
fn remember_killed(state: &State, catalog: &Catalog) -> Result<()> {
    // Half of the room, so that runs under way find theirs; the latest are remembered last and stay longest.
    for (run, clues) in catalog.clues(CLUES_IN_MEMORY / 2)?.iter().rev() {
        state.remember(clues, run);
    }
    Ok(())
}

pub(crate) fn history_settings(settings: &Settings) -> HistorySettings {
    let days = |d: Duration| u32::try_from(d.as_secs() / 86_400).unwrap_or(u32::MAX);
    HistorySettings {
        flush_interval: settings.events.flush,
        spool_bytes: settings.events.max_spool_bytes,
        retention_days: days(settings.events.retention),
        run_retention_days: days(settings.events.run_retention),
        max_db_bytes: settings.events.max_db_bytes,
        clickhouse: settings.events.clickhouse.clone(),
        ..HistorySettings::default()
    }
}

/// A list of prices in the data directory stands in for the built-in one.
pub(crate) const PRICE_FILE: &str = "prices.tsv";

/// Sends a canary every way, and names those that let it through.
fn coverage(settings: &Settings) -> Vec<Surface> {
    let surfaces = self_test(&settings.dlp.scanner);
    for surface in surfaces.iter().filter(|surface| !surface.is_covered) {
        tracing::error!(
            dialect = ?surface.dialect,
            direction = ?surface.direction,
            stream = surface.is_stream,
            "secrets are not found here: a canary came through"
        );
    }
    surfaces
}

/// The prices in force: a list, with the configured prices in front.
pub(crate) fn prices(settings: &Settings) -> Result<Prices> {
    let file = settings.data_dir.join(PRICE_FILE);
    let list = match std::fs::read_to_string(&file) {
        Ok(text) => Prices::load(&text).with_context(|| format!("reading the prices in {}", file.display()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => Prices::embedded(),
        Err(error) => return Err(error).with_context(|| format!("reading {}", file.display())),
    };
    list.with_overrides(&settings.prices.overrides).context("reading the configured prices")
}
