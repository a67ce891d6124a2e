//! A Sprag with a configuration file, before a scripted provider, at a moment that moves only when told.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sprag::acts::{KeyOrder, KillOrder};
use sprag::clock::Clock;
use sprag::config::{Flags, Sources, load};
use sprag_core::id::AgentName;
use sprag_core::policy::{Budget, KillKind};
use sprag_testkit::client::Whole;
use sprag_testkit::{Provider, Script};

use crate::sprag::{Sprag, without_detection};

/// The secret that tokens of callers are signed with.
pub(crate) const JWT_SECRET: &str = "a secret of the tests, long enough";

/// Where the time begins unless a test says otherwise: a Tuesday.
pub(crate) const START: &str = "2026-02-03T09:00:00Z";

pub(crate) struct Configured {
    pub(crate) provider: Provider,
    pub(crate) sprag: Sprag,
    clock: Arc<AtomicI64>,
}

impl Configured {
    /// Without detection of loops, but on routes. `SECRET_FILE` in the text is a file with [`JWT_SECRET`].
    pub(crate) async fn start(text: &str) -> Configured {
        Configured::start_with(Script::new(), text, true).await
    }

    /// The same with a script, and with detection as configured.
    pub(crate) async fn start_with(script: Script, text: &str, is_undetected: bool) -> Configured {
        let provider = Provider::start(script).unwrap();
        let clock = Arc::new(AtomicI64::new(millis(START)));
        let files = tempfile::tempdir().unwrap();
        let (file, secret) = (files.path().join("sprag.toml"), files.path().join("secret"));
        std::fs::write(&secret, JWT_SECRET).unwrap();
        std::fs::write(&file, text.replace("SECRET_FILE", &format!("{:?}", secret.to_str().unwrap()))).unwrap();
        let flag = |name: &str| format!("{name}={}", provider.url()).parse().unwrap();
        let flags = Flags {
            config: Some(file),
            proxy: Some("127.0.0.1:0".into()),
            admin: Some("127.0.0.1:0".into()),
            providers: ["openai", "anthropic", "gemini", "mistral", "azure"].map(flag).to_vec(),
            ..Flags::default()
        };
        let loaded = load(&Sources { flags, ..Sources::default() });
        let mut loaded = loaded.map_err(|problems| problems.to_string()).unwrap();
        if is_undetected {
            without_detection(&mut loaded.settings);
        }
        let sprag = Sprag::start_at(&provider, Clock::Scripted(clock.clone()), |settings| {
            let data_dir = settings.data_dir.clone();
            *settings = loaded.settings;
            settings.data_dir = data_dir;
        })
        .await;
        Configured { provider, sprag, clock }
    }

    pub(crate) fn set_time(&self, moment: &str) {
        self.clock.store(millis(moment), Ordering::Relaxed);
    }

    pub(crate) fn pass_ms(&self, ms: i64) {
        self.clock.fetch_add(ms, Ordering::Relaxed);
    }

    pub(crate) fn pass_seconds(&self, seconds: i64) {
        self.pass_ms(seconds * 1000);
    }

    /// Makes a virtual key; gives the header that brings it.
    pub(crate) async fn issue_key(&self, agent: &str) -> (&'static str, String) {
        let agent = AgentName::parse(agent).unwrap();
        let (name, by) = ("night shift".to_owned(), "anna".to_owned());
        let order = KeyOrder { agent, name, expires_at: None, budget: Budget::default(), by };
        let issued = self.sprag.app.create_key(order).await.unwrap();
        ("authorization", format!("Bearer {}", issued.secret.reveal()))
    }

    pub(crate) async fn kill(&self, scope: &str) -> String {
        let order = KillOrder {
            kind: KillKind::Kill,
            scope: scope.parse().unwrap(),
            reason: "manual".to_owned(),
            by: "anna".to_owned(),
            expires_at: None,
            proof: None,
        };
        self.sprag.app.kill(order).await.unwrap().id.clone()
    }

    pub(crate) async fn lift(&self, id: String) {
        self.sprag.app.lift(id, "anna".to_owned()).await.unwrap().unwrap();
    }
}

/// Why Sprag stopped a call; empty where it did not.
pub(crate) fn stopped(answer: &Whole) -> &str {
    answer.header("x-sprag-blocked")
}

/// A header with a signed token.
pub(crate) fn token(claims: &serde_json::Value, secret: &str) -> String {
    let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
    format!("Bearer {}", jsonwebtoken::encode(&jsonwebtoken::Header::default(), claims, &key).unwrap())
}

pub(crate) fn millis(moment: &str) -> i64 {
    moment.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}
