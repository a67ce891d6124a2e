//! Who hears what Sprag itself says: which client, in which form, and what the configuration wants it to be told.

use std::sync::Arc;

use http::HeaderMap;
use http::request::Parts;
use serde_json::Value;
use sprag_core::wire::assistant::Wanted;
use sprag_core::wire::refusal::stream_error;
use sprag_core::wire::{Call, Client, Dialect, Family, Refusal};
use sprag_store::catalog::KeyEntry;

use super::headers::first;
use super::route::Route;
use crate::config::file::Compat;
use crate::config::{Responses, Settings};

/// The one who gets an answer. It owns what it needs, so that it can go along with the body of an answer.
#[derive(Clone)]
pub(crate) struct Audience {
    settings: Arc<Settings>,
    family: Family,
    client: Client,
    /// What was asked for; None until the request is read.
    wanted: Option<Wanted>,
    /// What stands behind the ids of its runs, and is not for it to see.
    run_mark: Option<String>,
}

impl Audience {
    /// Whoever sent this request.
    pub(crate) fn new(settings: Arc<Settings>, route: &Route<'_>, head: &Parts) -> Audience {
        Audience { settings, family: route.family(), client: client(&head.headers), wanted: None, run_mark: None }
    }

    /// Takes note of the form in which the call wants its answer.
    pub(crate) fn listen(&mut self, call: Option<&Call<'_>>, head: &Parts) {
        self.wanted = call.map(|call| Wanted::of(call, head.uri.query()));
    }

    /// Takes note of the virtual key that it came with.
    pub(crate) fn know(&mut self, key: Option<&Arc<KeyEntry>>) {
        self.run_mark = key.map(|entry| format!("#{}", entry.key.id));
    }

    /// The family whose error shape it understands.
    pub(crate) fn family(&self) -> Family {
        self.family
    }

    /// The form in which it reads the words of an assistant; None where there are none.
    pub(crate) fn wanted(&self) -> Option<Wanted> {
        self.wanted
    }

    /// What the configuration says about answers.
    pub(crate) fn responses(&self) -> &Responses {
        &self.settings.responses
    }

    /// A refusal in the form, with the status and in the words that are meant for it.
    pub(crate) fn put(&self, refusal: Refusal) -> Refusal {
        // Before the request is read nobody knows whether a stream is wanted: that is an error in every case.
        let dialect = self.wanted.map_or(Dialect::Opaque, |wanted| wanted.dialect);
        self.responses().manners().dress(self.unmarked(refusal), self.client, dialect)
    }

    /// A refusal that ends an answer on its way: there it can only be an error.
    pub(crate) fn put_in_stream(&self, refusal: Refusal) -> Refusal {
        self.responses().manners().dress(self.unmarked(refusal), self.client, Dialect::Opaque)
    }

    /// The event that ends its stream.
    pub(crate) fn last_words(&self, dialect: Dialect, refusal: &Refusal, last_sequence_number: Option<u64>) -> Vec<u8> {
        let client = if self.responses().adapt { self.client } else { Client::Other };
        stream_error(dialect, client, refusal, last_sequence_number)
    }

    /// A refusal in which runs go by the ids that the caller gave them.
    fn unmarked(&self, mut refusal: Refusal) -> Refusal {
        if let Some(mark) = &self.run_mark {
            refusal.message = refusal.message.replace(mark, "");
            refusal.fields.values_mut().chain(refusal.beside.values_mut()).for_each(|value| unmark(value, mark));
        }
        refusal
    }

    /// Names under which the metadata stands besides `sprag`.
    pub(crate) fn metadata_names(&self) -> &'static [&'static str] {
        if self.responses().imitates(Compat::Agentwall) { &["agentwall"] } else { &[] }
    }
}

fn unmark(value: &mut Value, mark: &str) {
    match value {
        Value::String(text) if text.contains(mark) => *text = text.replace(mark, ""),
        Value::Array(items) => items.iter_mut().for_each(|item| unmark(item, mark)),
        Value::Object(fields) => fields.values_mut().for_each(|field| unmark(field, mark)),
        _ => {}
    }
}

fn client(headers: &HeaderMap) -> Client {
    let text = |name: &str| first(headers, name).and_then(|value| value.to_str().ok());
    Client::of(text("user-agent"), text("originator"))
}
