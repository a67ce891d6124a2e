//! A Sprag under a clock of its own, its provider, its callers and its admin.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use sprag::clock::Clock;
use sprag::config::{Secret, Settings};
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{Provider, Script};

use crate::sprag::{Sprag, without_detection};

const TOKEN: &str = "a-token-that-nobody-will-ever-guess-0123";
const START: &str = "2026-02-03T09:00:00Z";

pub(crate) struct Place {
    pub(crate) sprag: Sprag,
    pub(crate) provider: Provider,
    clock: Arc<AtomicI64>,
}

impl Place {
    /// Without detection, which `change` may set.
    pub(crate) async fn start(change: impl FnOnce(&mut Settings)) -> Place {
        let provider = Provider::start(Script::new()).unwrap();
        let clock = Arc::new(AtomicI64::new(millis(START)));
        let sprag = Sprag::start_at(&provider, Clock::Scripted(clock.clone()), |settings| {
            settings.admin.token = Some(Secret::new(TOKEN));
            without_detection(settings);
            change(settings);
        })
        .await;
        Place { sprag, provider, clock }
    }

    pub(crate) fn set_time(&self, moment: &str) {
        self.clock.store(millis(moment), Ordering::Relaxed);
    }

    pub(crate) fn pass_seconds(&self, seconds: i64) {
        self.clock.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    /// A call that is not sent yet.
    pub(crate) fn call(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> client::Call {
        let call = client::post_json(self.sprag.url(path), body);
        headers.iter().fold(call, |call, (name, value)| call.header(name, value))
    }

    /// Asks the model something.
    pub(crate) async fn ask(&self, prompt: &str, headers: &[(&str, &str)]) -> Whole {
        let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": prompt}]});
        self.call("/v1/chat/completions", &body, headers).fetch().await.unwrap()
    }

    /// Asks the admin API; gives the status and what it says.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let call = client::post_json(format!("http://{}/api/v1{path}", self.sprag.admin), body);
        let call = call.method(method.parse().unwrap()).header("authorization", &format!("Bearer {TOKEN}"));
        let answer = call.fetch().await.unwrap();
        (answer.status.as_u16(), answer.json())
    }

    /// A page, as a browser with a session gets it.
    pub(crate) async fn page(&self, path: &str) -> String {
        let cookie = self.sign_in().await;
        let answer = client::get(format!("http://{}{path}", self.sprag.admin)).header("cookie", &cookie).fetch().await;
        String::from_utf8(answer.unwrap().body.to_vec()).unwrap()
    }

    /// Presses a button of a page.
    pub(crate) async fn submit(&self, path: &str, form: &str) -> u16 {
        let cookie = self.sign_in().await;
        let page =
            client::get(format!("http://{}/", self.sprag.admin)).header("cookie", &cookie).fetch().await.unwrap();
        let page = String::from_utf8(page.body.to_vec()).unwrap();
        let csrf = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let call = client::post(format!("http://{}{path}", self.sprag.admin), format!("{form}&csrf={csrf}"));
        let call = call.header("content-type", "application/x-www-form-urlencoded").header("cookie", &cookie);
        call.header("origin", "null").header("sec-fetch-site", "same-origin").fetch().await.unwrap().status.as_u16()
    }

    async fn sign_in(&self) -> String {
        let answer = client::get(format!("http://{}/login?token={TOKEN}", self.sprag.admin)).fetch().await.unwrap();
        answer.header("set-cookie").split(';').next().unwrap().to_owned()
    }
}

/// Why Sprag stopped a call; empty where it did not.
pub(crate) fn stopped(answer: &Whole) -> &str {
    answer.headers.get("x-sprag-blocked").map_or("", |value| value.to_str().unwrap())
}

fn millis(moment: &str) -> i64 {
    moment.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}
