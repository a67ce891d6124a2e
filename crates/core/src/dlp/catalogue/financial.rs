//! Cards and accounts.

use super::{optional, row};
use crate::dlp::kind::{Family, Kind};

pub(super) const KINDS: &[Kind] = &[
    row(
        "CREDIT_CARD",
        Family::Financial,
        "Payment card number",
        "12 to 19 digits of an issuer's range, with a check digit",
    ),
    row("IBAN", Family::Financial, "Bank account number (IBAN)", "a country, two check digits, the country's length"),
    optional(
        "ABA_ROUTING",
        Family::Financial,
        "US bank routing number",
        "nine digits with a check digit, behind a word for it",
    ),
    optional(
        "CRYPTO_WALLET",
        Family::Financial,
        "Bitcoin or Ethereum address",
        "`1…`, `3…`, `bc1…` with a checksum, `0x` and 40 hex digits",
    ),
];
