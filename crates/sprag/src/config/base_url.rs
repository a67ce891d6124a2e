//! The URL that stands before the path a client sent.

use std::collections::BTreeMap;
use std::fmt;

use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};

/// A provider's base URL, with the paths that live somewhere else there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// Host and, where given, port.
    pub authority: Authority,
    /// The same, as requests name it.
    pub host_header: HeaderValue,
    /// Path without a slash at its end; empty for the root.
    pub path: String,
    /// Path prefixes and what they become, the longest first.
    pub rewrite: Vec<(String, String)>,
}

impl BaseUrl {
    /// Reads an `http` or `https` URL without user, query and fragment.
    ///
    /// # Errors
    /// Says what is wrong, without repeating the URL: it may carry a password.
    pub fn parse(text: &str) -> Result<BaseUrl, &'static str> {
        if text.contains('#') {
            return Err("a base URL takes no fragment");
        }
        let uri: Uri = text.trim().parse().map_err(|_| "not a URL")?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err("a base URL begins with http:// or https:// and a host");
        };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err("a base URL begins with http:// or https://");
        }
        if authority.as_str().contains('@') {
            return Err("a base URL takes no user and password");
        }
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        if path.query().is_some() {
            return Err("a base URL takes no query");
        }
        let path = path.path().trim_end_matches('/').to_owned();
        let host_header = HeaderValue::from_str(authority.as_str()).map_err(|_| "not a URL")?;
        Ok(BaseUrl { scheme, authority, host_header, path, rewrite: Vec::new() })
    }

    /// Sets where paths live. Prefixes match whole segments.
    #[must_use]
    pub fn with_rewrite(self, rewrite: &BTreeMap<String, String>) -> BaseUrl {
        let trim = |text: &String| text.trim_end_matches('/').to_owned();
        let mut rewrite: Vec<_> = rewrite.iter().map(|(from, to)| (trim(from), trim(to))).collect();
        rewrite.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        BaseUrl { rewrite, ..self }
    }

    /// The host, without port.
    #[must_use]
    pub fn host(&self) -> &str {
        self.authority.host()
    }

    /// The URL to call for a path (and query) that a client sent, agent and provider already taken off.
    ///
    /// # Errors
    /// If the path cannot stand in a URL.
    pub fn join(&self, path_and_query: &str) -> Result<Uri, http::Error> {
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path_and_query, None),
        };
        let (head, tail) = self.rewritten(path);
        let slash = if (head.is_empty() && !tail.starts_with('/')) || (!head.is_empty() && !head.starts_with('/')) {
            "/"
        } else {
            ""
        };
        // Scheme and host are known to be sound: only what is new is read.
        let place = match (self.path.as_str(), head, slash) {
            ("", "", "") => PathAndQuery::try_from(path_and_query)?,
            _ => {
                let question = if query.is_some() { "?" } else { "" };
                let query = query.unwrap_or_default();
                PathAndQuery::try_from(format!("{}{slash}{head}{tail}{question}{query}", self.path))?
            }
        };
        let mut parts = Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(place);
        Ok(Uri::from_parts(parts)?)
    }

    fn rewritten<'a>(&'a self, path: &'a str) -> (&'a str, &'a str) {
        let is_whole_segment = |rest: &&str| rest.is_empty() || rest.starts_with('/');
        self.rewrite
            .iter()
            .find_map(|(from, to)| {
                path.strip_prefix(from.as_str()).filter(is_whole_segment).map(|rest| (to.as_str(), rest))
            })
            .unwrap_or(("", path))
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stands_before_the_path() {
        let rewrite = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        type Pairs = &'static [(&'static str, &'static str)];
        let cases: &[(&str, Pairs, &str, &str)] = &[
            ("http://host:1", &[], "/v1/chat/completions", "http://host:1/v1/chat/completions"),
            ("http://host:1/", &[], "/v1/x?a=b?c", "http://host:1/v1/x?a=b?c"),
            ("https://h/llm//", &[], "/v1/x", "https://h/llm/v1/x"),
            ("https://h", &[], "", "https://h/"),
            ("https://h", &[], "?alt=sse", "https://h/?alt=sse"),
            ("https://h/v1", &[("/v1", "")], "/v1/chat/completions", "https://h/v1/chat/completions"),
            ("https://h/v1", &[("/v1", "")], "/v1", "https://h/v1/"),
            ("https://h", &[("/v1", "/openai/v1")], "/v1/models", "https://h/openai/v1/models"),
            ("https://h", &[("/v1/", "openai/v1/")], "/v1/models", "https://h/openai/v1/models"),
            ("https://h", &[("/v1", "/x")], "/v1beta/models", "https://h/v1beta/models"),
            ("https://h", &[("/v1", "/x")], "/openai/v1/models", "https://h/openai/v1/models"),
            ("https://h", &[("/v1", "/x"), ("/v1/chat", "/y")], "/v1/chat/c", "https://h/y/c"),
        ];
        for (base, pairs, path, expected) in cases {
            let base = BaseUrl::parse(base).unwrap().with_rewrite(&rewrite(pairs));
            assert_eq!(base.join(path).unwrap().to_string(), *expected, "{base} {pairs:?} {path}");
        }
    }

    #[test]
    fn refuses_what_cannot_stand_before_a_path() {
        for text in ["", "host", "host:1", "/v1", "ftp://h", "http://", "http://u:p@h", "http://h?a=b", "http://h/#f"] {
            let reason = BaseUrl::parse(text).expect_err(text);
            assert!(!reason.contains("u:p"));
        }
    }
}
