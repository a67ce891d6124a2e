//! The call to the upstream.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::request::Parts;
use http::{Method, Request, Response, Version};
use sprag_core::event::Ending;
use sprag_core::policy::Permit;
use sprag_core::wire::{Reason, Refusal};
use tokio::time::Instant;

use super::answer::Asked;
use super::credentials;
use super::headers::{limit_accept_encoding, prepare_request};
use super::invalid;
use super::killed::{KillWatch, or_killed};
use super::route::Route;
use super::ticket::Ticket;
use crate::app::App;
use crate::config::Provider;
use crate::upstream::{AnswerBody, NoAnswer};

/// An upstream's answer, of which the head is here.
pub(crate) struct Forwarded {
    pub(crate) response: Response<AnswerBody>,
    pub(crate) provider: Arc<Provider>,
    pub(crate) asked: Asked,
    /// When the whole call must be over.
    pub(crate) deadline: Option<Instant>,
    /// Ready when the call is killed.
    pub(crate) watch: Option<KillWatch>,
    /// Only the head was asked for.
    pub(crate) is_head: bool,
}

/// Sends the request. Takes the permit, so that nothing is sent that was not judged.
#[expect(clippy::too_many_arguments, reason = "each is a value of the line in `handle`, used once")]
pub(crate) async fn forward(
    _permit: Permit,
    app: &App,
    route: &Route<'_>,
    head: &Parts,
    body: Bytes,
    is_decoded: bool,
    asked: Asked,
    ticket: &mut Ticket,
) -> Result<Forwarded, Refusal> {
    let provider = route.provider;
    let mut request = Request::new(body);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = provider.url(&path_and_query(head, route.path, ticket.key().is_some())).map_err(invalid)?;
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    *headers = head.headers.clone();
    prepare_request(headers, &provider.base.host_header);
    let settings = app.settings.load();
    // Another API may want to see whose token it is.
    let token = settings.jwt.as_ref().filter(|_| route.rule.is_none()).map(|jwt| &jwt.settings().header);
    credentials::replace(headers, provider, ticket.key().is_some(), token)?;
    if is_decoded {
        headers.remove(CONTENT_ENCODING);
    }
    if asked.dialect.is_llm() {
        limit_accept_encoding(headers, asked.edits());
    }
    ticket.trail().propagate(headers);
    for (name, value) in &provider.headers {
        headers.insert(name, value.clone());
    }

    let deadline = provider.timeouts.total.map(|total| Instant::now() + total);
    let upstream = app.upstreams.load().get(&provider.name).cloned();
    let upstream = upstream.ok_or_else(|| invalid("the provider was removed while the request ran"))?;
    // Pinned here, and lent: to be handed on it would be copied, twice.
    let sent = pin!(async {
        let sent = upstream.send(request);
        match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, sent)
                .await
                .unwrap_or_else(|_| Err(NoAnswer::TimedOut(provider.timeouts.total.unwrap_or_default()))),
            None => sent.await,
        }
    });
    let mut watch = ticket.watch();
    let answer = match or_killed(sent, watch.as_mut()).await {
        Ok(answer) => answer,
        Err(kill) => return Err(ticket.killed(&kill)),
    };
    match answer {
        Ok(response) => {
            let is_head = head.method == Method::HEAD;
            Ok(Forwarded { response, provider: provider.clone(), asked, deadline, watch, is_head })
        }
        Err(failure) => Err(unanswered(route, &failure, ticket)),
    }
}

/// The path that the upstream sees, with the query of the client as far as that is for it.
fn path_and_query<'a>(head: &'a Parts, path: &'a str, has_key: bool) -> Cow<'a, str> {
    let Some(query) = head.uri.query() else { return Cow::Borrowed(path) };
    match credentials::query_for_provider(query, has_key) {
        kept if kept.is_empty() && !query.is_empty() => Cow::Borrowed(path),
        kept => Cow::Owned(format!("{path}?{kept}")),
    }
}

fn unanswered(route: &Route<'_>, failure: &NoAnswer, ticket: &mut Ticket) -> Refusal {
    let (name, base) = (&route.provider.name, &route.provider.base);
    let (reason, ending) = match failure {
        NoAnswer::Unreachable(_) => (Reason::UpstreamUnreachable, Ending::UpstreamGone),
        NoAnswer::TimedOut(_) => (Reason::UpstreamTimeout, Ending::TimedOut),
    };
    ticket.mark_failed(ending, failure.to_string());
    let advice = match failure {
        NoAnswer::Unreachable(why) if why.contains("certificate") => {
            "; for a private certificate authority set `ca_file` there"
        }
        _ => " and the network",
    };
    let (what, table) = match route.rule {
        Some(_) => ("the upstream of route", "its `[[routes]]`".to_owned()),
        None => ("provider", format!("`[providers.{name}]`")),
    };
    let message =
        format!("{what} `{name}` at {base} did not answer: {failure}. Check {table} in the configuration{advice}.");
    Refusal::new(reason, message)
}
