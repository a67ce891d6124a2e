//! What a page showed of something that others change too. Its form carries that, so that saving an old page changes what
//! somebody wrote and nothing else, and never in silence what another has set meanwhile.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::acts::fingerprint;
use crate::admin::problem::Problem;

/// The field of a form that carries it.
pub(super) const FIELD: &str = "shown";

/// Longer texts travel as their fingerprints: a form is not to carry a long list twice.
const LONGEST_CHARS: usize = 64;

/// The texts of the fields, by their names. An empty one is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown(BTreeMap<String, String>);

/// What somebody wrote in a field, beside what it showed and what holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// It is as the page showed it: nobody meant anything by it.
    Untouched,
    /// It is what holds already.
    InForce,
    /// It is new, and nobody else has changed the field.
    New,
    /// It is new, and somebody else has changed the field meanwhile.
    Overtaken,
}

impl Shown {
    /// What a form carries. None for one that a page did not make: then everything in it is meant.
    pub(super) fn read(text: Option<&str>) -> Result<Option<Shown>, Problem> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
        let read = serde_json::from_str(text).map(|texts| Some(Shown(texts)));
        read.map_err(|_| Problem::bad_request("`shown` is not what the page had there; open the page again"))
    }

    pub(super) fn text(&self, field: &str) -> &str {
        self.0.get(field).map(String::as_str).unwrap_or_default()
    }

    /// Whether a page that carried this had a text in a field.
    pub(super) fn had(&self, field: &str, text: &str) -> bool {
        self.text(field) == carried(text)
    }

    /// How a text stands to what a page showed and to this, which holds now.
    pub(super) fn compare(&self, page: Option<&Shown>, field: &str, text: &str) -> Written {
        let now = self.text(field);
        match page {
            Some(page) if page.had(field, text) => Written::Untouched,
            _ if now == text => Written::InForce,
            Some(page) if !page.had(field, now) => Written::Overtaken,
            _ => Written::New,
        }
    }
}

impl FromIterator<(String, String)> for Shown {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(texts: I) -> Shown {
        Shown(texts.into_iter().filter(|(_, text)| !text.is_empty()).collect())
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let carried: BTreeMap<&str, Cow<'_, str>> =
            self.0.iter().map(|(field, text)| (field.as_str(), carried(text))).collect();
        f.write_str(&serde_json::to_string(&carried).unwrap_or_default())
    }
}

/// A text as a form carries it.
fn carried(text: &str) -> Cow<'_, str> {
    let is_long = text.chars().nth(LONGEST_CHARS).is_some();
    if is_long { Cow::from(format!("#{}", fingerprint(text))) } else { Cow::from(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(texts: &[(&str, &str)]) -> Shown {
        texts.iter().map(|(field, text)| ((*field).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn what_somebody_wrote_is_told_from_what_stood_there() {
        let (page, now) = (shown(&[("a", "1"), ("b", "2")]), shown(&[("a", "1"), ("b", "3"), ("c", "")]));
        for (field, text, expected) in [
            ("a", "1", Written::Untouched),
            ("a", "5", Written::New),
            ("a", "", Written::New),
            ("b", "2", Written::Untouched),
            ("b", "3", Written::InForce),
            ("b", "5", Written::Overtaken),
            ("b", "", Written::Overtaken),
            ("c", "", Written::Untouched),
            ("c", "5", Written::New),
        ] {
            assert_eq!(now.compare(Some(&page), field, text), expected, "{field} {text}");
        }
        assert_eq!(now.compare(None, "b", "2"), Written::New, "without a page everything is meant");
        assert_eq!(now.compare(None, "b", "3"), Written::InForce);
    }

    #[test]
    fn it_comes_back_as_it_went() {
        let page = shown(&[("a", "<\"quoted\">\n&"), ("b", "")]);
        assert_eq!(Shown::read(Some(&page.to_string())).unwrap(), Some(page));
        for length in [LONGEST_CHARS, LONGEST_CHARS + 1, 50_000] {
            let (text, other) = ("é".repeat(length), "é".repeat(length - 1) + "e");
            let now = shown(&[("a", &text)]);
            assert!(now.to_string().len() < 200, "{length}");
            let page = Shown::read(Some(&now.to_string())).unwrap();
            assert_eq!(now.compare(page.as_ref(), "a", &text), Written::Untouched, "{length}");
            assert_eq!(now.compare(page.as_ref(), "a", &other), Written::New, "{length}");
            assert_eq!(shown(&[("a", "b")]).compare(page.as_ref(), "a", &other), Written::Overtaken, "{length}");
        }
        assert_eq!(Shown::read(None).unwrap(), None);
        assert!(Shown::read(Some("[1]")).is_err_and(|problem| problem.status == 400));
    }
}
