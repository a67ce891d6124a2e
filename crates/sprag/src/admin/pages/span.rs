//! How far back a page looks.

use serde::Deserialize;
use sprag_core::time::Timestamp;

use super::link;

/// A stretch of time up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Span {
    Day,
    #[default]
    Week,
    Month,
}

/// A link to the same page over another stretch.
pub(super) struct Tab {
    pub(super) href: String,
    pub(super) label: &'static str,
    pub(super) is_here: bool,
}

const HOUR_MS: i64 = 60 * 60 * 1000;

impl Span {
    const ALL: [Span; 3] = [Span::Day, Span::Week, Span::Month];

    pub(super) fn label(self) -> &'static str {
        match self {
            Span::Day => "24 hours",
            Span::Week => "7 days",
            Span::Month => "30 days",
        }
    }

    pub(super) fn since(self, now: Timestamp) -> Timestamp {
        let hours = match self {
            Span::Day => 24,
            Span::Week => 7 * 24,
            Span::Month => 30 * 24,
        };
        Timestamp(now.0.saturating_sub(hours * HOUR_MS))
    }

    /// Quarters of an hour in one bucket of a chart.
    pub(super) fn quarters(self) -> u32 {
        match self {
            Span::Day => 4,
            Span::Week => 6 * 4,
            Span::Month => 24 * 4,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Span::Day => "day",
            Span::Week => "week",
            Span::Month => "month",
        }
    }

    /// A link to a page over this stretch.
    pub(super) fn link(self, path: &str, params: &[(&str, Option<&str>)]) -> String {
        let params: Vec<_> = params.iter().copied().chain([("span", Some(self.word()))]).collect();
        link::to(path, &params)
    }

    /// Links to the page over each stretch, with its other parameters kept.
    pub(super) fn tabs(self, path: &str, params: &[(&str, Option<&str>)]) -> Vec<Tab> {
        let tab = |span: Span| Tab { href: span.link(path, params), label: span.label(), is_here: span == self };
        Span::ALL.into_iter().map(tab).collect()
    }
}
