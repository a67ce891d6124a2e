//! Requests to a provider that nobody here understands, and that it may charge for: pictures, speech, batches.
//!
//! What they cost is not known, and nothing is booked for them. A budget that is used up refuses them all the same.

use std::borrow::Cow;

use http::request::Parts;
use sprag_core::policy::Policy;
use sprag_core::wire::named_models;
use sprag_store::state::RunPlace;

use super::{Payer, Spending};
use crate::app::App;
use crate::config::Settings;
use crate::gateway::encoding::{Decoder, decode_all};
use crate::gateway::route::Route;
use crate::gateway::ticket::Ticket;

/// Plans the money of such a request: the least amount there is, from every account that a call of a known price would
/// draw on.
pub(in crate::gateway) fn plan(
    app: &App,
    settings: &Settings,
    policy: &Policy,
    tree: &[RunPlace],
    ticket: &Ticket,
) -> Spending {
    let draws = Payer { settings, policy, tree }.draws(app, ticket, ticket.event().at);
    Spending { draws, ..Spending::default() }
}

/// The models that such a request names, as far as that can be read.
pub(in crate::gateway) fn models<'a>(
    route: &'a Route<'_>,
    head: &Parts,
    body: &[u8],
    limit: usize,
) -> Vec<Cow<'a, str>> {
    match Decoder::for_headers(&head.headers, limit) {
        Ok(Some(mut decoder)) => {
            let plain = decode_all(&mut decoder, body, limit).ok().flatten();
            named_models(&route.plain, plain.as_deref().unwrap_or_default())
        }
        Ok(None) | Err(_) => named_models(&route.plain, body),
    }
}
