//! Headers on their way through: what is between two machines only, what is Sprag's own, what stays.

use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

use super::encoding::READABLE;

/// Headers that concern one connection only.
static HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Headers of a request that do not go on: those for Sprag, and what is said anew of the body.
static NOT_SENT: [HeaderName; 7] = [
    HeaderName::from_static("x-sprag-run-id"),
    HeaderName::from_static("x-sprag-parent-run-id"),
    HeaderName::from_static("x-sprag-agent"),
    HeaderName::from_static("x-agentwall-run-id"),
    TRAILER,
    EXPECT,
    CONTENT_LENGTH,
];

/// With so many headers at most, comparing their names is quicker than a look-up, which reads the name that is asked for
/// letter by letter.
const FEW: usize = 24;

/// The first value of a header, by its name in small letters.
pub(crate) fn first<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h HeaderValue> {
    if headers.len() > FEW {
        return headers.get(name);
    }
    headers.iter().find(|(known, _)| known.as_str() == name).map(|(_, value)| value)
}

/// Headers of a request that may be meant for Sprag: whoever asks for many of them by name looks only at these. Most clients send none.
pub(crate) struct Meant<'h>(Vec<(&'h str, &'h HeaderValue)>);

impl<'h> Meant<'h> {
    pub(crate) fn of(headers: &'h HeaderMap) -> Meant<'h> {
        let named = headers.iter().map(|(name, value)| (name.as_str(), value));
        Meant(named.filter(|(name, _)| may_be_meant(name)).collect())
    }

    /// The first value of a header, by its name in small letters.
    pub(crate) fn first(&self, name: &str) -> Option<&'h HeaderValue> {
        debug_assert!(may_be_meant(name), "`{name}` would never be found");
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Whether a header has the name of one that Sprag reads: of its own, of a session or a thread, of a trace.
fn may_be_meant(name: &str) -> bool {
    ["x-", "session", "thread", "trace"].iter().any(|begin| name.starts_with(begin))
}

/// Removes what belongs to one connection, also what `Connection` names.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    strip_named_by_connection(headers);
    remove_where(headers, |name| HOP_BY_HOP.contains(name));
}

fn strip_named_by_connection(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|list| list.split(','))
            .filter_map(|name| name.trim().parse().ok())
            .collect();
        for name in named {
            headers.remove(name);
        }
    }
}

/// Removes headers by their names. Few of those that could be meant are there.
fn remove_where(headers: &mut HeaderMap, is_meant: impl Fn(&HeaderName) -> bool) {
    let meant: Vec<HeaderName> = headers.keys().filter(|name| is_meant(name)).cloned().collect();
    for name in meant {
        headers.remove(name);
    }
}

/// Makes a client's headers fit for the upstream.
pub(crate) fn prepare_request(headers: &mut HeaderMap, host: &HeaderValue) {
    let takes_trailers = headers.get_all(TE).iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"trailers"));
    strip_named_by_connection(headers);
    remove_where(headers, |name| HOP_BY_HOP.contains(name) || NOT_SENT.contains(name));
    // Those of an answer are passed on; a request goes on without them, as its body was read whole.
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    headers.insert(HOST, host.clone());
}

/// Which encodings an upstream may use for an answer that Sprag reads.
///
/// An answer that will be edited is asked for plain; one that is only watched may use what both the client and Sprag
/// understand.
pub(crate) fn limit_accept_encoding(headers: &mut HeaderMap, will_edit: bool) {
    let accepted = match headers.get(ACCEPT_ENCODING).and_then(|v| v.to_str().ok()) {
        Some(list) if !will_edit => {
            let readable = list.split(',').map(str::trim).filter(|entry| {
                let name = entry.split(';').next().unwrap_or_default().trim();
                READABLE.iter().any(|known| known.eq_ignore_ascii_case(name))
            });
            readable.collect::<Vec<_>>().join(", ")
        }
        _ => String::new(),
    };
    let value = match accepted.is_empty() {
        true => Ok(HeaderValue::from_static("identity")),
        false => HeaderValue::try_from(accepted),
    };
    if let Ok(value) = value {
        headers.insert(ACCEPT_ENCODING, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = list.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.collect()
    }

    #[test]
    fn connection_headers_stay_on_their_connection() {
        let mut map = headers(&[
            ("connection", "close, x-private"),
            ("x-private", "1"),
            ("keep-alive", "5"),
            ("te", "gzip"),
            ("trailer", "x-sum"),
            ("transfer-encoding", "chunked"),
            ("expect", "100-continue"),
            ("content-length", "3"),
            ("x-sprag-run-id", "r"),
            ("x-agent-id", "a"),
            ("authorization", "Bearer k"),
            ("host", "127.0.0.1:7070"),
        ]);
        prepare_request(&mut map, &HeaderValue::from_static("api.example.com"));
        let mut left: Vec<_> = map.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
        left.sort_unstable();
        assert_eq!(left, [("authorization", "Bearer k"), ("host", "api.example.com"), ("x-agent-id", "a")]);
    }

    #[test]
    fn the_first_value_is_found_among_few_and_among_many() {
        let mut map = headers(&[("x-a", "1"), ("authorization", "Bearer k")]);
        map.append("x-a", HeaderValue::from_static("2"));
        let told = |map: &HeaderMap, name| first(map, name).map(|value| value.to_str().unwrap().to_owned());
        for extra in [0, FEW] {
            for number in 0..extra {
                map.insert(HeaderName::try_from(format!("x-{number}")).unwrap(), HeaderValue::from_static("n"));
            }
            assert_eq!(told(&map, "x-a").as_deref(), Some("1"), "{extra}");
            assert_eq!(told(&map, "authorization").as_deref(), Some("Bearer k"), "{extra}");
            assert_eq!(told(&map, "x-b"), None, "{extra}");
        }
    }

    #[test]
    fn what_is_meant_for_sprag_is_found_and_nothing_else_is_looked_at() {
        let mut map = headers(&[("host", "h"), ("x-agent-id", "a"), ("session-id", "s"), ("traceparent", "t")]);
        map.append("x-agent-id", HeaderValue::from_static("b"));
        let meant = Meant::of(&map);
        assert_eq!(meant.0.len(), 4);
        let told = |name| meant.first(name).map(|value| value.to_str().unwrap());
        assert_eq!([told("x-agent-id"), told("session-id"), told("x-other")], [Some("a"), Some("s"), None]);
    }

    #[test]
    fn a_client_that_takes_trailers_gets_those_of_the_answer() {
        let mut request = headers(&[("connection", "te"), ("te", "trailers")]);
        prepare_request(&mut request, &HeaderValue::from_static("api.example.com"));
        assert_eq!(request["te"], "trailers");
        let mut answer = headers(&[("trailer", "x-sum"), ("transfer-encoding", "chunked")]);
        strip_hop_by_hop(&mut answer);
        assert_eq!(answer, headers(&[("trailer", "x-sum")]));
    }

    #[test]
    fn an_upstream_may_only_use_what_both_sides_read() {
        let after = |list: &'static str, will_edit| {
            let mut map = headers(&[("accept-encoding", list)]);
            limit_accept_encoding(&mut map, will_edit);
            map[ACCEPT_ENCODING].to_str().unwrap().to_owned()
        };
        assert_eq!(after("gzip, deflate, br, zstd", false), "gzip, deflate, br, zstd");
        assert_eq!(after("gzip;q=0.5, compress, *", false), "gzip;q=0.5");
        assert_eq!(after("compress", false), "identity");
        assert_eq!(after("gzip", true), "identity");
        let mut none = HeaderMap::new();
        limit_accept_encoding(&mut none, false);
        assert_eq!(none[ACCEPT_ENCODING], "identity");
    }
}
