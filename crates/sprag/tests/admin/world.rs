//! A Sprag, the provider behind it, and a browser and a program in front of its admin side.

use http::Method;
use serde_json::{Value, json};
use sprag::clock::Clock;
use sprag::config::{Secret, Settings};
use sprag_core::event::Event;
use sprag_testkit::client::{self, Call, Whole};
use sprag_testkit::{Provider, Script};

use crate::sprag::Sprag;

pub(crate) const TOKEN: &str = "a-token-that-nobody-will-ever-guess-0123";

pub(crate) struct World {
    pub(crate) sprag: Sprag,
    pub(crate) token: String,
    pub(crate) provider: Provider,
}

impl World {
    pub(crate) async fn start() -> World {
        World::with_token(TOKEN).await
    }

    pub(crate) async fn with_token(token: &str) -> World {
        World::configured(token, |_| {}).await
    }

    /// The same with other settings.
    pub(crate) async fn configured(token: &str, change: impl FnOnce(&mut Settings)) -> World {
        World::at(Clock::Real, token, change).await
    }

    /// The same with a clock of the test's own.
    pub(crate) async fn at(clock: Clock, token: &str, change: impl FnOnce(&mut Settings)) -> World {
        let provider = Provider::start(Script::new()).unwrap();
        let secret = Secret::new(token);
        let sprag = Sprag::start_at(&provider, clock, |settings| {
            settings.admin.token = Some(secret);
            change(settings);
        });
        World { sprag: sprag.await, token: token.to_owned(), provider }
    }

    /// A request to the admin listener, without any proof of who asks.
    pub(crate) fn ask(&self, path: &str) -> Call {
        client::get(format!("http://{}{path}", self.sprag.admin))
    }

    /// What a program with the token gets.
    pub(crate) async fn api(&self, path: &str) -> Whole {
        let bearer = format!("Bearer {}", self.token);
        self.ask(&format!("/api/v1{path}")).header("authorization", &bearer).fetch().await.unwrap()
    }

    /// The same as JSON; anything but 200 is a failure.
    pub(crate) async fn json(&self, path: &str) -> Value {
        let answer = self.api(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", text(&answer));
        assert_eq!(answer.header("content-type"), "application/json");
        answer.json()
    }

    /// Signs a browser in; gives its cookie.
    pub(crate) async fn sign_in(&self) -> String {
        let answer = self.ask(&format!("/login?token={}", self.token)).fetch().await.unwrap();
        cookie(&answer)
    }

    /// What the forms of a signed-in browser carry.
    pub(crate) async fn csrf(&self, cookie: &str) -> String {
        let page = text(&self.ask("/").header("cookie", cookie).fetch().await.unwrap());
        let field = page.split("name=\"csrf\" value=\"").nth(1).unwrap();
        field.split('"').next().unwrap().to_owned()
    }

    /// What a signed-in browser gets.
    pub(crate) async fn page(&self, path: &str) -> Whole {
        let cookie = self.sign_in().await;
        self.ask(path).header("cookie", &cookie).fetch().await.unwrap()
    }

    /// Sends a form as a browser would.
    pub(crate) async fn submit(&self, path: &str, form: &str, headers: &[(&str, &str)]) -> Whole {
        let url = format!("http://{}{path}", self.sprag.admin);
        let mut call = client::post(url, form.to_owned()).header("content-type", "application/x-www-form-urlencoded");
        for (name, value) in headers {
            call = call.header(name, value);
        }
        call.fetch().await.unwrap()
    }

    /// Sends a chat call through the proxy.
    pub(crate) async fn call(&self, headers: &[(&str, &str)]) -> Whole {
        let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]});
        let mut call = client::post_json(self.sprag.url("/v1/chat/completions"), &body).method(Method::POST);
        for (name, value) in headers {
            call = call.header(name, value);
        }
        call.fetch().await.unwrap()
    }

    /// Puts an event on record as if it had passed through.
    pub(crate) fn record(&self, at: i64, more: Value) {
        let mut event = json!({
            "id": format!("req_{at}"), "at": at, "kind": "llm_call", "agent": "default", "provider": "openai",
            "dialect": "openai_chat", "path": "POST /v1/chat/completions", "model": "gpt-4o", "status": 200,
            "ending": "complete", "total_ms": 10, "overhead_us": 90,
            "run": {"id": format!("run-{at}"), "step": 1, "origin": "declared"},
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.sprag.app.history.record(&serde_json::from_value::<Event>(event).unwrap());
    }
}

/// The name and value of the cookie that an answer sets.
pub(crate) fn cookie(answer: &Whole) -> String {
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

pub(crate) fn text(answer: &Whole) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// The links of a page, as a browser reads them.
pub(crate) fn links(page: &str) -> Vec<String> {
    page.split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(|link| link.replace("&#38;", "&"))
        .collect()
}

/// A page holds no script and no style but the files that Sprag serves, and nothing that a name brought in.
pub(crate) fn is_inert(page: &str) -> bool {
    let foreign = page.split("<script").skip(1).any(|rest| !rest.starts_with(" src=\"/assets/"));
    !foreign
        && !["style=", "<style", "<img src=x", "onerror=alert(1)>", " onclick="].iter().any(|bad| page.contains(bad))
}
