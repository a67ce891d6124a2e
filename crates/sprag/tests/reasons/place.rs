//! A Sprag in which every case of the table comes up, before a provider that answers whatever gets through.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use serde_json::Value;
use sprag::acts::KillOrder;
use sprag::clock::Clock;
use sprag::config::{Flags, Sources, load};
use sprag_core::id::AgentName;
use sprag_core::policy::KillKind;
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{Provider, Script};

use crate::sprag::Sprag;
use crate::table::{Act, Before, CONFIG, Case};
use crate::wire::{path, request};

/// A Tuesday, 22:13:20 in UTC.
const START: i64 = 1_700_000_000_000;
const CLOSED: &str = "fri";
const KILL_REASON: &str = "too-expensive";
/// What every call uses: 60 cents. No budget of the table pays for two.
const USAGE: &str = "input=60 output=0";

pub(crate) struct Place {
    provider: Provider,
    pub(crate) sprag: Sprag,
    /// Agents that have had the one call that passes.
    begun: BTreeSet<String>,
    /// The program that calls.
    pub(crate) user_agent: &'static str,
}

impl Place {
    pub(crate) async fn start(require_keys: bool) -> Place {
        let provider = Provider::start(Script::new()).unwrap();
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("reasons.toml");
        std::fs::write(&config, CONFIG.replace("CLOSED", CLOSED)).unwrap();
        let flags = Flags { config: Some(config), ..Flags::default() };
        let loaded = load(&Sources { flags, ..Sources::default() }).unwrap_or_else(|problems| panic!("{problems}"));
        let clock = Clock::Scripted(Arc::new(AtomicI64::new(START)));
        let sprag = Sprag::start_at(&provider, clock, |settings| {
            settings.policies = loaded.settings.policies;
            settings.prices = loaded.settings.prices;
            settings.proxy.require_keys = require_keys;
        });
        Place { sprag: sprag.await, provider, begun: BTreeSet::new(), user_agent: "curl/8" }
    }

    /// Does what leads to the stop, and gives the stop. Nothing of it reaches the provider.
    pub(crate) async fn provoke(&mut self, case: &Case, dialect: Dialect, is_stream: bool, run: &str) -> Whole {
        let agent = &case.case;
        let body = request(dialect, is_stream, &prompt(case, run));
        match case.before {
            Before::Nothing => {}
            Before::Call => self.passes(case, path(dialect, is_stream), &body, run).await,
            Before::AgentCall => {
                if self.begun.insert(agent.clone()) {
                    let first = format!("{agent}-first-of-the-agent");
                    let body = request(Dialect::OpenaiChat, false, &prompt(case, &first));
                    self.passes(case, path(Dialect::OpenaiChat, false), &body, &first).await;
                }
            }
        }
        match case.act {
            None => {}
            Some(Act::Kill) => self.kill(agent, run, KillKind::Kill).await,
            Some(Act::Pause) => self.kill(agent, run, KillKind::Pause).await,
            Some(Act::Deactivate) => {
                let agent = AgentName::parse(agent).unwrap();
                self.sprag.app.deactivate(agent, "anna".into(), "holiday".into()).await.unwrap();
            }
        }
        let before = self.forwarded();
        let stop = self.ask(case, path(dialect, is_stream), &body, run).await;
        assert_eq!(self.forwarded(), before, "{agent} {dialect:?}: what is refused is not sent on");
        stop
    }

    async fn passes(&self, case: &Case, path: &str, body: &Value, run: &str) {
        let answer = self.ask(case, path, body, run).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 200, "{}: {text}", case.case);
        assert!(!answer.headers.contains_key("x-sprag-blocked"), "{}: {text}", case.case);
    }

    async fn ask(&self, case: &Case, path: &str, body: &Value, run: &str) -> Whole {
        let url = self.sprag.url(&format!("/agents/{}{path}", case.case));
        let call = client::post_json(url, body).header("x-sprag-run-id", run).header("x-mock-usage", USAGE);
        let call = call.header("user-agent", self.user_agent);
        let key = format!("Bearer {}", case.key.as_deref().unwrap_or("sk-a-key-of-the-provider"));
        call.header("authorization", &key).fetch().await.unwrap()
    }

    async fn kill(&self, agent: &str, run: &str, kind: KillKind) {
        let scope = format!("run:{agent}/{run}").parse().unwrap();
        let (reason, by) = (KILL_REASON.to_owned(), "anna".to_owned());
        let order = KillOrder { scope, kind, reason, by, expires_at: None, proof: None };
        self.sprag.app.kill(order).await.unwrap();
    }

    fn forwarded(&self) -> u64 {
        self.provider.log().view().total
    }
}

/// Much the same length for all: by it is estimated what a call will use.
fn prompt(case: &Case, run: &str) -> String {
    format!("please tell me about {run} {}", case.says).trim_end().to_owned()
}
