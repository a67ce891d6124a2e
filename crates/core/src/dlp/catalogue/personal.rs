//! What tells who or where a person is.

use super::{optional, row};
use crate::dlp::kind::{Family, Kind};

pub(super) const KINDS: &[Kind] = &[
    row("EMAIL", Family::Pii, "E-mail address", "`name@domain`"),
    row(
        "PHONE",
        Family::Pii,
        "Telephone number",
        "`+` and a country's code, `(212) 555-0123`, or digits beside a word for it",
    ),
    row("SSN", Family::Pii, "US social security number", "`ddd-dd-dddd`, or nine digits behind a word for it"),
    optional("BR_CPF", Family::Pii, "Brazilian taxpayer number (CPF)", "`ddd.ddd.ddd-dd` with two check digits"),
    optional(
        "CA_SIN",
        Family::Pii,
        "Canadian social insurance number",
        "nine digits with a check digit, behind a word for it",
    ),
    optional("ES_DNI", Family::Pii, "Spanish identity number (DNI, NIE)", "eight digits and a check letter"),
    optional(
        "IN_AADHAAR",
        Family::Pii,
        "Indian identity number (Aadhaar)",
        "twelve digits with a check digit, `dddd dddd dddd`",
    ),
];
