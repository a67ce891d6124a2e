//! Looks for secrets and personal data in a request, and prepares the look at its answer.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use sprag_core::dlp::{Direction, Inspected, Inspector, Sightings, dlp_refusal, inspect_json, ranges_of};
use sprag_core::limits::LOOK_AHEAD_BYTES;
use sprag_core::wire::{Call, Refusal};

use super::open::Request;
use super::route::Route;
use super::ticket::Ticket;
use super::trail::Leg;
use crate::app::App;
use crate::config::Settings;
use crate::policies::PolicyInForce;

/// A request that was looked at.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// What must be changed in the body.
    pub(crate) edits: Vec<(Range<usize>, String)>,
    pub(crate) sightings: Sightings,
    /// How long that took.
    pub(crate) leg: Option<Leg>,
    is_stopped: bool,
}

/// Who looks at a call, both ways; nobody where the agent's policy is `off`. Routes to other APIs are not looked at: a tool
/// needs its secrets.
pub(crate) fn inspector(
    app: &App,
    settings: &Settings,
    policy: &PolicyInForce,
    route: &Route<'_>,
    ticket: &Ticket,
) -> Option<Inspector> {
    let policy = policy.dlp.clone()?;
    if route.rule.is_some() {
        return None;
    }
    // Outside any run a value comes back in the answer to the same call only.
    let vault = ticket.vault_key().map_or_else(Arc::default, |owner| app.vaults.of(&owner, ticket.event().at));
    Some(Inspector { scanner: settings.dlp.scanner.clone(), policy, vault: Some(vault) })
}

/// Looks at a request before it is known whose hidden values are its own: by what was found nothing can be said then, only by that nothing
/// was. A body that is large waits, because the call may be refused.
pub(crate) fn ahead(app: &App, policy: &PolicyInForce, request: Request<'_>, ticket: &Ticket) -> Option<Look> {
    let Request { settings, route, head, body, call } = request;
    if body.len() > LOOK_AHEAD_BYTES {
        return None;
    }
    let inspector = Inspector { vault: Some(Arc::default()), ..inspector(app, settings, policy, route, ticket)? };
    let look = self::request(app, settings, &inspector, route, head, call, body, ticket, None);
    look.is_clean().then_some(look)
}

/// Looks at a request, which began then or begins now. Of one that is no dialect only JSON is looked at.
#[expect(clippy::too_many_arguments, reason = "the values of `judge`, used once")]
pub(crate) fn request(
    app: &App,
    settings: &Settings,
    inspector: &Inspector,
    route: &Route<'_>,
    head: &Parts,
    call: Option<&Call<'_>>,
    body: &[u8],
    ticket: &Ticket,
    began: Option<Instant>,
) -> Look {
    if call.is_none() && !is_json(head) {
        return Look::default();
    }
    let began = began.unwrap_or_else(Instant::now);
    let items = call.map(|call| ranges_of(body, call.items.iter().chain(&call.fixed).copied())).unwrap_or_default();
    let mut sightings = Sightings::default();
    let (way, seen) = (Direction::Request, Some(&*settings.dlp.seen));
    let Inspected { edits, is_stopped } =
        inspect_json(inspector, way, route.dialect, body, &items, seen, &mut sightings);
    if let (Some(owner), Some(vault)) = (ticket.vault_key(), &inspector.vault) {
        app.vaults.drop_unused(&owner, vault);
    }
    Look { edits, sightings, leg: Some(Leg::since(began)), is_stopped }
}

impl Look {
    /// Nothing was found.
    fn is_clean(&self) -> bool {
        self.edits.is_empty() && self.sightings.total == 0 && !self.is_stopped
    }

    /// What the caller is told, where something may not leave.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.is_stopped.then(|| dlp_refusal(&self.sightings, Direction::Request))
    }
}

/// Whether the body says that it is JSON.
pub(crate) fn is_json(head: &Parts) -> bool {
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}
