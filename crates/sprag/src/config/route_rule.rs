//! A route to an API that is no model, as the program uses it.

use std::sync::Arc;

use http::Method;
use sprag_core::loops::Rules;
use sprag_core::policy::RateRule;

use super::settings::Provider;

/// An HTTP API that is no model.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteRule {
    /// Where it leads; its name is the route's.
    pub upstream: Arc<Provider>,
    /// Which paths go there.
    pub selector: PathSelector,
    /// With which methods; all of them where there are none.
    pub methods: Vec<Method>,
    /// How repetition is detected; everything but `repeat` is off.
    pub rules: Arc<Rules>,
    /// How often, beside the agent's own limits.
    pub rate_limits: Arc<[RateRule]>,
}

/// Which paths a route takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSelector {
    /// This one.
    Exact(String),
    /// All that begin with these parts.
    Prefix(String),
}

impl PathSelector {
    /// Whether a path, decoded, goes there.
    #[must_use]
    pub fn takes(&self, path: &str) -> bool {
        match self {
            PathSelector::Exact(exact) => path == exact,
            PathSelector::Prefix(prefix) => path
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/')),
        }
    }

    /// The larger, the more it says about a path.
    pub(crate) fn precision(&self) -> (bool, usize) {
        match self {
            PathSelector::Exact(path) => (true, path.len()),
            PathSelector::Prefix(path) => (false, path.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_whole_parts_of_a_path() {
        let prefix = |text: &str| PathSelector::Prefix(text.to_owned());
        for (selector, path, expected) in [
            (prefix("/v1/"), "/v1/chat/completions", true),
            (prefix("/v1/"), "/v2/data", false),
            (prefix("/v1/"), "/v1", false),
            (prefix("/v1/tools"), "/v1/tools", true),
            (prefix("/v1/tools"), "/v1/tools/x", true),
            (prefix("/v1/tools"), "/v1/toolshed", false),
            (prefix("/"), "/anything/at/all", true),
            (PathSelector::Exact("/v1/data".to_owned()), "/v1/data", true),
            (PathSelector::Exact("/v1/data".to_owned()), "/v1/data/sub", false),
            (PathSelector::Exact("/v1/Data".to_owned()), "/v1/data", false),
        ] {
            assert_eq!(selector.takes(path), expected, "{selector:?} {path}");
        }
    }
}
