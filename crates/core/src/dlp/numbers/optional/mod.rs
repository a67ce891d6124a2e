//! Kinds that are looked for only when they are switched on: useful to some, and noise to most.
//!
//! Many of them have few digits, and the triggers that are made for longer numbers would pass them by. So they have a
//! pass of their own, which those pay for who want them.

mod hardware;
mod ids;
#[cfg(test)]
mod tests;
mod wallet;

use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::Entity;
use crate::dlp::numbers::groups::Number;
use crate::dlp::view::View;

const CRYPTO_WALLET: Entity = entity("CRYPTO_WALLET");
const IPV6_ULA: Entity = entity("IPV6_ULA");
const MAC_ADDRESS: Entity = entity("MAC_ADDRESS");

/// Looks at every group of digits from `begin` on. Call it once, if any of these kinds is on.
pub(in crate::dlp) fn look_for_optional(view: &View<'_>, begin: usize, hits: &mut Hits) {
    let is_digit = |at: usize| view.text[at].is_ascii_digit();
    for at in begin..view.text.len() {
        if is_digit(at) && !at.checked_sub(1).is_some_and(is_digit) {
            hits.trigger = at;
            look_at_digit(view, at, hits);
            let number = Number::read(view, at);
            if number.is_open {
                // A letter may belong to it.
                hits.unsure(at.saturating_sub(1));
            } else {
                ids::look(view, &number, hits);
            }
        }
    }
}

/// Looks at the first digit of any group, however short.
fn look_at_digit(view: &View<'_>, at: usize, hits: &mut Hits) {
    if hits.wants(CRYPTO_WALLET) {
        wallet::look(view, at, hits);
    }
    if hits.wants(MAC_ADDRESS) {
        hardware::look_for_mac(view, at, hits);
    }
    if hits.wants(IPV6_ULA) {
        hardware::look_for_ula(view, at, hits);
    }
}
