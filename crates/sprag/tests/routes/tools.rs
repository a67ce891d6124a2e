//! A tool server behind a route of a Sprag.

use http::Method;
use sprag_testkit::client::{self, Call, Whole};
use sprag_testkit::{Provider, Reply, Script};

use crate::configured::Configured;

/// What the tool server says to everything.
pub(crate) const DONE: &str = "done";

pub(crate) struct Tools {
    pub(crate) server: Provider,
    pub(crate) place: Configured,
}

impl Tools {
    /// A route `tools` of all that begins with `/v1/tools/`, with these keys; then this configuration.
    pub(crate) async fn start(keys: &str, rest: &str) -> Tools {
        let server = Provider::start(Script::always(Reply::raw(200, "text/plain", DONE))).unwrap();
        let upstream = server.url();
        let text = format!(
            "[[routes]]\nname = \"tools\"\npath_prefix = \"/v1/tools/\"\nupstream = \"{upstream}\"\n{keys}\n{}",
            rest.replace("UPSTREAM", &upstream)
        );
        Tools { place: Configured::start(&text).await, server }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.place.sprag.url(path)
    }

    pub(crate) fn call(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Call {
        let call = client::get(self.url(path)).method(Method::from_bytes(method.as_bytes()).unwrap());
        headers.iter().fold(call, |call, (name, value)| call.header(name, value))
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Whole {
        self.call("GET", path, headers).fetch().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &str, headers: &[(&str, &str)]) -> Whole {
        let call = client::post(self.url(path), body.to_owned());
        headers.iter().fold(call, |call, (name, value)| call.header(name, value)).fetch().await.unwrap()
    }

    /// Requests that reached the tool server.
    pub(crate) fn reached(&self) -> usize {
        self.server.log().view().total as usize
    }
}
