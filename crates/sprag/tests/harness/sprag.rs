//! A Sprag for one test: on free ports, with a data directory of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sprag::app::App;
use sprag::clock::{Clock, Ids};
use sprag::config::{Flags, Settings, Sources, load};
use sprag::server::Server;
use sprag_core::dlp::{DlpRules, Profile};
use sprag_core::event::Event;
use sprag_core::time::Timestamp;
use sprag_store::history::EventFilter;
use sprag_testkit::Provider;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longer than any working test needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running Sprag. It ends with the runtime of its test; [`Sprag::stop`] drains it before.
pub(crate) struct Sprag {
    pub(crate) app: Arc<App>,
    pub(crate) proxy: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) data: TempDir,
    pub(crate) shutdown: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
}

impl Sprag {
    /// Starts before `provider`, which stands in for OpenAI, Anthropic and Gemini.
    pub(crate) async fn start(provider: &Provider) -> Sprag {
        Sprag::start_with(provider, |_| {}).await
    }

    /// The same with other settings.
    pub(crate) async fn start_with(provider: &Provider, change: impl FnOnce(&mut Settings)) -> Sprag {
        Sprag::start_at(provider, Clock::Real, change).await
    }

    /// The same with a clock of the test's own.
    pub(crate) async fn start_at(provider: &Provider, clock: Clock, change: impl FnOnce(&mut Settings)) -> Sprag {
        let data = tempfile::tempdir().unwrap();
        let mut settings = settings(provider, data.path().to_owned());
        change(&mut settings);
        let begun = Instant::now();
        let app = loop {
            match App::new(settings.clone(), clock.clone(), Ids::Random) {
                // A program that another test starts holds our lock too, from its fork until it is itself.
                Err(error) if is_in_use(&error) && begun.elapsed() < PATIENCE => tokio::task::yield_now().await,
                made => break made.unwrap(),
            }
        };
        let server = Server::bind(app.clone()).await.unwrap();
        let (proxy, admin) = (server.proxy_addr().unwrap(), server.admin_addr().unwrap());
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(server.run(shutdown.clone()));
        Sprag { app, proxy, admin, data, shutdown, serving }
    }

    /// The URL of a path on the proxy.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.proxy)
    }

    /// Every event so far, the oldest first.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.app.history.flush().unwrap();
        let mut events = self.app.history.events(&EventFilter::default(), None, 500).unwrap().items;
        events.reverse();
        events
    }

    /// Waits until so many events are on record and nothing is in flight; gives the newest of them, the oldest first.
    pub(crate) async fn settled(&self, count: usize) -> Vec<Event> {
        let begun = Instant::now();
        loop {
            let since = Timestamp(0);
            self.app.history.flush().unwrap();
            let totals = self.app.history.totals(since, None).unwrap();
            if totals.requests as usize >= count && self.app.state.counts().in_flight == 0 {
                assert_eq!(totals.requests as usize, count, "every call is settled once");
                return self.events();
            }
            assert!(begun.elapsed() < PATIENCE, "{} of {count} calls on record: {:?}", totals.requests, self.events());
            tokio::task::yield_now().await;
        }
    }

    /// Drains and stops.
    pub(crate) async fn stop(self) -> TempDir {
        self.shutdown.cancel();
        self.serving.await.unwrap().unwrap();
        // The data directory is free when the last task has let go of it.
        let begun = Instant::now();
        while Arc::strong_count(&self.app) > 1 {
            assert!(begun.elapsed() < PATIENCE, "somebody still holds it");
            tokio::task::yield_now().await;
        }
        self.data
    }
}

fn is_in_use(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(sprag_store::StoreError::InUse { .. }))
}

/// For tests that send the same again and again because they are about something else.
pub(crate) fn without_detection(settings: &mut Settings) {
    settings.policies.change_rules(|rules| {
        rules.every_common().into_iter().for_each(|common| common.mode = sprag_core::loops::Mode::Off);
    });
}

/// Switches the look for secrets off: answers pass byte for byte.
pub(crate) fn without_dlp(settings: &mut Settings) {
    let off = DlpRules { profile: Profile::Off, ..DlpRules::default() };
    settings.policies.defaults.dlp = Arc::new(off);
}

/// Settings for a test: free ports, the provider behind every family.
pub(crate) fn settings(provider: &Provider, data: PathBuf) -> Settings {
    let flag = |name: &str| format!("{name}={}", provider.url()).parse().unwrap();
    let flags = Flags {
        proxy: Some("127.0.0.1:0".into()),
        admin: Some("127.0.0.1:0".into()),
        data: Some(data),
        providers: ["openai", "anthropic", "gemini", "mistral"].map(flag).to_vec(),
        ..Flags::default()
    };
    load(&Sources { flags, ..Sources::default() }).unwrap().settings
}
