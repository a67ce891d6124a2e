//! Secrets that only the words around them tell: passwords, tokens behind a name, what stands in an address before the host.
//!
//! ```text
//! a word → the name it is part of (name) → what stands between (gap) → the value (value) → is it one? (judge) → which? (vendor)
//! ```
//!
//! A name is never part of a finding, so a stream holds back only the value. A name and its value stand within [`REACH`]
//! bytes: that is less than what a stream keeps of what it let go, so both are always seen together. What stands before its
//! name (`if "x" == password`) is not found: it would have left already.

mod command;
mod gap;
mod judge;
mod name;
mod scheme;
mod url;
mod value;
mod vendor;
mod words;

#[cfg(test)]
mod tests;

pub(super) use url::at_url;

use super::hits::Hits;
use super::kind::Tier;
use super::view::View;
use gap::Operator;
use judge::Claim;
use name::Name;
use value::Value;

/// Words at which [`at_word`] looks, in lower case, the short ones first; they are met in any case, and inside longer
/// names.
pub(super) static WORDS: &[&str] = &[
    "pwd",
    "key",
    "jwt",
    "api",
    "pass",
    "auth",
    "cred",
    "secret",
    "token",
    "private",
    "access",
    "bearer",
    "basic",
    "curl",
    "akia",
    "identified",
];

/// From the beginning of a name to the beginning of its value at most; with what is looked at before the name, less than
/// what a stream keeps as context.
const REACH: usize = 200;
/// Values of a list that are looked at.
const LIST_VALUES: usize = 16;

/// How far behind a word the value of its name may begin; None where a command follows that may go on for long.
pub(super) fn reach(word: usize) -> Option<usize> {
    let is_command = matches!(WORDS[word], "bearer" | "basic" | "akia" | "curl" | "identified");
    (!is_command).then_some(REACH)
}

/// Looks at a place where one of the [`WORDS`] begins.
pub(super) fn at_word(view: &View<'_>, at: usize, word: usize, hits: &mut Hits) {
    match WORDS[word] {
        "bearer" | "basic" => scheme::at_scheme(view, at, WORDS[word], hits),
        "akia" => command::at_access_key(view, at, hits),
        "curl" => command::at_curl(view, at, hits),
        "identified" => command::at_identified(view, at, hits),
        word => at_name(view, at, word, hits),
    }
}

fn at_name(view: &View<'_>, at: usize, word: &'static str, hits: &mut Hits) {
    let Some(name) = Name::around(view, at, word) else { return };
    if let Some(start) = name.glued {
        decide(view, &name, Operator::Glued, &Value::glued(view, start), hits);
        return;
    }
    if view.may_go_on(view.run_end(name.end, name::is_part)) {
        // What was read of the name may be the beginning of a value behind a dash.
        return hits.unsure(name.word_end);
    }
    let Some((operator, mut at)) = gap::cross(view, &name) else { return };
    let is_list = view.text.get(at) == Some(&b'[');
    for _ in 0..if is_list { LIST_VALUES } else { 1 } {
        if is_list {
            let Some(next) = value::next_of_list(view, at) else { return };
            at = next;
        }
        let Some(value) = Value::read(view, at, &name, operator) else { return };
        if value.start - name.start > REACH {
            return;
        }
        let may_be_type = !is_list
            && value.quote.is_none()
            && match operator {
                Operator::Assign => !view.text[name.end..at].contains(&b'='),
                Operator::Space => view.text[value.end..].starts_with(b" ="),
                _ => false,
            };
        if !decide(view, &name, operator, &value, hits) && may_be_type {
            return at_typed(view, &name, operator, at, hits);
        }
        at = value.end + usize::from(value.quote.is_some());
    }
}

/// The value of a name with a type: `password: String = "x"`, `var password string = "x"`.
fn at_typed(view: &View<'_>, name: &Name<'_>, operator: Operator, at: usize, hits: &mut Hits) {
    if matches!(view.text.get(name.end), Some(b'"' | b'\'')) {
        return;
    }
    let Some(at) = gap::behind_type(view, at, operator) else { return };
    if let Some(value) = Value::read(view, at, name, Operator::Assign)
        && value.start - name.start <= REACH
        && value.quote.is_some()
    {
        decide(view, name, Operator::Assign, &value, hits);
    }
}

/// Whether something was found, or may be when more text comes.
fn decide(view: &View<'_>, name: &Name<'_>, operator: Operator, value: &Value, hits: &mut Hits) -> bool {
    if !judge::may_be_secret(view, name, operator, value) {
        return false;
    }
    let Some(worth) = name.worth() else { return false };
    let claim = Claim { view, name, worth, operator, value };
    if value.is_open || claim.is_end_open() {
        hits.unsure(value.start);
        return true;
    }
    let is_secret = claim.is_secret();
    if is_secret {
        hits.found(vendor::entity_of(&claim), Tier::Context, value.start, value.end);
    }
    is_secret
}
