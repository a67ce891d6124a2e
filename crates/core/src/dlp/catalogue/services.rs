//! Messaging, mail, money and other services.

use crate::dlp::kind::Kind;
use crate::dlp::tokens::format::{Vendor, kinds};

mod business;
mod messaging;
mod money;
mod watching;

/// The tables of this part, one for each trade.
pub(super) const VENDORS: &[&[Vendor]] = &[messaging::VENDORS, money::VENDORS, watching::VENDORS, business::VENDORS];

pub(super) const MESSAGING: &[Kind] = &kinds::<{ messaging::VENDORS.len() }>(messaging::VENDORS);
pub(super) const MONEY: &[Kind] = &kinds::<{ money::VENDORS.len() }>(money::VENDORS);
pub(super) const WATCHING: &[Kind] = &kinds::<{ watching::VENDORS.len() }>(watching::VENDORS);
pub(super) const BUSINESS: &[Kind] = &kinds::<{ business::VENDORS.len() }>(business::VENDORS);
