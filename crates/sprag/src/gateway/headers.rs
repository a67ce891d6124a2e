//! Headers on their way through: what is between two machines only, what is Sprag's own, what stays.

use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};

use super::encoding::READABLE;

/// Headers that concern one connection only.
const HOP_BY_HOP: [HeaderName; 4] = [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE];
const HOP_BY_HOP_OTHERS: [&str; 4] = ["keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"];

/// Headers of a request that are for Sprag and not for the provider.
const OWN: [&str; 4] = ["x-sprag-run-id", "x-sprag-parent-run-id", "x-sprag-agent", "x-agentwall-run-id"];

/// Removes what belongs to one connection, also what `Connection` names.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
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
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    for name in HOP_BY_HOP_OTHERS {
        headers.remove(name);
    }
}

/// Makes a client's headers fit for the upstream.
pub(crate) fn prepare_request(headers: &mut HeaderMap, host: &HeaderValue) {
    let takes_trailers = headers.get_all(TE).iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"trailers"));
    strip_hop_by_hop(headers);
    // Those of an answer are passed on; a request goes on without them, as its body was read whole.
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    headers.remove(TRAILER);
    for name in OWN {
        headers.remove(name);
    }
    headers.remove(EXPECT);
    headers.remove(CONTENT_LENGTH);
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
    let value = if accepted.is_empty() { "identity" } else { &accepted };
    if let Ok(value) = HeaderValue::from_str(value) {
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
