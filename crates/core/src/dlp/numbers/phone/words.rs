//! Words beside which a number is a telephone's.

use crate::dlp::numbers::near;
use crate::dlp::view::View;

/// Names of numbers: the next number is one.
const NAMES: &[&str] = &[
    "phone",
    "phones",
    "telephone",
    "tel",
    "mobile",
    "cell",
    "cellphone",
    "cellular",
    "fax",
    "telefax",
    "whatsapp",
    "landline",
    "hotline",
    "helpline",
    "telefon",
    "telefono",
    "telefone",
    "handy",
    "movil",
    "celular",
    "mobil",
    "sms",
    "gsm",
    "msisdn",
    "pager",
    "voicemail",
    "viber",
    "phonenumber",
    "mobilnummer",
    "telefonnummer",
];

/// What is done with numbers. The number must look like one, too.
const DEEDS: &[&str] = &[
    "call",
    "calling",
    "called",
    "dial",
    "dialed",
    "dialled",
    "ring",
    "reach",
    "text",
    "contact",
    "answering",
    "answer",
    "messages",
    "message",
    "registered",
    "number",
    "desk",
    "anrufen",
    "appelez",
    "llame",
];

/// What stands behind a number.
const PLACES: &[&str] = &["office", "fax", "mobile", "cell", "home", "work", "desk", "phone", "tel", "landline"];

/// Names of other numbers; one of them right before a number says that it is no telephone's.
const OTHER: &[&str] = &[
    "id",
    "ids",
    "order",
    "ticket",
    "invoice",
    "account",
    "case",
    "serial",
    "model",
    "part",
    "tracking",
    "reference",
    "ref",
    "flight",
    "version",
    "isbn",
    "issn",
    "zip",
    "page",
    "pages",
    "line",
    "lines",
    "row",
    "year",
    "date",
    "since",
    "size",
    "port",
    "pid",
    "section",
    "item",
    "index",
    "issue",
    "vol",
    "doi",
];

/// How far before a number its name may stand.
const NAME_WITHIN: usize = 32;
/// How far before a number it may stand what is done with it.
const DEED_WITHIN: usize = 36;
/// How far behind a number its place may stand.
pub(super) const PLACE_WITHIN: usize = 16;

/// How the words around see a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A telephone's.
    Named,
    /// Probably one.
    Hinted,
    /// Nothing.
    Nothing,
}

/// What is said before the number at `start`.
pub(super) fn before(view: &View<'_>, start: usize) -> Said {
    if near::any(near::key_before(view, start), OTHER) {
        Said::Nothing
    } else if near::is_before(view, start, NAME_WITHIN, NAMES) {
        Said::Named
    } else if near::is_before(view, start, hint_within(view, start), DEEDS) {
        Said::Hinted
    } else {
        Said::Nothing
    }
}

/// What is done with a number is said of the next one: no digit stands between. The name of a member says nothing: many
/// a text is the member `text` or `message` of something.
fn hint_within(view: &View<'_>, start: usize) -> usize {
    let text = &view.text[start.saturating_sub(DEED_WITHIN)..start];
    let within = text.iter().rev().take_while(|byte| !byte.is_ascii_digit()).count();
    let is_name_end = |two: &[u8]| matches!(two, [b'"' | b'\'', b':']);
    text.windows(2).rposition(is_name_end).map_or(within, |end| within.min(text.len() - end))
}

/// Whether a place is named right behind the number that ends at `end`: `416 60 039 office`.
pub(super) fn is_place_behind(view: &View<'_>, end: usize) -> bool {
    let behind = &view.text[end..view.text.len().min(end + PLACE_WITHIN)];
    let begin = behind.iter().take(2).take_while(|byte| b" -([".contains(byte)).count();
    let length = behind[begin..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    begin > 0 && near::any(&behind[begin..begin + length], PLACES)
}
