//! What the whole program shares. Built once, handed to everything as an `Arc`.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use arc_swap::ArcSwap;
use sprag_core::event::Event;
use sprag_core::limits::HISTORY_MARKS;
use sprag_core::price::{Price, Prices};
use sprag_core::wire::Mark;
use sprag_store::history::{History, HistorySettings};
use sprag_store::state::{Recent, RunTotals, State};
use sprag_store::{DataDir, RunKey};
use tokio_util::task::TaskTracker;

use crate::clock::{Clock, Ids};
use crate::config::{Provider, Settings};
use crate::logging;
use crate::tokens::Tokens;
use crate::upstream::Upstreams;

/// The parts of a running Sprag.
pub struct App {
    /// The configuration in force; replaced whole by a reload.
    pub settings: ArcSwap<Settings>,
    /// Connections to the providers; rebuilt with the settings, kept where nothing changed.
    pub upstreams: ArcSwap<Upstreams>,
    /// Prices with the configured ones in front; rebuilt with the settings.
    pub prices: ArcSwap<Prices>,
    /// The runs that are under way.
    pub state: State,
    /// Conversations read before, so that only new messages are parsed.
    pub marks: Recent<Mark>,
    /// Every event, on disk.
    pub history: Arc<History>,
    /// Counts tokens that nobody reported.
    pub tokens: Tokens,
    /// Calls that end on another thread; the program waits for them before it stops.
    pub settling: TaskTracker,
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
        let history = History::open_embedded(data, history_settings(&settings))?;
        let prices = prices(&settings)?;
        let upstreams = Upstreams::new(&settings.providers, &Upstreams::default());
        Ok(Arc::new(App {
            settings: ArcSwap::from_pointee(settings),
            upstreams: ArcSwap::from_pointee(upstreams),
            prices: ArcSwap::from_pointee(prices),
            state: State::memory(),
            marks: Recent::new(HISTORY_MARKS),
            history: Arc::new(history),
            tokens: Tokens::default(),
            settling: TaskTracker::new(),
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
        let upstreams = Upstreams::new(&settings.providers, &self.upstreams.load());
        self.prices.store(Arc::new(prices));
        self.upstreams.store(Arc::new(upstreams));
        self.settings.store(Arc::new(settings));
        Ok(())
    }

    /// The price of a call: by the model that answered, or by the one that was asked for.
    pub(crate) fn price(&self, provider: &Provider, answered: Option<&str>, asked: Option<&str>) -> Option<Price> {
        let prices = self.prices.load();
        let find = |model: &str| prices.find(&provider.price_as, model).cloned();
        answered.and_then(find).or_else(|| asked.and_then(find))
    }

    /// Records an event: on disk before this returns, and as a line on the terminal.
    pub(crate) fn record(&self, event: &Event) {
        self.history.record(event);
        logging::call(&self.settings.load().log, event);
    }

    /// What is on record about a run that is not in memory.
    pub(crate) async fn recall(self: &Arc<Self>, key: &RunKey) -> Option<RunTotals> {
        let (history, key) = (self.history.clone(), key.clone());
        tokio::task::spawn_blocking(move || history.run_totals(&key).ok().flatten()).await.ok().flatten()
    }

    /// Forgets runs that have been idle for long. They stay on record.
    pub async fn sweep_forever(self: Arc<Self>) {
        let mut every = tokio::time::interval(Duration::from_secs(60));
        loop {
            every.tick().await;
            let idle = self.settings.load().runs.idle;
            let idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
            self.state.sweep(self.clock.now(), idle_ms);
        }
    }

    /// Where files are kept.
    pub fn data_dir(&self) -> PathBuf {
        self.settings.load().data_dir.clone()
    }
}

fn history_settings(settings: &Settings) -> HistorySettings {
    let days = |d: Duration| u32::try_from(d.as_secs() / 86_400).unwrap_or(u32::MAX);
    HistorySettings {
        flush_interval: settings.events.flush,
        spool_bytes: settings.events.max_spool_bytes,
        retention_days: days(settings.events.retention),
        run_retention_days: days(settings.events.run_retention),
        max_db_bytes: settings.events.max_db_bytes,
        ..HistorySettings::default()
    }
}

/// A list of prices in the data directory stands in for the built-in one.
pub(crate) const PRICE_FILE: &str = "prices.tsv";

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
