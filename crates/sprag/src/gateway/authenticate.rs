//! Who comes with a virtual key, and whether it opens. Asked before the body is read.
//!
//! A key that does not open is never taken for somebody else's credential: the request is refused, whatever else it
//! carries. So is one that comes with two keys: nobody could say who spoke.

use std::sync::Arc;

use http::request::Parts;
use sprag_core::policy::{VirtualKey, check_key};
use sprag_core::wire::{Reason, Refusal};
use sprag_store::catalog::KeyEntry;

use super::credentials::{held, virtual_keys};
use super::identify::{agents_named, percent_decoded};
use super::route::Route;
use super::ticket::Ticket;
use crate::acts::hash_of;
use crate::app::App;
use crate::config::Settings;

/// A request that is not let in.
#[derive(Debug)]
pub(crate) struct Denied {
    pub(crate) refusal: Refusal,
    /// The key that it came with, where that is known.
    key: Option<Arc<KeyEntry>>,
}

/// Lets a request in, and writes on its ticket whose it is.
///
/// # Errors
/// When its key does not open, when it needs one and has none, or when there is no key of the provider to put in its
/// place.
pub(crate) fn admit(
    app: &App,
    settings: &Settings,
    route: &Route<'_>,
    head: &Parts,
    ticket: &mut Ticket,
) -> Result<(), Refusal> {
    match authenticate(app, settings, head) {
        Ok(None) => Ok(()),
        Ok(Some(entry)) => {
            ticket.set_key(entry.clone());
            let in_path = route.agent.map(percent_decoded);
            let named = in_path.as_deref().map(str::as_bytes).into_iter().chain(agents_named(&head.headers));
            speaks_for(&entry.key, named)?;
            held(route.provider).map(drop)
        }
        Err(denied) => {
            if let Some(entry) = denied.key {
                ticket.set_key(entry);
            }
            Err(denied.refusal)
        }
    }
}

/// The virtual key that a request comes with.
///
/// # Errors
/// When it is unknown or over, when there are two, or when there is none and one is required.
pub(crate) fn authenticate(app: &App, settings: &Settings, head: &Parts) -> Result<Option<Arc<KeyEntry>>, Denied> {
    let denied = |refusal, key| Denied { refusal, key };
    let refused = |message: &str| denied(Refusal::new(Reason::AuthenticationError, message), None);
    let snapshot = app.catalog.snapshot();
    let mut presented: Option<Arc<KeyEntry>> = None;
    for secret in virtual_keys(head) {
        let Some((entry, place)) = snapshot.key_of_secret(&hash_of(&secret)) else {
            return Err(refused(
                "this virtual key is not known here; check that it is whole and made by this Sprag, or ask for a new one",
            ));
        };
        if presented.as_ref().is_some_and(|other| other.key.id != entry.key.id) {
            return Err(refused("the request carries two different virtual keys; send one"));
        }
        check_key(&entry.key, place, app.common_now()).map_err(|refusal| denied(refusal, Some(entry.clone())))?;
        presented = Some(entry.clone());
    }
    if presented.is_none() && settings.proxy.require_keys {
        return Err(refused(
            "a virtual key is required here, a key that begins with `sk-sprag-`; send it where the provider's key \
             would stand, or ask for one (`sprag keys create`)",
        ));
    }
    Ok(presented)
}

/// Whether a key may speak under these names.
///
/// # Errors
/// When one of them is another agent's.
pub(crate) fn speaks_for<'a>(key: &VirtualKey, named: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Refusal> {
    if named.into_iter().all(|name| name == key.agent.as_str().as_bytes()) {
        return Ok(());
    }
    let message = format!(
        "virtual key `{}` speaks for agent `{}` and for no other; leave the agent out, or use a key of the agent that \
         the request names",
        key.id, key.agent
    );
    Err(Refusal::new(Reason::AuthenticationError, message).with("key", key.id.as_str()))
}
